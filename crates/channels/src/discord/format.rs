//! Markdown for Discord, which shows most of it, but no tables.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::table::aligned;

/// A table that is being read.
#[derive(Default)]
struct Table {
    /// Where it begins in the text.
    start: usize,
    rows: Vec<Vec<String>>,
    cell: String,
}

/// Replaces the tables of a text by aligned text in code blocks.
pub(super) fn render(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    // Up to where the text is copied.
    let mut copied = 0;
    let mut table: Option<Table> = None;
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        let Some(open) = &mut table else {
            if let Event::Start(Tag::Table(_)) = event {
                table = Some(Table { start: range.start, ..Table::default() });
            }
            continue;
        };
        match event {
            Event::Start(Tag::TableHead | Tag::TableRow) => open.rows.push(Vec::new()),
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                open.cell.push_str(&text);
            }
            Event::End(TagEnd::TableCell) => {
                let cell = std::mem::take(&mut open.cell);
                if let Some(row) = open.rows.last_mut() {
                    row.push(cell.trim().to_owned());
                }
            }
            Event::End(TagEnd::Table) => {
                out.push_str(&markdown[copied..open.start]);
                let text = aligned(&open.rows).replace("```", "'''");
                out.push_str(&format!("```\n{text}\n```\n"));
                copied = range.end;
                table = None;
            }
            _ => {}
        }
    }
    out.push_str(&markdown[copied..]);
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn tables_become_code_and_the_rest_stays() {
        let text = "**a** <@1>\n\n| x | yy |\n|---|---|\n| 1 | `2` |\n\n> quote\n";
        let rendered = "**a** <@1>\n\n```\nx | yy\n--|---\n1 | 2\n```\n\n> quote";
        assert_eq!(render(text), rendered);
        assert_eq!(render("| x |\n|---|\n| Vec<u8> |\n"), "```\nx\n-------\nVec<u8>\n```");
        let code = "```\n| a | b |\n|---|---|\n```";
        assert_eq!(render(code), code);
    }
}
