//! What is planned, in lines for the owner when the gateway starts.

use std::sync::Arc;

use myclaw_config::Config;

use myclaw_schedule::Schedule;

use super::book::Book;
use super::heartbeat::{PlannedHeartbeat, describe_heartbeats};
use super::request::ScheduleFields;
use crate::DeliveryError;
use crate::ledger::now_ms;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// What the clock is going to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// A line each.
    pub lines: Vec<String>,
    /// What a day of it costs at most, in a line; `None` if none of it calls a model.
    pub most: Option<String>,
}

impl Outlook {
    /// What the jobs of `book` and the heartbeats of `config` are going to begin.
    ///
    /// # Errors
    /// The store failed.
    pub async fn of(book: &Book, config: Arc<Config>) -> Result<Self, DeliveryError> {
        if !config.cron.enabled {
            let lines = vec!["nothing is planned: cron.enabled is false".to_owned()];
            return Ok(Self { lines, most: None });
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
        let due: Vec<(String, u64)> =
            planned.iter().map(|job| (job.agent.clone(), due_in_a_day(&job.schedule))).collect();
        let describing = tokio::task::spawn_blocking(move || {
            let heartbeats = describe_heartbeats(&config);
            let most = most_in_a_day(&config, due, &heartbeats);
            (heartbeats, most)
        });
        let (heartbeats, most) =
            describing.await.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        if has_heartbeat && heartbeats.is_empty() {
            let line = "the heartbeat costs nothing until HEARTBEAT.md in the workspace says what to look at";
            lines.push(line.to_owned());
        }
        lines.extend(heartbeats.into_iter().map(|heartbeat| heartbeat.line));
        Ok(Self { lines, most })
    }
}

/// How often a schedule is due in the next day: once a second at most.
fn due_in_a_day(schedule: &Schedule) -> u64 {
    let now = now_ms();
    let end = now + DAY_MS;
    let first = schedule.next_after(now).filter(|first| *first <= end);
    match (schedule, first) {
        (_, None) => 0,
        (Schedule::Every { every_ms, .. }, Some(first)) => 1 + (end - first) / (*every_ms).max(1),
        (_, first) => std::iter::successors(first, |due| schedule.next_after(*due))
            .take_while(|due| *due <= end)
            .count() as u64,
    }
}

/// What the turns of a day cost at most: the limit of each, and that of the day. `None` if there are no turns at all.
fn most_in_a_day(
    config: &Config,
    mut due: Vec<(String, u64)>,
    heartbeats: &[PlannedHeartbeat],
) -> Option<String> {
    due.extend(heartbeats.iter().map(|one| (one.agent.to_string(), one.turns)));
    if due.is_empty() {
        return None;
    }
    let limits = |agent: &str| config.resolve_agent(Some(agent)).map(|agent| agent.limits);
    let (mut turns, mut of_turns, mut of_day) = (0, Some(0.0), Some(0.0_f64));
    for (agent, count) in due {
        // A job of an agent that is no more fails without a call.
        let Ok(limits) = limits(&agent) else { continue };
        turns += count;
        let cost = (limits.run_cost > 0.0).then_some(limits.run_cost * count as f64);
        of_turns = of_turns.zip(cost).map(|(sum, cost)| sum + cost);
        let day = (limits.day_cost > 0.0).then_some(limits.day_cost);
        of_day = of_day.zip(day).map(|(most, day)| most.max(day));
    }
    if turns == 0 {
        return Some("in the next day no planned work begins".to_owned());
    }
    let turns_are = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    let of_turns = of_turns.map(|cost| (cost, "limits.runCost"));
    let of_day = of_day.map(|cost| (cost, "limits.dayCost"));
    let least = of_turns.into_iter().chain(of_day).min_by(|one, other| one.0.total_cmp(&other.0));
    Some(match least {
        Some((cost, key)) => format!(
            "in the next day planned work begins {turns_are}, for about ${cost:.2} at most ({key}), where prices are known"
        ),
        None => format!(
            "in the next day planned work begins {turns_are}, and nothing bounds their cost: limits.runCost and limits.dayCost are 0"
        ),
    })
}
