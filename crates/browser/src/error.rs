//! The errors of the browser tool.

use std::io;
use std::time::Duration;

use myclaw_engine::ToolError;
use myclaw_exec::ExecError;

/// Why the browser did not do what it was asked to. The texts are for the model: what is wrong and what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserError {
    #[error(
        "the browser tool needs the program agent-browser, which is not installed. The owner can install it with: \
         npm install -g agent-browser"
    )]
    NoProgram,
    #[error(
        "the browser tool needs Chromium, which is not installed. The owner can install it with: apt-get install \
         chromium (Debian, Ubuntu), or: agent-browser install. Another place can be set with \
         tools.browser.executablePath in the config"
    )]
    NoChromium,
    #[error("there is no page yet: call the browser tool with the action open and a url first")]
    NothingOpen,
    #[error(
        "the browser ended by itself (after a long time without actions, or because it crashed), and its pages are \
         gone. Open the page again"
    )]
    Gone,
    #[error("the browser cannot be started: {0}. Tell the owner; another call will try again")]
    Start(String),
    #[error(
        "the browser did not answer within {} s; try again, or use the action close and open the page anew",
        .0.as_secs()
    )]
    TimedOut(Duration),
    #[error("the action was aborted; the page may have received it")]
    Aborted,
    #[error(
        "agent-browser gave an answer that cannot be read ({0}); check that it is version 0.41 or later"
    )]
    Answer(String),
    #[error("agent-browser cannot be run: {0}")]
    Run(#[from] ExecError),
    #[error("cannot {action}: {source}")]
    File { action: String, source: io::Error },
    #[error("{0}")]
    Argument(String),
}

impl BrowserError {
    /// For `map_err` of file work; `action` follows "cannot".
    pub(crate) fn file(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::File { action, source }
    }
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        match error {
            BrowserError::Aborted => Self::Aborted(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}
