//! Markdown in the HTML that Matrix clients show (client-server API, "m.room.message msgtypes").

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Protocols of links that are kept.
const LINKS: [&str; 5] = ["http://", "https://", "mailto:", "matrix:", "ftp://"];

/// Renders a Markdown text. HTML in it is shown as text.
pub(crate) fn render(markdown: &str) -> String {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut out = String::with_capacity(markdown.len() * 2);
    let mut is_head = false;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(tag) => start(&mut out, tag, &mut is_head),
            Event::End(end) => finish(&mut out, end, &mut is_head),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                out.push_str(&escape(&text));
            }
            Event::Code(text) => out.push_str(&format!("<code>{}</code>", escape(&text))),
            Event::SoftBreak | Event::HardBreak => out.push_str("<br>"),
            Event::Rule => out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => out.push_str(if is_done { "☑ " } else { "☐ " }),
            _ => {}
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn start(out: &mut String, tag: Tag<'_>, is_head: &mut bool) {
    let opened = match tag {
        Tag::Paragraph => "<p>".to_owned(),
        Tag::Heading { level, .. } => format!("<h{}>", level as usize),
        Tag::BlockQuote(_) => "<blockquote>".to_owned(),
        Tag::CodeBlock(CodeBlockKind::Fenced(info)) if !info.is_empty() => {
            let language = info.split([' ', ',']).next().unwrap_or_default();
            format!("<pre><code class=\"language-{}\">", escape(language))
        }
        Tag::CodeBlock(_) => "<pre><code>".to_owned(),
        Tag::List(None) => "<ul>".to_owned(),
        Tag::List(Some(1)) => "<ol>".to_owned(),
        Tag::List(Some(first)) => format!("<ol start=\"{first}\">"),
        Tag::Item => "<li>".to_owned(),
        Tag::Table(_) => "<table>".to_owned(),
        Tag::TableHead => {
            *is_head = true;
            "<thead><tr>".to_owned()
        }
        Tag::TableRow => "<tr>".to_owned(),
        Tag::TableCell => if *is_head { "<th>" } else { "<td>" }.to_owned(),
        Tag::Emphasis => "<em>".to_owned(),
        Tag::Strong => "<strong>".to_owned(),
        Tag::Strikethrough => "<del>".to_owned(),
        // A picture of somebody else's server would tell who reads; its name and address are a link.
        Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => link(&dest_url),
        _ => return,
    };
    out.push_str(&opened);
}

fn link(address: &str) -> String {
    let lower = address.to_ascii_lowercase();
    match LINKS.iter().any(|start| lower.starts_with(start)) {
        true => format!("<a href=\"{}\">", escape(address)),
        false => "<a>".to_owned(),
    }
}

fn finish(out: &mut String, end: TagEnd, is_head: &mut bool) {
    let closed = match end {
        TagEnd::Paragraph => "</p>\n".to_owned(),
        TagEnd::Heading(level) => format!("</h{}>\n", level as usize),
        TagEnd::BlockQuote(_) => "</blockquote>\n".to_owned(),
        TagEnd::CodeBlock => "</code></pre>\n".to_owned(),
        TagEnd::List(false) => "</ul>\n".to_owned(),
        TagEnd::List(true) => "</ol>\n".to_owned(),
        TagEnd::Item => "</li>\n".to_owned(),
        TagEnd::Table => "</tbody></table>\n".to_owned(),
        TagEnd::TableHead => {
            *is_head = false;
            "</tr></thead><tbody>".to_owned()
        }
        TagEnd::TableRow => "</tr>".to_owned(),
        TagEnd::TableCell => if *is_head { "</th>" } else { "</td>" }.to_owned(),
        TagEnd::Emphasis => "</em>".to_owned(),
        TagEnd::Strong => "</strong>".to_owned(),
        TagEnd::Strikethrough => "</del>".to_owned(),
        TagEnd::Link | TagEnd::Image => "</a>".to_owned(),
        _ => return,
    };
    out.push_str(&closed);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn markdown_becomes_html_and_html_stays_text() {
        for (markdown, html) in [
            ("**a** & <b>", "<p><strong>a</strong> &amp; &lt;b&gt;</p>"),
            ("- x\n- `y`", "<ul><li>x</li>\n<li><code>y</code></li>\n</ul>"),
            ("```rust\na<b\n```", "<pre><code class=\"language-rust\">a&lt;b\n</code></pre>"),
            ("[x](javascript:a)", "<p><a>x</a></p>"),
            ("![x](https://a.b/c\")", "<p><a href=\"https://a.b/c&quot;\">x</a></p>"),
            (
                "|a|\n|-|\n|b|",
                "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>",
            ),
        ] {
            assert_eq!(render(markdown), html, "{markdown}");
        }
    }
}
