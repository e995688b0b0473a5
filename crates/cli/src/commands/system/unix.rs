//! Linux and macOS: every command works, or says itself what it lacks.

use myclaw_front::exit::CliError;

use crate::args::Command;

/// What this system lacks, in words for people: nothing.
pub(crate) const MISSING: Option<&str> = None;

/// Whether the gateway can be a service.
pub(crate) const HAS_SERVICES: bool = true;

/// Refuses no command.
///
/// # Errors
/// None.
pub(crate) fn refuse(_command: Option<&Command>) -> Result<(), CliError> {
    Ok(())
}
