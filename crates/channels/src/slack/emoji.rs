//! Slack's names of emoji.

/// Emoji that people use as reactions, with the names that Slack gives them.
const NAMES: [(&str, &str); 40] = [
    ("👍", "thumbsup"),
    ("👎", "thumbsdown"),
    ("👀", "eyes"),
    ("✅", "white_check_mark"),
    ("✔", "heavy_check_mark"),
    ("❌", "x"),
    ("❤", "heart"),
    ("🔥", "fire"),
    ("🎉", "tada"),
    ("🙏", "pray"),
    ("🚀", "rocket"),
    ("👌", "ok_hand"),
    ("👏", "clap"),
    ("🙌", "raised_hands"),
    ("💪", "muscle"),
    ("👋", "wave"),
    ("🤔", "thinking_face"),
    ("😀", "grinning"),
    ("😂", "joy"),
    ("😊", "blush"),
    ("😍", "heart_eyes"),
    ("😅", "sweat_smile"),
    ("😢", "cry"),
    ("😭", "sob"),
    ("😎", "sunglasses"),
    ("😴", "sleeping"),
    ("🤖", "robot_face"),
    ("💡", "bulb"),
    ("⚠", "warning"),
    ("❓", "question"),
    ("❗", "exclamation"),
    ("⏳", "hourglass_flowing_sand"),
    ("⌛", "hourglass"),
    ("📌", "pushpin"),
    ("📝", "memo"),
    ("🔍", "mag"),
    ("⭐", "star"),
    ("💯", "100"),
    ("🦞", "lobster"),
    ("🐛", "bug"),
];

/// The name of an emoji, which is written as itself, as `:name:` or as a name.
pub(super) fn name_of(emoji: &str) -> Option<String> {
    // Followed by the sign that asks for the coloured form, it is the same emoji.
    let emoji = emoji.trim().trim_end_matches('\u{fe0f}');
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == emoji) {
        return Some((*name).to_owned());
    }
    let name = emoji.trim_matches(':');
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '\'' | ':');
    (!name.is_empty() && name.chars().all(is_part)).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn an_emoji_has_one_name_however_it_is_written() {
        for written in ["👍", "👍\u{fe0f}", ":thumbsup:", "thumbsup", " :ThumbsUp: "] {
            assert_eq!(name_of(written).as_deref(), Some("thumbsup"), "{written}");
        }
        assert_eq!(name_of(":wave::skin-tone-2:").as_deref(), Some("wave::skin-tone-2"));
        for unknown in ["🫎", "", "::", "two words"] {
            assert_eq!(name_of(unknown), None, "{unknown}");
        }
    }
}
