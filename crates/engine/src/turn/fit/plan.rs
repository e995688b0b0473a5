//! The plan that the agent has shown, which a summary must not lose.

use myclaw_session::{Meta, Role, TranscriptMessage};
use serde::Deserialize;

use super::summary::{LAST_REQUEST, PLAN};

/// Longest plan that is kept, in bytes: more than its tool takes.
const MOST_BYTES: usize = 32 * 1024;

#[derive(Deserialize)]
struct Kept {
    details: Details,
}

#[derive(Deserialize)]
struct Details {
    plan: Plan,
}

#[derive(Deserialize)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    text: String,
    status: String,
}

/// The newest plan among `older` rows, or the one in the summary before them, if the `kept` rows have none.
pub(super) fn left_behind(
    older: &[TranscriptMessage],
    kept: &[TranscriptMessage],
    earlier: Option<&str>,
) -> String {
    if kept.iter().any(|row| plan_in(row).is_some()) {
        return String::new();
    }
    if let Some(plan) = older.iter().rev().find_map(plan_in) {
        return format!("{PLAN}{plan}");
    }
    let Some((_, plan)) = earlier.and_then(|summary| summary.split_once(PLAN)) else {
        return String::new();
    };
    let plan = plan.split_once(LAST_REQUEST).map_or(plan, |(plan, _)| plan);
    format!("{PLAN}{}", &plan[..plan.floor_char_boundary(MOST_BYTES)])
}

/// The plan in a row, one line for each step.
fn plan_in(row: &TranscriptMessage) -> Option<String> {
    // A cheap check first: few results have a plan, and some are large.
    let is_plan = |meta: &&Meta| row.role == Role::Tool && meta.as_str().contains("\"plan\"");
    let kept: Kept = row.meta.as_ref().filter(is_plan)?.read()?;
    let line = |step: Step| format!("- {} ({})", step.text, step.status);
    let mut text = kept.details.plan.steps.into_iter().map(line).collect::<Vec<_>>().join("\n");
    text.truncate(text.floor_char_boundary(MOST_BYTES));
    Some(text)
}
