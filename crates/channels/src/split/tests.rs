//! Tests of cutting.

use proptest::prelude::*;

use super::*;

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[test]
fn texts_are_cut_where_a_reader_would_pause() {
    assert_eq!(split("", 5, chars), [""]);
    assert_eq!(split("one two\n\nthree four", 12, chars), ["one two", "three four"]);
    assert_eq!(split("one two\nthree four", 9, chars), ["one two", "three", "four"]);
    assert_eq!(split("ééééééé", 3, chars), ["ééé", "ééé", "é"]);
    assert_eq!(split("😀😀😀", 4, utf16_units), ["😀😀", "😀"]);
    assert_eq!(split("aa\n\nbbbb\ncc\n\ndddd", 12, chars), ["aa\n\nbbbb\ncc", "dddd"]);
}

#[test]
fn a_code_block_that_continues_is_closed_and_opened_again() {
    let text = "intro\n```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\nend";
    assert_eq!(
        split(text, 36, chars),
        ["intro\n```rust\nlet a = 1;\n```", "```rust\nlet b = 2;\nlet c = 3;\n```", "end"]
    );
    // A fence of the other kind, or a shorter one, is code.
    let text = "~~~~\n```\n~~~\naaaa\nbbbb\n~~~~";
    assert_eq!(split(text, 22, chars), ["~~~~\n```\n~~~\naaaa\n~~~~", "~~~~\nbbbb\n~~~~"]);
    // A line of code that is longer than a part.
    assert_eq!(split("```\nabcdefghij\n```", 13, chars), ["```\nabcde\n```", "```\nfghij\n```"]);
}

/// Whether every code block of a part ends in it.
fn is_whole(part: &str) -> bool {
    let mut fence = None;
    for line in part.split('\n') {
        fence = fence_after(fence.as_ref(), line);
    }
    fence.is_none()
}

proptest! {
    #[test]
    fn parts_are_short_and_whole_and_lose_nothing(
        lines in prop::collection::vec(prop_oneof![
            "[a-z ]{0,30}", Just(String::new()), Just("```rust".to_owned()), Just("```".to_owned()),
            Just("~~~".to_owned()), "[😀é]{1,20}",
        ], 0..40),
        limit in 30_usize..80,
    ) {
        let text = lines.join("\n");
        let parts = split(&text, limit, utf16_units);
        if parts.len() > 1 {
            for part in &parts[..parts.len() - 1] {
                prop_assert!(is_whole(part), "{part:?}");
            }
        }
        for part in &parts {
            prop_assert!(utf16_units(part) <= limit, "{} > {limit}: {part:?}", utf16_units(part));
        }
        let words = |text: &str| text.chars().filter(|c| c.is_alphabetic() || *c == '😀')
            .collect::<String>().replace("rust", "");
        prop_assert_eq!(words(&parts.concat()), words(&text));
    }
}
