//! What goes along with the words: images and annotations; and what stays the same while a conversation grows.

use myclaw_llm::{Api, ContentBlock, InputKind, Message, UserMessage};
use serde_json::json;

use crate::conversation::*;

#[test]
fn images_travel_where_each_format_wants_them() {
    let messages = [
        user_blocks(vec![ContentBlock::text("See:"), image("image/png")]),
        Message::Assistant(assistant(
            Api::OpenaiCompletions,
            vec![call("one", "a"), call("two", "b")],
        )),
        result("one", vec![ContentBlock::text("a picture"), image("image/png")], false),
        result("two", vec![image("image/tiff")], false),
    ];
    let png = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let anthropic = Conversation::new(Api::AnthropicMessages, &messages).wire_messages();
    let mut cached_png = png.clone();
    cached_png["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(anthropic[0]["content"], json!([{"type": "text", "text": "See:"}, cached_png]));
    assert_eq!(
        anthropic[2]["content"][0]["content"],
        json!([{"type": "text", "text": "a picture"}, png])
    );
    assert_eq!(
        anthropic[2]["content"][1]["content"],
        json!([{"type": "text", "text": "[image omitted: image/tiff is not supported here]"}])
    );

    let url = |kind: &str| json!({"type": "image_url", "image_url": {"url": format!("data:{kind};base64,aGk=")}});
    let openai = Conversation::new(Api::OpenaiCompletions, &messages).wire_messages();
    assert_eq!(openai[1]["content"], json!([{"type": "text", "text": "See:"}, url("image/png")]));
    let note = json!({"type": "text", "text": "Image from the result of tool read:"});
    assert_eq!(
        openai.as_array().unwrap()[3..],
        [
            json!({"role": "tool", "content": "a picture", "tool_call_id": "one"}),
            json!({"role": "tool", "content": "(image in the next message)", "tool_call_id": "two"}),
            json!({"role": "user", "content": [note, url("image/png"), note, url("image/tiff")]}),
        ]
    );
}

#[test]
fn models_without_eyes_are_told_what_is_missing() {
    let messages = [
        user_blocks(vec![image("image/png")]),
        Message::Assistant(assistant(Api::OpenaiCompletions, vec![call("one", "a")])),
        result("one", vec![image("image/png")], false),
    ];
    let omitted = "[image omitted: this model takes no images]";
    for api in [Api::AnthropicMessages, Api::OpenaiCompletions] {
        let mut conversation = Conversation::new(api, &messages);
        conversation.model.input = vec![InputKind::Text];
        let sent = conversation.wire_messages().to_string();
        assert_eq!((sent.matches(omitted).count(), sent.contains("aGk=")), (2, false), "{sent}");
    }
}

/// What is added to a user's message for the model stands behind the user's own words, and never alone.
#[test]
fn annotations_stand_behind_what_the_user_said() {
    let annotated = |content: &[ContentBlock], annotation: &str| {
        let annotation = Some(annotation.to_owned());
        Message::User(UserMessage { content: content.to_vec(), annotation, timestamp: 1 })
    };
    let messages = [
        annotated(&[ContentBlock::text("What time is it?")], "It is noon."),
        annotated(&[ContentBlock::text(" ")], "Nothing was said."),
        annotated(&[image("image/png")], "A picture."),
        annotated(&[ContentBlock::text("Well?")], " "),
    ];
    let openai = Conversation::new(Api::OpenaiCompletions, &messages).wire_messages();
    let url = json!({"url": "data:image/png;base64,aGk="});
    let picture = json!([
        {"type": "image_url", "image_url": url},
        {"type": "text", "text": "A picture."},
    ]);
    assert_eq!(
        openai.as_array().unwrap()[1..],
        [
            json!({"role": "user", "content": "What time is it?\nIt is noon."}),
            json!({"role": "user", "content": picture}),
            json!({"role": "user", "content": "Well?"}),
        ]
    );
    let anthropic = Conversation::new(Api::AnthropicMessages, &messages).wire_messages();
    let texts: Vec<_> =
        anthropic[0]["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
    assert_eq!(
        texts,
        [
            &json!("What time is it?"),
            &json!("It is noon."),
            &json!(null),
            &json!("A picture."),
            &json!("Well?")
        ]
    );
}

/// The bytes before the new messages are the same in every request of a session: in the Messages format but for the
/// cache points, which move on and are no part of what is cached.
#[test]
fn the_prefix_keeps_its_bytes_while_a_conversation_grows() {
    for api in [Api::AnthropicMessages, Api::OpenaiCompletions] {
        let messages = turn(api);
        let body = |end: usize| {
            let conversation = Conversation::new(api, &messages[..end]);
            let body = String::from_utf8(conversation.encode().body.to_vec()).unwrap();
            body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        for (end, later) in [(1, 4), (1, 5), (4, 5)] {
            let earlier = body(end);
            let prefix = earlier.trim_end_matches(['"', '}', ']']);
            assert!(prefix.len() > 200, "{prefix}");
            assert!(body(later).starts_with(prefix), "{prefix}\n{}", body(later));
        }
    }
}
