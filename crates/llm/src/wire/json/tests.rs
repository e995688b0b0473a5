use super::*;

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "lenient_text")]
    code: Option<Cow<'a, str>>,
}

fn content(json: &str) -> Result<String, ModelError> {
    let mut repaired = String::new();
    parse::<Delta<'_>>(json, &mut repaired)
        .map(|delta| delta.content.unwrap_or_default().0.into_owned())
}

#[test]
fn borrows_what_has_no_escapes() {
    let mut repaired = String::new();
    let delta: Delta<'_> = parse(r#"{"content":"plain","code":"c"}"#, &mut repaired).unwrap();
    assert!(matches!(delta.content, Some(Text(Cow::Borrowed("plain")))));
    assert!(matches!(delta.code, Some(Cow::Borrowed("c"))));
}

#[test]
fn half_an_emoji_becomes_a_replacement_character() {
    assert_eq!(content(r#"{"content":"a\ud83d"}"#).unwrap(), "a\u{FFFD}");
    assert_eq!(
        content(r#"{"content":"\udE00b\ud83d\ud83d\ude00"}"#).unwrap(),
        "\u{FFFD}b\u{FFFD}\u{1F600}"
    );
    assert_eq!(content(r#"{"content":"\\ud83d \ud83d\n"}"#).unwrap(), "\\ud83d \u{FFFD}\n");
}

#[test]
fn a_code_may_be_anything() {
    for (json, code) in [
        (r#"{"code":"x\n"}"#, Some("x\n")),
        (r#"{"code":429}"#, Some("429")),
        (r#"{"code":null}"#, None),
        (r#"{"code":{"a":[1,true]}}"#, None),
        (r#"{"code":[1.5,-2]}"#, None),
        ("{}", None),
    ] {
        let mut repaired = String::new();
        let delta: Delta<'_> = parse(json, &mut repaired).unwrap();
        assert_eq!(delta.code.as_deref(), code, "{json}");
    }
}

#[test]
fn what_is_no_json_is_an_error() {
    assert_eq!(content("{\"content\":\"a").unwrap_err().class, ErrorClass::Timeout);
    assert_eq!(content(r#"{"content":"\ud83d"#).unwrap_err().class, ErrorClass::Timeout);
}
