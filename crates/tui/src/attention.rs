//! Calls the user when the agent needs an answer or a turn has ended: only if the user looks elsewhere, or the turn was
//! long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myclaw_config::{NotificationsName, TerminalConfig};
use parking_lot::Mutex;

use myclaw_front::terminal::{Call, format_elapsed, notify};

/// What is known about the user's attention.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// How the user is called, and after how long in any case.
    config: OnceLock<TerminalConfig>,
    /// Whether the terminal has said that it lost the focus.
    is_elsewhere: AtomicBool,
    /// Since when the user may look elsewhere.
    since: Mutex<Option<Instant>>,
}

impl Attention {
    /// What the config says. The first call counts.
    pub(super) fn set(&self, config: TerminalConfig) {
        let _ = self.config.set(config);
    }

    /// The terminal was brought to the front, or something else was.
    pub(super) fn focus(&self, focus: Focus) {
        self.is_elsewhere.store(focus == Focus::Lost, Ordering::Relaxed);
    }

    /// The user begins to wait.
    pub(super) fn begin(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    /// A turn has ended.
    pub(super) fn turn_ended(&self) {
        let waited = self.waited();
        self.call(waited, &format!("done in {}", format_elapsed(waited)));
    }

    /// The agent needs an answer.
    pub(super) fn question(&self) {
        self.call(self.waited(), "a question waits for your answer");
    }

    fn waited(&self) -> Duration {
        let since = *self.since.lock();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn call(&self, waited: Duration, text: &str) {
        let config = self.config.get().cloned().unwrap_or_default();
        // Who has waited for so long may look elsewhere by now.
        let is_long = waited >= Duration::from_secs(config.long_turn_seconds);
        if !self.is_elsewhere.load(Ordering::Relaxed) && !is_long {
            return;
        }
        match config.notifications {
            NotificationsName::Auto => notify(Call::Desktop, text),
            NotificationsName::Bell => notify(Call::Bell, text),
            NotificationsName::Off => {}
        }
    }
}

/// Whether the keys go to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Gained,
    Lost,
}
