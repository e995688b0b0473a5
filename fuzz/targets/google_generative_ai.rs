#![no_main]

use libfuzzer_sys::fuzz_target;
use myclaw_fuzz::{memory::bounded, properties::answer};
use myclaw_llm::Api;

fuzz_target!(|input: &[u8]| bounded(input, |input| answer(Api::GoogleGenerativeAi, input)));
