//! What happens by the clock: heartbeats and scheduled jobs.
//!
//! A job has occurrences: `book` keeps both in the store. `runner` waits for the time of an occurrence and makes it a
//! message, in one transaction; from there on delivery answers it once. `service` answers requests about jobs, which
//! come from the command line, from programs and from the agent (the tool `cron`).

mod book;
mod heartbeat;
mod job;
mod outlook;
mod reminder;
mod request;
mod routes;
mod runner;
mod service;

pub use book::Book;
pub use heartbeat::{PlannedHeartbeat, describe_heartbeats};
pub(crate) use heartbeat::{Report, report};
pub use job::{
    Destination, Job, JobWork, LastRun, Missed, Occurrence, OccurrenceState, Outcome, Target,
    describe_schedule,
};
pub use outlook::Outlook;
pub use request::{CronAction, CronRequest, JobFields, ScheduleFields, WakeMode};
pub use routes::Routes;
pub use runner::Runner;
pub use service::{Asker, AskingSession, CronAnswer, Service};

#[cfg(test)]
mod tests;
