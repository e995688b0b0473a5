//! Tables for channels that have none.

use unicode_width::UnicodeWidthStr;

/// A table as text with columns of equal width, for a fixed-width font. The first row is the head.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let fill = widths[column].saturating_sub(cell.width());
            format!("{cell}{}", " ".repeat(fill))
        });
        lines.push(cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned());
        if number == 0 {
            let dashes = widths.iter().map(|width| "-".repeat(*width));
            lines.push(dashes.collect::<Vec<_>>().join("-|-"));
        }
    }
    lines.join("\n")
}
