use super::*;

fn sent(bytes: &[u8]) -> (Vec<(String, SendKey)>, String) {
    let mut line = TypedLine::default();
    let keys = line.press(bytes).into_iter();
    let lines = keys.map(|key| match key {
        Key::Send(line) => (line.text, line.key),
        other => panic!("not a line: {other:?}"),
    });
    (lines.collect(), line.take())
}

#[test]
fn enter_and_alt_enter_send_what_is_not_blank() {
    let (lines, rest) = sent("stop\rlater\x1b\r \r\x1b\rhalf".as_bytes());
    let expected = [("stop".to_owned(), SendKey::Enter), ("later".to_owned(), SendKey::AltEnter)];
    assert_eq!((lines, rest.as_str()), (expected.to_vec(), "half"));
}

#[test]
fn keys_that_edit_do_and_others_leave_no_trace() {
    assert_eq!(sent("cä\u{1f600}\x7f\x7fb".as_bytes()).1, "cb");
    assert_eq!(sent(b"gone\x15one two  \x17three").1, "one three");
    assert_eq!(sent(b"a\x1b[A\x1bOP\x1b[1;5C\x01\x07\tb").1, "a b");
    assert_eq!(sent(b"a\xffb").1, "ab");
}

#[test]
fn a_paste_is_one_message_wherever_its_bytes_are_cut() {
    let mut line = TypedLine::default();
    let mut lines = Vec::new();
    for byte in "\x1b[200~one\n\ttwö\x1b[201~\r".bytes() {
        lines.extend(line.press(&[byte]));
    }
    let text = "one\n\ttwö".to_owned();
    assert_eq!(lines, [Key::Send(SentLine { text, key: SendKey::Enter })]);
}

#[test]
fn a_line_without_end_is_bounded() {
    assert_eq!(sent(&vec![b'x'; 2 * MAX_BYTES]).1.len(), MAX_BYTES);
}

#[test]
fn ctrl_o_and_ctrl_t_are_keys_of_their_own_except_in_a_paste() {
    let mut line = TypedLine::default();
    assert_eq!(line.press(b"a\x0fb\x14"), [Key::Unfold, Key::Thinking]);
    assert_eq!(line.press(b"\x1b[200~\x0f\x14\x1b[201~"), []);
    assert_eq!(line.take(), "ab");
}

#[test]
fn ctrl_d_leaves_on_an_empty_line_only() {
    let mut line = TypedLine::default();
    assert_eq!(line.press(b"\x04"), [Key::Leave]);
    assert_eq!(line.press(b"ab\x04"), []);
    assert_eq!(line.text(), "ab");
    assert_eq!(line.press(b"\x15\x1b[200~\x04\x1b[201~"), []);
}
