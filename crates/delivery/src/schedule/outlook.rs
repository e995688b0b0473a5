//! What is planned, in lines for the owner when the gateway starts.

use std::sync::Arc;

use myclaw_config::Config;

use super::book::Book;
use super::heartbeat::describe_heartbeats;
use super::request::ScheduleFields;
use crate::DeliveryError;

/// What the clock is going to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// A line each.
    pub lines: Vec<String>,
    /// Whether any of it may call a model.
    pub may_cost: bool,
}

impl Outlook {
    /// What the jobs of `book` and the heartbeats of `config` are going to begin.
    ///
    /// # Errors
    /// The store failed.
    pub async fn of(book: &Book, config: Arc<Config>) -> Result<Self, DeliveryError> {
        if !config.cron.enabled {
            let lines = vec!["nothing is planned: cron.enabled is false".to_owned()];
            return Ok(Self { lines, may_cost: false });
        }
        let jobs = book.jobs().await?;
        let has_heartbeat = jobs.iter().any(|job| job.is_heartbeat());
        let planned = jobs.iter().filter(|job| !job.is_heartbeat() && job.enabled);
        let planned: Vec<_> = planned.filter(|job| job.next.is_some()).collect();
        let mut lines = Vec::new();
        if let Some(next) = planned.iter().min_by_key(|job| job.next) {
            let tz = ScheduleFields::default().tz(&config);
            let when = next.schedule.understood(next.next, &tz);
            lines.push(match planned.len() {
                1 => format!("planned: \"{}\", {when}", next.name),
                count => format!("planned: {count} jobs, the next is \"{}\", {when}", next.name),
            });
        }
        let describing = tokio::task::spawn_blocking(move || describe_heartbeats(&config));
        let heartbeats =
            describing.await.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        let may_cost = !lines.is_empty() || !heartbeats.is_empty();
        if has_heartbeat && heartbeats.is_empty() {
            let line = "the heartbeat costs nothing until HEARTBEAT.md in the workspace says what to look at";
            lines.push(line.to_owned());
        }
        lines.extend(heartbeats);
        Ok(Self { lines, may_cost })
    }
}
