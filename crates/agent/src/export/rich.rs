//! Markdown of a model as HTML that neither runs nor loads anything: HTML in the text is shown as text, pictures are
//! named, and links lead to web and mail addresses only.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use myclaw_policy::changes_direction;

/// The supported extensions of CommonMark, as on the terminal.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);
/// What a link may begin with.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// `text` as HTML.
pub(super) fn rich(text: &str) -> String {
    let mut page = Rich::default();
    for event in Parser::new_ext(text, OPTIONS) {
        page.event(event);
    }
    page.out
}

#[derive(Default)]
struct Rich {
    out: String,
    /// The alignments of the table that is read.
    alignments: Vec<Alignment>,
    /// The cell of the row that comes next.
    cell: usize,
    is_in_head: bool,
    /// For each open link, whether it leads somewhere.
    links: Vec<bool>,
    /// The addresses of the open pictures.
    pictures: Vec<String>,
}

impl Rich {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.out.push_str(&escape(&text)),
            Event::Code(text) => self.out.push_str(&format!("<code>{}</code>", escape(&text))),
            Event::FootnoteReference(name) => self.out.push_str(&format!("[{}]", escape(&name))),
            // Single line breaks are kept, as on the terminal.
            Event::SoftBreak | Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let opening = match tag {
            Tag::Paragraph => "<p>".to_owned(),
            Tag::HtmlBlock => "<pre>".to_owned(),
            // The page's own headings are of the levels 1 and 2.
            Tag::Heading { level, .. } => format!("<h{}>", (level as usize + 2).min(6)),
            Tag::BlockQuote(_) => "<blockquote>\n".to_owned(),
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                "<pre><code>".to_owned()
            }
            Tag::List(Some(1)) => "<ol>\n".to_owned(),
            Tag::List(Some(first)) => format!("<ol start=\"{first}\">\n"),
            Tag::List(None) => "<ul>\n".to_owned(),
            Tag::Item => "<li>".to_owned(),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                "<table>\n".to_owned()
            }
            Tag::TableHead => {
                (self.is_in_head, self.cell) = (true, 0);
                "<tr>".to_owned()
            }
            Tag::TableRow => {
                self.cell = 0;
                "<tr>".to_owned()
            }
            Tag::TableCell => {
                let alignment = self.alignments.get(self.cell);
                self.cell += 1;
                let class = match alignment {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    _ => "",
                };
                format!("<{}{class}>", self.cell_name())
            }
            Tag::Emphasis => "<em>".to_owned(),
            Tag::Strong => "<strong>".to_owned(),
            Tag::Strikethrough => "<del>".to_owned(),
            Tag::Link { dest_url, .. } => {
                let lower = dest_url.to_ascii_lowercase();
                let leads = SCHEMES.iter().any(|scheme| lower.starts_with(scheme));
                self.links.push(leads);
                match leads {
                    true => format!("<a rel=\"noreferrer\" href=\"{}\">", escape(&dest_url)),
                    false => String::new(),
                }
            }
            Tag::Image { dest_url, .. } => {
                self.pictures.push(dest_url.into_string());
                "[image: ".to_owned()
            }
            _ => String::new(),
        };
        self.out.push_str(&opening);
    }

    fn end(&mut self, tag: TagEnd) {
        let closing = match tag {
            TagEnd::Paragraph => "</p>\n".to_owned(),
            TagEnd::HtmlBlock => "</pre>\n".to_owned(),
            TagEnd::Heading(level) => format!("</h{}>\n", (level as usize + 2).min(6)),
            TagEnd::BlockQuote(_) => "</blockquote>\n".to_owned(),
            TagEnd::CodeBlock => "</code></pre>\n".to_owned(),
            TagEnd::List(true) => "</ol>\n".to_owned(),
            TagEnd::List(false) => "</ul>\n".to_owned(),
            TagEnd::Item => "</li>\n".to_owned(),
            TagEnd::Table => "</table>\n".to_owned(),
            TagEnd::TableHead => {
                self.is_in_head = false;
                "</tr>\n".to_owned()
            }
            TagEnd::TableRow => "</tr>\n".to_owned(),
            TagEnd::TableCell => format!("</{}>", self.cell_name()),
            TagEnd::Emphasis => "</em>".to_owned(),
            TagEnd::Strong => "</strong>".to_owned(),
            TagEnd::Strikethrough => "</del>".to_owned(),
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    "</a>".to_owned()
                } else {
                    String::new()
                }
            }
            TagEnd::Image => {
                let address = self.pictures.pop().unwrap_or_default();
                format!(" ({})]", escape(&address))
            }
            _ => String::new(),
        };
        self.out.push_str(&closing);
    }

    fn cell_name(&self) -> &'static str {
        if self.is_in_head { "th" } else { "td" }
    }
}

/// `text` as text between tags or in a quoted attribute. Controls that HTML does not allow are shown as U+FFFD, and marks that
/// would turn other text around as their numbers.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            '\r' => {}
            control if control.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            mark if changes_direction(mark) => {
                escaped.push_str(&format!("\\u{{{:x}}}", u32::from(mark)));
            }
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::rich;

    #[test]
    fn markdown_becomes_html() {
        for (text, expected) in [
            (
                "# A\nb\nc *d* `e<f>`",
                "<h3>A</h3>\n<p>b<br>\nc <em>d</em> <code>e&lt;f&gt;</code></p>\n",
            ),
            ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
            ("```rust\nlet a = 1 < 2;\n```", "<pre><code>let a = 1 &lt; 2;\n</code></pre>\n"),
            (
                "|a|b|\n|-|-:|\n|1|2|",
                "<table>\n<tr><th>a</th><th class=\"right\">b</th></tr>\n<tr><td>1</td><td class=\"right\">2</td></tr>\n</table>\n",
            ),
            (
                "[a](https://example.org/?a=\"b)",
                "<p><a rel=\"noreferrer\" href=\"https://example.org/?a=&quot;b\">a</a></p>\n",
            ),
        ] {
            assert_eq!(rich(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_of_a_model_runs_or_is_loaded() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "![x](https://example.org/pixel.png)",
            "[x](javascript:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](https://a\"onmouseover=\"alert(1))",
            "<a href=\"javascript:x\">y</a>",
            "```\"><script>\n</code></pre><script>\n```",
            "[x]: <javascript:alert(1)>\n\n[x]",
            "<JaVaScript:alert(1)>",
        ] {
            let html = rich(text).to_ascii_lowercase();
            for bad in [
                "<script",
                "<img",
                "<iframe",
                "href=\"javascript",
                "href=\"data",
                " src=",
                "\"onmouseover",
            ] {
                assert!(
                    !html.contains(bad) || bad == " src=" && html.contains("&lt;img src="),
                    "{text}: {html}"
                );
            }
        }
    }
}
