//! Commands that the user has written, in the chat.

use myclaw_agent::SessionConfig;
use myclaw_front::custom_commands::expand;
pub(crate) use myclaw_front::custom_commands::names;
use myclaw_front::requests;

use super::command::{self, NAMES, Parsed};

/// Reads a line that is not blank. If its first word is the name of such a command, it is the message of that.
pub(super) fn parse(config: &SessionConfig, line: &str) -> Parsed {
    match expand(config, line, |name| NAMES.contains(&name)) {
        Some(Ok(message)) => Parsed::Message(message),
        Some(Err(problem)) => Parsed::Unknown(problem),
        // Its text is asked for when the message is made.
        None if config.names_server_prompt(line) => Parsed::Message(line.to_owned()),
        None => match requests::expand(line) {
            Some(message) => Parsed::Message(message),
            None => command::parse(line, || names(config)),
        },
    }
}
