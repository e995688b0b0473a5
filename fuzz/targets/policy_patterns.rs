#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::{memory::bounded, policy::patterns};

fuzz_target!(|input: &[u8]| bounded(input, patterns));
