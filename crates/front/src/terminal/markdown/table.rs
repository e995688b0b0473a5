//! Tables as text: columns as wide as their content, narrowed until the table fits.

use pulldown_cmark::Alignment;

use super::line::{Line, Piece, Spaces, Styles};
use super::wrap::wrap;
use crate::terminal::Style;

/// Between two columns.
const SEPARATOR: &str = " │ ";
const SEPARATOR_WIDTH: usize = 3;
/// Narrower columns cannot be read; then each row becomes a list.
const NARROWEST: usize = 5;

/// A table while it is read, and when it is complete.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the head.
    pub(super) rows: Vec<Vec<Cell>>,
}

/// The content of a cell.
pub(super) type Cell = Vec<Piece>;

impl Table {
    /// The table in at most `columns` columns.
    pub(super) fn layout(&self, columns: usize) -> Vec<Line> {
        let count = self.alignments.len();
        let available = columns.saturating_sub(SEPARATOR_WIDTH * count.saturating_sub(1));
        if count == 0 || available < NARROWEST * count {
            return self.layout_as_list(columns);
        }
        let widths = self.widths(available);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            self.layout_row(row, &widths, &mut lines);
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::of(&rules.join("─┼─"), Styles::default().with(Style::Dim)));
            }
        }
        lines
    }

    /// The columns' widths: as wide as their content, the widest narrowed first.
    fn widths(&self, available: usize) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let lines = wrap(cell, usize::MAX);
                *width = lines.iter().map(|line| line.width()).chain([*width]).max().unwrap_or(1);
            }
        }
        let mut excess = widths.iter().sum::<usize>().saturating_sub(available);
        while excess > 0 {
            let Some(widest) = widths.iter_mut().max() else { break };
            // Each step at least halves a column, so this is fast for a cell of any length; the caller checked the
            // minimum.
            let cut = excess.min(*widest - (*widest / 2).max(NARROWEST)).max(1);
            *widest -= cut;
            excess -= cut;
        }
        widths
    }

    fn layout_row(&self, row: &[Cell], widths: &[usize], lines: &mut Vec<Line>) {
        let cells: Vec<Vec<Line>> =
            row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let dim = Styles::default().with(Style::Dim);
        for index in 0..height {
            let mut out = Line::default();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    out.push_str(SEPARATOR, dim);
                }
                let line =
                    cells.get(column).and_then(|cell| cell.get(index)).cloned().unwrap_or_default();
                let room = width.saturating_sub(line.width());
                let left = match self.alignments.get(column) {
                    Some(Alignment::Right) => room,
                    Some(Alignment::Center) => room / 2,
                    _ => 0,
                };
                out.push_str(&" ".repeat(left), Styles::default());
                out.push_line(&line);
                // Nothing follows the last column, so nothing has to be filled up.
                if column + 1 < widths.len() {
                    out.push_str(&" ".repeat(room - left), Styles::default());
                }
            }
            lines.push(out);
        }
    }

    /// Each row as lines of `head: value`.
    fn layout_as_list(&self, columns: usize) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut pieces = head.get(column).cloned().unwrap_or_default();
                pieces.push(Piece {
                    text: ": ".to_owned(),
                    styles: Styles::default(),
                    spaces: Spaces::Separate,
                });
                pieces.extend(cell.iter().cloned());
                lines.extend(wrap(&pieces, columns));
            }
        }
        lines
    }
}
