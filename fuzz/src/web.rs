//! What must hold for any page that a server sends.

use myclaw_web::to_markdown;
use url::Url;

/// Markdown may be longer than its page: it escapes characters, indents lines and writes out addresses.
const MAX_GROWTH: usize = 64;
/// Room for the address that each link of a small page gets.
const MAX_EXTRA: usize = 64 * 1024;

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
