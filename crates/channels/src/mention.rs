//! Nicknames in texts.

/// Whether a text holds a nickname as a word, in upper or lower case.
pub(crate) fn names(text: &str, nick: &str) -> bool {
    let (text, nick) = (text.to_lowercase(), nick.to_lowercase());
    let is_part = |c: char| c.is_alphanumeric() || "-_[]{}\\|^`".contains(c);
    text.match_indices(&nick).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + nick.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_nickname_is_a_word() {
        for (text, is_named) in [
            ("Claw: hi", true),
            ("hi claw!", true),
            ("CLAW", true),
            ("@claw hi", true),
            ("clawfoot", false),
            ("my_claw", false),
            ("", false),
        ] {
            assert_eq!(names(text, "claw"), is_named, "{text}");
        }
    }
}
