#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::web::page;

fuzz_target!(|input: &[u8]| page(input));
