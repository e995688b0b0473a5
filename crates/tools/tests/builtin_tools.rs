//! What every request to a model holds: the schemas of the built-in tools.

use std::time::Duration;

use std::sync::Arc;

use myclaw_engine::{Tool, ToolKind};
use myclaw_llm::outside::COMMAND_TOOLS;
use myclaw_tools::{
    CommandPlace, JobEnded, JobListener, Jobs, JobsOptions, MemoryJobs, ToolOptions,
};
use serde_json::{Value, json};

/// The order in which models see them.
const ORDER: [&str; 9] =
    ["read", "bash", "edit", "write", "grep", "find", "ls", "apply_patch", "process"];
/// All schemas together: they are sent with every request, so they stay short.
const MAX_BYTES: usize = 6 * 1024;

struct NobodyListens;

impl JobListener for NobodyListens {
    fn ended(&self, _: JobEnded) -> futures_util::future::BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn tools(jobs: Option<Arc<Jobs>>) -> Vec<Arc<dyn Tool>> {
    myclaw_tools::builtin_tools(ToolOptions {
        command_timeout: Duration::from_secs(60),
        jobs,
        commands: CommandPlace::Here,
        memory: None,
    })
}

fn all_tools() -> Vec<Arc<dyn Tool>> {
    tools(Some(Jobs::new(JobsOptions {
        session: "s".into(),
        store: Arc::new(MemoryJobs::default()),
        yield_after: Some(Duration::from_secs(10)),
        listener: Arc::new(NobodyListens),
    })))
}

#[test]
fn without_jobs_there_are_the_first_eight() {
    let names: Vec<String> = tools(None).iter().map(|tool| tool.schema().name.clone()).collect();
    assert_eq!(names, ORDER[..8]);
    let bash = tools(None).remove(1);
    assert!(bash.schema().parameters["properties"].get("background").is_none());
}

#[test]
fn tools_have_their_names_and_order() {
    let names: Vec<String> = all_tools().iter().map(|tool| tool.schema().name.clone()).collect();
    assert_eq!(names, ORDER);
}

#[test]
fn schemas_are_complete() {
    for tool in all_tools() {
        let schema = tool.schema();
        assert!(!schema.description.is_empty(), "{}", schema.name);
        assert_eq!(schema.parameters["type"], "object", "{}", schema.name);
        // The engine refuses other arguments anyway, so no request says that for each tool.
        assert!(schema.parameters.get("additionalProperties").is_none(), "{}", schema.name);
        let properties = schema.parameters["properties"].as_object().unwrap();
        assert!(
            properties.values().all(|property| property["type"].is_string()),
            "{}",
            schema.name
        );
        for name in schema.parameters["required"].as_array().unwrap_or(&Vec::new()) {
            assert!(properties.contains_key(name.as_str().unwrap()), "{}: {name}", schema.name);
        }
    }
}

#[test]
fn schemas_are_short() {
    let schemas: Vec<Value> = all_tools()
        .iter()
        .map(|tool| {
            let schema = tool.schema();
            json!({"name": schema.name, "description": schema.description, "input_schema": schema.parameters})
        })
        .collect();
    let bytes = serde_json::to_string(&schemas).unwrap().len();
    println!("the schemas take {bytes} bytes");
    assert!(bytes <= MAX_BYTES, "the schemas take {bytes} bytes");
}

/// A tool that writes notes about commands gives their output to `outside::harmless_output` first.
#[test]
fn the_tools_whose_notes_are_their_own_are_those_that_run_commands() {
    let runs =
        |tool: &Arc<dyn Tool>| matches!(tool.declaration().kind, ToolKind::Run | ToolKind::Attend);
    let tools = all_tools();
    let names: Vec<&str> =
        tools.iter().filter(|tool| runs(tool)).map(|tool| tool.schema().name.as_str()).collect();
    assert_eq!(names, COMMAND_TOOLS);
}
