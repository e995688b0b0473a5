use myclaw_llm::{ImageContent, UserMessage};
use myclaw_session::EntryId;

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
