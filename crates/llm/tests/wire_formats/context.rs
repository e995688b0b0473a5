//! What goes along with the words: images, and the values of the moment.

use myclaw_llm::{Api, ContentBlock, InputKind, Message};
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

/// What changes from turn to turn comes behind the last cache point and is gone from the next request.
#[test]
fn volatile_context_stands_at_the_very_end() {
    let tagged = "<turn-context>\nIt is noon.\n</turn-context>";
    for messages in [turn(Api::AnthropicMessages), turn(Api::AnthropicMessages)[..4].to_vec()] {
        let mut conversation = Conversation::new(Api::AnthropicMessages, &messages);
        conversation.volatile = " It is noon.\n";
        let wire = conversation.wire_messages();
        let last = wire[2]["content"].as_array().unwrap();
        assert_eq!(last[last.len() - 1], json!({"type": "text", "text": tagged}));
        assert_eq!(last[last.len() - 2]["cache_control"], json!({"type": "ephemeral"}));

        let mut conversation = Conversation::new(Api::OpenaiCompletions, &messages);
        conversation.volatile = "It is noon.";
        let wire = conversation.wire_messages();
        let last = wire.as_array().unwrap().last().unwrap();
        assert!(last["content"].as_str().unwrap().ends_with(&format!("\n\n{tagged}")), "{last}");
    }
    let mut conversation =
        Conversation::new(Api::OpenaiCompletions, &[user_blocks(vec![image("image/png")])]);
    conversation.volatile = "It is noon.";
    assert_eq!(
        conversation.wire_messages()[1]["content"][1],
        json!({"type": "text", "text": tagged})
    );
}

/// The bytes before the new messages are the same in every request of a session: in the Messages format but for the
/// cache points, which move on and are no part of what is cached.
#[test]
fn the_prefix_keeps_its_bytes_while_a_conversation_grows() {
    for api in [Api::AnthropicMessages, Api::OpenaiCompletions] {
        let messages = turn(api);
        let body = |end: usize, volatile: &'static str| {
            let mut conversation = Conversation::new(api, &messages[..end]);
            conversation.volatile = volatile;
            let body = String::from_utf8(conversation.encode().body.to_vec()).unwrap();
            body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        for (end, later) in [(1, 4), (1, 5), (4, 5)] {
            let stored = body(end, "");
            let prefix = stored.trim_end_matches(['"', '}', ']']);
            assert!(prefix.len() > 200, "{prefix}");
            let grown = body(later, "three o'clock");
            assert!(grown.starts_with(prefix), "{prefix}\n{grown}");
        }
    }
}
