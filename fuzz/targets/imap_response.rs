#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::imap::response;

fuzz_target!(|input: &[u8]| response(input));
