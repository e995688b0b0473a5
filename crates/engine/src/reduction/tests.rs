use myclaw_llm::{ImageContent, UserMessage};
use myclaw_session::EntryId;
use serde_json::json;

use super::*;

fn reduced(content: Vec<ContentBlock>, head: usize, tail: usize) -> Vec<ContentBlock> {
    let mut message = Message::User(UserMessage { content, annotation: None, timestamp: 0 });
    apply(&mut message, Reduction { id: EntryId::generate(), head, tail });
    let Message::User(user) = message else { unreachable!() };
    user.content
}

fn picture() -> ContentBlock {
    ContentBlock::Image(ImageContent { data: "AAAA".into(), mime_type: "image/png".into() })
}

#[test]
fn the_beginning_and_the_end_remain_and_the_rest_is_counted_in_characters() {
    let text = || vec![ContentBlock::text("äbcdefghij")];
    assert_eq!(reduced(text(), 4, 0), [ContentBlock::text("äbcd\n[truncated 6 chars]")]);
    assert_eq!(reduced(text(), 2, 3), [ContentBlock::text("äb\n[… 5 chars left out …]\nhij")]);
    assert_eq!(
        reduced(text(), 0, 0),
        [ContentBlock::text("[10 chars of old output were left out]")]
    );
    assert_eq!(reduced(text(), 5, 5), text());
}

#[test]
fn pictures_stay_unless_nothing_does() {
    let both = || vec![ContentBlock::text("abc"), picture(), ContentBlock::text("def")];
    assert_eq!(reduced(both(), 1, 0), [ContentBlock::text("a\n[truncated 6 chars]"), picture()]);
    assert_eq!(
        reduced(both(), 0, 0),
        [ContentBlock::text("[7 chars of old output were left out]")]
    );
    assert_eq!(
        reduced(vec![picture()], 0, 0),
        [ContentBlock::text("[an old picture was left out]")]
    );
}

/// The blocks of an answer that is cut to `limit` characters.
fn cut(mut content: Vec<ContentBlock>, limit: usize) -> Vec<ContentBlock> {
    cut_answer(&mut content, Reduction { id: EntryId::generate(), head: limit, tail: 0 });
    content
}

fn call(arguments: &serde_json::Value) -> ContentBlock {
    serde_json::from_value(
        json!({"type": "toolCall", "id": "a", "name": "write", "arguments": arguments}),
    )
    .unwrap()
}

#[test]
fn the_texts_of_a_call_share_the_room_and_nothing_else_changes() {
    let thinking: ContentBlock =
        serde_json::from_value(json!({"type": "thinking", "thinking": "hm"})).unwrap();
    let long = "ä".repeat(200);
    let arguments =
        |text: &str| json!({"path": "a.txt", "mode": 7, "parts": [{"text": text}, text]});
    let content = vec![thinking, ContentBlock::text("done"), call(&arguments(&long))];
    let short = format!("{}\n[truncated 180 chars]", "ä".repeat(20));
    assert_eq!(cut(content.clone(), 60), [ContentBlock::text("done"), call(&arguments(&short))]);
    assert_eq!(cut(content.clone(), 1_000), content, "a message that fits keeps its thinking too");

    let raw = |text: &str| {
        let ContentBlock::ToolCall(mut call) = call(&json!({})) else { unreachable!() };
        call.invalid_arguments = Some(text.to_owned());
        vec![ContentBlock::ToolCall(call)]
    };
    assert_eq!(cut(raw(&long), 20), raw(&short), "arguments that were no JSON");
    let thoughts: ContentBlock =
        serde_json::from_value(json!({"type": "thinking", "thinking": long})).unwrap();
    assert_eq!(cut(vec![thoughts, ContentBlock::text("done")], 60), [ContentBlock::text("done")]);
}
