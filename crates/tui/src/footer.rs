//! What is drawn below everything else while a turn runs, and erased before anything else is written: what runs, the
//! end of its output, what waits, the line that the user types, and the status.

use unicode_width::UnicodeWidthStr;

use myclaw_front::terminal::{Paint, Size, Style};

/// Before the line that the user types.
const PROMPT: &str = "> ";

/// The lines of the footer. None is wider than the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) above: Vec<(Style, String)>,
    /// The end of the line that the user types; the cursor is behind it.
    pub(super) typed: String,
    pub(super) status: Option<String>,
}

/// The footer on the screen.
#[derive(Debug, Default)]
pub(super) struct Footer {
    drawn: Option<Drawn>,
}

#[derive(Debug)]
struct Drawn {
    rows: Rows,
    /// Width of the line of text above, at whose end the text continues; zero if the footer begins on an empty line.
    text_width: usize,
    columns: usize,
}

impl Footer {
    /// Whether exactly this is on the screen.
    pub(super) fn shows(&self, rows: &Rows, size: Size) -> bool {
        self.drawn
            .as_ref()
            .is_some_and(|drawn| drawn.rows == *rows && drawn.columns == size.columns)
    }

    /// The sequence that erases it and puts the cursor where the text continues.
    pub(super) fn erase(&mut self, size: Size) -> String {
        let Some(drawn) = self.drawn.take() else { return String::new() };
        let mut out = String::from("\r");
        // If the terminal has become narrower, it has wrapped the lines.
        let above = drawn.rows.above.iter();
        let mut up: usize = above.map(|(_, line)| line.width().div_ceil(size.columns).max(1)).sum();
        up += (PROMPT.len() + drawn.rows.typed.width()).saturating_sub(1) / size.columns;
        up += usize::from(drawn.text_width > 0);
        up = up.min(size.rows.saturating_sub(1));
        if up > 0 {
            out.push_str(&format!("\x1b[{up}A"));
        }
        let column = drawn.text_width % size.columns;
        if column > 0 {
            out.push_str(&format!("\x1b[{column}C"));
        }
        out.push_str("\x1b[J");
        out
    }

    /// Draws it below a text that ends at the cursor with a line of `text_width` columns, zero for an empty line.
    pub(super) fn draw(
        &mut self,
        rows: Rows,
        text_width: usize,
        size: Size,
        paint: Paint,
        out: &mut String,
    ) {
        // Behind the last column the cursor has no place that could be found again.
        if text_width > 0 && text_width.is_multiple_of(size.columns) {
            return;
        }
        if text_width > 0 {
            out.push_str("\r\n");
        }
        for (style, line) in &rows.above {
            out.push_str(&paint.paint(*style, line));
            out.push_str("\r\n");
        }
        out.push_str(PROMPT);
        out.push_str(&rows.typed);
        if let Some(status) = &rows.status {
            out.push_str("\r\n");
            out.push_str(&paint.paint(Style::Dim, status));
            let column = PROMPT.len() + rows.typed.width();
            out.push_str(&format!("\x1b[A\r\x1b[{column}C"));
        }
        self.drawn = Some(Drawn { rows, text_width, columns: size.columns });
    }
}

#[cfg(test)]
mod tests;
