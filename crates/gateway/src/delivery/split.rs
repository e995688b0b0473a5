//! Cuts long texts at a channel's limit.

/// The parts of `text`, each of at most `most_chars` characters: cut at the last paragraph, line or word that fits.
pub(super) fn split(text: &str, most_chars: Option<usize>) -> Vec<String> {
    let Some(most) = most_chars.filter(|most| *most > 0) else { return vec![text.to_owned()] };
    let mut rest = text;
    let mut parts = Vec::new();
    while let Some((limit, _)) = rest.char_indices().nth(most) {
        let fits = &rest[..limit];
        let at = ["\n\n", "\n", " "]
            .into_iter()
            .find_map(|gap| fits.rfind(gap).filter(|at| *at > 0))
            .unwrap_or(limit);
        parts.push(rest[..at].to_owned());
        rest = rest[at..].trim_start_matches(['\n', ' ']);
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(rest.to_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn texts_are_cut_where_a_reader_would_pause() {
        assert_eq!(split("all of it", None), ["all of it"]);
        assert_eq!(split("", Some(5)), [""]);
        assert_eq!(split("one two\n\nthree four", Some(12)), ["one two", "three four"]);
        assert_eq!(split("one two\nthree four", Some(9)), ["one two", "three", "four"]);
        assert_eq!(split("ééééééé", Some(3)), ["ééé", "ééé", "é"]);
    }
}
