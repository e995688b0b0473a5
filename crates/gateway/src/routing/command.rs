//! Commands of chats, which the gateway answers itself.

use myclaw_agent::sessions::SessionKey;
use myclaw_channels::{Arrival, TELEGRAM};

use crate::delivery::Delivery;

const HELP: &str = "Write a message, and the agent answers. While it works, more messages are read when it is done.\n\n\
                    /stop – stops what it does\n/status – shows who answers here\n/help – shows this";

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Stop,
    Status,
    /// Only groups of the host know it.
    New,
}

impl Command {
    /// The command that a message is; `None` if it is none.
    pub(crate) fn of(arrival: &Arrival) -> Option<Self> {
        if arrival.channel != TELEGRAM {
            return None;
        }
        match arrival.text.trim() {
            "/start" | "/help" => Some(Self::Help),
            "/stop" => Some(Self::Stop),
            "/status" => Some(Self::Status),
            "/new" => Some(Self::New),
            _ => None,
        }
    }
}

/// The answer to a command; `None` if the message is for the agent.
pub(super) fn answer(
    delivery: &Delivery,
    arrival: &Arrival,
    session: &SessionKey,
) -> Option<String> {
    match Command::of(arrival)? {
        Command::Help => Some(HELP.to_owned()),
        Command::Stop => Some(match delivery.abort(session.as_str()) {
            Ok(true) => "Stopped.".to_owned(),
            Ok(false) => "Nothing runs.".to_owned(),
            Err(error) => error.to_string(),
        }),
        Command::Status => Some(format!(
            "agent {}, session `{session}`, your id {}",
            session.parts().agent_id,
            arrival.sender.id
        )),
        Command::New => None,
    }
}
