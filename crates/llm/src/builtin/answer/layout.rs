//! How facts are laid out: lists, blocks and code in Markdown, all of them bounded.

/// Most lines or entries of a result that are shown.
const MAX_LINES: usize = 40;

/// Longest line that is shown, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Longest text shown inside a sentence, in characters.
const MAX_INLINE_CHARS: usize = 100;

/// Which end of a long text matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Start,
    End,
}

/// `text` as code inside a sentence, on one line.
pub(super) fn code(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = cut_line(&line, MAX_INLINE_CHARS);
    if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") }
}

/// A number with its noun.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A list of names.
pub(super) fn list(items: &[&str]) -> String {
    let mut lines: Vec<String> = items
        .iter()
        .take(MAX_LINES)
        .map(|item| format!("- {}", cut_line(item, MAX_LINE_CHARS)))
        .collect();
    if items.len() > MAX_LINES {
        lines.push(format!("- … and {} more", items.len() - MAX_LINES));
    }
    lines.join("\n")
}

/// `text` as a block of code that it cannot break out of.
pub(super) fn block(text: &str, keep: Keep) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(MAX_LINES);
    let shown = match keep {
        Keep::Start => &lines[..lines.len() - left_out],
        Keep::End => &lines[left_out..],
    };
    let shown: Vec<String> = shown.iter().map(|line| cut_line(line, MAX_LINE_CHARS)).collect();
    let shown = shown.join("\n");
    let fence = fence_around(&shown);
    let block = format!("{fence}\n{shown}\n{fence}");
    let more = counted(left_out, "line", "lines");
    match keep {
        _ if left_out == 0 => block,
        Keep::Start => format!("{block}\n\n… and {more} more that I do not show."),
        Keep::End => format!("The last lines ({more} before them not shown):\n\n{block}"),
    }
}

/// A fence longer than any run of backticks in `text`.
fn fence_around(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn cut_line(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
