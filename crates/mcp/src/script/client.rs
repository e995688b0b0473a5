//! What a script starts to make a call.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use myclaw_files::variables::SCRIPT_CALLS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a script gets for a call: a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptAnswer {
    /// The result, or why there is none.
    pub text: String,
    /// What MyClaw says about the result; may be empty.
    pub note: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ScriptAnswer {
    pub(super) fn failed(why: String) -> Self {
        Self { text: why, note: String::new(), is_error: true }
    }
}

/// Calls a tool from a script of code mode. `arguments` are a JSON object. Blocks until the answer is there.
///
/// # Errors
/// This is no script of code mode, the arguments are no object, or the script's calls have ended.
pub fn call_from_script(server: &str, tool: &str, arguments: &str) -> Result<ScriptAnswer, String> {
    let address = std::env::var(SCRIPT_CALLS).map_err(|_| {
        "this command works in scripts of code mode only, which the agent runs (`mcp.codeMode`); docs/use/mcp.md"
            .to_owned()
    })?;
    let arguments: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| {
        format!("the arguments are no JSON object such as '{{\"city\": \"Bonn\"}}': {error}")
    })?;
    let failed = |error: std::io::Error| format!("the call cannot be made: {error}");
    let mut stream = TcpStream::connect(&address).map_err(failed)?;
    let call = json!({"server": server, "tool": tool, "arguments": arguments});
    stream.write_all(format!("{call}\n").as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    match line.is_empty() {
        true => Err("the call was not answered; the script is being ended".to_owned()),
        false => serde_json::from_str(&line).map_err(|error| format!("a broken answer: {error}")),
    }
}
