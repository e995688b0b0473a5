use super::PlainText;

#[test]
fn escape_sequences_vanish_wherever_the_bytes_are_cut() {
    let written =
        "\x1b[?2004h\x1b]0;a title\x07a\x1b[31mü\x1b[0m\r\n\x1b(B\x1b]8;;x\x1b\\b\x1b[6n\x1b7c"
            .as_bytes();
    for cut in 0..=written.len() {
        let mut plain = String::new();
        let mut filter = PlainText::default();
        let questions =
            filter.take(&written[..cut], &mut plain) + filter.take(&written[cut..], &mut plain);
        assert_eq!((plain.as_str(), questions), ("aü\nbc", 1), "cut at {cut}");
    }
}
