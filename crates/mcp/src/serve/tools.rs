//! The tools: their descriptions, and their calls.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::follow::failed;
use super::{ASK, Backend, Call, Client, Refusal, ask};

/// What clients read of the tools, in the order in which they are listed.
const TOOLS: &str = include_str!("tools.json");

static DESCRIBED: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(TOOLS).unwrap_or_default());

/// The tools that a client may use.
pub(super) fn offered(backend: &dyn Backend, client: Client) -> Vec<Value> {
    let tools = DESCRIBED.iter().filter(|tool| backend.offers(name_of(tool)));
    let in_form = |tool: &Value| {
        let mut tool = tool.clone();
        if !client.is_stateless && name_of(&tool) == ASK {
            tool["execution"] = json!({"taskSupport": "optional"});
        }
        tool
    };
    tools.map(in_form).collect()
}

fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

/// Calls a tool.
pub(super) async fn call(call: &Call) -> Result<Value, Refusal> {
    let request = &call.request;
    let name = request.text("name");
    let name = name.ok_or_else(|| Refusal::invalid("tools/call: `name` is missing"))?;
    if !DESCRIBED.iter().any(|tool| name_of(tool) == name) || !call.backend.offers(name) {
        let why =
            format!("tools/call: there is no tool `{name}`; tools/list has those that you may use");
        return Err(Refusal::invalid(why));
    }
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(Refusal::invalid("tools/call: `arguments` is not an object")),
    };
    if name == ASK {
        return ask::ask(call, arguments).await;
    }
    if request.params.get("task").is_some_and(|task| !task.is_null()) {
        let why = format!("tools/call: `{name}` answers at once; leave `task` out");
        return Err(Refusal::invalid(why));
    }
    let reading = call.backend.read(name, arguments);
    let found = tokio::select! {
        () = call.cancel.cancelled() => Err("the call was cancelled".to_owned()),
        found = reading => found,
    };
    Ok(match found {
        Ok(value) => {
            let text = serde_json::to_string_pretty(&value).unwrap_or_default();
            json!({"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": false})
        }
        Err(why) => failed(&why),
    })
}
