//! Where scripts of code mode run.

use std::sync::Arc;

use myclaw_config::ConfinementConfig;
use myclaw_exec::{ChildSpec, EnvironmentPolicy};
use myclaw_files::variables::SCRIPT_CALLS;
use myclaw_mcp::{PrepareScript, Program, ScriptPlace};
use myclaw_sandbox::{Confinement, Level, Network, PROXY_ADDRESS};

use crate::confinement::{limits, own_sandbox, real};
use crate::program::program;
use crate::{AgentError, FailureClass};

/// In a script's directory: what its calls start.
const COMMANDS: &str = "bin";
/// Where the other programs are: what is installed elsewhere cannot be read in the sandbox.
const SYSTEM_PATH: &str = ":/usr/local/bin:/usr/bin:/bin";
/// In a script's directory.
const TEMPORARY: &str = "tmp";

/// Prepares the sandboxes of scripts.
pub(super) fn script_places() -> Arc<PrepareScript> {
    Arc::new(|place| prepare(place).map_err(|error| error.message))
}

/// The script reads the programs of the system and this one, changes its own directory, and reaches the socket of its calls.
fn prepare(place: &ScriptPlace) -> Result<Program, AgentError> {
    let failed = |error: std::io::Error| {
        AgentError::new(
            FailureClass::Mcp,
            format!("the script's directory cannot be made: {error}"),
        )
    };
    let (work, own) = (&place.work, real(&program()?));
    let (commands, temporary) = (work.join(COMMANDS), work.join(TEMPORARY));
    for directory in [&commands, &temporary] {
        std::fs::create_dir(directory).map_err(failed)?;
    }
    myclaw_files::portable::symlink(&own, commands.join("myclaw")).map_err(failed)?;
    let mut confinement = Confinement::new(Level::Landlock, real(work));
    confinement.read_only.push(own);
    confinement.temporary = Some(real(&temporary));
    confinement.network = Network::Proxy { socket: place.socket.clone() };
    confinement.limits = limits(&ConfinementConfig::default());
    let mut path = commands.into_os_string();
    path.push(SYSTEM_PATH);
    let mut child = ChildSpec::new("/bin/sh", work);
    let usual = EnvironmentPolicy::inherited();
    child.environment =
        usual.with("PATH", path).with("HOME", work).with(SCRIPT_CALLS, PROXY_ADDRESS);
    let advice = "If it begins with `#!`, check its first line. Otherwise `mcp.codeMode` needs a sandbox with a network of its own; \
                  `myclaw sandbox test` says what this machine has";
    Ok(Program {
        sandbox: own_sandbox()?,
        child,
        confinement,
        network: None,
        advice: advice.to_owned(),
    })
}
