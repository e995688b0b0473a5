//! Converts HTML to readable Markdown, with bounded time and memory for any page.
//!
//! Pages can be built to make a parser slow: each sign that could begin a tag or a character by its number is a step of its
//! own, the work grows with the square of the nesting, and Markdown repeats the indentation on every line. So the page is
//! parsed in pieces until it has too many such signs, or until a deadline, and a tree that is too deep or too large is only
//! read as plain text.

mod tree;

use std::time::{Duration, Instant};

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};
use url::Url;

/// Longest page that is converted, in bytes. Pages for people are below 1 MB.
pub(crate) const MAX_HTML_BYTES: usize = 2 * 1024 * 1024;
/// How long parsing may take: a hundred times what a page of 1 MB needs.
const PARSE_LIMIT: Duration = Duration::from_secs(3);
/// Most signs that are parsed for themselves: `<`, `&` and zeros. A table of small numbers has one in five bytes.
const MAX_SIGNS: usize = MAX_HTML_BYTES / 4;
/// Bytes that are parsed between two looks at the clock.
const PIECE_BYTES: usize = 16 * 1024;
/// Most elements of a page that is converted. Large documents have a few ten thousand.
const MAX_ELEMENTS: usize = 100_000;
/// Most elements of a page in which an article is looked for; the search looks at the tree many times.
const MAX_SEARCHED_ELEMENTS: usize = 40_000;
/// Most bytes that writing such a page as HTML looks at; see [`tree::Size::escaping`]. They take a tenth of a second.
const MAX_ESCAPING: u64 = 1 << 31;
/// Deepest nesting that is converted. Browsers stop at 512, and pages for people stay below 100.
const MAX_DEPTH: usize = 200;
/// Deepest nesting of lists and quotations. Each level indents every line of its content.
const MAX_INDENT: usize = 16;
/// Longest target of a link, and most bytes of all targets of a page. Targets that a page writes in a few bytes become
/// long, because each begins with the address of the page or with what `<base>` says.
const MAX_TARGET_BYTES: usize = 4 * 1024;
const MAX_TARGETS_BYTES: usize = 4 * 1024 * 1024;
/// An article must have at least this fraction (one part in this many) of the page's text. Otherwise the page is an
/// index or a form, and all of it is shown.
const ARTICLE_SHARE: usize = 4;
/// Elements whose content is not text for a reader.
const SKIPPED: [&str; 10] = [
    "script", "style", "meta", "head", "noscript", "template", "svg", "iframe", "object", "canvas",
];

/// A page as Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// The title; empty if the page has none.
    pub title: String,
    /// The text.
    pub markdown: String,
    /// Whether the end of the page was left out.
    pub is_cut: bool,
}

/// Converts a page. `url` is its address, for relative links. Takes a while: do not call it on a runtime thread.
pub fn to_markdown(html: &str, url: &Url) -> Readable {
    let end = html.floor_char_boundary(MAX_HTML_BYTES);
    let (document, is_complete) = parse(&html[..end], Instant::now() + PARSE_LIMIT);
    let is_cut = end < html.len() || !is_complete;
    let title = one_line(&document.select("title").first().text());
    let size = tree::measure(&document);
    let markdown =
        if size.elements > MAX_ELEMENTS || size.depth > MAX_DEPTH || size.indent > MAX_INDENT {
            tree::plain_text(&document, &SKIPPED)
        } else {
            let is_searched =
                size.elements <= MAX_SEARCHED_ELEMENTS && size.escaping <= MAX_ESCAPING;
            readable(document, url, is_searched)
        };
    Readable { title, markdown: tidy(&markdown), is_cut }
}

/// Parses as much as fits before `deadline` and into [`MAX_SIGNS`]. Returns whether that was everything.
fn parse(html: &str, deadline: Instant) -> (Document, bool) {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let mut parser = parse_document(Document::default(), options);
    let (mut rest, mut signs) = (html, 0);
    while !rest.is_empty() && signs < MAX_SIGNS && Instant::now() < deadline {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        signs += piece.bytes().filter(|byte| matches!(byte, b'<' | b'&' | 0)).count();
        parser.process(StrTendril::from(piece));
        rest = after;
    }
    let document = parser.finish();
    // There can be one for each sign, and every copy of the document has them.
    document.errors.take();
    (document, rest.is_empty())
}

/// The article of a page, or all of the page if it has none, or if none is searched.
fn readable(document: Document, url: &Url, is_searched: bool) -> String {
    make_links_absolute(&document, url);
    let whole = document.md(Some(&SKIPPED));
    if !is_searched {
        return whole.to_string();
    }
    let config = Config {
        // Its JSON parser has no limit on nesting.
        disable_json_ld: true,
        // A class names the language of code.
        keep_classes: true,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let article = Readability::with_document(document, None, Some(config))
        .and_then(|mut readability| readability.parse())
        .map(|article| article.text_content)
        .unwrap_or_default();
    if article.len() * ARTICLE_SHARE < whole.len() {
        whole.to_string()
    } else {
        article.to_string()
    }
}

fn make_links_absolute(document: &Document, url: &Url) {
    let base = document.select("base[href]").first().attr("href");
    let base = base.filter(|base| base.len() <= MAX_TARGET_BYTES);
    let base = base.and_then(|base| url.join(&base).ok()).unwrap_or_else(|| url.clone());
    // The converter would apply it to the targets that are left empty below.
    document.select("base").remove();
    let mut room = MAX_TARGETS_BYTES;
    for (selector, attribute) in [("a[href]", "href"), ("img[src]", "src")] {
        for node in document.select(selector).nodes() {
            let Some(target) = node.attr(attribute) else { continue };
            if let Ok(absolute) = base.join(&target)
                && matches!(absolute.scheme(), "http" | "https" | "mailto")
                && absolute.as_str().len() <= MAX_TARGET_BYTES.min(room)
            {
                room -= absolute.as_str().len();
                node.set_attr(attribute, absolute.as_str());
            } else {
                // The others are inline scripts and pictures, which are long, and what there is no room for.
                node.set_attr(attribute, "");
            }
        }
    }
}

/// Repairs the ampersands of link targets, which the converter leaves escaped, and takes out blank lines that repeat.
fn tidy(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut blank_lines = 0;
    for line in markdown.lines() {
        let line = line.trim_end();
        blank_lines = if line.is_empty() { blank_lines + 1 } else { 0 };
        if blank_lines < 2 && !(line.is_empty() && text.is_empty()) {
            push_with_plain_targets(&mut text, line);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn push_with_plain_targets(text: &mut String, line: &str) {
    let mut rest = line;
    while let Some(start) = rest.find("](") {
        let (before, target) = rest.split_at(start + 2);
        let end = target.find([')', ' ']).unwrap_or(target.len());
        text.push_str(before);
        text.push_str(&target[..end].replace("&amp;", "&"));
        rest = &target[end..];
    }
    text.push_str(rest);
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
