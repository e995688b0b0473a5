//! Step `bounds`: the limits that end a turn.
//!
//! Each user message starts a new allowance of calls, time, tokens and money; the totals of the day continue. Usage
//! comes from the run's tally, so every model call counts, whichever step made it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use myclaw_config::RunLimits;
use myclaw_llm::{Model, Usage};
use myclaw_session::{SessionError, Spending, Spent};

use super::Shared;
use super::time_limit::{Pauses, TimeLimit};
use crate::bound::{exhausted_budget, micro_dollars};
use crate::{Bound, ConfigKeys, Notice, RunError, SharedCost};

/// The limits, the usage since the last user message, and the usage of the day.
#[derive(Debug)]
pub(crate) struct Bounds {
    limits: RunLimits,
    /// What the cost is bounded of besides the run itself.
    family: Option<SharedCost>,
    /// Most model calls for one message; `None` means no cap.
    max_iterations: Option<u32>,
    config_keys: ConfigKeys,
    /// Measured by the monotonic clock, because the wall clock may jump. `None` means no limit.
    time: Option<TimeLimit>,
    iterations_before: u32,
    usage_before: Usage,
    /// The part of the run's usage that is already in the day's totals.
    in_totals: Usage,
    day: Spent,
    spending: Arc<dyn Spending>,
    has_warned: bool,
    has_warned_of_price: bool,
}

impl Bounds {
    /// Starts counting now.
    pub(crate) fn new(
        limits: RunLimits,
        max_iterations: Option<u32>,
        spending: Arc<dyn Spending>,
        pauses: &Pauses,
        config_keys: ConfigKeys,
    ) -> Self {
        Self {
            time: time_limit(&limits, pauses),
            limits,
            family: None,
            max_iterations,
            config_keys,
            iterations_before: 0,
            usage_before: Usage::default(),
            in_totals: Usage::default(),
            day: Spent::default(),
            spending,
            has_warned: false,
            has_warned_of_price: false,
        }
    }

    /// The limit on the cost holds for all of these together, too.
    pub(crate) fn of_family(self, family: Option<SharedCost>) -> Self {
        Self { family, ..self }
    }

    /// The limit on the time of the message; `None` if there is none.
    pub(super) fn time_limit(&self) -> Option<TimeLimit> {
        self.time.clone()
    }

    /// The config key that sets a limit.
    pub(super) fn config_key(&self, bound: Bound) -> String {
        self.config_keys.of(bound)
    }

    /// Restarts the limits per message, because the user sent a message.
    pub(super) fn begin_message(&mut self, shared: &Shared) {
        self.time = time_limit(&self.limits, &shared.run.pauses);
        self.iterations_before = shared.tally.iterations;
        self.usage_before = shared.tally.usage;
    }

    /// The limit that the turn has reached, if any.
    pub(super) async fn reached(
        &mut self,
        shared: &Shared,
        active: &Model,
    ) -> Result<Option<Bound>, RunError> {
        self.record_usage(shared).await?;
        self.warn_of_unknown_price(shared, active);
        let limits = &self.limits;
        let iterations = shared.tally.iterations - self.iterations_before;
        let tokens = shared.tally.usage.total_tokens - self.usage_before.total_tokens;
        let own = shared.tally.usage.cost.total - self.usage_before.cost.total;
        let dollars = self.family.as_ref().map_or(own, |family| family.dollars().max(own));
        let checks = [
            (Bound::MaxIterations, self.max_iterations.is_some_and(|cap| iterations >= cap)),
            (Bound::RunSeconds, self.time.as_ref().is_some_and(|time| time.left().is_zero())),
            (Bound::RunTokens, limits.run_tokens > 0 && tokens >= limits.run_tokens),
            (Bound::RunCost, limits.run_cost > 0.0 && dollars >= limits.run_cost),
        ];
        let of_run = checks.into_iter().find_map(|(bound, is_reached)| is_reached.then_some(bound));
        Ok(of_run.or_else(|| exhausted_budget(limits, self.day, active)))
    }

