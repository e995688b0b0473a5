//! Failures of delivery.

use myclaw_agent::AgentError;
use myclaw_schedule::ScheduleError;
use myclaw_store::StoreError;

/// Why a message is refused, or a step is not done.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The message, or what it names, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The source has used the id for another message.
    #[error(
        "the id was used for another message before; give each message an id of its own, such as a UUID"
    )]
    OtherMessage,
    /// Too many messages wait for an answer.
    #[error("{0} messages wait for an answer already; try again when some are answered")]
    Full(usize),
    /// The gateway is about to end.
    #[error("the gateway is about to stop; try again when it runs again")]
    Stopping,
    /// The store has not answered in time.
    #[error(
        "the message could not be stored within {0} s; send it again under the same id, because it may be stored later"
    )]
    Late(u64),
    /// Another gateway has the session of this key now.
    #[error("the session {0} is worked on by another gateway")]
    Lost(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A time, interval, zone or cron expression cannot be used.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A defect of the program.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}
