//! The two programs that are measured, and how each is asked for one turn.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::{TempHome, WireFormat};

use crate::scenario::{LARGE_FILE_NAME, Scenario, large_file};

/// The session that every run continues.
const SESSION: &str = "main";

/// Its key, as the header of a transcript holds it.
pub(crate) const SESSION_KEY: &str = "agent:main:channel:cli:account:default:peer:direct:main";

/// The model both ask for; its wire format is Anthropic's.
const MODEL: &str = "claude-sonnet-4-20250514";

/// The user's message.
const MESSAGE: &str = "How are you?";

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Myclaw,
    Bare,
}

/// A program with a home of its own.
#[derive(Debug)]
pub(crate) struct Contestant {
    program: Program,
    path: PathBuf,
    home: TempHome,
}

impl Contestant {
    pub(crate) fn new(program: Program, path: &Path) -> Self {
        let home = TempHome::new();
        // A blank file keeps the starter text, which is the user's to change, out of the prompt.
        home.write_in_workspace("AGENTS.md", "\n");
        home.write_in_workspace(LARGE_FILE_NAME, large_file());
        Self { program, path: path.to_owned(), home }
    }

    /// Begins anew: no transcript, no index.
    pub(crate) fn forget(&self) -> io::Result<()> {
        let sessions = self.home.sessions_directory();
        if sessions.exists() {
            std::fs::remove_dir_all(&sessions)?;
        }
        std::fs::create_dir_all(sessions)
    }

    /// Makes the transcript what it is before the turn.
    pub(crate) fn prepare(&self, scenario: Scenario) -> io::Result<()> {
        match scenario {
            Scenario::Plain | Scenario::Tools | Scenario::Reads | Scenario::Stream { .. } => {
                self.forget()
            }
            // Cut back rather than written anew: a program that syncs the file should not pay for our writing.
            Scenario::Session { transcript, .. } => {
                OpenOptions::new().write(true).open(self.transcript())?.set_len(transcript)
            }
        }
    }

    /// Where its transcript is.
    pub(crate) fn transcript(&self) -> PathBuf {
        self.home.transcript_path(SESSION)
    }

    /// Where its standard error goes.
    pub(crate) fn error_file(&self) -> PathBuf {
        self.home.path().join("stderr.txt")
    }

    /// The command for one turn against the server at `url`.
    pub(crate) fn turn(&self, url: &str) -> Command {
        let mut command = self.home.command(&self.path);
        match self.program {
            Program::Myclaw => {
                self.home.write_config(&TempHome::config_for(url, WireFormat::AnthropicMessages));
                command.args(["run", "--session", SESSION, MESSAGE]);
            }
            Program::Bare => {
                command.args([url, MODEL, MESSAGE]).arg(self.transcript());
                command.current_dir(self.home.workspace());
            }
        }
        command
    }
}
