//! What the gateway needs from a channel.

use std::time::Duration;

use myclaw_store::BoxFuture;

use crate::rows::{Outgoing, PartId};

/// A way to reach people and programs. It hands messages in through the gateway's intake, and sends parts of replies.
pub trait Channel: Send + Sync + 'static {
    /// The name, as in [`crate::Route::channel`].
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Sends a part; returns the channel's own id of the message.
    ///
    /// # Errors
    /// It was not delivered, or nobody knows.
    fn send<'a>(
        &'a self,
        id: &'a PartId,
        part: &'a Outgoing,
    ) -> BoxFuture<'a, Result<String, SendFailure>>;

    /// Looks for a part that may have been sent before; for channels with [`AfterInterruption::Look`].
    ///
    /// # Errors
    /// The channel cannot be asked.
    fn find<'a>(
        &'a self,
        _id: &'a PartId,
        _part: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async { Ok(None) })
    }
}

/// What a channel can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What happens to a part whose sending was interrupted.
    pub after_interruption: AfterInterruption,
    /// Most characters of one message; longer texts become several parts.
    pub most_chars: Option<usize>,
}

/// What happens to a part that may have been delivered: the process was killed while it was sent, or no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterInterruption {
    /// It is sent again under the same id; the channel shows it once.
    SendAgain,
    /// The channel is asked first.
    Look,
    /// It is reported as uncertain, and not sent again.
    Report,
}

/// Why a part was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// It was not delivered; another attempt may succeed, after this time if the channel named one.
    Later {
        /// The channel's own word on when to try again.
        after: Option<Duration>,
        /// For people.
        reason: String,
    },
    /// No attempt will succeed.
    Never {
        /// For people.
        reason: String,
    },
    /// Nobody knows whether it was delivered.
    Unknown {
        /// For people.
        reason: String,
    },
}
