//! What happens by the clock: heartbeats and scheduled jobs.
//!
//! A job has occurrences: `book` keeps both in the store. `runner` waits for the time of an occurrence and makes it a
//! message, in one transaction; from there on delivery answers it once. `service` answers requests about jobs, which
//! come from the command line, from programs (`http`) and from the agent (the tool `cron`).

mod access;
mod book;
mod heartbeat;
mod http;
mod job;
mod request;
mod routes;
mod runner;
mod service;

pub use access::cron;
pub(crate) use book::Book;
pub use heartbeat::describe_heartbeats;
pub(crate) use heartbeat::{Report, report};
pub(crate) use http::routes;
pub use job::{
    Destination, Job, LastRun, Missed, Occurrence, OccurrenceState, Outcome, Target, Work,
    describe_schedule,
};
pub use request::{CronAction, CronRequest, JobFields, ScheduleFields, WakeMode};
pub(crate) use routes::Routes;
pub(crate) use runner::Runner;
pub(crate) use service::{Answer, Asker, Service};

#[cfg(test)]
mod tests;
