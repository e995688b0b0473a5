//! The tool `update_plan`: the steps of the agent's work, which front-ends show as a list that changes in place.
//!
//! The plan is in the details of the tool's result: all front-ends show it from there, in events and in the log. In the mode
//! `plan` a call of the tool proposes the plan, and the approval of the call is that of the plan.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, Mode, Power, Powers, RunEvent, ShownFact, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::ToolSchema;
use myclaw_session::{ReadSession, Role, SessionError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::SessionConfig;
use crate::blocking::blocking;

/// Name of the tool.
pub(crate) const NAME: &str = "update_plan";
/// Most steps of a plan.
const MOST_STEPS: usize = 50;
/// Longest step, in characters.
const MOST_CHARS: usize = 500;
/// Rows at the end of a log among which the plan is looked for.
const MOST_ROWS: usize = 5_000;
/// The field of a result's details with the plan.
const FIELD: &str = "plan";

/// What the tool is.
pub(crate) const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Update the plan",
    kind: ToolKind::Plan,
    about: About::Nothing,
    group: None,
    powers: Powers::of(&[Power::ChangesState]),
    place: WorkPlace::Here,
};

static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    ToolSchema {
    name: NAME.to_owned(),
    description: "Show the user the steps of a longer task. Call it again with all steps when one begins or ends."
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
                },
                "required": ["text"],
            },
        }},
        "required": ["steps"],
    }),
}
});

/// The steps of an agent's work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is done, in one line.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub status: StepStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl StepStatus {
    /// A mark for lists.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
        }
    }
}

impl Plan {
    /// The plan in the details of a tool's result, if they hold one.
    pub fn of_details(details: Option<&Value>) -> Option<Self> {
        Self::deserialize(details?.get(FIELD)?).ok()
    }

    /// The plan that was shown last in a session.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn last_of(session: &dyn ReadSession) -> Result<Option<Self>, SessionError> {
        #[derive(Deserialize)]
        struct Kept {
            details: Option<Value>,
        }
        let (mut found, mut rows) = (None, 0);
        let visited = session.visit_newest(&mut |row| {
            rows += 1;
            if row.role == Role::Tool
                && let Some(meta) = row.meta.filter(|meta| meta.as_str().contains(NAME))
            {
                let details = meta.read::<Kept>().and_then(|kept| kept.details);
                found = Self::of_details(details.as_ref());
            }
            match found.is_some() || rows >= MOST_ROWS {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            }
        });
        // What is old may be unavailable for a moment. A plan there is not the one that the agent follows now.
        visited.or_else(|error| if rows == 0 { Err(error) } else { Ok(()) })?;
        Ok(found)
    }

    /// Whether a step is left to do.
    pub fn is_open(&self) -> bool {
        self.steps.iter().any(|step| step.status != StepStatus::Completed)
    }

    /// One line for each step.
    pub fn lines(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("{} {}", step.status.mark(), step.text)).collect()
    }

    /// The steps that a person wrote, with semicolons or line ends between them.
    fn written(text: &str) -> Self {
        let texts = text.split([';', '\n']).map(str::trim).filter(|step| !step.is_empty());
        let step = |text: &str| PlanStep { text: text.to_owned(), status: StepStatus::Pending };
        Self { steps: texts.map(step).collect() }
    }

    /// Reads the arguments of a call.
    fn of_arguments(arguments: &Map<String, Value>) -> Result<Self, ToolError> {
        let failed = |why: String| ToolError::Failed(why);
        let mut plan = Self::deserialize(Value::Object(arguments.clone()))
            .map_err(|error| failed(error.to_string()))?;
        if plan.steps.len() > MOST_STEPS {
            return Err(failed(format!("a plan has at most {MOST_STEPS} steps")));
        }
        for step in &mut plan.steps {
            let line = step.text.split_whitespace().collect::<Vec<_>>().join(" ");
            step.text = line.chars().take(MOST_CHARS).collect();
        }
        Ok(plan)
    }
}

/// The tool of one session.
pub(crate) struct PlanTool(pub(crate) SessionConfig);

impl Tool for PlanTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let plan = Plan::of_arguments(arguments.as_map())?;
        let steps = if plan.steps.len() == 1 { "step" } else { "steps" };
        let facts = vec![
            ShownFact::text("plan", format!("a plan of {} {steps}", plan.steps.len())),
            ShownFact::text("steps", plan.lines().join("\n")),
        ];
        Ok(CallSubject { effects: Vec::new(), facts })
    }

    fn replaced(&self, _: &CallArguments, text: &str) -> Option<(Map<String, Value>, String)> {
        let plan = Some(Plan::written(text)).filter(|plan| !plan.steps.is_empty())?;
        let said = format!("The user changed the plan:\n{}", plan.lines().join("\n"));
        let Ok(Value::Object(arguments)) = serde_json::to_value(plan) else { return None };
        Some((arguments, said))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let plan = Plan::of_arguments(invocation.call.arguments.as_map())?;
            let said = match self.0.mode.get() {
                // The call was approved, or it would not be made.
                Mode::Plan => self.approved().await?,
                _ => "The user sees the plan.".to_owned(),
            };
            let details = Some(json!({ FIELD: plan }));
            Ok(ToolOutput { details, ..ToolOutput::text(said) })
        })
    }
}

impl PlanTool {
    /// Ends the mode `plan`; returns what the model reads.
    async fn approved(&self) -> Result<String, ToolError> {
        let (config, mode) = (self.0.clone(), self.0.mode.after_plan());
        let stored = blocking(move || config.change_mode(mode)).await;
        stored.flatten().map_err(|error| ToolError::Failed(error.message))?;
        self.0.publish(&RunEvent::mode_changed(self.0.session_key.clone(), mode));
        Ok(format!(
            "The user has approved the plan, and the mode is {mode} now: carry it out. Call {NAME} when a step begins or ends."
        ))
    }
}
