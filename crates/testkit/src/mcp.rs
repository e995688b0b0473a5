//! MCP servers with faults, for Python 3: a program, and one behind HTTP.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::{RunningChild, TempHome};

/// The program of the server.
pub const MCP_SERVER: &str = include_str!("mcp/server.py");

/// Writes the server into a home, and returns the entry for `mcp.servers` with which it starts in `mode`, and the file with
/// tools that it lists in addition.
///
/// # Panics
/// When it cannot be written.
pub fn mcp_server(home: &TempHome, mode: &str) -> (Value, PathBuf) {
    let script = home.write("server/server.py", MCP_SERVER);
    let tools = home.path().join("server/tools.json");
    let entry = json!({"command": "python3", "args": [script, mode, tools], "timeoutSeconds": 20});
    (entry, tools)
}

/// A running MCP server behind HTTP. It ends with this value.
pub struct McpHttpServer {
    /// Its origin, such as `http://127.0.0.1:4000`.
    pub url: String,
    log: PathBuf,
    _program: RunningChild,
}

impl McpHttpServer {
    /// Starts the server in `mode`; its files are in `home`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(home: &TempHome, mode: &str) -> Self {
        Self::with_login(home, mode, &json!({}))
    }

    /// Starts a server that wants a login if `faults` is not empty; those are of its authorization server.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn with_login(home: &TempHome, mode: &str, faults: &Value) -> Self {
        let script = home.write("http/server.py", include_str!("mcp/http_server.py"));
        let log = home.write("http/requests.txt", "");
        let mut command = Command::new("python3");
        command.arg(script).arg(mode).arg(&log).arg(faults.to_string());
        let program = RunningChild::spawn_piped(&mut command);
        let port = program.wait_for_stdout_line("");
        let url = format!("http://127.0.0.1:{}", port.trim());
        Self { url, log, _program: program }
    }

    /// The requests so far: `method`, `path`, `headers` with names in small letters, and `body`.
    ///
    /// # Panics
    /// When its file cannot be read.
    pub fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).expect("the requests");
        text.lines().map(|line| serde_json::from_str(line).expect("a request")).collect()
    }
}
