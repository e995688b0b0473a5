//! Colours and emphasis, or plain text.

use std::io::IsTerminal;

/// Whether to write styles. Off if the stream is not a terminal, the terminal is `dumb`, or `NO_COLOR` is set to
/// anything but an empty string (no-color.org).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Write escape sequences for styles.
    Styled,
    /// Write plain text.
    Plain,
}

impl Paint {
    /// The mode for `stream`.
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !refused { Self::Styled } else { Self::Plain }
    }

    /// Appends the sequence that begins `style`.
    pub(crate) fn start(self, style: Style, out: &mut String) {
        if self == Self::Styled {
            out.push_str(style.sequence());
        }
    }

    /// Appends the sequence that ends all styles.
    pub(crate) fn reset(self, out: &mut String) {
        if self == Self::Styled {
            out.push_str("\x1b[0m");
        }
    }

    /// `text` in `style`.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        self.start(style, &mut out);
        out.push_str(text);
        self.reset(&mut out);
        out
    }
}

/// A style of text. Only the 16 colours that every theme defines are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Strong.
    Bold,
    /// Emphasis.
    Italic,
    /// Struck out.
    Strike,
    /// Link text.
    Underline,
    /// Less important.
    Dim,
    /// Code.
    Code,
    /// Headings and the prompt.
    Heading,
    /// Success.
    Good,
    /// Warning.
    Warning,
    /// Failure.
    Bad,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Self::Bold => "\x1b[1m",
            Self::Italic => "\x1b[3m",
            Self::Strike => "\x1b[9m",
            Self::Underline => "\x1b[4m",
            Self::Dim => "\x1b[2m",
            Self::Code => "\x1b[36m",
            Self::Heading => "\x1b[1;35m",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}
