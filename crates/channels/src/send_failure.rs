//! Why a part was not sent.

use std::time::Duration;

/// Why a part was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// It was not delivered; another attempt may succeed, after this time if the channel named one.
    Later {
        /// The wait that the channel asks for.
        after: Option<Duration>,
        /// For people.
        reason: String,
    },
    /// No attempt will succeed.
    Never {
        /// For people.
        reason: String,
    },
    /// The preview that it replaces is gone. It was not delivered, and has to be sent as a message of its own.
    NoPreview,
    /// It is uncertain whether it was delivered.
    Unknown {
        /// For people.
        reason: String,
    },
}

impl SendFailure {
    /// The channel cannot do this.
    pub fn unsupported() -> Self {
        Self::Never { reason: "the channel cannot do this".to_owned() }
    }
}
