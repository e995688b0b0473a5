//! The environment and the config, with what is wrong with them on standard error.

use myclaw_agent::{Home, SessionConfig};

use crate::args::ConversationArgs;
use crate::exit::CliError;
use crate::print::note;

/// Reads the environment, and warns of what cannot be used in it.
///
/// # Errors
/// There is no home to keep anything in.
pub(crate) fn find_home() -> Result<Home, CliError> {
    let home = Home::find()?;
    for warning in home.environment.warnings() {
        note(format_args!("myclaw: {warning}"));
    }
    Ok(home)
}

/// Loads the config file and applies the command line.
///
/// # Errors
/// The config file has a mistake, or an argument names nothing that exists.
pub(crate) fn session_config(args: &ConversationArgs) -> Result<SessionConfig, CliError> {
    Ok(SessionConfig::load(find_home()?, &args.options())?)
}
