#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::{memory::bounded, policy::shell_command};

fuzz_target!(|input: &[u8]| bounded(input, shell_command));
