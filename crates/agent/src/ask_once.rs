//! One call of a model outside of a turn, with the keys that the agent has for it.

use myclaw_engine::{ActiveModel, Clock as _, SystemClock, micro_dollars, utc_day};
use myclaw_llm::Usage;
use myclaw_session::Spent;
use tokio_util::sync::CancellationToken;

use crate::models::profiles_in_order;
use crate::trial::{Trial, TrialFailure, TrialQuestion};
use crate::{SessionConfig, call_limits};

impl SessionConfig {
    /// The answer of `active`, with the first of its keys that works. What it costs is in the totals of the day.
    ///
    /// # Errors
    /// There is no answer; why.
    pub(crate) async fn ask_once(
        &self,
        active: &ActiveModel,
        question: TrialQuestion<'_>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let stored = self.home.stored_keys(&self.agent);
        let profiles = profiles_in_order(active, &stored, SystemClock.now_ms());
        let trial = Trial::new(self.home.http_options());
        let limits = call_limits(&self.config);
        // Without a profile there is one call, without a key.
        let mut profiles = profiles.iter();
        let mut profile = profiles.next();
        loop {
            let why = match trial.call(&active.model, profile, question, limits, cancel).await {
                Ok(answer) => {
                    self.record(answer.message.usage).await;
                    return Ok(answer.message.text());
                }
                Err(TrialFailure::Aborted) => return Err("the run was aborted".to_owned()),
                Err(TrialFailure::Key(why)) => why,
                Err(TrialFailure::Call(error)) => error.message,
            };
            profile = profiles.next();
            if profile.is_none() {
                return Err(why);
            }
        }
    }

    /// Adds a call to the totals of the day, which limit what agents spend. A call that cannot be added was still made.
    pub(crate) async fn record(&self, usage: Usage) {
        let spending = self.spending();
        let used =
            Spent { tokens: usage.total_tokens, micro_dollars: micro_dollars(usage.cost.total) };
        let day = utc_day(SystemClock.now_ms());
        let adding = tokio::task::spawn_blocking(move || spending.add(&day, used));
        if !matches!(adding.await, Ok(Ok(_))) {
            tracing::warn!("a model call could not be added to the totals of the day");
        }
    }
}
