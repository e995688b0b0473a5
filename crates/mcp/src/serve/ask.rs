//! The tool `ask`: a turn of the agent, which becomes a task if it takes long.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::follow::{Followed, failed, follow, input_requests, result};
use super::{Call, Refusal, State, Turn, tasks};

/// After this time a call becomes a task, for clients that follow tasks.
const PATIENCE: Duration = Duration::from_secs(5);

/// The arguments of the tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    message: String,
    #[serde(default)]
    session: Option<String>,
}

/// Calls the tool.
pub(super) async fn ask(call: &Call, arguments: Map<String, Value>) -> Result<Value, Refusal> {
    let params = &call.request.params;
    let turn = match params.get("requestState") {
        Some(state) if call.client.is_stateless => {
            let state = state.as_str();
            let state = state.ok_or_else(|| Refusal::invalid("`requestState` is not a text"))?;
            // What names no turn of the agent is refused here.
            call.backend.state(&Turn(state.to_owned())).await.map_err(Refusal::invalid)?;
            Turn(state.to_owned())
        }
        _ => match begin(call, arguments).await {
            Ok(turn) => turn,
            Err(why) => return Ok(failed(&why)),
        },
    };
    let wants_task = params.get("task").is_some_and(|task| !task.is_null());
    if wants_task && !call.client.is_stateless {
        let task = tasks::task(call, &tasks::id_of(&turn), &State::Working);
        return Ok(json!({"task": task}));
    }
    let until = call.client.has_tasks.then(|| Instant::now() + PATIENCE);
    match follow(call, &turn, until).await? {
        Followed::Over(outcome) => Ok(result(&outcome)),
        Followed::Asked(question) => Ok(json!({
            "resultType": "input_required",
            "inputRequests": input_requests(&question),
            "requestState": turn.0,
        })),
        Followed::Working => {
            let mut task = tasks::task(call, &tasks::id_of(&turn), &State::Working);
            task["resultType"] = json!("task");
            Ok(task)
        }
    }
}

async fn begin(call: &Call, arguments: Map<String, Value>) -> Result<Turn, String> {
    let Arguments { message, session } = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| format!("the arguments of `ask` cannot be used: {error}"))?;
    if message.trim().is_empty() {
        return Err("`message` is empty; say what the agent is to do".to_owned());
    }
    let session = session.filter(|session| !session.trim().is_empty());
    Ok(call.backend.begin(message, session).await?.turn)
}
