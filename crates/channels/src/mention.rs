//! Nicknames in texts.

/// Whether a text holds a nickname as a word, in upper or lower case.
pub(crate) fn names(text: &str, nick: &str) -> bool {
    let (text, nick) = (text.to_lowercase(), nick.to_lowercase());
    let is_part = |c: char| c.is_alphanumeric() || "-_[]{}\\|^`".contains(c);
    text.match_indices(&nick).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + nick.len()..].starts_with(is_part)
    })
}

/// The text without the nickname at its start by which it is addressed, as in `claw: hi` and `@claw hi`. A text that is
/// nothing else stays.
pub(crate) fn without_name<'a>(text: &'a str, nick: &str) -> &'a str {
    let marked = text.trim_start().strip_prefix('@');
    let begin = marked.unwrap_or_else(|| text.trim_start());
    let is_name = |begin: &str| !nick.is_empty() && begin.to_lowercase() == nick.to_lowercase();
    let Some((_, after)) = begin.split_at_checked(nick.len()).filter(|(name, _)| is_name(name))
    else {
        return text;
    };
    let rest = after.strip_prefix([':', ',']).or_else(|| marked.map(|_| after)).unwrap_or_default();
    let is_apart = rest.starts_with(char::is_whitespace) && !rest.trim().is_empty();
    if is_apart { rest.trim_start() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{names, without_name};

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

    #[test]
    fn the_name_at_the_start_is_taken_away() {
        for (text, rest) in [
            ("Claw: hi", "hi"),
            (" @claw, hi", "hi"),
            ("@claw hi", "hi"),
            ("claw is here", "claw is here"),
            ("claw:hi", "claw:hi"),
            ("@clawfoot hi", "@clawfoot hi"),
            ("claw: ", "claw: "),
            ("é: hi", "é: hi"),
            ("", ""),
        ] {
            assert_eq!(without_name(text, "claw"), rest, "{text}");
        }
        assert_eq!(without_name("hi", ""), "hi");
    }
}
