//! Part of step `call`: waits until a key is available, if the wait is short enough.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use myclaw_llm::{ErrorClass, ModelError};

use super::{Caller, NoMessage};
use crate::failover::{LONGEST_WAIT_BEFORE_FALLBACK, Pick, error_class};
use crate::notice::every_key_in_cooldown;
use crate::turn::Shared;
use crate::{Notice, RunError};

/// Longest time that a run waits for a key. For longer cooldowns a clear error is more useful than a silent wait.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

impl Caller<'_> {
    /// How long the run waits for a key.
    pub(super) fn longest_wait(&self) -> Duration {
        if self.candidates.is_any_left() { LONGEST_WAIT_BEFORE_FALLBACK } else { LONGEST_WAIT }
    }

    /// Waits until a profile is available; `last_error` is the reason if there is none.
    pub(super) async fn available_profile(
        &mut self,
        shared: &Shared,
        last_error: Option<&ModelError>,
    ) -> Result<usize, NoMessage> {
        let longest = self.longest_wait();
        loop {
            if shared.run.cancel.is_cancelled() {
                return Err(NoMessage::Stop(RunError::Aborted));
            }
            let now_ms = shared.now_ms();
            match self.rotation.pick(now_ms) {
                Pick::Ready(profile) => return Ok(profile),
                Pick::Spent => {
                    let error = last_error.cloned().unwrap_or_else(|| self.nothing_left());
                    return Err(NoMessage::GiveUp(error));
                }
                Pick::Wait(wait) if wait > longest => {
                    let mut error = last_error.cloned().unwrap_or_else(|| self.cooldown());
                    let until = until(now_ms, wait);
                    error.message = if last_error.is_some() {
                        format!("{} (the provider asks to wait until {until})", error.message)
                    } else {
                        format!("{} until {until}", error.message)
                    };
                    return Err(NoMessage::GiveUp(error));
                }
                Pick::Wait(wait) => {
                    // A wait after a failure in this run was already announced by the retry event.
                    if last_error.is_none() {
                        shared.notice(Notice::WaitingForKey {
                            provider: self.model.model.provider.clone(),
                            reason: self.cooldown().class,
                            wait_ms: wait.as_millis() as u64,
                        });
                    }
                    tokio::select! {
                        () = shared.run.clock.sleep(wait) => {}
                        () = shared.run.cancel.cancelled() => {
                            return Err(NoMessage::Stop(RunError::Aborted));
                        }
                    }
                }
            }
        }
    }

    /// The error when every key was refused for another model of the same provider.
    fn nothing_left(&self) -> ModelError {
        let provider = &self.model.model.provider;
        ModelError::new(ErrorClass::Auth, format!("{provider}: no key is left to try"))
    }

    /// The error when every key is in cooldown.
    fn cooldown(&self) -> ModelError {
        let provider = &self.model.model.provider;
        let class = self.rotation.cooldown_reason().map_or(ErrorClass::Unknown, error_class);
        ModelError::new(class, every_key_in_cooldown(provider, class))
    }
}

/// `14:05 (for 2 h 3 min)`, with the date if it is not today, in the time zone of this machine.
fn until(now_ms: u64, wait: Duration) -> String {
    let zoned = |ms: u64| {
        let time = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
        Some(time.to_zoned(TimeZone::system()))
    };
    let then_ms = now_ms.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let clock = match (zoned(now_ms), zoned(then_ms)) {
        (Some(now), Some(then)) if now.date() == then.date() => then.strftime("%H:%M").to_string(),
        (_, Some(then)) => then.strftime("%Y-%m-%d %H:%M").to_string(),
        (_, None) => "the end of time".to_owned(),
    };
    format!("{clock}, for {}", length(wait))
}

/// `95 s`, `12 min`, `24 h 5 min`: rounded up, so that a user who comes back at that time is not too early.
fn length(wait: Duration) -> String {
    const MINUTES_FROM: u64 = 120;
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    if seconds < MINUTES_FROM {
        return format!("{seconds} s");
    }
    let minutes = seconds.div_ceil(60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests;
