//! What a client says of a session that is to be opened.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{Error, SessionId};
use serde::Deserialize;
use serde_json::Value;

use super::failure::invalid;

/// What `session/new`, `session/load` and `session/resume` say alike. Not the protocol crate's types: those refuse a
/// client whose servers are of a kind that they do not know, though none is connected to here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opening {
    /// Where tools work.
    pub(super) cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Option<Vec<Value>>,
    #[serde(default)]
    additional_directories: Option<Vec<Value>>,
}

/// What `session/load` and `session/resume` say.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reopening {
    /// Which session.
    pub(super) session_id: SessionId,
    #[serde(flatten)]
    pub(super) opening: Opening,
}

impl Opening {
    /// Editors have the folder of a project; a directory that does not exist is a mistake.
    ///
    /// # Errors
    /// It is none, or not named by its whole path.
    pub(super) fn check_directory(&self) -> Result<(), Error> {
        let cwd: &Path = &self.cwd;
        if !cwd.is_absolute() {
            return Err(invalid(format!("`cwd` is no absolute path: {}", cwd.display())));
        }
        if !cwd.is_dir() {
            return Err(invalid(format!("`cwd` is no directory that exists: {}", cwd.display())));
        }
        Ok(())
    }

    /// What of it is passed over, in words for the user.
    pub(super) fn passed_over(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let servers: Vec<&str> = self.mcp_servers.iter().flatten().map(server_name).collect();
        if !servers.is_empty() {
            remarks.push(format!(
                "MCP servers of the editor are not supported yet: {} will not be used",
                servers.join(", ")
            ));
        }
        if self.additional_directories.as_ref().is_some_and(|directories| !directories.is_empty()) {
            remarks.push(
                "additional directories are not supported; name files in them by their whole path"
                    .to_owned(),
            );
        }
        remarks
    }
}

fn server_name(server: &Value) -> &str {
    server.get("name").and_then(Value::as_str).unwrap_or("one without a name")
}
