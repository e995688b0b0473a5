//! What is done by the clock.

use jiff::tz::TimeZone;
use myclaw_schedule::{Schedule, local_zone, parse_time, zone_named};
use serde_json::{Value, json};

use crate::ledger::{HostLedger, Stored, now_ms};
use crate::rows::{Task, TaskKind, TaskState};
use crate::{Folder, Groups, HostError};

/// Characters of an answer that are kept with its task.
const RESULT_CHARS: usize = 200;

/// The schedule of a request.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn schedule(kind: TaskKind, value: &str) -> Result<Schedule, String> {
    let value = value.trim();
    let zone = local_zone();
    let schedule = match kind {
        TaskKind::Cron => Schedule::Cron { expr: value.to_owned(), tz: zone },
        TaskKind::Interval => {
            let every_ms = value.parse::<u64>().ok().filter(|ms| *ms > 0);
            let every_ms = every_ms
                .ok_or_else(|| format!("the interval {value:?} is no number of milliseconds"))?;
            Schedule::Every { every_ms, anchor_ms: now_ms() }
        }
        TaskKind::Once => {
            let zone = zone_named(&zone).unwrap_or(TimeZone::UTC);
            let at_ms = parse_time(value, &zone, now_ms()).map_err(|error| error.to_string())?;
            Schedule::At { at_ms }
        }
    };
    schedule.check().map_err(|error| error.to_string())?;
    Ok(schedule)
}

/// When a new task is due first. A time that has passed already is due at once.
pub(crate) fn first_run(schedule: &Schedule) -> Option<u64> {
    match schedule {
        Schedule::At { at_ms } => Some(*at_ms),
        other => other.next_after(now_ms()),
    }
}

/// A task after the run that was due at `due`. What was due meanwhile is left out, and no later time is moved.
pub(crate) fn after_run(task: &Task, due: u64, result: &str) -> Task {
    let next_run = match task.schedule {
        Schedule::At { .. } => None,
        _ => task.schedule.next_after(now_ms().max(due)),
    };
    let state = match (task.state, next_run) {
        (_, None) => TaskState::Completed,
        (state, Some(_)) => state,
    };
    let last_result = Some(result.chars().take(RESULT_CHARS).collect());
    Task { next_run, state, last_run: Some(now_ms()), last_result, ..task.clone() }
}

/// The list for the tool `list_tasks` of a group: its own tasks, and in the main group those of all.
pub(crate) async fn snapshot(
    ledger: &HostLedger,
    groups: &Groups,
    folder: &Folder,
) -> Result<Vec<Value>, HostError> {
    let mut tasks = Vec::new();
    for group in groups.iter().filter(|group| folder.is_main() || group.folder == *folder) {
        tasks.extend(ledger.tasks(&group.folder).await?);
    }
    Ok(tasks.iter().map(shown).collect())
}

fn shown(task: &Stored<Task>) -> Value {
    let time = |ms: Option<u64>| {
        let ms = i64::try_from(ms?).ok()?;
        Some(format!("{:.3}", jiff::Timestamp::from_millisecond(ms).ok()?))
    };
    let row = &task.row;
    json!({
        "id": task.id,
        "groupFolder": row.folder,
        "prompt": row.prompt,
        "schedule_type": row.kind,
        "schedule_value": row.value,
        "context_mode": row.context,
        "status": row.state,
        "next_run": time(row.next_run),
        "last_run": time(row.last_run),
        "last_result": row.last_result,
    })
}
