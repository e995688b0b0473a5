//! What the gateway does by the clock: heartbeats and scheduled jobs.

use std::time::Duration;

use jiff::tz::TimeZone;
use myclaw_schedule::{ActiveHours, ScheduleError, parse_duration, zone_named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// The interval of heartbeats unless the file says otherwise.
const DEFAULT_EVERY: Duration = Duration::from_secs(30 * 60);
/// Shortest interval: a heartbeat is a turn, which takes time and tokens.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest interval in minutes: a year.
const LONGEST_MINUTES: u64 = 366 * 24 * 60;
/// Jobs unless the file says otherwise.
const DEFAULT_MAX_JOBS: usize = 1_000;
/// Most jobs that the file can allow.
const MOST_JOBS: u64 = 10_000;

/// A turn at an interval, in which the agent looks for something that needs attention.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HeartbeatConfig {
    /// Whether the gateway does it. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The interval, such as `"30m"` (the default) or `"1h30m"`; `"0m"` for none.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub every: Option<String>,
    /// The same in minutes; 0 for none.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, LONGEST_MINUTES>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = LONGEST_MINUTES))]
    pub interval_minutes: Option<u64>,
    /// The hours of the day in which it happens. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_hours: Option<ActiveHoursConfig>,
    /// Where a message of the agent goes: `"last"` (the default) is where its owner wrote last, `"none"` nowhere, and
    /// the name of a channel the chat of that channel that was used last.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub target: Option<String>,
    /// Where the agent is asked: `"own"` (the default) is a session for heartbeats alone, of which each call has only the
    /// newest message; `"main"` the agent's main session, with all that was said in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<HeartbeatSession>,
    /// The tools of heartbeats in their own session, as in `tools.allow`. Default: those for files, commands, web pages and
    /// messages. The other rules for tools hold too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// In which session the agent is asked whether something needs attention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HeartbeatSession {
    /// One for heartbeats alone.
    #[default]
    Own,
    /// The agent's main session.
    Main,
}

/// Tools of heartbeats in their own session, unless the config lists others.
const USUAL_TOOLS: [&str; 10] =
    ["read", "write", "edit", "grep", "find", "ls", "exec", "process", "web_fetch", "message"];

/// Hours of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActiveHoursConfig {
    /// The first minute, such as `"08:00"`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub start: String,
    /// The minute after the last, such as `"22:00"` or `"24:00"`. With an end before the start they go over midnight.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub end: String,
    /// The time zone, such as `Europe/Berlin`. Default: `agents.defaults.userTimezone`, else that of this machine.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub timezone: Option<String>,
}

/// Scheduled jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CronConfig {
    /// Whether jobs run. Default: true.
    pub enabled: bool,
    /// Most jobs.
    #[serde(deserialize_with = "values::within::<_, _, 1, MOST_JOBS>")]
    #[schemars(range(min = 1, max = MOST_JOBS))]
    pub max_jobs: usize,
}

impl Default for CronConfig {
    fn default() -> Self {
        Self { enabled: true, max_jobs: DEFAULT_MAX_JOBS }
    }
}

/// The heartbeat of an agent, with every default applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The interval, at least a second.
    pub every: Duration,
    /// When it happens; `None` for always.
    pub active_hours: Option<ActiveHours>,
    /// Where a message of the agent goes.
    pub target: String,
    /// Where the agent is asked.
    pub session: HeartbeatSession,
    /// The tools in its own session.
    pub tools: Vec<String>,
}

impl HeartbeatConfig {
    /// The values of `own`, and these where it has none.
    pub(crate) fn with(&self, own: &Self) -> Self {
        // The two ways to write the interval are one value.
        let sets_interval = own.every.is_some() || own.interval_minutes.is_some();
        let interval = if sets_interval { own } else { self };
        Self {
            enabled: own.enabled.or(self.enabled),
            every: interval.every.clone(),
            interval_minutes: interval.interval_minutes,
            active_hours: own.active_hours.clone().or_else(|| self.active_hours.clone()),
            target: own.target.clone().or_else(|| self.target.clone()),
            session: own.session.or(self.session),
            tools: own.tools.clone().or_else(|| self.tools.clone()),
        }
    }

    /// The interval; zero for none.
    pub(crate) fn interval(&self) -> Result<Duration, ScheduleError> {
        match (&self.every, self.interval_minutes) {
            (Some(every), _) => parse_duration(every),
            (None, Some(minutes)) => Ok(Duration::from_secs(minutes * 60)),
            (None, None) => Ok(DEFAULT_EVERY),
        }
    }

    /// The heartbeat; `None` if it is switched off. Active hours without a time zone are in `zone`.
    pub(crate) fn resolve(&self, zone: &TimeZone) -> Result<Option<Heartbeat>, ScheduleError> {
        let every = self.interval()?;
        if self.enabled == Some(false) || every < SHORTEST {
            return Ok(None);
        }
        let hours = self.active_hours.as_ref().map(|hours| hours.resolve(zone)).transpose()?;
        let target = self.target.as_deref().unwrap_or("last").trim().to_owned();
        let usual = || USUAL_TOOLS.map(str::to_owned).to_vec();
        Ok(Some(Heartbeat {
            every,
            active_hours: hours,
            target,
            session: self.session.unwrap_or_default(),
            tools: self.tools.clone().unwrap_or_else(usual),
        }))
    }
}

impl ActiveHoursConfig {
    /// The hours in their zone, or in `zone`.
    pub(crate) fn resolve(&self, zone: &TimeZone) -> Result<ActiveHours, ScheduleError> {
        let own = self.timezone.as_deref().map(zone_named).transpose()?;
        ActiveHours::new(&self.start, &self.end, own.unwrap_or_else(|| zone.clone()))
    }
}
