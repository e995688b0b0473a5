//! Reports the mistakes of a config file with their positions: one line each, or with the lines of the file.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::config_path::ConfigPath;
use crate::mask::mask_secrets;

/// The style of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenderStyle {
    /// Text alone.
    #[default]
    Plain,
    /// With ANSI colours, for a terminal.
    Coloured,
}

/// A place in the config file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// One mistake in the config file. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The key; the empty path if the mistake belongs to no key.
    pub path: ConfigPath,
    /// The problem.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The position, if it is known.
    pub location: Option<Location>,
    span: Option<Range<usize>>,
}

impl Issue {
    fn title(&self) -> String {
        if self.path.is_root() {
            self.message.clone()
        } else {
            format!("{}: {}", self.path, self.message)
        }
    }
}

/// The mistakes of a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    file: PathBuf,
    /// The text with its secrets blanked.
    source: String,
    issues: Vec<Issue>,
}

impl Report {
    /// A report on a file with this text, which must have no byte order mark.
    pub(crate) fn new(file: &Path, text: &str) -> Self {
        Self { file: file.to_path_buf(), source: mask_secrets(text), issues: Vec::new() }
    }

    /// Adds a mistake at `span`, in bytes of the text.
    pub(crate) fn push(
        &mut self,
        path: ConfigPath,
        message: String,
        help: Option<String>,
        span: Option<Range<usize>>,
    ) {
        let location = span.as_ref().map(|span| location(&self.source, span.start));
        self.issues.push(Issue { path, message, help, location, span });
    }

    /// Brings the mistakes into the order of the file.
    pub(crate) fn sort(&mut self) {
        self.issues.sort_by_key(|issue| issue.span.as_ref().map_or(0, |span| span.start));
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The mistakes, in the order of the file; at least one, and at most as many as a person would read.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// Each mistake with its line of the file, secrets blanked.
    pub fn render(&self, style: RenderStyle) -> String {
        let renderer = match style {
            RenderStyle::Plain => Renderer::plain(),
            RenderStyle::Coloured => Renderer::styled(),
        };
        let rendered: Vec<_> =
            self.issues.iter().map(|issue| self.render_issue(issue, &renderer)).collect();
        rendered.join("\n\n")
    }

    fn render_issue(&self, issue: &Issue, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(issue.title());
        let file = self.file.display().to_string();
        let group = match (&issue.span, issue.location) {
            (Some(span), Some(location)) => {
                let (line, span) = line_around(&self.source, span);
                let annotation = AnnotationKind::Primary.span(span).label(issue.help.as_deref());
                title.element(
                    Snippet::source(line)
                        .line_start(location.line)
                        .path(file)
                        .annotation(annotation),
                )
            }
            _ => {
                let group = title.element(annotate_snippets::Origin::path(file));
                match &issue.help {
                    Some(help) => group.element(Level::HELP.message(help.as_str())),
                    None => group,
                }
            }
        };
        renderer.render(&[group])
    }
}

impl fmt::Display for Report {
    /// One line for each mistake.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{}", self.file.display())?;
            if let Some(location) = issue.location {
                write!(formatter, ":{}:{}", location.line, location.column)?;
            }
            write!(formatter, ": {}", issue.title())?;
            if let Some(help) = &issue.help {
                write!(formatter, "; {help}")?;
            }
        }
        Ok(())
    }
}

/// Line and column of a byte offset.
fn location(text: &str, offset: usize) -> Location {
    let before = &text[..floor(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Location {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The line on which a span begins, and the span within it, cut at the end of the line.
fn line_around<'a>(text: &'a str, span: &Range<usize>) -> (&'a str, Range<usize>) {
    let at = floor(text, span.start);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let line = text[start..end].trim_end_matches('\r');
    let from = (at - start).min(line.len());
    let to = floor(line, span.end.saturating_sub(start).clamp(from, line.len()));
    (line, from..to)
}

/// The nearest character boundary at or before `offset`.
fn floor(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}
