//! Quotes plain text in Markdown, because clients render text as Markdown.

/// `text` as a code block. It may contain anything. `info` follows the fence, and is usually empty.
pub(super) fn fenced(info: &str, text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{info}\n{text}{end}{fence}")
}

/// `text` as inline code. It may contain anything.
pub(super) fn code(text: &str) -> String {
    if text.contains('`') { text.to_owned() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("", "a\n"), "```\na\n```");
        assert_eq!(fenced("rust", "a"), "```rust\na\n```");
        assert_eq!(fenced("", "```\n````x"), "`````\n```\n````x\n`````");
    }

    #[test]
    fn code_with_a_backtick_stays_as_it_is() {
        assert_eq!(code("ls -l"), "`ls -l`");
        assert_eq!(code("echo `date`"), "echo `date`");
    }
}
