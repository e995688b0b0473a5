//! What people, programs and models may ask of the schedule, and the check of it.

use myclaw_config::Config;
use myclaw_schedule::{
    Schedule, ScheduleError, TimeZone, local_zone, parse_duration, parse_time, parse_when,
    zone_named,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::job::{Destination, Job, JobWork, Missed, Target};
use crate::DeliveryError;
use crate::message::MAX_TEXT_BYTES;
use crate::route::Route;

/// Longest name of a job, in characters.
const MAX_NAME: usize = 100;
/// Longest id of a chat in a destination, in bytes.
const MAX_CHAT: usize = 256;

/// A request to the schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CronRequest {
    /// What to do.
    pub action: CronAction,
    /// Id or name of the job, where one is meant.
    #[serde(default, alias = "jobId", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A new job (`add`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobFields>,
    /// What changes (`update`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<JobFields>,
    /// Most entries (`runs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The message to the agent (`wake`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When (`wake`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WakeMode>,
}

/// What can be done with the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CronAction {
    /// Shows how many jobs there are, and what is due next.
    Status,
    /// Lists the jobs.
    List,
    /// Adds a job.
    Add,
    /// Changes a job.
    Update,
    /// Removes a job.
    Remove,
    /// Runs a job now, outside its schedule.
    Run,
    /// Lists what became of a job's occurrences.
    Runs,
    /// Tells the agent something in its main session.
    Wake,
}

/// When the agent gets a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WakeMode {
    /// At once.
    #[default]
    #[serde(rename = "now")]
    Now,
    /// With the next heartbeat.
    #[serde(rename = "next-heartbeat")]
    NextHeartbeat,
}

/// The fields of a job that can be set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JobFields {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The agent that does it.
    #[serde(alias = "agentId", skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleFields>,
    /// The message to the agent.
    #[serde(alias = "text", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The session.
    #[serde(alias = "sessionTarget", skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Where the answer goes: `last`, `none`, the name of a channel, or a chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Value>,
    /// Whether it becomes due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it is removed when it has succeeded and is not due again. Default: true for a single time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_after_run: Option<bool>,
    /// What happens with due times that have passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

/// A schedule as people and models write it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScheduleFields {
    /// `at`, `every` or `cron`; the other fields say it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A time, as text or in milliseconds since the Unix epoch.
    #[serde(alias = "atMs", skip_serializing_if = "Option::is_none")]
    pub at: Option<Value>,
    /// An interval, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// An interval in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// A due time of an interval, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_ms: Option<u64>,
    /// A cron expression.
    #[serde(alias = "cron", skip_serializing_if = "Option::is_none")]
    pub expr: Option<String>,
    /// Any of these as people say it, such as `every weekday at 8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The time zone of `expr`, `when` and of local times in `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
}

impl CronRequest {
    /// A request with nothing but an action.
    pub fn of(action: CronAction) -> Self {
        Self { action, id: None, job: None, patch: None, limit: None, text: None, mode: None }
    }

    /// Reads a request.
    pub fn read(value: Value) -> Result<Self, DeliveryError> {
        serde_json::from_value(value).map_err(|error| unusable(error.to_string()))
    }

    /// Reads the arguments of a tool call.
    pub fn of_arguments(arguments: Map<String, Value>) -> Result<Self, DeliveryError> {
        Self::read(Value::Object(arguments))
    }
}

impl ScheduleFields {
    /// The name of the zone in which times are meant.
    pub(super) fn tz(&self, config: &Config) -> String {
        let configured = || config.agents.defaults.user_timezone.as_deref().map(str::trim);
        let tz = self.tz.as_deref().map(str::trim).or_else(configured);
        tz.map_or_else(local_zone, str::to_owned)
    }

    /// The schedule that they mean.
    fn schedule(&self, config: &Config, now: u64) -> Result<Schedule, DeliveryError> {
        let kinds = [
            ("at", self.at.is_some()),
            ("every", self.every.is_some() || self.every_ms.is_some()),
            ("cron", self.expr.is_some()),
            ("when", self.when.is_some()),
        ];
        let given: Vec<&str> =
            kinds.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
        let is_one = given.len() == 1 && self.kind.as_deref().is_none_or(|kind| kind == given[0]);
        if !is_one {
            let message = "a schedule is one of `when` (such as `tomorrow at 9`), `at` (a time), `every` (an interval) and \
                           `expr` (a cron expression), with a time zone in `tz`; give exactly one of them";
            return Err(unusable(message));
        }
        let tz = self.tz(config);
        let zone = zone_named(&tz)?;
        let past = |text: &str| {
            unusable(format!("the time {text} is in the past; give one that is to come"))
        };
        let schedule = if let Some(when) = &self.when {
            match parse_when(when, &tz, now)? {
                Schedule::At { at_ms } if at_ms <= now => return Err(past(when)),
                schedule => schedule,
            }
        } else if let Some(at) = &self.at {
            let text = at.as_str().map_or_else(|| at.to_string(), str::to_owned);
            let at_ms = match at.as_u64() {
                Some(ms) => ms,
                None => time_of(&text, &tz, &zone, now)?,
            };
            if at_ms <= now {
                return Err(past(&text));
            }
            Schedule::At { at_ms }
        } else if let Some(expr) = &self.expr {
            Schedule::Cron { expr: expr.trim().to_owned(), tz }
        } else {
            let every_ms = match (&self.every, self.every_ms) {
                (Some(_), Some(_)) => return Err(unusable("give `every` or `everyMs`, not both")),
                (None, ms) => ms.unwrap_or_default(),
                (Some(text), None) => {
                    let every = parse_duration(text)?.as_millis();
                    u64::try_from(every).unwrap_or(u64::MAX)
                }
            };
            Schedule::Every { every_ms, anchor_ms: self.anchor_ms.unwrap_or(now) }
        };
        schedule.check()?;
        Ok(schedule)
    }
}

