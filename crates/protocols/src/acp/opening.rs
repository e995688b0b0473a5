//! The parameters of requests that open a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{Error, SessionId};
use myclaw_agent::mcp::editor_server;
use myclaw_config::McpServerConfig;
use serde::Deserialize;
use serde_json::Value;

use super::failure::invalid;

/// The common parameters of `session/new`, `session/load` and `session/resume`. The protocol crate's types are not used,
/// because they refuse unknown kinds of MCP servers, which are reported here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opening {
    /// Directory for the tools.
    pub(super) cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Option<Vec<Value>>,
    #[serde(default)]
    additional_directories: Option<Vec<Value>>,
}

/// The parameters of `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reopening {
    /// The session.
    pub(super) session_id: SessionId,
    #[serde(flatten)]
    pub(super) opening: Opening,
}

impl Opening {
    /// Checks the directory. It must exist, because editors send the directory of an open project.
    ///
    /// # Errors
    /// The path is not absolute, or not a directory.
    pub(super) fn check_directory(&self) -> Result<(), Error> {
        let cwd: &Path = &self.cwd;
        if !cwd.is_absolute() {
            return Err(invalid(format!("`cwd` is not an absolute path: {}", cwd.display())));
        }
        if !cwd.is_dir() {
            return Err(invalid(format!("`cwd` is not an existing directory: {}", cwd.display())));
        }
        Ok(())
    }

    /// The MCP servers of the editor, and why others of them cannot be used.
    pub(super) fn servers(&self) -> (BTreeMap<String, McpServerConfig>, Vec<String>) {
        let (mut servers, mut problems) = (BTreeMap::new(), Vec::new());
        for server in self.mcp_servers.iter().flatten() {
            match editor_server(server) {
                Ok((name, config)) => drop(servers.insert(name, config)),
                Err(problem) => {
                    problems.push(format!("an MCP server of the editor is not used: {problem}"))
                }
            }
        }
        (servers, problems)
    }

    /// Messages for the user about parameters that are ignored.
    pub(super) fn passed_over(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.additional_directories.as_ref().is_some_and(|directories| !directories.is_empty()) {
            remarks.push(
                "additional directories are not supported; name files in them by their whole path"
                    .to_owned(),
            );
        }
        remarks
    }
}
