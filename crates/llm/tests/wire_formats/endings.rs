//! Where an answer is taken to end, and what its last word means.

use myclaw_llm::sse::Frame;
use myclaw_llm::wire::{AnswerBody, Decoder, Progress};
use myclaw_llm::{Api, ErrorClass, StopReason};
use serde_json::{Value, json};

use crate::decoding::*;
use crate::support::model;

/// How far the answer is after each event.
fn progress(api: Api, events: &[Value]) -> Vec<Progress> {
    let mut decoder = Decoder::new(&model(api, "http://localhost"), &[], 42).unwrap();
    let mut feed = |event: &Value| {
        let frame = Frame { event: "".into(), data: event.to_string().into(), terminated: true };
        decoder.feed(&frame, &mut |_| {}).unwrap()
    };
    events.iter().map(&mut feed).collect()
}

#[test]
fn a_reason_for_stopping_ends_nothing_while_more_comes() {
    use Progress::{Advanced, Complete};
    let google = |parts: Value, reason: Option<&str>| json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}]});
    let text = json!([{"text": "a"}]);
    // Translating gateways send the reason before there is anything, and older services with every piece.
    let events = [
        google(json!([]), Some("STOP")),
        google(text.clone(), Some("FINISH_REASON_UNSPECIFIED")),
        google(text.clone(), Some("")),
        google(text.clone(), Some("STOP")),
        google(text, None),
        google(json!([]), Some("STOP")),
        json!({"usageMetadata": {"promptTokenCount": 1}}),
    ];
    let expected = [Advanced, Advanced, Advanced, Complete, Advanced, Complete, Complete];
    assert_eq!(progress(Api::GoogleGenerativeAi, &events), expected);

    let piece = |content: &str, reason: Option<&str>| json!({"choices": [{"delta": {"role": "assistant", "content": content}, "finish_reason": reason}]});
    let events = [
        piece("", Some("stop")),
        piece("a", None),
        piece("b", Some("stop")),
        piece("c", None),
        piece("", Some("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
    ];
    let expected = [Advanced, Advanced, Complete, Advanced, Complete, Complete];
    assert_eq!(progress(Api::OpenaiCompletions, &events), expected);
}

#[test]
fn what_came_last_in_a_chunk_says_how_far_the_answer_is() {
    let model = model(Api::OpenaiCompletions, "http://localhost");
    let mut decoder = Decoder::new(&model, &[], 42).unwrap();
    let mut body = AnswerBody::default();
    let mut feed = |events: &[Value]| {
        let chunk: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        body.feed(chunk.as_bytes(), &mut decoder, &mut |_| {}).unwrap()
    };
    let text = || delta(json!({"content": "a"}));
    let nothing = || json!({"choices": []});
    assert_eq!(feed(&[nothing()]), Some(Progress::KeepAlive));
    assert_eq!(feed(&[text(), nothing()]), Some(Progress::Advanced));
    assert_eq!(feed(&[finish("stop"), text()]), Some(Progress::Advanced));
    assert_eq!(feed(&[text(), finish("stop")]), Some(Progress::Complete));
}

#[test]
fn a_refusal_without_a_word_is_complete() {
    let google = json!({"candidates": [{"finishReason": "SAFETY"}]});
    assert_eq!(progress(Api::GoogleGenerativeAi, &[google]), [Progress::Complete]);
    assert_eq!(progress(Api::OpenaiCompletions, &[finish("content_filter")]), [Progress::Complete]);
}

/// MiniMax ends its streams so.
#[test]
fn a_whole_message_behind_its_pieces_repeats_them() {
    let whole = json!({
        "object": "chat.completion",
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "ab"}}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
    });
    let pieces = ["a", "b"].map(|text| delta(json!({"content": text})));
    let (message, _) = openai(&[&pieces[..], std::slice::from_ref(&whole)].concat());
    let message = message.unwrap();
    assert_eq!((message.text().as_str(), message.usage.input), ("ab", 2));
    let (message, _) = openai(&[whole]);
    assert_eq!(message.unwrap().text(), "ab");
    // Where there are no deltas, messages are the pieces.
    let piece = |text: &str| json!({"choices": [{"message": {"content": text}}]});
    let (message, _) = openai(&[piece("a"), piece("b"), finish("stop")]);
    assert_eq!(message.unwrap().text(), "ab");
}

