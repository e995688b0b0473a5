//! Rows of text with aligned columns.

use unicode_width::UnicodeWidthStr;

use super::unbroken;
use crate::terminal::{Destination, Size, escaped, wrapped};

/// What stands between two columns.
const GAP: &str = "  ";
/// What stands before the further lines of a row that is too wide.
const INDENT: &str = "    ";
/// Least columns in which the text of the last column is broken below itself.
const LEAST_ROOM: usize = 24;

/// Rows with aligned columns, for standard output. On a terminal that is too narrow for them no word is broken, unless it is
/// longer than a line; the text is escaped.
pub fn columns(rows: &[Vec<String>]) -> Vec<String> {
    match Destination::of_stdout() {
        Destination::Pipe => aligned(rows),
        Destination::Terminal => {
            let safe = |row: &Vec<String>| row.iter().map(|cell| escaped(cell).into()).collect();
            let rows: Vec<Vec<String>> = rows.iter().map(safe).collect();
            // The chat leaves the last column of the terminal free.
            fitting(&rows, Size::current().columns.saturating_sub(1))
        }
    }
}

/// Rows with aligned columns; the last column is not padded.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let widths = widths(rows);
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str(GAP);
            }
            line.push_str(cell);
            if column + 1 < row.len() {
                line.extend(std::iter::repeat_n(' ', width - cell.width()));
            }
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(line).collect()
}

/// As [`aligned`], in lines of at most `width` columns. Where a row is wider, the last column is broken below itself. Where
/// that leaves too little room, a long first cell has a line of its own. Where that is not enough, the cells of each row
/// stand one after the other, without alignment. A longer word is left to the terminal, so that it can be copied.
fn fitting(rows: &[Vec<String>], width: usize) -> Vec<String> {
    let lines = aligned(rows);
    if lines.iter().all(|line| line.width() <= width) {
        return lines;
    }
    let widths = widths(rows);
    let last = widths.len() - 1;
    let before: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
    let room = width.saturating_sub(before);
    let has_room = |row: &Vec<String>| {
        row.get(last).is_none_or(|cell| cell.split(' ').all(|word| word.width() <= room))
    };
    if room < LEAST_ROOM || !rows.iter().all(has_room) {
        let others: usize = widths.iter().skip(1).map(|width| width + GAP.len()).sum();
        return match width.checked_sub(others) {
            Some(room) if room > INDENT.len() => below_the_first(rows, room),
            _ => rows.iter().flat_map(|row| one_after_the_other(row, width)).collect(),
        };
    }
    let indent = " ".repeat(before);
    let broken = |(row, line): (&Vec<String>, String)| match row.get(last) {
        Some(cell) if line.width() > width => {
            let cell_start = line.len() - cell.trim_end().len();
            let mut start = line[..cell_start].to_owned();
            let texts = wrapped(cell, room).into_iter();
            texts.map(|text| std::mem::replace(&mut start, indent.clone()) + &text).collect()
        }
        _ => vec![line],
    };
    rows.iter().zip(lines).flat_map(broken).collect()
}

/// Rows whose first cell has `room` columns, or a line of its own if it is longer. The other columns are aligned.
fn below_the_first(rows: &[Vec<String>], room: usize) -> Vec<String> {
    let others: Vec<Vec<String>> =
        rows.iter().map(|row| row[row.len().min(1)..].to_vec()).collect();
    let joined = |(row, others): (&Vec<String>, String)| {
        let first = row.first().map_or("", String::as_str);
        match room.checked_sub(first.width()) {
            Some(rest) => vec![format!("{first}{}{GAP}{others}", " ".repeat(rest))],
            None if others.is_empty() => vec![first.to_owned()],
            None => vec![first.to_owned(), format!("{}{GAP}{others}", " ".repeat(room))],
        }
    };
    let lines = rows.iter().zip(aligned(&others)).flat_map(joined);
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The first cell in a line of its own, and the others below it.
fn one_after_the_other(row: &[String], width: usize) -> Vec<String> {
    let Some((first, others)) = row.split_first() else { return Vec::new() };
    let mut lines = vec![first.clone()];
    let room = width.saturating_sub(INDENT.len());
    let mut current = String::new();
    for cell in others.iter().filter(|cell| !cell.is_empty()) {
        if !current.is_empty() && current.width() + GAP.len() + cell.width() > width {
            lines.push(std::mem::take(&mut current));
        }
        if current.is_empty() {
            let mut texts: Vec<String> =
                unbroken(cell, room).lines().map(|text| format!("{INDENT}{text}")).collect();
            current = texts.pop().unwrap_or_default();
            lines.extend(texts);
        } else {
            current.push_str(GAP);
            current.push_str(cell);
        }
    }
    lines.extend(Some(current).filter(|current| !current.is_empty()));
    lines
}

/// The width of each column.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.width()).max()
    };
    (0..count).map(|column| width(column).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests;
