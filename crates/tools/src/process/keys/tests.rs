use super::*;

fn sent(keys: &[&str]) -> String {
    sent_in(keys, TerminalModes::default())
}

fn sent_in(keys: &[&str], modes: TerminalModes) -> String {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    String::from_utf8(bytes_of(&keys, modes).unwrap()).unwrap()
}

#[test]
fn keys_send_what_a_terminal_sends() {
    assert_eq!(
        sent(&["a", "Ä", "Enter", "up", "Ctrl-C", "c-d", "^[", "ctrl+z"]),
        "aÄ\r\x1b[A\x03\x04\x1b\x1a"
    );
    assert_eq!(
        sent(&["alt-x", "M-Enter", "shift-tab", "F12", "PageUp", "-", "^"]),
        "\x1bx\x1b\r\x1b[Z\x1b[24~\x1b[5~-^"
    );
    assert_eq!(sent(&["alt-X"]), "\x1bX", "the case of a character counts");
}

#[test]
fn cursor_keys_follow_the_mode() {
    let modes = TerminalModes { cursor_keys: true, ..TerminalModes::default() };
    assert_eq!(sent_in(&["up", "home", "f1"], modes), "\x1bOA\x1bOH\x1bOP");
}

#[test]
fn an_unknown_key_lists_the_known_ones() {
    for key in ["entre", "", "ctrl-", "ctrl-enterx", "alt-", "ctrl-ä"] {
        let error = bytes_of(&[key.to_owned()], TerminalModes::default()).unwrap_err();
        assert!(error.starts_with(&format!("there is no key {key:?}; keys are ")), "{error}");
    }
}

#[test]
fn a_paste_cannot_end_itself() {
    let modes = TerminalModes { paste_brackets: true, ..TerminalModes::default() };
    assert_eq!(pasted("a\nb", modes), b"\x1b[200~a\rb\x1b[201~");
    assert_eq!(pasted("a\x1b[201~; rm b", modes), b"\x1b[200~a; rm b\x1b[201~");
    assert_eq!(pasted("\x1b[2\x1b[201~01~x", modes), b"\x1b[200~x\x1b[201~");
    assert_eq!(pasted("a\r\nb", TerminalModes::default()), b"a\rb");
}