/// Gemini's compatible endpoint says behind the word of this format why it used it.
#[test]
fn the_words_of_gemini_s_compatible_endpoint_are_known() {
    let ended = |chunks: &[Value]| openai(chunks).0.map(|message| message.stop_reason);
    let text = || delta(json!({"content": "a"}));
    for reason in ["function_call_filter: MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"] {
        let error = ended(&[finish(reason)]).unwrap_err();
        assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Timeout, Some(reason)));
        assert!(ended(&[text(), finish(reason)]).is_err());
    }
    for reason in ["content_filter: SAFETY", "content_filter: PROHIBITED_CONTENT"] {
        assert_eq!(ended(&[text(), finish(reason)]), Ok(StopReason::Refusal));
    }
    // Behind OpenRouter it is the word of the host behind it.
    let choice = json!({"delta": {}, "finish_reason": "stop", "native_finish_reason": "MALFORMED_FUNCTION_CALL"});
    assert!(ended(&[json!({"choices": [choice]})]).is_err());
}

/// A session that fills the window must be compacted: were it an answer that the output limit cut, every further
/// turn would end so. What arrived before the window was full is an answer that was cut.
#[test]
fn a_full_window_without_an_answer_is_an_overflow() {
    const REASON: &str = "model_context_window_exceeded";
    let model = |api| model(api, "http://localhost");
    let ended = |api, frames: &[(&str, Value)]| {
        let model = model(api);
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        for (name, event) in frames {
            let data = event.to_string();
            let frame = Frame { event: (*name).into(), data: data.into(), terminated: true };
            decoder.feed(&frame, &mut |_| {}).unwrap();
        }
        let outcome = decoder.finish(&mut |_| {}).map(|message| message.stop_reason);
        (outcome, decoder.partial(StopReason::Error, "").map_or(0, |partial| partial.usage.input))
    };
    let whole = |api, body: Value| {
        let model = model(api);
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        decoder.feed_whole(&body.to_string(), &mut |_| {}).unwrap();
        decoder.finish(&mut |_| {}).map(|message| message.stop_reason)
    };
    let claude_block = json!({"index": 0, "delta": {"type": "text_delta", "text": "half"}});
    let claude_end = json!({"delta": {"stop_reason": REASON}, "usage": {"input_tokens": 7}});
    let claude = |with_text: Vec<(&'static str, Value)>| {
        let rest = [("message_delta", claude_end.clone()), ("message_stop", json!({}))];
        ended(Api::AnthropicMessages, &[with_text, rest.to_vec()].concat())
    };
    let bedrock_block = json!({"contentBlockIndex": 0, "delta": {"text": "half"}});
    let bedrock = |with_text: Vec<(&'static str, Value)>| {
        let rest = [
            ("messageStop", json!({"stopReason": REASON})),
            ("metadata", json!({"usage": {"inputTokens": 7}})),
        ];
        ended(Api::BedrockConverse, &[with_text, rest.to_vec()].concat())
    };
    for (outcome, input) in [claude(vec![]), bedrock(vec![])] {
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.class, error.code.as_deref()),
            (ErrorClass::ContextOverflow, Some(REASON))
        );
        assert_eq!((error.status, input), (Some(200), 7));
    }
    for (outcome, _) in [
        claude(vec![("content_block_delta", claude_block)]),
        bedrock(vec![("contentBlockDelta", bedrock_block)]),
    ] {
        assert_eq!(outcome, Ok(StopReason::Length));
    }
    for outcome in [
        whole(Api::AnthropicMessages, json!({"content": [], "stop_reason": REASON})),
        whole(
            Api::BedrockConverse,
            json!({"output": {"message": {"content": []}}, "stopReason": REASON}),
        ),
    ] {
        assert_eq!(outcome.unwrap_err().class, ErrorClass::ContextOverflow);
    }
}
