use super::*;

#[test]
fn what_can_be_seen_stays() {
    let text = "git commit -m 'naïve Größe 日本語 🦀' && echo \"$HOME\"";
    assert_eq!(escape(text), text);
}

#[test]
fn what_hides_or_moves_other_text_is_written_out() {
    for (text, expected) in [
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u{1b}[2Jls", "\\u{1b}[2Jls"),
        ("\u{9b}1m", "\\u{9b}1m"),
        ("nul\0byte", "nul\\u{0}byte"),
        ("rm \u{202e}fdp.exe", "rm \\u{202e}fdp.exe"),
        ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
        ("l\u{200b}s", "l\\u{200b}s"),
        ("no\u{a0}break", "no\\u{a0}break"),
        ("line\u{2028}separator", "line\\u{2028}separator"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
        ("\u{feff}bom", "\\u{feff}bom"),
        ("del\u{7f}", "del\\u{7f}"),
        ("private\u{e000}", "private\\u{e000}"),
        ("selector\u{fe0f}", "selector\\u{fe0f}"),
    ] {
        assert_eq!(escape(text), expected);
    }
}
