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

#[test]
fn what_was_written_out_is_read_back_and_nothing_else_is_made() {
    for text in ["rm \u{202e}fdp.exe", "a\nb\tc\rd", "\u{1b}[2Jls", "x\u{61c}\u{2066}y"] {
        assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
    }
    for other in [
        "plain.txt",
        "a\\b",
        "\\",
        "\\u",
        "\\u{",
        "\\u{}",
        "\\u{2f}etc",
        "\\u{2e}\\u{2e}",
        "\\u{61}",
        "\\u{110000}",
        "\\u{d800}",
        "\\x2f",
    ] {
        assert_eq!(unescape(other), None, "{other}");
    }
    assert_eq!(unescape("\\u{2f}\\u{202e}").as_deref(), Some("\\u{2f}\u{202e}"));
}
