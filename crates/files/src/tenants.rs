//! The names of the tenants that share a database. Each is part of the name of a schema there.

/// The tenant of a database that has one.
pub const MAIN: &str = "main";
/// The form of a name, as a regular expression.
pub const PATTERN: &str = "^[a-z0-9_]{1,40}$";
/// The same in words.
pub const EXPECTED: &str = "1 to 40 lower-case letters, digits and underscores";

/// Whether it has the form.
pub fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    (1..=40).contains(&text.len()) && text.bytes().all(is_allowed)
}
