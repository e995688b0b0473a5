//! Messages to the user about the active model and its thinking level.

use myclaw_agent::{
    Session, SessionCommand,
    selection::{Selection, SelectionSource},
};

use crate::exit::CliError;
use crate::print::note;
use crate::report::Verbosity;

/// Prints the active model to standard error if the user did not choose it, and fallbacks that cannot be used. The
/// built-in planner is always announced.
pub fn announce(selection: &Selection, verbosity: Verbosity) {
    let is_announced = verbosity == Verbosity::Normal || selection.is_builtin();
    if let Some(line) = announcement(selection).filter(|_| is_announced) {
        note(format_args!("myclaw: {line}"));
    }
    let notes = selection.unusable.iter().cloned().chain(selection.window_note());
    for problem in notes.filter(|_| verbosity == Verbosity::Normal) {
        note(format_args!("myclaw: {problem}"));
    }
}

/// The line that names the selected model and how to change it; `None` if the user named the model.
pub fn announcement(selection: &Selection) -> Option<String> {
    let model = &selection.reference;
    match &selection.source {
        SelectionSource::Request | SelectionSource::ConfigFile if selection.is_builtin() => {
            Some(format!("{model} answers: a small built-in planner, not a language model"))
        }
        SelectionSource::Request | SelectionSource::ConfigFile => None,
        SelectionSource::KeyVariable(variable) => Some(format!(
            "{model} answers, because {variable} is set; choose another with --model, or `myclaw init` for good"
        )),
        SelectionSource::StoredKey => Some(format!(
            "{model} answers, because there is a key for {}; choose another with --model, or `myclaw init` for good",
            model.provider
        )),
        SelectionSource::LocalServer { base_url } => Some(format!(
            "{model} answers, from the server at {base_url}; choose another with --model, or `myclaw init` for good"
        )),
        SelectionSource::Builtin => Some(format!(
            "{model} answers: a small built-in planner, not a language model; set ANTHROPIC_API_KEY (or another \
             provider's), start Ollama, or run `myclaw init` to connect one"
        )),
    }
}

/// Makes the model that the user names the active one; returns the message to show.
///
/// # Errors
/// The model cannot be used. Nothing has changed.
pub async fn change_model(session: &Session, name: &str) -> Result<String, CliError> {
    let command = SessionCommand::Model(Some(name.to_owned()));
    Ok(session.tell(command, "").await?.text)
}

/// Sets the thinking level that the user names; returns the message to show.
///
/// # Errors
/// There is no such level.
pub async fn change_thinking(session: &Session, level: &str) -> Result<String, CliError> {
    let command = SessionCommand::Thinking(Some(level.to_owned()));
    Ok(session.tell(command, "").await?.text)
}

/// The reply to `/model`.
///
/// # Errors
/// No model can be used.
pub async fn describe_model(session: &Session) -> Result<String, CliError> {
    Ok(session.tell(SessionCommand::Model(None), "").await?.text)
}
