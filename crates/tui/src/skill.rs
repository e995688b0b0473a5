//! `/skill`: lists the skills, and asks the agent to use one.

use myclaw_agent::SessionConfig;

use myclaw_front::print::columns;
use myclaw_front::report::first_line;

/// The skills that the agent can use, one per line.
pub(super) fn list(config: &SessionConfig) -> String {
    let found = match config.find_skills() {
        Ok(found) => found,
        Err(error) => return error.message,
    };
    let rows: Vec<Vec<String>> = found
        .offered()
        .map(|skill| vec![skill.name.clone(), first_line(&skill.description)])
        .collect();
    if rows.is_empty() {
        return "no skills; `myclaw skills list` says what keeps some from being used".to_owned();
    }
    columns(&rows).join("\n")
}

/// The names of the skills that the agent can use.
pub(super) fn names(config: &SessionConfig) -> Vec<String> {
    let found = config.find_skills().unwrap_or_default();
    found.offered().map(|skill| skill.name.clone()).collect()
}

/// The message that asks the agent to use a skill; `argument` is its name, optionally followed by a message.
///
/// # Errors
/// There is no such skill: what to say about it.
pub(super) fn request(config: &SessionConfig, argument: &str) -> Result<String, String> {
    let (name, message) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let found = config.find_skills().map_err(|error| error.message)?;
    found.request(name, message).map_err(|error| error.message)
}
