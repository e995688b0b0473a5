//! Failures as JSON-RPC errors.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use myclaw_agent::AgentError;
use serde_json::json;

use myclaw_front::exit::CliError;

/// An error with one message for a person.
pub(super) fn failure(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// The request or its parameters cannot be used.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    failure(ErrorCode::InvalidParams, message)
}

/// There is no such session, or it is not open.
pub(super) fn unknown_session(message: impl Into<String>) -> Error {
    failure(ErrorCode::ResourceNotFound, message)
}

/// A failure of the program, with its class in `data`.
pub(super) fn of(error: &CliError) -> Error {
    let code = match error.class {
        "usage" => ErrorCode::InvalidParams,
        _ => ErrorCode::InternalError,
    };
    failure(code, error.message.clone()).data(json!({"class": error.class}))
}

/// The same for errors of the agent crate.
pub(super) fn failed(error: AgentError) -> Error {
    of(&CliError::from(error))
}

/// The same for errors without a class.
pub(super) fn internal(error: impl std::fmt::Display) -> Error {
    of(&CliError::failure(format!("internal error: {error}")))
}
