//! An MCP server with faults, for Python 3.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::TempHome;

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