/// A single time: as programs write it, or as people say it.
fn time_of(text: &str, tz: &str, zone: &TimeZone, now: u64) -> Result<u64, ScheduleError> {
    let error = match parse_time(text, zone, now) {
        Ok(time) => return Ok(time),
        Err(error) => error,
    };
    match parse_when(text, tz, now) {
        Ok(Schedule::At { at_ms }) => Ok(at_ms),
        _ => Err(error),
    }
}

impl JobFields {
    /// A new job with these fields.
    pub(super) fn job(&self, config: &Config, now: u64) -> Result<Job, DeliveryError> {
        let missing = |what: &str| unusable(format!("a new job needs {what}"));
        let fields = self
            .schedule
            .as_ref()
            .ok_or_else(|| missing("a schedule: `when`, `at`, `every` or a cron expression"))?;
        let schedule = fields.schedule(config, now)?;
        let text = self.message.clone().ok_or_else(|| missing("a message for the agent"))?;
        let agent = config.default_agent_id().to_string();
        let first_words: String = text.split_whitespace().take(5).collect::<Vec<_>>().join(" ");
        let id = uuid::Uuid::new_v4().simple().to_string()[..12].to_owned();
        let mut job = Job {
            id,
            name: first_words.chars().take(MAX_NAME).collect(),
            agent,
            enabled: true,
            delete_after_run: matches!(schedule, Schedule::At { .. }),
            schedule,
            since: 0,
            work: JobWork::Message {
                text,
                target: Target::default(),
                delivery: Destination::default(),
            },
            missed: Missed::default(),
            created_at: now,
            next: None,
            last: None,
            notes: Vec::new(),
        };
        self.without_schedule().apply(&mut job, config, now)?;
        Ok(job)
    }

    fn without_schedule(&self) -> Self {
        Self { schedule: None, ..self.clone() }
    }

    /// Sets the fields of a job. Whether it has to be planned anew is for the caller to see.
    pub(super) fn apply(
        &self,
        job: &mut Job,
        config: &Config,
        now: u64,
    ) -> Result<(), DeliveryError> {
        if let Some(name) = &self.name {
            job.name = name.trim().to_owned();
        }
        let length = job.name.chars().count();
        if length == 0 || length > MAX_NAME {
            return Err(unusable(format!(
                "the name of a job has 1 to {MAX_NAME} characters; give another one"
            )));
        }
        if let Some(agent) = &self.agent {
            let resolved = config.resolve_agent(Some(agent));
            job.agent = resolved.map_err(|error| unusable(error.to_string()))?.id.to_string();
        }
        if let Some(schedule) = &self.schedule {
            job.schedule = schedule.schedule(config, now)?;
        }
        if let Some(enabled) = self.enabled {
            job.enabled = enabled;
        }
        if let Some(delete) = self.delete_after_run {
            job.delete_after_run = delete;
        }
        if let Some(missed) = self.missed {
            job.missed = missed;
        }
        if let JobWork::Message { text, target, delivery } = &mut job.work {
            if let Some(message) = &self.message {
                text.clone_from(message);
            }
            if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
                return Err(unusable(format!(
                    "the message of a job has 1 to {MAX_TEXT_BYTES} bytes; write another one"
                )));
            }
            *target = self.target.unwrap_or(*target);
            if let Some(value) = &self.delivery {
                *delivery = destination(value)?;
            }
            if let Destination::Chat(route) = delivery
                && route.as_session().is_some()
                && *target == Target::Isolated
            {
                return Err(unusable(
                    "a job with a session of its own cannot appear in another one; set `delivery` to \"last\" or \"none\"",
                ));
            }
        }
        Ok(())
    }
}

/// Reads where an answer goes.
fn destination(value: &Value) -> Result<Destination, DeliveryError> {
    if let Some(text) =
        value.as_str().map(str::trim).filter(|text| !text.is_empty() && text.len() <= MAX_CHAT)
    {
        return Ok(match text {
            "last" => Destination::Last,
            "none" => Destination::None,
            channel => Destination::Channel(channel.to_owned()),
        });
    }
    let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let chat = field("chat").or_else(|| field("to"));
    match (field("channel"), chat) {
        (Some(channel), Some(chat)) if channel.len() <= MAX_CHAT && chat.len() <= MAX_CHAT => {
            let account = field("account").unwrap_or_else(|| "default".to_owned());
            Ok(Destination::Chat(Route { channel, account, chat }))
        }
        _ => Err(unusable(
            "delivery is \"last\", \"none\", the name of a channel, or an object with channel, chat and optionally account",
        )),
    }
}

pub(super) fn unusable(message: impl Into<String>) -> DeliveryError {
    DeliveryError::Unusable(message.into())
}
