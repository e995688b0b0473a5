//! `myclaw config`.

use myclaw_config::{json_schema, load_config};

use crate::args::{ConfigArgs, ConfigCommand};
use crate::exit::CliError;
use crate::print::Printer;
use crate::settings::{Home, config_error};

/// Runs one of the commands.
pub(crate) fn run(args: &ConfigArgs) -> Result<(), CliError> {
    match args.command {
        ConfigCommand::Check => check(),
        ConfigCommand::Path => path(),
        ConfigCommand::Schema => schema(),
    }
}

fn check() -> Result<(), CliError> {
    let home = Home::find()?;
    let loaded = load_config(&home.environment).map_err(|error| config_error(&error))?;
    // What only shows when an agent is asked for: a workspace below a home that is not there.
    for agent in loaded.config.agent_ids() {
        loaded.config.agent_settings(Some(agent.as_str())).map_err(|error| config_error(&error))?;
    }
    let mut printer = Printer::stdout();
    printer.line(format_args!("{}: ok", loaded.path.display()))?;
    printer.finish()
}

fn path() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.line(Home::find()?.paths.config_file().display())?;
    printer.finish()
}

fn schema() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.line(format_args!("{:#}", json_schema()))?;
    printer.finish()
}
