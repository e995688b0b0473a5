//! Windows: what has no counterpart is refused before it begins.

use myclaw_front::exit::CliError;

use crate::args::{Command, GatewayCommand};

/// What this system lacks, in words for people.
pub(crate) const MISSING: Option<&str> = Some(
    "Windows has no sandbox levels, no terminals for commands, no browser tool, no channel `socket`, no scripts of MCP calls, no \
     service, no `update`, `host`, `runner` and `node`, and files have no modes; a killed program's processes are not found again",
);

/// Whether the gateway can be a service.
pub(crate) const HAS_SERVICES: bool = false;

/// Refuses the commands that need what Windows lacks.
///
/// # Errors
/// It is one of them.
pub(crate) fn refuse(command: Option<&Command>) -> Result<(), CliError> {
    let name = match command {
        Some(Command::Host(_)) => "host",
        Some(Command::Groups(_)) => "groups",
        Some(Command::Workflows(_)) => "workflows",
        Some(Command::Runner(_)) => "runner",
        Some(Command::Node(_)) => "node",
        Some(Command::Update(_)) => "update",
        Some(Command::Onboard(args)) if args.install_service => "onboard --install-service",
        Some(Command::Gateway(args))
            if matches!(
                args.command,
                Some(GatewayCommand::Install(_) | GatewayCommand::Uninstall(_))
            ) =>
        {
            "gateway install"
        }
        _ => return Ok(()),
    };
    Err(CliError::usage(format!(
        "`myclaw {name}` does not work on Windows; use it on Linux or macOS (docs/develop/targets.md)"
    )))
}
