//! The servers of a project's `.mcp.json`. Whoever wrote the project wrote them, so they count only as the owner approved them:
//! after any change the file is off until it was approved again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use myclaw_config::{Environment, McpServerConfig};
use myclaw_files::{Durability, SharedDirectory};
use myclaw_tools::text_diff;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::import::{ImportSource, servers_in, with_values};
use crate::{AgentError, FailureClass, SessionConfig};

/// The file in the root of a project.
const FILE: &str = ".mcp.json";
/// Largest such file.
const MAX_BYTES: u64 = 1 << 20;
/// Begins the names of the approved files.
const PROJECTS: &str = "projects/";

/// The `.mcp.json` of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectServers {
    /// Where it is.
    pub path: PathBuf,
    /// Its text as it is now.
    text: String,
    /// Its text as it was approved.
    approved: Option<String>,
}

/// An approved file, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    path: PathBuf,
    text: String,
}

impl ProjectServers {
    /// Whether it counts: it was approved, and has not changed since.
    pub fn is_approved(&self) -> bool {
        self.approved.as_ref() == Some(&self.text)
    }

    /// Whether an earlier text of it was approved.
    pub fn has_changed(&self) -> bool {
        self.approved.is_some() && !self.is_approved()
    }

    /// What there is to approve: the difference to what was approved, or the whole text.
    pub fn shown(&self) -> String {
        let before = self.approved.as_deref();
        before
            .and_then(|before| text_diff(FILE, before, &self.text))
            .unwrap_or_else(|| self.text.clone())
    }
}

impl SessionConfig {
    /// The `.mcp.json` of the project that the session works in, if there is one. Blocks.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn project_servers(&self) -> Result<Option<ProjectServers>, AgentError> {
        let Some(root) = self.project_directory().and_then(|_| self.project_root()) else {
            return Ok(None);
        };
        let path = root.join(FILE);
        let opened = SharedDirectory::open(&root).and_then(|root| root.read(FILE, MAX_BYTES));
        let bytes = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| {
                let what = format!("{} cannot be read: {error}", path.display());
                AgentError::new(FailureClass::Mcp, what)
            })?,
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let approved = self.kept_project(&path).filter(|kept| kept.path == path);
        Ok(Some(ProjectServers { path, text, approved: approved.map(|kept| kept.text) }))
    }

    /// Approves the file as it was read. Blocks.
    ///
    /// # Errors
    /// The approval cannot be kept.
    pub fn approve_project(&self, servers: &ProjectServers) -> Result<(), AgentError> {
        let kept = Kept { path: servers.path.clone(), text: servers.text.clone() };
        let approvals = &self.home.stores().servers.approvals;
        let text = serde_json::to_string(&kept).map_err(io::Error::other);
        let written = text.and_then(|text| {
            let name = kept_name(&kept.path);
            approvals.change(&name, Durability::Synced, &mut |_| text.clone())
        });
        written.map_err(|error| {
            AgentError::new(FailureClass::Mcp, format!("the approval cannot be kept: {error}"))
        })
    }

    /// The servers of the project, if the owner has approved them as they are. Blocks.
    pub(super) fn approved_project_servers(&self) -> BTreeMap<String, McpServerConfig> {
        let servers = match self.project_servers() {
            Ok(Some(servers)) if servers.is_approved() => servers,
            Ok(_) => return BTreeMap::new(),
            Err(error) => {
                tracing::warn!(error = %error.message, "the MCP servers of the project cannot be read");
                return BTreeMap::new();
            }
        };
        let root = servers.path.parent().unwrap_or(Path::new("/"));
        let mut servers = servers_of_text(&servers.text, root, &self.home.environment);
        for config in servers.values_mut() {
            // The directory in which a server starts is one that it may change.
            config.cwd = config.cwd.take().filter(|cwd| Path::new(cwd).starts_with(root));
        }
        servers
    }

    fn kept_project(&self, path: &Path) -> Option<Kept> {
        let document = self.home.stores().servers.approvals.read(&kept_name(path)).ok()??;
        serde_json::from_str(&document.text).ok()
    }
}

/// The servers that the text of a `.mcp.json` in `root` names, as far as they can be used.
pub(crate) fn servers_of_text(
    text: &str,
    root: &Path,
    environment: &Environment,
) -> BTreeMap<String, McpServerConfig> {
    let found = servers_in(ImportSource::ClaudeCode, text, &root.join(FILE), root, environment);
    let usable = found.unwrap_or_default().into_iter().filter_map(|server| {
        let entry = with_values(server.entry.ok()?, environment);
        let mut config: McpServerConfig = serde_json::from_value(entry).ok()?;
        let is_relative = |path: &&mut String| path.contains('/') && !path.starts_with(['/', '~']);
        for path in [&mut config.command, &mut config.cwd].into_iter().flatten().filter(is_relative)
        {
            *path = root.join(&*path).display().to_string();
        }
        Some((server.name, config))
    });
    usable.collect()
}

fn kept_name(path: &Path) -> String {
    format!(
        "{PROJECTS}{}.json",
        myclaw_files::hex(digest(&SHA256, path.as_os_str().as_encoded_bytes()).as_ref())
    )
}
