#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::{memory::bounded, properties::server_sent_events};

fuzz_target!(|input: &[u8]| bounded(input, server_sent_events));
