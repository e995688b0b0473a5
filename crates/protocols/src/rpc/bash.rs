//! The command `bash`: a command of the program, under the policy and in the sandbox of the session.

use myclaw_agent::{RAN_COMMAND, Session};
use myclaw_engine::ToolError;
use myclaw_llm::{TextContent, joined_text};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::request::Bash;
use myclaw_front::exit::CliError;

/// The tool that runs it.
const TOOL: &str = "bash";

/// Runs a command to its end.
///
/// # Errors
/// The policy does not allow it, it cannot be started, or it was aborted; or the model cannot be told, because a turn runs.
pub(super) async fn run(
    session: &Session,
    wanted: Bash,
    stop: CancellationToken,
) -> Result<Value, CliError> {
    let Bash { command, timeout_seconds, for_model } = wanted;
    let config = session.config();
    // The first turn would make it. If it cannot be made, the command says so.
    let _ = config.make_working_directory();
    let tools = config.direct_tools().await?;
    let mut arguments = Map::from_iter([("command".to_owned(), json!(command))]);
    arguments.extend(timeout_seconds.map(|seconds| ("timeout".to_owned(), json!(seconds))));
    let called = tools.call(TOOL, arguments, stop).await;
    let result = called.map_err(|error| match error {
        ToolError::Failed(why) => CliError::usage(format!("bash: {why}")),
        ToolError::Aborted(_) => CliError::aborted(),
    })?;
    let output = joined_text(&result.content, "\n");
    let mut reply = json!({"output": output, "failed": result.is_error});
    if let Some(details) = result.details {
        reply["details"] = details;
    }
    if for_model {
        let directory = config.working_directory().display().to_string();
        let own = format!("{RAN_COMMAND}{directory}]\n$ {command}\n");
        session.tell_model(TextContent::followed_by_outside(own, &output)).await?;
    }
    Ok(reply)
}
