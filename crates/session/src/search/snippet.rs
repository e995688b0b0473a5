//! A match with a little of the text around it.

use std::ops::Range;

/// Characters of text before a match, and after it: together with the match about one line of a terminal.
const AROUND: usize = 40;
/// Characters of the match itself.
const MATCH: usize = 80;
/// Replaces text that was left out.
const LEFT_OUT: char = '…';

/// The text before the match at `range`, the match, and the text after it, each on one line.
pub(super) fn around(text: &str, range: Range<usize>) -> (String, String, String) {
    let (before, rest) = text.split_at(range.start);
    let (matched, after) = rest.split_at(range.len());
    (end_of(before), beginning_of(matched, MATCH), beginning_of(after, AROUND))
}

fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(AROUND - 1) {
        Some((at, _)) if at > 0 => format!("{LEFT_OUT}{}", on_one_line(&text[at..])),
        _ => on_one_line(text),
    }
}

fn beginning_of(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}{LEFT_OUT}", on_one_line(&text[..at])),
        None => on_one_line(text),
    }
}

/// Replaces each run of white space and other control characters by one space.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if !character.is_whitespace() && !character.is_control() {
            line.push(character);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}

#[cfg(test)]
mod tests;
