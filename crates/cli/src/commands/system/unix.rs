//! Linux and macOS: every command works, or says itself what it lacks.

use myclaw_front::exit::CliError;

use crate::args::Command;

/// What this system lacks, in words for people: nothing.
pub(crate) const MISSING: Option<&str> = None;

/// Refuses no command.
///
/// # Errors
/// None.
pub(crate) fn refuse(_command: Option<&Command>) -> Result<(), CliError> {
    Ok(())
}
