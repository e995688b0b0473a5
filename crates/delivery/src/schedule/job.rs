//! What the store holds about scheduled jobs: the jobs, and their occurrences.

use std::time::Duration;

use myclaw_schedule::{Schedule, write_duration};
use myclaw_session::SessionKey;
use serde::{Deserialize, Serialize};

use crate::route::Route;
use crate::rows::MessageId;

/// Beginning of the ids of heartbeats. No other job has a colon in its id.
const HEARTBEAT: &str = "heartbeat:";

/// A scheduled job. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// The agent that does it.
    pub agent: String,
    /// Whether it becomes due.
    pub enabled: bool,
    /// When it is due.
    pub schedule: Schedule,
    /// Due times up to this one do not count: the job, its schedule or its pause is newer.
    pub since: u64,
    /// What happens then.
    pub work: JobWork,
    /// What happens with due times that have passed.
    pub missed: Missed,
    /// Whether it is removed when it has succeeded and is not due again.
    pub delete_after_run: bool,
    /// When it was made.
    pub created_at: u64,
    /// Due time of the occurrence that is planned or runs.
    pub next: Option<u64>,
    /// The occurrence that ended last.
    pub last: Option<LastRun>,
    /// What a heartbeat is to be told next time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum JobWork {
    /// Asks the agent whether something needs attention.
    Heartbeat,
    /// Sends the agent a message.
    Message {
        /// The message.
        text: String,
        /// The session that gets it.
        target: Target,
        /// Where the answer goes.
        delivery: Destination,
    },
}

/// The session of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// The agent's main session.
    #[default]
    Main,
    /// A session of its own.
    Isolated,
}

/// Where the answer of a job goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Destination {
    /// To where the owner wrote last.
    #[default]
    Last,
    /// Nowhere; it stays in the session.
    None,
    /// To the chat of this channel that was used last.
    Channel(String),
    /// To this chat.
    #[serde(untagged)]
    Chat(Route),
}

/// What happens with due times that have passed, because no gateway ran, the clock was moved or the occurrence before
/// them took too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Missed {
    /// They are passed over. The newest one still counts if it is at most a minute old.
    Skip,
    /// One run stands for all of them.
    #[default]
    Once,
    /// Each runs, one after the other; of more than 100 the newest 100.
    All,
}

/// The end of an occurrence, in a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// When it was due.
    pub due: u64,
    /// When it ended.
    pub ended_at: u64,
    /// How.
    pub outcome: Outcome,
}

/// A due time of a job, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The job's id.
    pub job: String,
    /// When it is due.
    pub due: u64,
    /// Whether somebody asked for it, outside the schedule.
    #[serde(default)]
    pub manual: bool,
    /// The last due time that it stands for, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// How far it is.
    pub state: OccurrenceState,
}

/// How far an occurrence is. Who has claimed one is in the store's claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OccurrenceState {
    /// It waits for its time.
    Planned,
    /// Its message is stored, and gets an answer.
    Running {
        /// The message.
        message: MessageId,
        /// The session that answers.
        session: String,
        /// Since when.
        started_at: u64,
    },
    /// It is over.
    Ended {
        /// How.
        outcome: Outcome,
        /// The session that answered, if one was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// When it began, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<u64>,
        /// Since when.
        ended_at: u64,
    },
}

/// How an occurrence ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// The agent has answered.
    Answered {
        /// The first words.
        said: String,
    },
    /// The agent had nothing to report.
    Quiet,
    /// There was no reason to ask the agent.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It was not run in time, and neither were those up to `until`.
    Missed {
        /// The last of them.
        until: u64,
    },
    /// There is no answer.
    Failed {
        /// For programs.
        class: String,
        /// For people.
        message: String,
    },
}

/// A schedule in a few words.
pub fn describe_schedule(schedule: &Schedule) -> String {
    match schedule {
        Schedule::At { .. } => "once".to_owned(),
        Schedule::Every { every_ms, .. } => {
            format!("every {}", write_duration(Duration::from_millis(*every_ms)))
        }
        Schedule::Cron { expr, tz } => format!("{expr} ({tz})"),
    }
}

impl Job {
    /// The id of the heartbeat of an agent.
    pub(super) fn heartbeat_id(agent: &str) -> String {
        format!("{HEARTBEAT}{agent}")
    }

    /// Whether the config makes it, and not somebody.
    pub(super) fn is_heartbeat(&self) -> bool {
        self.work == JobWork::Heartbeat
    }

    /// What the agent reads of a message when the job is due.
    pub(super) fn told(&self, text: &str) -> String {
        format!("[Scheduled message \"{}\"]\n{text}", self.name)
    }

    /// The session in which it appears, if it was asked for there.
    pub(super) fn session(&self) -> Option<SessionKey> {
        self.chat().and_then(Route::as_session)
    }

    /// Whether the gateway runs this session, and no other program does.
    pub(super) fn is_in_shown_session(&self) -> bool {
        self.chat().is_some_and(Route::is_shown_session)
    }

    fn chat(&self) -> Option<&Route> {
        match &self.work {
            JobWork::Message { delivery: Destination::Chat(route), .. } => Some(route),
            _ => None,
        }
    }

    /// Whether its single time is past and was dealt with, so that it is not due any more.
    pub fn is_over(&self) -> bool {
        let last = self.last.as_ref().map(|last| last.due);
        matches!(self.schedule, Schedule::At { at_ms } if !self.enabled && last == Some(at_ms))
    }

    /// The first due time after `ms` that counts.
    pub(super) fn next_after(&self, ms: u64) -> Option<u64> {
        self.schedule.next_after(ms.max(self.since))
    }
}

impl Occurrence {
    pub(super) fn planned(job: &str, due: u64) -> Self {
        let state = OccurrenceState::Planned;
        Self { job: job.to_owned(), due, manual: false, until: None, state }
    }

    /// Unique among all occurrences.
    pub(super) fn key(&self) -> String {
        let manual = if self.manual { "/manual" } else { "" };
        format!("{}/{}{manual}", self.job, self.due)
    }

    /// The id of its message. It depends on the occurrence alone, so the message is stored once.
    pub(super) fn message_id(&self) -> MessageId {
        MessageId::of(&Route::internal("schedule"), &self.key())
    }
}
