//! Fences of code blocks, as CommonMark defines them (section 4.5).

/// The line that opens a fenced code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

/// Fewest marks of a fence.
const SHORTEST: usize = 3;
/// A line that is indented further is code itself.
const MOST_INDENT: usize = 3;

impl Fence {
    /// The fence that `line` opens, if it opens one.
    pub(super) fn opening(line: &str) -> Option<Self> {
        let (fence, info) = Self::marks(line)?;
        (fence.mark != '`' || !info.contains('`')).then_some(fence)
    }

    /// Whether `line` closes the block that this fence opened.
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        Self::marks(line).is_some_and(|(closing, rest)| {
            closing.mark == self.mark && closing.length >= self.length && rest.trim().is_empty()
        })
    }

    fn marks(line: &str) -> Option<(Self, &str)> {
        let text = line.trim_start_matches(' ');
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (line.len() - text.len() <= MOST_INDENT && length >= SHORTEST)
            .then_some((Self { mark, length }, info))
    }
}
