//! Messages to the program: replies to its commands, and events.

use myclaw_agent::{AgentError, Done, FailureClass, Next, Outcome, SessionWork};
use myclaw_engine::{CompactionOutcome, CompactionReport};
use serde::Serialize;
use serde_json::Value;

use super::request::BadRequest;
use myclaw_front::exit::CliError;

/// The first line: version, session and model.
#[derive(Serialize)]
#[serde(tag = "type", rename = "ready")]
pub(super) struct Ready<'a> {
    pub(super) version: &'static str,
    pub(super) session: &'a str,
    pub(super) model: String,
}

/// The only line, in place of the first one: the program cannot begin.
#[derive(Serialize)]
#[serde(tag = "type", rename = "not_ready")]
pub(super) struct NotReady<'a> {
    #[serde(flatten)]
    failure: Failure<'a>,
}

impl<'a> From<&'a CliError> for NotReady<'a> {
    fn from(error: &'a CliError) -> Self {
        Self { failure: Failure::from(error) }
    }
}

/// The answer to one line.
#[derive(Serialize)]
#[serde(tag = "type", rename = "response")]
pub(super) struct Reply<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    command: &'a str,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(flatten)]
    failure: Option<Failure<'a>>,
}

/// The reason of a failure.
#[derive(Serialize)]
pub(super) struct Failure<'a> {
    /// For programs.
    class: &'a str,
    /// For people: one message that says what to do.
    error: &'a str,
}

impl<'a> Reply<'a> {
    /// The reply to a command.
    pub(super) fn to(
        id: Option<&'a Value>,
        command: &'a str,
        outcome: &'a Result<Value, CliError>,
    ) -> Self {
        let (data, failure) = match outcome {
            // An empty object carries no information.
            Ok(data) => (Some(data.clone()).filter(|data| !data.is_null()), None),
            Err(error) => (None, Some(Failure::from(error))),
        };
        Self { id, command, success: failure.is_none(), data, failure }
    }

    /// The reply to a line that is not a command.
    pub(super) fn to_bad_request(id: Option<&'a Value>, bad: &'a BadRequest) -> Self {
        let failure = Some(Failure { class: bad.class, error: &bad.message });
        Self { id, command: &bad.name, success: false, data: None, failure }
    }
}

impl<'a> From<&'a CliError> for Failure<'a> {
    fn from(error: &'a CliError) -> Self {
        Self { class: error.class, error: &error.message }
    }
}

impl<'a> From<&'a AgentError> for Failure<'a> {
    fn from(error: &'a AgentError) -> Self {
        Self { class: error.class.as_str(), error: &error.message }
    }
}

/// The result of a compaction, or why nothing was done.
#[derive(Serialize)]
pub(super) struct Compacted<'a> {
    outcome: CompactionOutcome,
    #[serde(flatten)]
    report: &'a CompactionReport,
}

impl<'a> From<&'a CompactionReport> for Compacted<'a> {
    fn from(report: &'a CompactionReport) -> Self {
        Self { outcome: report.outcome, report }
    }
}

/// Begin or end of work in a session.
#[derive(Serialize)]
pub(super) struct Event<'a> {
    #[serde(flatten)]
    event: Frame<'a>,
    session: &'a str,
}

/// Begin and end of work in a session. Between them come the events of `myclaw run --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame<'a> {
    /// Work begins.
    RunStart { work: SessionWork },
    /// Work is over.
    RunEnd {
        outcome: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<Compacted<'a>>,
        #[serde(flatten)]
        failure: Option<Failure<'a>>,
        idle: bool,
    },
}

impl<'a> Event<'a> {
    /// Work begins.
    pub(super) fn begin(session: &'a str, work: SessionWork) -> Self {
        Self { event: Frame::RunStart { work }, session }
    }

    /// Work is over.
    pub(super) fn end(session: &'a str, outcome: &'a Outcome, next: Next) -> Self {
        let (name, report, failure) = match outcome {
            Ok(Done::Answered(_)) => ("answered", None, None),
            Ok(Done::Compacted(report)) => ("compacted", Some(Compacted::from(report)), None),
            Err(error) if error.class == FailureClass::Aborted => {
                ("aborted", None, Some(Failure::from(error)))
            }
            Err(error) => ("failed", None, Some(Failure::from(error))),
        };
        let event = Frame::RunEnd { outcome: name, report, failure, idle: next == Next::Idle };
        Self { event, session }
    }
}
