use super::*;

#[test]
fn a_marker_in_a_text_is_escaped() {
    let markers = Markers::default();
    let json = r#"{"result":"x ---NANOCLAW_OUTPUT_END--- y"}"#;
    let block = markers.around(json);
    assert_eq!(block.matches("---NANOCLAW_OUTPUT_END---").count(), 1);
    let inner = block.lines().nth(1).unwrap();
    let value: serde_json::Value = serde_json::from_str(inner).unwrap();
    assert_eq!(value["result"], "x ---NANOCLAW_OUTPUT_END--- y");
}

#[test]
fn markers_that_could_be_json_are_refused() {
    let marker = |start: &str, end: &str| Markers::new(start.to_owned(), end.to_owned());
    assert!(marker("--a--", "--b--").is_ok());
    for (start, end) in [("{", "--b"), ("", "--b"), ("a", "--b"), ("--a", "--a"), ("--a\n", "--b")]
    {
        assert!(marker(start, end).is_err(), "{start:?} {end:?}");
    }
}
