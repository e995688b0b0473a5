//! `search_tools`, `list_workflows` and `run_workflow`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::{Power, Tool, ToolDeclaration, ToolError, ToolGroup, ToolOutput};
use myclaw_exec::EnvironmentPolicy;
use serde_json::{Map, Value, json};

use super::{Answer, Call, of_host, ready, schema, simple};
use crate::workflows::{Ranker, Ranking, Registry, Workflow, WorkflowRun};

/// Most workflows that a search gives.
const MOST_FOUND: usize = 3;

const FINDING: ToolDeclaration = ToolDeclaration {
    group: None,
    ..of_host("Find workflows", ToolGroup::Automation, Power::ReadsFiles)
};
const RUNNING: ToolDeclaration =
    ToolDeclaration { title: "Run a workflow", ..ToolDeclaration::UNKNOWN };

/// What a search needs, and what a workflow is run with.
#[derive(Clone)]
pub(super) struct Workflows {
    /// The directory with the registry and the scripts.
    pub(super) directory: PathBuf,
    pub(super) ranker: Arc<dyn Ranker>,
    pub(super) environment: EnvironmentPolicy,
    pub(super) limit: Duration,
}

pub(super) fn tools(with: &Workflows) -> [Arc<dyn Tool>; 3] {
    [search(with.clone()), run(with.clone()), list(with.directory.clone())]
}

fn search(with: Workflows) -> Arc<dyn Tool> {
    let schema = schema(
        "search_tools",
        "Find workflows for a task. Describe the task in a sentence.",
        &json!({"query": {"type": "string"}}),
        &["query"],
    );
    let work = move |call: Call| -> Answer {
        let (with, query) = (with.clone(), call.text("query").to_owned());
        Box::pin(async move {
            let search = tokio::task::spawn_blocking(move || found(&with, &query));
            tokio::select! {
                // Vectors that are being computed are finished, so that the next search finds them.
                () = call.cancel.cancelled() => Err(ToolError::Aborted("The search was stopped.".to_owned())),
                found = search => found.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string()))),
            }
        })
    };
    simple(schema, FINDING, work)
}

fn found(with: &Workflows, query: &str) -> Result<ToolOutput, ToolError> {
    let workflows = load(&with.directory)?;
    let Ranking { by: how, shortcoming, ranked } =
        with.ranker.ranking(query, &workflows).map_err(ToolError::Failed)?;
    if ranked.is_empty() {
        let names: Vec<&str> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Ok(ToolOutput::text(with_shortcoming(
            format!("No workflow fits (ranked by {how}). There are: {names}. Use the other tools."),
            shortcoming,
        )));
    }
    let mut text = format!("Ranked by {how}, the best first:");
    for workflow in ranked.iter().take(MOST_FOUND).filter_map(|ranked| workflows.get(ranked.index))
    {
        text.push('\n');
        text.push_str(&line(workflow));
    }
    text.push_str("\nRun one with run_workflow.");
    Ok(ToolOutput::text(with_shortcoming(text, shortcoming)))
}

fn with_shortcoming(text: String, shortcoming: Option<String>) -> String {
    match shortcoming {
        Some(shortcoming) => format!("{text}\n{shortcoming}"),
        None => text,
    }
}

fn list(directory: PathBuf) -> Arc<dyn Tool> {
    let schema = schema("list_workflows", "List all workflows.", &json!({}), &[]);
    let work = move |_: Call| {
        ready(load(&directory).map(|workflows| {
            if workflows.is_empty() {
                return ToolOutput::text("There are no workflows.");
            }
            let lines: Vec<String> = workflows.iter().map(line).collect();
            ToolOutput::text(lines.join("\n"))
        }))
    };
    simple(schema, FINDING, work)
}

fn run(with: Workflows) -> Arc<dyn Tool> {
    let description = format!(
        "Run a workflow (at most {} seconds). Its arguments become environment variables in capitals.",
        with.limit.as_secs()
    );
    let schema = schema(
        "run_workflow",
        &description,
        &json!({
            "name": {"type": "string", "description": "As search_tools or list_workflows shows it"},
            "args": {"type": "object", "description": "Values by name"},
        }),
        &["name"],
    );
    let work = move |call: Call| -> Answer {
        let with = with.clone();
        Box::pin(async move {
            let workflows = load(&with.directory)?;
            let name = call.text("name");
            let Some(workflow) = workflows.iter().find(|workflow| workflow.name == name) else {
                let names: Vec<&str> =
                    workflows.iter().map(|workflow| workflow.name.as_str()).collect();
                return Err(ToolError::Failed(format!(
                    "there is no workflow {name:?}; there are: {}",
                    names.join(", ")
                )));
            };
            let none = Map::new();
            let arguments = match call.arguments.get("args") {
                Some(Value::Object(arguments)) => arguments,
                _ => &none,
            };
            let run = WorkflowRun {
                directory: &with.directory,
                environment: &with.environment,
                limit: with.limit,
                workflow,
                arguments,
            };
            run.run(&call.cancel).await
        })
    };
    simple(schema, RUNNING, work)
}

fn load(directory: &Path) -> Result<Vec<Workflow>, ToolError> {
    let registry =
        Registry::load(directory).map_err(|error| ToolError::Failed(error.to_string()))?;
    Ok(registry.workflows)
}

fn line(workflow: &Workflow) -> String {
    let Workflow { name, description, args, .. } = workflow;
    let args = match args.is_empty() {
        true => String::new(),
        false => format!(" (args: {})", args.join(", ")),
    };
    format!("- {name}: {description}{args}")
}
