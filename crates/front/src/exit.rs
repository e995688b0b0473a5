//! Exit codes, and the error type that the binary prints.

use std::fmt;
use std::process::ExitCode;

use myclaw_agent::{AgentError, FailureClass, config_write::ConfigWriteError};
use myclaw_config::{ConfigError, RenderStyle};
use myclaw_files::formats::StateFormatsError;
use myclaw_memory::NotebookError;
use myclaw_session::SessionError;

use crate::terminal::Paint;

/// The exit codes. The numbers are part of the interface and are documented in `docs/use/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success; for a turn: there is a reply.
    Success = 0,
    /// Something failed that no other code names: a file, a session, a limit of the run.
    Failure = 1,
    /// The command line, or the message itself, is not usable. The number is clap's own.
    Usage = 2,
    /// The config file has to be changed first.
    Config = 3,
    /// The model or its provider could not answer.
    Model = 4,
    /// The answer does not have the form that was asked for.
    Form = 9,
    /// Aborted by the user: 128 + SIGINT, the convention of shells.
    Aborted = 130,
    /// The reader of standard output closed it before the end: 128 + SIGPIPE, the convention of shells.
    OutputClosed = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure as shown to the user: one message that says what to do next, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// Exit code.
    pub exit: Exit,
    /// Short name for scripts: the `class` of the last line of `--json`.
    pub class: &'static str,
    /// For a person. May have several lines (a config diagnostic points into the file); never holds a secret.
    pub message: String,
}

impl CliError {
    /// A failure that no other constructor names.
    pub fn failure(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failure, class: "failure", message: message.into() }
    }

    /// A failure with a class of its own, for programs.
    pub fn failure_of_class(class: &'static str, message: impl Into<String>) -> Self {
        Self { class, ..Self::failure(message) }
    }

    /// The command line or the message is not usable.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, class: "usage", message: message.into() }
    }

    /// The config file, or what it names, has to be changed first.
    pub fn config(message: impl Into<String>) -> Self {
        Self { exit: Exit::Config, class: "config", message: message.into() }
    }

    /// An error of the command line's parser, whose text begins with `error: `.
    pub fn command_line(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        Self::usage(text.trim_end().trim_start_matches("error: "))
    }

    /// The sessions could not be read or written.
    pub fn session(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failure, class: "session", message: message.into() }
    }

    /// The model or provider could not answer; `class` is the error class of the model layer.
    pub fn model(class: &'static str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Model, class, message: message.into() }
    }

    /// The answer does not have the form that was asked for.
    pub fn form(message: impl Into<String>) -> Self {
        Self { exit: Exit::Form, class: "answer_form", message: message.into() }
    }

    /// The user aborted.
    pub fn aborted() -> Self {
        Self {
            exit: Exit::Aborted,
            class: "aborted",
            message: "aborted; the session is kept, the next message continues it".to_owned(),
        }
    }

    /// The user aborted twice, so the program quits without waiting.
    pub fn quit() -> Self {
        let message = "quit; the session is kept up to this point, the next message continues it";
        Self { exit: Exit::Aborted, class: "aborted", message: message.to_owned() }
    }

    /// Writing to standard output failed. A closed pipe is not an error and prints no message.
    pub fn output(error: &std::io::Error) -> Self {
        let exit = if error.kind() == std::io::ErrorKind::BrokenPipe {
            Exit::OutputClosed
        } else {
            Exit::Failure
        };
        Self { exit, class: "output", message: format!("cannot write to standard output: {error}") }
    }

    /// True if no message is printed.
    pub fn is_silent(&self) -> bool {
        self.exit == Exit::OutputClosed
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

/// The exit code of each class of failures.
impl From<FailureClass> for Exit {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Usage => Self::Usage,
            FailureClass::Config => Self::Config,
            FailureClass::Model(_)
            | FailureClass::AllModelsFailed
            | FailureClass::WindowTooSmall
            | FailureClass::Refusal
            | FailureClass::EmptyReply => Self::Model,
            FailureClass::Aborted => Self::Aborted,
            _ => Self::Failure,
        }
    }
}

impl From<AgentError> for CliError {
    /// The messages say what to do. A mistake in the config file is shown with the lines that are wrong.
    fn from(error: AgentError) -> Self {
        let shown = shown_lines(&error, "the config file has to be changed");
        let message = shown.unwrap_or_else(|| error.message.clone());
        Self { exit: error.class.into(), class: error.class.as_str(), message }
    }
}

impl From<ConfigWriteError> for CliError {
    /// Lines that are wrong are those that the change would have made.
    fn from(error: ConfigWriteError) -> Self {
        let error = AgentError::from(error);
        let title = "nothing was changed, because the config file would have mistakes";
        let shown = shown_lines(&error, title);
        let error = Self::from(error);
        Self { message: shown.unwrap_or(error.message), ..error }
    }
}

/// The lines of the config that are wrong, below a title; `None` if the error is none in its text.
fn shown_lines(error: &AgentError, title: &str) -> Option<String> {
    let config = error.config_error().filter(|config| config.report().is_some())?;
    let style = match Paint::for_stream(&std::io::stderr()) {
        Paint::Styled => RenderStyle::Coloured,
        Paint::Plain => RenderStyle::Plain,
    };
    Some(format!("{title}\n{}", config.render(style)))
}

impl From<StateFormatsError> for CliError {
    fn from(error: StateFormatsError) -> Self {
        Self::failure_of_class("formats", error.to_string())
    }
}

impl From<NotebookError> for CliError {
    fn from(error: NotebookError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        AgentError::from(error).into()
    }
}
