//! `myclaw init`.

use std::fs;

use myclaw_config::{load_or_default, scaffold_config_if_missing};

use crate::exit::CliError;
use crate::print::Printer;
use crate::settings::{Home, config_error};

/// Writes the starter config and the workspace, and says what to do next.
pub(crate) fn run() -> Result<(), CliError> {
    let home = Home::find()?;
    let scaffold = scaffold_config_if_missing(&home.paths).map_err(|error| config_error(&error))?;
    // The starter config refers to a key that may not be set yet; the workspace does not depend on it.
    let workspace = load_or_default(&home.environment)
        .and_then(|loaded| loaded.config.agent_settings(None))
        .map_or_else(|_| home.paths.workspace_dir(None), |agent| agent.workspace);
    let existed = workspace.is_dir();
    fs::create_dir_all(&workspace).map_err(|error| {
        CliError::failure(format!("cannot make the workspace {}: {error}", workspace.display()))
    })?;

    let mut printer = Printer::stdout();
    let state = |created: bool| if created { "written" } else { "there already, unchanged" };
    printer.line(format_args!(
        "config:    {} ({})",
        scaffold.path.display(),
        state(scaffold.created)
    ))?;
    printer.line(format_args!("workspace: {} ({})", workspace.display(), state(!existed)))?;
    printer.line("")?;
    printer.line("Next:")?;
    printer.line(
        "  1. Put a provider and its key into the config file, or set the variable that it names,",
    )?;
    printer.line("     such as ANTHROPIC_API_KEY; to use what is found on this machine, remove `provider` from it.")?;
    printer.line("  2. myclaw config check")?;
    printer.line("  3. myclaw run \"List the files in my workspace\"")?;
    printer.finish()
}
