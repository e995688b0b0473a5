//! What an answer may hold that a message does not keep, and parts that are kept as text.

use myclaw_llm::wire::Decoder;
use myclaw_llm::{Api, AssistantMessage, ContentBlock, StopReason};
use serde_json::{Value, json};

use crate::decoding::*;
use crate::support::model;

fn texts<'a>(message: &'a AssistantMessage) -> Vec<&'a str> {
    let text = |block: &'a ContentBlock| match block {
        ContentBlock::Text(text) => text.text.as_str(),
        other => panic!("no text: {other:?}"),
    };
    message.content.iter().map(text).collect()
}

/// The answer in a stream of events without names.
fn streamed(api: Api, events: &[Value]) -> AssistantMessage {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let (message, events) = decode(api, body);
    let message = message.unwrap();
    assert_matches_events(&message, &events);
    message
}

fn whole(api: Api, body: &Value) -> AssistantMessage {
    let mut decoder = Decoder::new(&model(api, "http://localhost"), &[], 42).unwrap();
    decoder.feed_whole(&body.to_string(), &mut |_| {}).unwrap();
    decoder.finish(&mut |_| {}).unwrap()
}

const IMAGE: &str = "[image omitted: only the text of an answer is kept]";
const PNG: &str = "[image/png omitted: only the text of an answer is kept]";

#[test]
fn an_image_of_google_leaves_a_note() {
    let parts = json!([
        {"text": "Here:"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": true},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "s"},
        {"inlineData": {"mimeType": "image/png", "data": "BBBB"}},
        {"fileData": {"mimeType": "audio/wav", "fileUri": "gs://a"}},
        {"inlineData": {"mimeType": "a\nb", "data": "AAAA"}},
        {"inlineData": {"data": "AAAA"}},
        {"text": "Nice?"},
    ]);
    let response = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let message = streamed(Api::GoogleGenerativeAi, &[response]);
    let audio = "[audio/wav omitted: only the text of an answer is kept]";
    let odd = "[a b omitted: only the text of an answer is kept]";
    let nameless = "[file omitted: only the text of an answer is kept]";
    assert_eq!(texts(&message), ["Here:", PNG, audio, odd, nameless, "Nice?"]);
}

#[test]
fn code_that_google_ran_is_kept_as_text() {
    let parts = json!([
        {"text": "I count."},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "s"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"text": "One."},
    ]);
    let response = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let message = streamed(Api::GoogleGenerativeAi, &[response]);
    assert_eq!(texts(&message), ["I count.\n```python\nprint(1)\n```\n\n```\n1\n```\nOne."]);
}

#[test]
fn an_image_in_chat_completions_leaves_a_note() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    for delta_with_image in [
        json!({"role": "assistant", "content": "", "images": [image, image]}),
        json!({"role": "assistant", "content": [image]}),
    ] {
        let chunks = [
            delta(json!({"content": "Here:"})),
            delta(delta_with_image.clone()),
            delta(json!({"content": "Nice?", "images": []})),
            finish("stop"),
        ];
        assert_eq!(texts(&openai(&chunks).0.unwrap()), ["Here:", IMAGE, "Nice?"]);
        let choice = json!({"message": delta_with_image, "finish_reason": "stop"});
        let message = whole(Api::OpenaiCompletions, &json!({"choices": [choice]}));
        assert_eq!(texts(&message), [IMAGE]);
    }
}

#[test]
fn an_image_of_responses_leaves_a_note() {
    let item = json!({"type": "image_generation_call", "id": "ig", "status": "completed", "result": "AAAA"});
    let failed =
        json!({"type": "image_generation_call", "id": "ih", "status": "failed", "result": null});
    let message = streamed(
        Api::OpenaiResponses,
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": failed}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": failed}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": item}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [failed, item]}}),
        ],
    );
    assert_eq!(texts(&message), [IMAGE]);
}

#[test]
fn an_image_of_bedrock_leaves_a_note() {
    let answer = json!({
        "output": {"message": {"role": "assistant", "content": [
            {"text": "Here:"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        ]}},
        "stopReason": "end_turn",
    });
    let message = whole(Api::BedrockConverse, &answer);
    assert_eq!((texts(&message), message.stop_reason), (vec!["Here:", PNG], StopReason::Stop));
}
