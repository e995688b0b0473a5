//! Loads the environment and the config, and prints their mistakes to standard error.

use std::sync::Arc;

use myclaw_agent::config_check::load_checked;
use myclaw_agent::{AgentError, Home, SessionConfig, SessionOptions};
use myclaw_config::Config;
use myclaw_files::formats::StateFormats;

use crate::args::SessionArgs;
use crate::exit::CliError;
use crate::logging;
use crate::memory::finish_forgetting;
use crate::print::note;

/// Reads the environment, and warns about values that cannot be used. Refuses a state directory that a newer version of the
/// program has written.
///
/// # Errors
/// There is no home directory, or its state directory cannot be used by this version.
pub fn find_home() -> Result<Home, CliError> {
    let home = find_any_home()?;
    // A file in its place is reported by what wants to write there.
    if home.paths.state_dir().is_dir() {
        StateFormats::check(home.paths.state_dir())?;
    }
    if let Err(error) = finish_forgetting(&home) {
        note(format_args!(
            "myclaw: what a killed command began to forget is not all done yet: {error}"
        ));
    }
    Ok(home)
}

/// Reads the environment, for commands that also work where a newer version of the program was.
///
/// # Errors
/// There is no home directory.
pub fn find_any_home() -> Result<Home, CliError> {
    let home = Home::find()?;
    for warning in home.environment.warnings() {
        note(format_args!("myclaw: {warning}"));
    }
    logging::start_on_stderr(&home.environment);
    Ok(home)
}

/// Writes down in the state directory which version of the program writes there from now on, and makes the directory.
///
/// # Errors
/// A newer version has written there, or this one must not change files before it is written down.
pub fn begin_to_write(home: &Home) -> Result<(), CliError> {
    StateFormats::record(home.paths.state_dir())?;
    Ok(())
}

/// Whether the sessions are in a database that gateways share. Only gateways open it: another program would be neither seen by
/// them nor stopped when it loses the session.
pub fn is_shared(home: &Home, config: &Config) -> bool {
    config.store_address(&home.environment).is_some()
}

/// Refuses to work on a session by itself where the sessions are in a database that gateways share.
///
/// # Errors
/// The config names such a database.
pub fn refuse_shared(session: &SessionConfig) -> Result<(), CliError> {
    match is_shared(&session.home, &session.config) {
        true => Err(CliError::config(
            "the sessions are in the database of gateway.store, which only gateways open; talk with the agent of a gateway: \
             `myclaw run`, `myclaw chat` in a terminal, or `myclaw attach`",
        )),
        false => Ok(()),
    }
}

/// Loads the config file and applies the command line.
///
/// # Errors
/// The config file has a mistake, or an argument names something that does not exist.
pub fn session_config(args: &SessionArgs) -> Result<SessionConfig, CliError> {
    load_session(find_home()?, &args.options())
}

/// Loads the config file.
///
/// # Errors
/// It has a mistake.
pub fn load_config(home: &Home) -> Result<Arc<Config>, CliError> {
    Ok(load_checked(&home.environment).map_err(AgentError::from)?.config)
}

/// Loads the config file, and starts the log file that it asks for.
///
/// # Errors
/// As for [`session_config`].
pub fn load_session(home: Home, options: &SessionOptions) -> Result<SessionConfig, CliError> {
    let config = load_config(&home)?;
    session_with(home, config, options)
}

/// The same with a config that is loaded.
///
/// # Errors
/// An argument names something that does not exist.
pub fn session_with(
    home: Home,
    config: Arc<Config>,
    options: &SessionOptions,
) -> Result<SessionConfig, CliError> {
    let session = SessionConfig::new(home, config, options)?;
    if session.home.paths.state_dir().is_dir() {
        begin_to_write(&session.home)?;
    }
    logging::start_with_config(&session.config, &session.agent, &session.home);
    let file = session.home.paths.config_file();
    tracing::info!(
        config = %file.display(),
        found = file.exists(),
        agent = %session.agent.id,
        session = %session.session_key,
        "config loaded"
    );
    Ok(session)
}
