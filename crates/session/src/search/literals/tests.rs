use super::required_literals;

#[test]
fn every_match_holds_one_of_the_texts() {
    for (expression, texts) in [
        ("a her[o]n by", Some(vec!["a heron by"])),
        ("trains? to \\w+", Some(vec!["train"])),
        (r"^\s*(Rome|Milano) \d+$", Some(vec!["Rome", "Milano"])),
        ("(?:abc){2,}x?", Some(vec!["abc"])),
        ("(abc)?", None),
        ("abc|x", None),
        ("abc|", None),
        (r"\d+", None),
        ("(?i)abc", None),
        ("ab\u{fffd}", None),
        ("x|(", None),
        ("one\ntwo", Some(vec!["one\ntwo"])),
    ] {
        let texts = texts.map(|texts| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(required_literals(expression), texts, "{expression}");
    }
}
