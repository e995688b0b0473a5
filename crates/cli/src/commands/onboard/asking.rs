//! Questions, one line each: on standard error, answered on standard input.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use myclaw_config::SecretString;

use crate::commands::auth::{checked_key, read_unseen};
use myclaw_front::exit::CliError;

/// Longest answer that is used, in characters.
const LONGEST: usize = 4_096;

/// Whether there is somebody to ask.
pub(super) struct Asker {
    is_quiet: bool,
}

/// The answer to a question that is answered with Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Default {
    Yes,
    No,
}

impl Asker {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet }
    }

    /// Nobody is asked; each question has its usual answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// An answer; `usual` for an empty one.
    pub(super) fn ask(&self, question: &str, usual: &str) -> Result<String, CliError> {
        if self.is_quiet {
            return Ok(usual.to_owned());
        }
        let hint = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
        let answer = line(&format!("{question}{hint}: "))?;
        Ok(if answer.is_empty() { usual.to_owned() } else { answer })
    }

    pub(super) fn confirm(&self, question: &str, usual: Default) -> Result<bool, CliError> {
        let hint = if usual == Default::Yes { "Y/n" } else { "y/N" };
        loop {
            let answer = self.ask(&format!("{question} [{hint}]"), "")?;
            match answer.to_lowercase().as_str() {
                "" => return Ok(usual == Default::Yes),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }

    /// A secret, which a terminal does not show.
    pub(super) fn secret(&self, question: &str) -> Result<SecretString, CliError> {
        if io::stdin().is_terminal() {
            return checked_key(&read_unseen(&format!("{question}: "))?);
        }
        checked_key(&line(&format!("{question}: "))?)
    }
}

fn line(question: &str) -> Result<String, CliError> {
    drop(write!(io::stderr(), "{question}"));
    drop(io::stderr().flush());
    let mut answer = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| CliError::failure(format!("cannot read the answer: {error}")))?;
    if read == 0 {
        drop(writeln!(io::stderr()));
        return Err(CliError::usage(
            "there is no answer on standard input; give --yes and the options that `myclaw onboard --help` lists",
        ));
    }
    if answer.chars().count() > LONGEST {
        return Err(CliError::usage("this answer is too long"));
    }
    Ok(answer.trim().to_owned())
}
