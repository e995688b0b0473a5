use std::borrow::Cow;

/// `text`, or its first `most_chars` characters and an ellipsis if it has more.
#[must_use]
pub fn shortened(text: &str, most_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn only_what_is_longer_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
        assert_eq!(shortened("", 0), "");
        assert_eq!(shortened("a", 0), "…");
    }
}
