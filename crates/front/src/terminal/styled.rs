//! A line with one style, and with others for some of its parts.

use std::ops::Range;

use super::highlight::Span;
use super::{Paint, Palette, Style, truncated};

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledLine {
    /// How it is drawn.
    pub style: Style,
    /// The text.
    pub text: String,
    /// Parts with a style of their own, in order.
    pub spans: Vec<Span>,
}

impl StyledLine {
    /// A line in one style.
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { style, text: text.into(), spans: Vec::new() }
    }

    /// The line behind `prefix`, which has no style of its own.
    pub fn behind(&self, prefix: &str) -> Self {
        let moved =
            |(range, style): &Span| (range.start + prefix.len()..range.end + prefix.len(), *style);
        Self {
            style: self.style,
            text: format!("{prefix}{}", self.text),
            spans: self.spans.iter().map(moved).collect(),
        }
    }

    /// The line in at most `columns` columns.
    pub fn truncated(&self, columns: usize) -> Self {
        let text = truncated(&self.text, columns);
        let is_cut = text.len() < self.text.len() || !self.text.starts_with(text.as_str());
        let kept = if is_cut { text.len().saturating_sub('…'.len_utf8()) } else { text.len() };
        Self { text, ..self.part(0..kept) }
    }

    /// The part of the line within `range`, in bytes.
    pub fn part(&self, range: Range<usize>) -> Self {
        let within = |(span, style): &Span| {
            let (start, end) = (span.start.max(range.start), span.end.min(range.end));
            (start < end).then(|| (start - range.start..end - range.start, *style))
        };
        Self {
            style: self.style,
            text: self.text.get(range.clone()).unwrap_or_default().to_owned(),
            spans: self.spans.iter().filter_map(within).collect(),
        }
    }

    /// Appends the sequence that writes the line.
    pub fn paint(&self, paint: Paint, out: &mut String) {
        // Without backgrounds, lines of a diff have one colour all over.
        let is_diff = matches!(self.style, Style::Added | Style::Removed);
        let has_spans = paint == Paint::Styled
            && !self.spans.is_empty()
            && (!is_diff || Palette::current().has_backgrounds());
        if !has_spans {
            out.push_str(&paint.paint(self.style, &self.text));
            return;
        }
        let mut from = 0;
        let put = |text: Option<&str>, styles: &[Style], out: &mut String| {
            let Some(text) = text.filter(|text| !text.is_empty()) else { return };
            styles.iter().for_each(|style| paint.start(*style, out));
            out.push_str(text);
            paint.reset(out);
        };
        for (range, style) in &self.spans {
            put(self.text.get(from..range.start), &[self.style], out);
            let both = [self.style, *style];
            // A background stays behind the parts; other styles of the line do not.
            let styles = if is_diff { &both[..] } else { &both[1..] };
            put(self.text.get(range.clone()), styles, out);
            from = range.end;
        }
        put(self.text.get(from..), &[self.style], out);
    }
}

impl From<(Style, String)> for StyledLine {
    fn from((style, text): (Style, String)) -> Self {
        Self::new(style, text)
    }
}

#[cfg(test)]
mod tests {
    use super::StyledLine;
    use crate::terminal::{Paint, Style};

    #[test]
    fn parts_keep_their_styles_when_a_line_is_cut_or_moved() {
        let line = StyledLine {
            spans: vec![(0..3, Style::Keyword), (8..9, Style::Constant)],
            ..StyledLine::new(Style::Dim, "let x = 1;")
        };
        assert_eq!(line.behind("  ").spans, [(2..5, Style::Keyword), (10..11, Style::Constant)]);
        let cut = line.truncated(3);
        assert_eq!((cut.text.as_str(), cut.spans), ("le…", vec![(0..2, Style::Keyword)]));
        assert_eq!(line.part(2..9).spans, [(0..1, Style::Keyword), (6..7, Style::Constant)]);
        let mut out = String::new();
        line.paint(Paint::Styled, &mut out);
        assert_eq!(out, "\x1b[35mlet\x1b[0m\x1b[2m x = \x1b[0m\x1b[36m1\x1b[0m\x1b[2m;\x1b[0m");
        out.clear();
        line.paint(Paint::Plain, &mut out);
        assert_eq!(out, "let x = 1;");
    }
}
