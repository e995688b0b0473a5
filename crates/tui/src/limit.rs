//! At a limit of a message the user decides whether the agent continues.

use myclaw_agent::{AgentError, FailureClass};
use myclaw_engine::Bound;
use tokio_util::sync::CancellationToken;

use super::typed::{Key, TypedLine};
use super::{Chat, put_line};
use myclaw_front::exit::CliError;
use myclaw_front::terminal::{Keyboard, Paint, Size, Style, forget_typed, wrapped};

/// The message that makes the agent go on: the limits begin anew with each message.
pub(super) const GO_ON: &str = "Go on where you stopped.";

/// The limit that ended a turn.
pub(super) fn reached(error: &AgentError) -> Option<Bound> {
    match error.class {
        FailureClass::Bound(bound) => Some(bound),
        _ => None,
    }
}

/// Whether more of the same may follow: of the other limits, those of a day stay reached, and a loop would begin anew.
pub(super) fn may_go_on(bound: Bound) -> bool {
    matches!(bound, Bound::MaxIterations | Bound::RunSeconds | Bound::RunTokens | Bound::RunCost)
}

impl Chat {
    /// Asks whether to go on.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) async fn asks_to_go_on(&self, bound: Bound) -> Result<bool, CliError> {
        let Ok(mut keyboard) = Keyboard::listen() else { return Ok(false) };
        // Keys that were pressed before the question was shown are not an answer. A failure changes nothing.
        let _ = forget_typed();
        let question = format!("A limit was reached: {}. Go on? (y)es or (n)o", bound.reason());
        let columns = Size::current().columns.saturating_sub(1);
        let question = wrapped(&question, columns).join("\n");
        put_line(&Paint::for_stream(&std::io::stdout()).paint(Style::Warning, &question))?;
        self.common.attention.question();
        let closed = CancellationToken::new();
        let mut line = TypedLine::default();
        let _armed = self.interrupts.arm(closed.clone());
        loop {
            let keys = tokio::select! {
                keys = keyboard.read_keys() => keys,
                () = closed.cancelled() => return Ok(false),
            };
            // If the terminal is gone, the next read of the prompt says so.
            let Ok(keys) = keys else { return Ok(false) };
            if keys == b"\x1b" || keys.contains(&b'\x04') {
                return Ok(false);
            }
            // Enter may follow the answer at once, and other keys may come before it.
            let sent = line.press(&keys).into_iter().find_map(|key| match key {
                Key::Send(sent) => Some(sent.text),
                _ => None,
            });
            let typed = sent.unwrap_or_else(|| line.take());
            match typed.chars().find(|char| "yYnNq".contains(*char)) {
                Some('y' | 'Y') => return Ok(true),
                Some(_) => return Ok(false),
                None => {}
            }
        }
    }
}
