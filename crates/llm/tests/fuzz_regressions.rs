//! Inputs that once broke a property of the fuzz targets (see `docs/develop/fuzzing.md`), checked again.
#![expect(clippy::expect_used, reason = "a helper that fails fails the test that uses it")]

use std::fs;
use std::path::Path;

use myclaw_llm::Api;

#[path = "../../../fuzz/src/properties/mod.rs"]
#[expect(unreachable_pub, clippy::panic, reason = "also a part of the fuzz targets")]
mod properties;

/// Checks every input of a target, and that there are so many.
fn replay(target: &str, count: usize, check: impl Fn(&[u8])) {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
    let mut checked = 0;
    for entry in fs::read_dir(directory).expect("the directory of the target") {
        let path = entry.expect("an input").path();
        // Shown only if the check fails.
        println!("{}", path.display());
        check(&fs::read(path).expect("an input"));
        checked += 1;
    }
    assert_eq!(checked, count);
}

#[test]
fn anthropic_messages() {
    replay("anthropic_messages", 1, |input| properties::answer(Api::AnthropicMessages, input));
}

#[test]
fn openai_completions() {
    replay("openai_completions", 4, |input| properties::answer(Api::OpenaiCompletions, input));
}

#[test]
fn openai_responses() {
    replay("openai_responses", 3, |input| properties::answer(Api::OpenaiResponses, input));
}

#[test]
fn bedrock_converse() {
    replay("bedrock_converse", 1, |input| properties::answer(Api::BedrockConverse, input));
}

/// The framings have no inputs of their own yet.
#[test]
fn framings() {
    replay("openai_completions", 4, properties::server_sent_events);
    replay("bedrock_converse", 1, properties::event_stream);
}
