//! `myclaw init`.

use myclaw_agent::config::{ConfigError, load_or_default, scaffold_config_if_missing};

use crate::exit::CliError;
use crate::home::find_home;
use crate::print::Printer;
use myclaw_agent::Home;
use myclaw_agent::files::create_private_directory;

/// Writes the starter config and the workspace, and says what to do next.
pub(crate) fn run() -> Result<(), CliError> {
    let home = find_home()?;
    let scaffold = scaffold_config_if_missing(&home.paths)?;
    // The starter config refers to a key that may not be set yet; the workspace does not depend on it.
    let agent =
        load_or_default(&home.environment).and_then(|loaded| loaded.config.agent_settings(None));
    let first_step = first_step(agent.as_ref().err(), &home);
    let workspace = agent.map_or_else(|_| home.paths.workspace_dir(None), |agent| agent.workspace);
    let existed = workspace.is_dir();
    create_private_directory(&workspace).map_err(|error| {
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
    for (number, step) in (1..).zip(first_step.into_iter().chain([
        "myclaw config check".to_owned(),
        "myclaw run \"List the files in my workspace\"".to_owned(),
    ])) {
        printer.line(format_args!("  {number}. {step}"))?;
    }
    printer.finish()
}

/// What stands between the config file and a turn, where anything does.
fn first_step(error: Option<&ConfigError>, home: &Home) -> Option<String> {
    let ConfigError::MissingEnvVar { var, .. } = error? else {
        return Some("Correct the config file; the next command says where.".to_owned());
    };
    Some(format!(
        "Set {var}, for example in {}, or put another provider into the config file,\n     \
         or remove `provider` from it to use what is found on this machine.",
        home.paths.state_dir().join(".env").display()
    ))
}
