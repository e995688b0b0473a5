//! Failures, as JSON-RPC tells them.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use serde_json::json;

use myclaw_agent::AgentError;

use crate::exit::CliError;

/// An error with one message for a person.
pub(super) fn failure(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// What is asked for, or how, cannot be used.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    failure(ErrorCode::InvalidParams, message)
}

/// There is no such session, or it is not open.
pub(super) fn unknown_session(message: impl Into<String>) -> Error {
    failure(ErrorCode::ResourceNotFound, message)
}

/// What the rest of the program says, with its class for programs.
pub(super) fn of(error: &CliError) -> Error {
    let code = match error.class {
        "usage" => ErrorCode::InvalidParams,
        _ => ErrorCode::InternalError,
    };
    failure(code, error.message.clone()).data(json!({"class": error.class}))
}

/// The same for what the agent crate says.
pub(super) fn failed(error: AgentError) -> Error {
    of(&CliError::from(error))
}

/// The same for errors that are not the program's own words yet.
pub(super) fn internal(error: impl std::fmt::Display) -> Error {
    of(&CliError::failure(format!("internal error: {error}")))
}
