//! `myclaw config`.

use myclaw_agent::config::{json_schema, load_config};

use crate::args::{ConfigArgs, ConfigCommand};
use crate::exit::CliError;
use crate::home::find_home;
use crate::print::Printer;

/// Runs one of the commands.
pub(crate) fn run(args: &ConfigArgs) -> Result<(), CliError> {
    match args.command {
        ConfigCommand::Check => check(),
        ConfigCommand::Path => path(),
        ConfigCommand::Schema => schema(),
    }
}

fn check() -> Result<(), CliError> {
    let home = find_home()?;
    let loaded = load_config(&home.environment)?;
    // What only shows when an agent is asked for: a workspace below a home that is not there.
    for agent in loaded.config.agent_ids() {
        loaded.config.agent_settings(Some(agent.as_str()))?;
    }
    let mut printer = Printer::stdout();
    printer.line(format_args!("{}: ok", loaded.path.display()))?;
    printer.finish()
}

fn path() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.line(find_home()?.paths.config_file().display())?;
    printer.finish()
}

fn schema() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.line(format_args!("{:#}", json_schema()))?;
    printer.finish()
}
