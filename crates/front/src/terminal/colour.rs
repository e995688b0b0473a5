//! Colours and emphasis, or plain text.

use std::io::IsTerminal;

use super::Palette;

/// Whether to write styles. Off if the stream is not a terminal, the terminal is `dumb`, or `NO_COLOR` is set to
/// anything but an empty string (no-color.org).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Write escape sequences for styles.
    Styled,
    /// Write plain text.
    Plain,
}

impl Paint {
    /// The mode for `stream`.
    pub fn for_stream(stream: &impl IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !refused { Self::Styled } else { Self::Plain }
    }

    /// Appends the sequence that begins `style`.
    pub fn start(self, style: Style, out: &mut String) {
        if self == Self::Styled {
            out.push_str(style.sequence(Palette::current()));
        }
    }

    /// Appends the sequence that ends all styles.
    pub fn reset(self, out: &mut String) {
        if self == Self::Styled {
            out.push_str("\x1b[0m");
        }
    }

    /// `text` in `style`.
    pub fn paint(self, style: Style, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        self.start(style, &mut out);
        out.push_str(text);
        self.reset(&mut out);
        out
    }
}

/// A style of text. Only the 16 colours that every theme defines are used, unless the background is known: then code and
/// diffs have colours for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
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
    /// In code: a word of the language.
    Keyword,
    /// In code: a text in quotation marks.
    Quoted,
    /// In code: a number or another constant.
    Constant,
    /// In code: a comment.
    Comment,
    /// In code: the name of a function.
    Function,
    /// In code: the name of a type.
    Type,
    /// In a diff: a new line.
    Added,
    /// In a diff: a line that is gone.
    Removed,
}

impl Style {
    fn sequence(self, palette: Palette) -> &'static str {
        match palette {
            Palette::Basic => self.basic(),
            Palette::Dark => self.on_dark(),
            Palette::Light => self.on_light(),
            Palette::Plain => self.without_colour(),
            Palette::HighContrast => self.in_high_contrast(),
        }
    }

    fn on_dark(self) -> &'static str {
        match self {
            Self::Keyword => "\x1b[38;5;176m",
            Self::Quoted => "\x1b[38;5;114m",
            Self::Constant => "\x1b[38;5;215m",
            Self::Comment => "\x1b[38;5;245m",
            Self::Function => "\x1b[38;5;111m",
            Self::Type => "\x1b[38;5;180m",
            Self::Added => "\x1b[48;5;22m",
            Self::Removed => "\x1b[48;5;52m",
            other => other.basic(),
        }
    }

    fn on_light(self) -> &'static str {
        match self {
            Self::Keyword => "\x1b[38;5;90m",
            Self::Quoted => "\x1b[38;5;28m",
            Self::Constant => "\x1b[38;5;130m",
            Self::Comment => "\x1b[38;5;243m",
            Self::Function => "\x1b[38;5;25m",
            Self::Type => "\x1b[38;5;94m",
            Self::Added => "\x1b[48;5;194m",
            Self::Removed => "\x1b[48;5;224m",
            // Yellow on white cannot be read.
            Self::Warning => "\x1b[38;5;130m",
            other => other.basic(),
        }
    }

    fn without_colour(self) -> &'static str {
        match self {
            Self::Bold | Self::Heading | Self::Bad | Self::Warning => "\x1b[1m",
            Self::Italic | Self::Strike | Self::Underline => self.basic(),
            _ => "",
        }
    }

    /// Bold, which every background shows, and only the colours that mean something.
    fn in_high_contrast(self) -> &'static str {
        match self {
            Self::Good | Self::Added => "\x1b[1;32m",
            Self::Bad | Self::Removed => "\x1b[1;31m",
            Self::Warning => "\x1b[1;4m",
            Self::Heading | Self::Keyword | Self::Code => "\x1b[1m",
            Self::Bold | Self::Italic | Self::Strike | Self::Underline => self.basic(),
            _ => "",
        }
    }

    fn basic(self) -> &'static str {
        match self {
            Self::Bold => "\x1b[1m",
            Self::Italic => "\x1b[3m",
            Self::Strike => "\x1b[9m",
            Self::Underline => "\x1b[4m",
            Self::Dim | Self::Comment => "\x1b[2m",
            Self::Code | Self::Constant => "\x1b[36m",
            Self::Heading => "\x1b[1;35m",
            Self::Good | Self::Quoted | Self::Added => "\x1b[32m",
            Self::Warning | Self::Type => "\x1b[33m",
            Self::Bad | Self::Removed => "\x1b[31m",
            Self::Keyword => "\x1b[35m",
            Self::Function => "\x1b[34m",
        }
    }
}