    /// Reports once that a limit on money cannot be applied because the price of a call is unknown.
    fn warn_of_unknown_price(&mut self, shared: &Shared, active: &Model) {
        let limits =
            [("limits.runCost", self.limits.run_cost), ("limits.dayCost", self.limits.day_cost)];
        let set: Vec<&str> =
            limits.iter().filter(|(_, dollars)| *dollars > 0.0).map(|(name, _)| *name).collect();
        let is_priced = shared.tally.usage.cost.unpriced_calls == 0;
        if self.has_warned_of_price || set.is_empty() || is_priced {
            return;
        }
        self.has_warned_of_price = true;
        shared.notice(Notice::PriceUnknown {
            provider: active.provider.clone(),
            model: active.id.clone(),
            limits: set.join(" and "),
        });
    }

    /// Adds the usage since the last call to the day's totals, and reads what other runs have added if a limit of the
    /// day needs it. A failure to store the totals is reported once and does not fail the run.
    async fn record_usage(&mut self, shared: &Shared) -> Result<(), RunError> {
        let Some(record) = self.unrecorded(shared) else { return Ok(()) };
        // Usually nobody else has the file, and then a change to another thread would take longer than the work.
        let stored = match record.store_at_once().transpose() {
            Some(stored) => stored,
            None => tokio::task::spawn_blocking(move || record.store())
                .await
                .map_err(|error| RunError::Internal(error.to_string()))?,
        };
        self.recorded(shared, stored);
        Ok(())
    }

    /// What [`Bounds::record_usage`] does, for the caller to do with other work; [`Bounds::recorded`] has to follow.
    pub(super) fn unrecorded(&self, shared: &Shared) -> Option<UsageRecord> {
        let (usage, before) = (shared.tally.usage, self.in_totals);
        let used = Spent {
            tokens: usage.total_tokens - before.total_tokens,
            micro_dollars: micro_dollars(usage.cost.total - before.cost.total),
        };
        let has_day_limit = self.limits.day_tokens > 0 || self.limits.day_cost > 0.0;
        if used == Spent::default() && !has_day_limit {
            return None;
        }
        let (spending, day) = (Arc::clone(&self.spending), utc_day(shared.now_ms()));
        Some(UsageRecord { spending, day, used, is_needed: has_day_limit })
    }

    /// Notes the outcome of [`UsageRecord::store`].
    pub(super) fn recorded(&mut self, shared: &Shared, stored: Result<Spent, SessionError>) {
        match stored {
            Ok(day) => {
                self.day = day;
                self.in_totals = shared.tally.usage;
                self.report_damage(shared);
            }
            Err(error) if !self.has_warned => {
                self.has_warned = true;
                shared.notice(Notice::DayTotalsUnavailable { error: error.to_string() });
            }
            Err(_) => {}
        }
    }

    /// Reports once that the totals of the day were lost.
    fn report_damage(&mut self, shared: &Shared) {
        if let Some((path, backup)) = self.spending.damage().filter(|_| !self.has_warned) {
            self.has_warned = true;
            shared.notice(Notice::DayTotalsLost { path: path.into(), backup: backup.into() });
        }
    }
}

/// Usage that is not in the day's totals.
pub(super) struct UsageRecord {
    spending: Arc<dyn Spending>,
    day: String,
    used: Spent,
    /// Whether a limit needs the totals.
    is_needed: bool,
}

impl UsageRecord {
    /// Adds it, and returns the totals; `None` if that would have to wait for another run.
    fn store_at_once(&self) -> Result<Option<Spent>, SessionError> {
        self.spending.add_at_once(&self.day, self.used)
    }

    /// Adds it, and returns the totals. Blocks.
    pub(super) fn store(self) -> Result<Spent, SessionError> {
        let Self { spending, day, used, is_needed } = self;
        match is_needed {
            _ if used == Spent::default() => spending.of(&day),
            true => spending.add(&day, used),
            false => spending.note(&day, used).map(|()| Spent::default()),
        }
    }
}

fn time_limit(limits: &RunLimits, pauses: &Pauses) -> Option<TimeLimit> {
    let limit = Duration::from_secs(limits.run_seconds);
    (!limit.is_zero()).then(|| TimeLimit::new(limit, pauses))
}

/// The day in UTC, as `2026-01-31`.
pub fn utc_day(timestamp_ms: u64) -> String {
    let time = i64::try_from(timestamp_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date().to_string()
}
