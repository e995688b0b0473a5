//! Calls of built-in tools, read as in a run.

use std::path::Path;
use std::time::Duration;

use myclaw_engine::{PreparedCall, ToolContext, TurnId};
use myclaw_tools::{CommandPlace, ToolOptions, builtin_tools};
use serde_json::Value;

/// A call in the directory `/tmp`.
pub(crate) fn prepared(tool: &str, arguments: &Value) -> PreparedCall {
    prepared_in(Path::new("/tmp"), tool, arguments)
}

pub(crate) fn prepared_in(directory: &Path, tool: &str, arguments: &Value) -> PreparedCall {
    let context = ToolContext {
        working_directory: directory.canonicalize().unwrap(),
        artifact_directory: "/nowhere".into(),
        max_result_chars: 1000,
        workspace_only: false,
        closed: Default::default(),
        turn: TurnId::generate(),
    };
    let tools = builtin_tools(ToolOptions {
        command_timeout: Duration::from_secs(1),
        jobs: None,
        commands: CommandPlace::Here,
        memory: None,
    });
    let name = if tool == "exec" { "bash" } else { tool };
    let found = tools.iter().find(|tool| tool.schema().name == name).unwrap();
    let arguments = arguments.as_object().unwrap().clone();
    let call = PreparedCall::new(&**found, "call_1", arguments, &context).unwrap();
    PreparedCall { model: "openai/gpt-x".to_owned(), ..call }
}
