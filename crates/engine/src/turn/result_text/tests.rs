use super::*;

#[test]
fn text_within_the_limit_stays_whole() {
    let mut content = vec![ContentBlock::text("ää"), ContentBlock::text("b")];
    limit(&mut content, 3);
    assert_eq!(content, [ContentBlock::text("ää"), ContentBlock::text("b")]);
}

#[test]
fn the_limit_counts_characters_over_all_blocks() {
    let mut content =
        vec![ContentBlock::text("äää"), ContentBlock::text("bbb"), ContentBlock::text("c")];
    limit(&mut content, 4);
    assert_eq!(
        content,
        [
            ContentBlock::text("äää"),
            ContentBlock::text("b"),
            ContentBlock::text("[truncated 3 chars]")
        ]
    );
}

#[test]
fn images_are_not_counted() {
    let image = ContentBlock::Image(myclaw_llm::ImageContent {
        data: "A".repeat(100),
        mime_type: "image/png".to_owned(),
    });
    let mut content = vec![image.clone(), ContentBlock::text("abc")];
    limit(&mut content, 2);
    assert_eq!(
        content,
        [image, ContentBlock::text("ab"), ContentBlock::text("[truncated 1 chars]")]
    );
}
