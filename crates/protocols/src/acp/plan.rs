//! The tool `update_plan`: the steps of the agent's work, which editors show as a plan.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, Power, Powers, Tool, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::ToolSchema;
use myclaw_session::SessionKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client_sessions::ClientSessions;

/// The name of the tool.
pub(super) const UPDATE_PLAN: &str = "update_plan";
/// Most steps of a plan.
const MOST_STEPS: usize = 50;
/// Longest step, in characters.
const MOST_CHARS: usize = 500;

/// The tool of one session.
pub(super) struct PlanTool {
    schema: ToolSchema,
    sessions: Arc<ClientSessions>,
    key: SessionKey,
}

#[derive(Deserialize)]
struct Arguments {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    text: String,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    priority: Priority,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

impl PlanTool {
    pub(super) fn new(sessions: Arc<ClientSessions>, key: SessionKey) -> Self {
        let schema = ToolSchema {
            name: UPDATE_PLAN.to_owned(),
            description: "Show the user the steps of your work, for tasks with several of them. Call it again with all \
                          steps whenever one begins or is done; the new plan replaces the one before."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                            "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                        },
                        "required": ["text", "status"],
                    },
                }},
                "required": ["steps"],
                "additionalProperties": false,
            }),
        };
        Self { schema, sessions, key }
    }
}

/// The plan that the arguments of a call describe.
///
/// # Errors
/// They describe none; the text says why.
pub(super) fn plan(arguments: Value) -> Result<Plan, String> {
    let Arguments { steps } =
        serde_json::from_value(arguments).map_err(|error| error.to_string())?;
    if steps.len() > MOST_STEPS {
        return Err(format!("a plan has at most {MOST_STEPS} steps"));
    }
    let entry = |Step { text, status, priority }: Step| {
        let text: String = text.trim().chars().take(MOST_CHARS).collect();
        let status = match status {
            Status::Pending => PlanEntryStatus::Pending,
            Status::InProgress => PlanEntryStatus::InProgress,
            Status::Completed => PlanEntryStatus::Completed,
        };
        let priority = match priority {
            Priority::High => PlanEntryPriority::High,
            Priority::Medium => PlanEntryPriority::Medium,
            Priority::Low => PlanEntryPriority::Low,
        };
        PlanEntry::new(text, priority, status)
    };
    Ok(Plan::new(steps.into_iter().map(entry).collect()))
}

/// What the tool is.
pub(super) const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Update the plan",
    kind: ToolKind::Plan,
    about: About::Nothing,
    group: None,
    powers: Powers::of(&[Power::ChangesState]),
    place: WorkPlace::Here,
};

impl Tool for PlanTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let shown = plan(Value::Object(invocation.call.arguments.as_map().clone()))
            .map_err(ToolError::Failed);
        Box::pin(std::future::ready(shown.map(|plan| {
            self.sessions.send(&self.key, SessionUpdate::Plan(plan));
            ToolOutput::text("The user sees the plan.")
        })))
    }
}
