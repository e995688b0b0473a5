//! The lines of a text and their endings.

use std::ops::Range;

/// A line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnding {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

impl LineEnding {
    /// The characters themselves.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// A text split into lines at `\n` and `\r\n`. A `\r` alone is an ordinary character. There is no further line after a
/// final newline; an empty text has no lines.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    content_end: usize,
    end: usize,
}

impl<'t> Lines<'t> {
    /// Splits `text`.
    pub(crate) fn of(text: &'t str) -> Self {
        let mut spans = Vec::new();
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', text.as_bytes()) {
            let has_return = newline > start && text.as_bytes()[newline - 1] == b'\r';
            spans.push(Span {
                start,
                content_end: newline - usize::from(has_return),
                end: newline + 1,
            });
            start = newline + 1;
        }
        if start < text.len() {
            spans.push(Span { start, content_end: text.len(), end: text.len() });
        }
        Self { text, spans }
    }

    /// How many lines there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The text of line `index` (from 0) without its ending.
    pub(crate) fn content(&self, index: usize) -> &'t str {
        &self.text[self.content_range(index)]
    }

    /// All contents, in order.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &'t str> {
        (0..self.len()).map(|index| self.content(index))
    }

    /// The range of the content of line `index` in the text.
    pub(crate) fn content_range(&self, index: usize) -> Range<usize> {
        self.spans[index].start..self.spans[index].content_end
    }

    /// The start of line `index`; the end of the text for the index after the last line.
    pub(crate) fn start(&self, index: usize) -> usize {
        self.spans.get(index).map_or(self.text.len(), |span| span.start)
    }

    /// The ending of line `index`; `None` only for a last line without a newline.
    pub(crate) fn ending(&self, index: usize) -> Option<LineEnding> {
        let span = self.spans[index];
        match span.end - span.content_end {
            0 => None,
            1 => Some(LineEnding::Lf),
            _ => Some(LineEnding::CrLf),
        }
    }

    /// The line that holds the character at `offset`; the last one for the end of the text.
    pub(crate) fn index_at(&self, offset: usize) -> usize {
        self.spans.partition_point(|span| span.end <= offset).min(self.len().saturating_sub(1))
    }

    /// The ending that new lines get at `place` (line indexes): the most frequent one there, else that of the line
    /// before, else the most frequent one of the whole text, else `\n`.
    pub(crate) fn ending_at(&self, place: Range<usize>) -> LineEnding {
        let here = place.start.min(self.len())..place.end.min(self.len());
        let before = here.start.saturating_sub(1)..here.start;
        [here, before, 0..self.len()]
            .into_iter()
            .find_map(|lines| self.prevailing(lines))
            .unwrap_or(LineEnding::Lf)
    }

    fn prevailing(&self, lines: Range<usize>) -> Option<LineEnding> {
        let (mut lf, mut crlf) = (0_usize, 0_usize);
        for ending in lines.filter_map(|index| self.ending(index)) {
            match ending {
                LineEnding::Lf => lf += 1,
                LineEnding::CrLf => crlf += 1,
            }
        }
        match lf.cmp(&crlf) {
            std::cmp::Ordering::Greater => Some(LineEnding::Lf),
            std::cmp::Ordering::Less => Some(LineEnding::CrLf),
            std::cmp::Ordering::Equal => None,
        }
    }
}

#[cfg(test)]
mod tests;
