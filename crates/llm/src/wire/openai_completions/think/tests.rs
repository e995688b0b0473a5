use super::*;

/// What the pieces of `content` are, with neighbours of one kind joined.
fn split<'a>(content: impl IntoIterator<Item = &'a str>) -> Vec<(Prose, String)> {
    let mut found: Vec<(Prose, String)> = Vec::new();
    let mut take = |prose: Prose, text: &str| match found.last_mut() {
        _ if text.is_empty() => {}
        Some((last, joined)) if *last == prose => joined.push_str(text),
        _ => found.push((prose, text.to_owned())),
    };
    let mut tags = ThinkTags::new();
    for piece in content {
        tags.feed(piece, &mut take);
    }
    tags.finish(&mut take);
    found
}

#[test]
fn a_tag_may_be_cut_anywhere() {
    for (content, expected) in [
        ("<think>hm</think>yes", vec![(Prose::Thinking, "hm"), (Prose::Text, "yes")]),
        (
            "\n<think>\nhm\n\nso\n</think>\n\nyes\n",
            vec![(Prose::Thinking, "hm\n\nso"), (Prose::Text, "yes\n")],
        ),
        (
            "<thinking>a < b </thin k></thinking>é",
            vec![(Prose::Thinking, "a < b </thin k>"), (Prose::Text, "é")],
        ),
        ("<think>never ended</th", vec![(Prose::Thinking, "never ended</th")]),
        ("<think></think>yes", vec![(Prose::Text, "yes")]),
        // In later text it is the model's own.
        ("The <think>tag</think> is", vec![(Prose::Text, "The <think>tag</think> is")]),
        (
            "<think>a</think>b<think>c</think>",
            vec![(Prose::Thinking, "a"), (Prose::Text, "b<think>c</think>")],
        ),
        (
            "<|start|>assistant<|channel|>analysis<|message|>hm <|x|> so<|end|><|start|>assistant<|channel|>final<|message|>Hello",
            vec![(Prose::Thinking, "hm <|x|> so"), (Prose::Text, "Hello")],
        ),
        (
            "<|channel|>analysis<|message|>hm<|end|>\n<|start|>assistant<|channel|>final<|message|>Hello<|return|>",
            vec![(Prose::Thinking, "hm"), (Prose::Text, "Hello")],
        ),
        (
            "<|channel|>analysis<|message|>hm<|channel|>final<|message|>é <b",
            vec![(Prose::Thinking, "hm"), (Prose::Text, "é <b")],
        ),
        (
            "<|channel|>commentary<|message|>I look.<|end|><|channel|>final<|message|>Hello<|end|>",
            vec![(Prose::Text, "I look.\n\nHello")],
        ),
        // A call stays as it is for the reader of the whole answer, and so does what is no such form.
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{}<|call|>",
            vec![
                (Prose::Thinking, "hm"),
                (
                    Prose::Text,
                    "<|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{}<|call|>",
                ),
            ],
        ),
        (
            "<|channel|>analysis<|message|>never ended<|en",
            vec![(Prose::Thinking, "never ended<|en")],
        ),
        ("<|channel|>is a mark", vec![(Prose::Text, "<|channel|>is a mark")]),
        ("<|start|>user", vec![(Prose::Text, "<|start|>user")]),
        ("<thin ice", vec![(Prose::Text, "<thin ice")]),
        ("  <", vec![(Prose::Text, "  <")]),
        ("", vec![]),
    ] {
        let expected: Vec<(Prose, String)> =
            expected.into_iter().map(|(prose, text)| (prose, text.to_owned())).collect();
        assert_eq!(split([content]), expected, "{content:?}");
        let single: Vec<String> = content.chars().map(String::from).collect();
        assert_eq!(split(single.iter().map(String::as_str)), expected, "{content:?} by character");
        for (cut, _) in content.char_indices() {
            assert_eq!(split([&content[..cut], &content[cut..]]), expected, "{content:?} at {cut}");
        }
    }
}
