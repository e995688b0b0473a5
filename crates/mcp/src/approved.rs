//! What the owner has approved of a server.
//!
//! A model is shown the tools of a server as they were when the owner approved them. A tool whose name, description or schema
//! has changed since is neither offered in its new form nor called in its old one.

use std::io;
use std::sync::Arc;

use myclaw_files::{Document, Documents, Durability};
use serde::{Deserialize, Serialize};

use crate::ToolDefinition;

/// The document with the names of all tools, of which runs read nothing else. The names of approvals have a digest.
pub(crate) const INDEX: &str = "tool-names.json";

/// What was approved of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// The name of the server in the config.
    pub server: String,
    /// What identifies it; another program under the same name is another server.
    pub identity: String,
    /// The revision of the protocol that it spoke.
    pub revision: String,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// The addresses of its resources at that time, for completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of its prompts at that time, for completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
}

/// How what a server lists differs from what was approved. Tools are named as the server names them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Tools that were not there.
    pub new: Vec<ToolDefinition>,
    /// Tools that are gone.
    pub gone: Vec<String>,
    /// Tools that were described in another way: before, now.
    pub changed: Vec<(ToolDefinition, ToolDefinition)>,
}

impl Difference {
    /// Compares what was approved, if anything was, with what is listed now.
    pub fn between(approved: Option<&Approved>, listed: &[ToolDefinition]) -> Self {
        let before = approved.map(|approved| approved.tools.as_slice()).unwrap_or_default();
        let named = |tools: &[ToolDefinition], name: &str| {
            tools.iter().find(|tool| tool.name == name).cloned()
        };
        let mut difference = Self::default();
        for tool in listed {
            match named(before, &tool.name) {
                None => difference.new.push(tool.clone()),
                Some(old) if old.digest() != tool.digest() => {
                    difference.changed.push((old, tool.clone()));
                }
                Some(_) => {}
            }
        }
        let is_gone = |tool: &&ToolDefinition| named(listed, &tool.name).is_none();
        difference.gone = before.iter().filter(is_gone).map(|tool| tool.name.clone()).collect();
        difference
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty()
    }
}

/// What was approved of all servers.
#[derive(Debug, Clone)]
pub struct ApprovedStore(pub(crate) Arc<dyn Documents>);

impl ApprovedStore {
    /// What was approved, in `documents`.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self(documents)
    }

    /// What was approved of a server; `None` if nothing was. Blocks.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn load(&self, server: &str, identity: &str) -> io::Result<Option<Approved>> {
        let parse =
            |document: Document| serde_json::from_str(&document.text).map_err(io::Error::other);
        let document = self.0.read(&document_name(server, identity))?;
        let approved: Option<Approved> = document.map(parse).transpose()?;
        Ok(approved.filter(|it| it.server == server && it.identity == identity))
    }

    /// Keeps what was approved. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn save(&self, approved: &Approved) -> io::Result<()> {
        let text = serde_json::to_string_pretty(approved).map_err(io::Error::other)?;
        let name = document_name(&approved.server, &approved.identity);
        self.0.change(&name, Durability::Synced, &mut |_| text.clone())?;
        // The next run finds it in the index.
        let known = self.outlines(&[(approved.server.clone(), approved.identity.clone())]);
        known.into_iter().try_for_each(|outline| outline.map(drop))
    }

    /// Forgets what was approved of a server. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        let of_server = self.0.list(&format!("{server}."))?;
        of_server.iter().try_for_each(|(name, _)| self.0.remove(name).map(drop))?;
        // The next run makes it again, if something is left.
        self.0.remove(INDEX).map(drop)
    }
}

/// The document of an approval. Names of servers have no dots.
pub(crate) fn document_name(server: &str, identity: &str) -> String {
    let short: String = identity.chars().take(16).collect();
    format!("{server}.{short}.json")
}
