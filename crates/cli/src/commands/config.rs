//! `myclaw config`.

use myclaw_agent::{
    config_check::{Examination, load_checked},
    config_write::check_config,
};
use myclaw_config::{json_schema, load_config};

use crate::args::{ConfigArgs, ConfigCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;

mod change;

/// Runs one of the commands.
pub(crate) fn run(args: &ConfigArgs) -> Result<(), CliError> {
    match &args.command {
        ConfigCommand::Check => check(),
        ConfigCommand::Get { key } => change::get(key),
        ConfigCommand::Set { key, value } => change::set(key, value),
        ConfigCommand::Unset { key } => change::unset(key),
        ConfigCommand::Edit => change::edit(),
        ConfigCommand::Path => path(),
        ConfigCommand::Schema => schema(),
    }
}

fn check() -> Result<(), CliError> {
    let home = find_home()?;
    let loaded = load_config(&home.environment)?;
    load_checked(&home.environment)?;
    let Examination { mistakes, warnings } = runtime::block_on(check_config(&loaded, &home))?;
    for warning in warnings {
        note(format_args!("myclaw: warning: {warning}"));
    }
    if !mistakes.is_empty() {
        return Err(loaded.refuse(mistakes).into());
    }
    let mut printer = Printer::stdout();
    printer.line(format_args!("{}: ok", loaded.path.display()))?;
    printer.finish()
}

fn path() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.copied_lines([find_home()?.paths.config_file().display().to_string()])?;
    printer.finish()
}

fn schema() -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.copied_lines([format!("{:#}", json_schema())])?;
    printer.finish()
}
