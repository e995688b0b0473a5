use super::*;
use crate::wire::testing::model;

const PNG_ONLY: ImageTypes = ImageTypes::Only(&["image/png"]);

fn image(mime_type: &str) -> ImageContent {
    ImageContent { data: "AAAA".to_owned(), mime_type: mime_type.to_owned() }
}

fn text(text: &str) -> Piece<'_> {
    Piece::Text(Cow::Borrowed(text))
}

#[test]
fn what_hosts_would_refuse_is_left_out_or_noted() {
    let (png, gif) = (image("image/png"), image("image/gif"));
    let content = [
        ContentBlock::text("a"),
        ContentBlock::text(" \n"),
        ContentBlock::Image(png.clone()),
        ContentBlock::Image(gif.clone()),
    ];
    let seeing = model(&[InputKind::Text, InputKind::Image]);
    let omitted = "[image omitted: this model takes no images]";
    for (model, types, expected) in [
        (&seeing, ImageTypes::All, [text("a"), Piece::Image(&png), Piece::Image(&gif)]),
        (
            &seeing,
            PNG_ONLY,
            [
                text("a"),
                Piece::Image(&png),
                text("[image omitted: image/gif is not supported here]"),
            ],
        ),
        (&model(&[InputKind::Text]), PNG_ONLY, [text("a"), text(omitted), text(omitted)]),
    ] {
        assert_eq!(pieces(model, types, &content), expected);
    }
}

#[test]
fn an_annotation_needs_something_to_be_about() {
    let said = |content: &[&str], annotation: Option<&str>| -> Vec<String> {
        let user = UserMessage {
            content: content.iter().map(|&text| ContentBlock::text(text)).collect(),
            annotation: annotation.map(str::to_owned),
            ..UserMessage::text("", 1)
        };
        let pieces = of_user(&model(&[InputKind::Text]), ImageTypes::All, &user);
        pieces.into_iter().map(|piece| split([piece]).0.unwrap().into_owned()).collect()
    };
    assert_eq!(said(&["a"], Some("noon")), ["a", "noon"]);
    assert_eq!(said(&["a"], Some(" ")), ["a"]);
    assert_eq!(said(&["a"], None), ["a"]);
    assert_eq!(said(&["\n"], Some("noon")), [""; 0]);
}

#[test]
fn texts_become_one() {
    let png = image("image/png");
    let all = || vec![text("a"), Piece::Image(&png), text("b")];
    assert_eq!(split(all()), (Some(Cow::Borrowed("a\nb")), vec![&png]));
    assert_eq!(split([]), (None, Vec::new()));
    assert_eq!(joined_if_text(all()), Err(all()));
    assert_eq!(joined_if_text(vec![text("a"), text("b")]), Ok(Cow::Borrowed("a\nb")));
    // One text is not copied.
    assert!(matches!(joined_if_text(vec![text("a")]), Ok(Cow::Borrowed("a"))));
}
