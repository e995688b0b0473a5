//! Sentences of notices that depend on more than their fields as they are.

use std::path::Path;

use myclaw_llm::ThinkingLevel;

use super::{EndedJob, SummaryProblem};

pub(super) fn holder(process_id: Option<u32>) -> String {
    process_id.map_or_else(String::new, |id| format!(" (process {id})"))
}

pub(super) fn jobs_ended(jobs: &[EndedJob]) -> String {
    let named = |job: &EndedJob| format!("{} ({})", job.id, job.command);
    let names = jobs.iter().map(named).collect::<Vec<String>>().join(", ");
    match jobs.len() {
        1 => format!("a background job was ended with its session: {names}"),
        count => format!("{count} background jobs were ended with their session: {names}"),
    }
}

pub(super) fn messages_waiting(count: usize) -> String {
    match count {
        1 => "an earlier message still waits in this session and is answered too".to_owned(),
        count => {
            format!("{count} earlier messages still wait in this session and are answered too")
        }
    }
}

pub(super) fn thinking_level_changed(
    model: &str,
    asked: ThinkingLevel,
    used: ThinkingLevel,
    offered: &[ThinkingLevel],
) -> String {
    if offered.is_empty() {
        return format!("{model} cannot think before it answers; the thinking level is {used}");
    }
    let offered: Vec<&str> = offered.iter().map(|level| level.as_str()).collect();
    let offered = offered.join(", ");
    format!("{model} does not offer the thinking level {asked} but {offered}; {used} is used")
}

pub(super) fn unreadable_lines(count: usize, path: &Path) -> String {
    match count {
        1 => format!("1 unreadable line of {} skipped; it stays in the file", path.display()),
        count => {
            format!("{count} unreadable lines of {} skipped; they stay in the file", path.display())
        }
    }
}

pub(super) fn hook_summary_unused(hook: &str, problem: SummaryProblem) -> String {
    match problem {
        SummaryProblem::Empty => {
            format!("the hook {hook} gave an empty summary; the model is asked")
        }
        SummaryProblem::TooLong => format!(
            "the summary of the hook {hook} is longer than the messages that it replaces; the model is asked"
        ),
    }
}
