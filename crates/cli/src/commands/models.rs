//! `myclaw models`: the models that can be used, what is known about one, and whether it works.

mod show;
mod trial;

use myclaw_agent::config_check::load_checked;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::models::{ModelFilter, find_models, table};
use myclaw_front::print::Printer;
use myclaw_front::runtime;

use crate::args::{ModelsArgs, ModelsCommand, ModelsListArgs};
use crate::commands::cluster::with_shared_keys;

/// Runs one of the commands.
pub(crate) fn run(args: &ModelsArgs) -> Result<(), CliError> {
    match &args.command {
        ModelsCommand::List(args) => list(args),
        ModelsCommand::Show(args) => show::run(args),
        ModelsCommand::Test(args) => trial::run(args),
    }
}

fn list(args: &ModelsListArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let config = load_checked(&home.environment)?.config;
    let home = with_shared_keys(home, &config)?;
    let filter = ModelFilter {
        provider: args.provider.as_deref().or(args.provider_option.as_deref()),
        search: args.search.as_deref(),
    };
    let listed = runtime::block_on(find_models(&home, &config, filter))??;
    let mut printer = Printer::stdout();
    if args.json {
        listed.iter().try_for_each(|model| printer.json(model))?;
    } else {
        printer.safe_lines(table(&listed))?;
    }
    printer.finish()
}
