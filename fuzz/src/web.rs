//! What must hold for any page that a server sends.

use myclaw_web::to_markdown;
use url::Url;

/// Markdown may be longer than its page: it escapes characters and indents lines. The worst is a line break of four bytes
/// in sixteen nested lists, whose indentation is as wide as their numbers.
const MAX_GROWTH: usize = 64;
/// Room for the targets of links, which the converter bounds for the whole page.
const MAX_EXTRA: usize = 4 * 1024 * 1024 + 64 * 1024;

/// A page becomes text of a bounded length, without blank lines that repeat; its title is one line.
///
/// # Panics
/// When one of these does not hold.
pub fn page(input: &[u8]) {
    let html = String::from_utf8_lossy(input);
    let Ok(url) = Url::parse("https://h.example/dir/page") else { return };
    let readable = to_markdown(&html, &url);
    assert!(readable.markdown.len() <= html.len() * MAX_GROWTH + MAX_EXTRA);
    assert!(!readable.title.contains(['\n', '\r']));
    assert!(!readable.markdown.contains("\n\n\n"));
    assert!(!readable.markdown.starts_with('\n') && !readable.markdown.ends_with('\n'));
}
