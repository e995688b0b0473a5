//! `myclaw config`.

use myclaw_config::{json_schema, load_config};

use crate::args::{ConfigArgs, ConfigCommand};
use crate::config_check::{Examination, examine, load_checked};
use crate::exit::CliError;
use crate::print::{Printer, note};
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
    load_checked(&home.environment).map_err(|error| config_error(&error))?;
    let Examination { mistakes, warnings } = examine(&loaded, &home);
    for warning in warnings {
        note(format_args!("myclaw: warning: {warning}"));
    }
    if !mistakes.is_empty() {
        return Err(config_error(&loaded.refuse(mistakes)));
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
