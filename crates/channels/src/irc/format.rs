//! Texts in both directions: IRC has no markup but some control characters, and lines of at most 512 bytes.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The lines of a Markdown text, each of at most `most` bytes, without empty ones.
pub(super) fn lines(markdown: &str, most: usize) -> Vec<String> {
    let plain = plain(markdown);
    let whole = plain.lines().map(clean).filter(|line| !line.trim().is_empty());
    whole.flat_map(|line| cut(&line, most)).collect()
}

/// A line without what could end it, or look like a command of CTCP.
pub(super) fn clean(line: &str) -> String {
    line.replace('\t', "    ").chars().filter(|c| !c.is_control()).collect()
}

/// A line in pieces of at most `most` bytes: cut at the last space that fits, and never inside a character.
pub(super) fn cut(line: &str, most: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = line.trim_end();
    while rest.len() > most {
        // At least one character, so that it ends.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest.floor_char_boundary(most).max(first);
        let space = rest[..end].rfind(' ').filter(|at| !rest[..*at].trim().is_empty());
        let (piece, after) = rest.split_at(space.unwrap_or(end));
        let piece = piece.trim_end();
        if !piece.is_empty() {
            pieces.push(piece.to_owned());
        }
        rest = after.trim_start();
    }
    if !rest.trim().is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

/// Markdown as plain text.
fn plain(markdown: &str) -> String {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(markdown.len());
    let mut lists: Vec<Option<u64>> = Vec::new();
    let mut link: Option<(String, usize)> = None;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::List(first)) => {
                new_line(&mut out);
                lists.push(first);
            }
            Event::End(TagEnd::List(_)) => drop(lists.pop()),
            Event::Start(Tag::Item) => {
                new_line(&mut out);
                out.push_str(&"  ".repeat(lists.len().saturating_sub(1)));
                match lists.last_mut() {
                    Some(Some(number)) => {
                        out.push_str(&format!("{number}. "));
                        *number += 1;
                    }
                    _ => out.push_str("- "),
                }
            }
            Event::Start(Tag::BlockQuote(_)) => {
                new_line(&mut out);
                out.push_str("> ");
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                link = Some((dest_url.to_string(), out.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some((address, start)) =
                    link.take().filter(|(address, start)| out[*start..] != **address)
                {
                    let is_empty = out.len() == start;
                    out.push_str(&if is_empty { address } else { format!(" ({address})") });
                }
            }
            Event::End(TagEnd::TableCell) => out.push_str(" | "),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::CodeBlock
                | TagEnd::Item
                | TagEnd::TableHead
                | TagEnd::TableRow,
            ) => new_line(&mut out),
            Event::Start(Tag::CodeBlock(_)) => new_line(&mut out),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::Code(text) => {
                out.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => out.push('\n'),
            Event::Rule => out.push_str("---\n"),
            Event::TaskListMarker(is_done) => out.push_str(if is_done { "[x] " } else { "[ ] " }),
            _ => {}
        }
    }
    out
}

fn new_line(out: &mut String) {
    if let Some(row) = out.strip_suffix(" | ") {
        out.truncate(row.len());
    }
    if !out.is_empty() && !out.ends_with(['\n', ' ']) {
        out.push('\n');
    }
}

/// What somebody wrote, without colours and the like.
pub(super) fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\u{3}' => {
                let mut digits = |most: usize| {
                    (0..most).take_while(|_| rest.next_if(char::is_ascii_digit).is_some()).count()
                };
                if digits(2) > 0 {
                    let mut ahead = rest.clone();
                    if ahead.next() == Some(',') && ahead.next().is_some_and(|c| c.is_ascii_digit())
                    {
                        rest.next();
                        let _ = (0..2)
                            .take_while(|_| rest.next_if(char::is_ascii_digit).is_some())
                            .count();
                    }
                }
            }
            '\u{4}' => {
                let _ =
                    (0..6).take_while(|_| rest.next_if(char::is_ascii_hexdigit).is_some()).count();
            }
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
