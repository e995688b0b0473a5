//! The agent's plan, as editors show it.

use agent_client_protocol_schema::v1::{
    Plan as EditorPlan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
};
use myclaw_agent::plan::{Plan, PlanStep, StepStatus};
use serde_json::Value;

/// The update that shows the plan in the details of a tool's result, if they hold one.
pub(super) fn shown_plan(details: Option<&Value>) -> Option<SessionUpdate> {
    let entry = |PlanStep { text, status }: PlanStep| {
        let status = match status {
            StepStatus::Pending => PlanEntryStatus::Pending,
            StepStatus::InProgress => PlanEntryStatus::InProgress,
            StepStatus::Completed => PlanEntryStatus::Completed,
        };
        PlanEntry::new(text, PlanEntryPriority::Medium, status)
    };
    let steps = Plan::of_details(details)?.steps;
    Some(SessionUpdate::Plan(EditorPlan::new(steps.into_iter().map(entry).collect())))
}
