//! The environment and the config, with what is wrong with them on standard error.

use myclaw_agent::{Home, SessionConfig, SessionOptions};

use crate::args::ConversationArgs;
use crate::exit::CliError;
use crate::logging;
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
    logging::start_on_stderr(&home.environment);
    Ok(home)
}

/// Loads the config file and applies the command line.
///
/// # Errors
/// The config file has a mistake, or an argument names nothing that exists.
pub(crate) fn session_config(args: &ConversationArgs) -> Result<SessionConfig, CliError> {
    load_session(find_home()?, &args.options())
}

/// Loads the config file, and starts the log file that it asks for.
///
/// # Errors
/// As for [`session_config`].
pub(crate) fn load_session(
    home: Home,
    options: &SessionOptions,
) -> Result<SessionConfig, CliError> {
    let session = SessionConfig::load(home, options)?;
    logging::start_with_config(&session.config, &session.agent, &session.home);
    Ok(session)
}
