use super::*;

#[test]
fn long_text_is_cut_between_lines_and_loses_its_middle() {
    assert_eq!(pieces("one\ntwo\nthree\n", 8, 4), ["one\ntwo\n", "three\n"]);
    assert_eq!(pieces("ääääää", 4, 4), ["ää", "ää", "ää"]);
    assert_eq!(pieces("", 8, 4), [""]);
    let lines: String = (0..9).map(|number| format!("line {number}\n")).collect();
    assert_eq!(pieces(&lines, 7, 4), ["line 0\n", "line 6\n", "line 7\n", "line 8\n"]);
    assert_eq!(pieces(&lines, 7, 1), ["line 8\n"], "the end says where things stand");
}

#[test]
fn tool_texts_are_shortened() {
    let row = TranscriptMessage::new(Role::Tool, "x".repeat(2_000), 0);
    let mut text = String::new();
    render(&mut text, &[row]);
    assert_eq!(text, format!("tool result: {}\n", "x".repeat(500)));
}
