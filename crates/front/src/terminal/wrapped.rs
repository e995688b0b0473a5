//! Breaks lines of the program itself at spaces.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns by which the second column of a table is indented on a narrow terminal.
const SMALL_INDENT: usize = 4;

/// `text` in lines of at most `columns` columns, broken at spaces, and inside a word only where it is longer than a
/// line. What follows a break is indented as the line, or as the second column of a table.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.width() <= columns {
            lines.push(line.to_owned());
        } else {
            wrap_line(line, columns, &mut lines);
        }
    }
    lines
}

fn wrap_line(line: &str, columns: usize, lines: &mut Vec<String>) {
    let indent = " ".repeat(hanging_indent(line, columns));
    let (mut current, mut width) = (String::new(), 0);
    let end_line = |current: &mut String, lines: &mut Vec<String>| {
        lines.push(current.trim_end().to_owned());
        indent.clone_into(current);
        indent.len()
    };
    for word in line.split_inclusive(' ') {
        let word_width = word.trim_end().width();
        if width + word_width > columns && current.len() > indent.len() {
            width = end_line(&mut current, lines);
        }
        for char in word.chars() {
            let char_width = char.width().unwrap_or(0);
            // The space that ends a line is not shown.
            if width + char_width > columns && char != ' ' && current.len() > indent.len() {
                width = end_line(&mut current, lines);
            }
            current.push(char);
            width += char_width;
        }
    }
    if !current.trim().is_empty() {
        lines.push(current.trim_end().to_owned());
    }
}

/// Where the lines after a break begin.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let leading = line.len() - line.trim_start_matches(' ').len();
    let table = line[leading..].find("  ").map(|gap| {
        let rest = &line[leading + gap..];
        line[..leading + gap].width() + rest.len() - rest.trim_start_matches(' ').len()
    });
    // Where the second column would leave too little room, it is told apart by a small indent.
    let small = table.map(|_| leading + SMALL_INDENT);
    let wanted = [table, small, Some(leading)];
    wanted.into_iter().flatten().find(|indent| indent * 2 <= columns).unwrap_or(0)
}

#[cfg(test)]
mod tests;
