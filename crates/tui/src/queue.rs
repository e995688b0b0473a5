//! The messages that wait while the agent works: listed, and taken back.

use myclaw_agent::Session;
use myclaw_engine::PendingMessage;
use myclaw_front::exit::CliError;
use myclaw_front::report::first_line;
use myclaw_llm::joined_text;
use myclaw_session::QueuedKind;

/// When a waiting message is read.
pub(super) fn when(message: &PendingMessage) -> &'static str {
    match message.kind {
        QueuedKind::Steer | QueuedKind::Interrupt => "next",
        QueuedKind::FollowUp | QueuedKind::Collect => "later",
        QueuedKind::Overflow => "dropped",
    }
}

/// The number in `drop NUMBER`.
pub(super) fn number(argument: &str) -> Option<usize> {
    argument.strip_prefix("drop")?.trim().parse().ok()
}

/// The waiting messages, numbered from 1.
pub(super) fn list(pending: &[PendingMessage]) -> String {
    if pending.is_empty() {
        return "nothing waits".to_owned();
    }
    let line = |(at, message): (usize, &PendingMessage)| {
        let when = when(message);
        format!("{:>3}  {when:<7}  {}", at + 1, first_line(&joined_text(&message.content, " ")))
    };
    pending.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Takes a message back.
pub(super) async fn drop_one(session: &Session, number: usize) -> Result<String, CliError> {
    let pending = session.pending().await?;
    let Some(message) = number.checked_sub(1).and_then(|at| pending.get(at)) else {
        return Ok(format!("there is no message {number}; /queue lists the waiting messages"));
    };
    Ok(match session.take_back(message.id).await? {
        true => format!("taken back: {}", first_line(&joined_text(&message.content, " "))),
        false => "the agent has read it already".to_owned(),
    })
}
