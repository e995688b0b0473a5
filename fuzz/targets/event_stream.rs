#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use myclaw_fuzz::event_stream::mutate;
use myclaw_fuzz::{memory::bounded, properties::event_stream};

fuzz_target!(|input: &[u8]| bounded(input, event_stream));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
