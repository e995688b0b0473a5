//! The agent's plan on the screen.

use myclaw_agent::plan::{Plan, PlanStep, StepStatus};
use myclaw_front::terminal::{Style, escaped, truncated};

/// Steps that are shown below the text while the agent works.
const MOST_LINES: usize = 6;

/// All steps, one a line.
pub(super) fn all(plan: &Plan) -> Vec<(Style, String)> {
    plan.steps.iter().map(line).collect()
}

/// The steps around the one that is being done, in lines of at most `columns`.
pub(super) fn around(plan: &Plan, columns: usize) -> Vec<(Style, String)> {
    if !plan.is_open() {
        return Vec::new();
    }
    let at = plan.steps.iter().position(|step| step.status != StepStatus::Completed).unwrap_or(0);
    let from = at.saturating_sub(1).min(plan.steps.len().saturating_sub(MOST_LINES));
    let shown = plan.steps.iter().skip(from).take(MOST_LINES);
    let mut lines: Vec<_> =
        shown.map(line).map(|(style, line)| (style, truncated(&line, columns))).collect();
    let hidden = plan.steps.len() - lines.len();
    if hidden > 0 {
        lines.push((Style::Dim, truncated(&format!("    and {hidden} more (/todos)"), columns)));
    }
    lines
}

fn line(step: &PlanStep) -> (Style, String) {
    let style = match step.status {
        StepStatus::Completed => Style::Dim,
        StepStatus::InProgress => Style::Bold,
        StepStatus::Pending => Style::Code,
    };
    (style, format!("{} {}", step.status.mark(), escaped(&step.text).replace(['\n', '\t'], " ")))
}
