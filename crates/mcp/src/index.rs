//! The names of all approved tools in one document, for runs: they have the tools of all servers, and make calls of few.
//!
//! The approvals are what counts. An entry says of which version of an approval it is, and is made again when that is another
//! one. An index that is missing or damaged is made again as a whole.

use std::collections::HashMap;
use std::io;
use std::sync::OnceLock;

use myclaw_files::Durability;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approved::{INDEX, document_name};
use crate::{Approved, ApprovedStore, ToolDefinition};

/// What the index says of an approval.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    server: String,
    identity: String,
    /// That of the document with the approval.
    version: String,
    revision: String,
    tools: Vec<String>,
}

/// What a run needs of an approval before a tool is called. What is said about the tools is read when it is needed.
#[derive(Debug)]
pub struct Outline {
    pub(crate) revision: String,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    pub(crate) whole: Whole,
}

/// An approval that is read once, when it is needed.
#[derive(Debug)]
pub(crate) struct Whole {
    store: ApprovedStore,
    server: String,
    identity: String,
    tools: OnceLock<HashMap<String, ToolDefinition>>,
}

impl Whole {
    /// All that was approved of a tool. One that cannot be read is none that a server could list, so it is not called. The
    /// first call blocks for a file.
    pub(crate) fn tool(&self, name: &str) -> ToolDefinition {
        let tools = self.tools.get_or_init(|| {
            let approved = self.store.load(&self.server, &self.identity).unwrap_or_else(|error| {
                tracing::warn!(server = %self.server, %error, "what was approved of an MCP server cannot be read");
                None
            });
            let tools = approved.map(|approved| approved.tools).unwrap_or_default();
            tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect()
        });
        tools.get(name).cloned().unwrap_or_else(|| ToolDefinition {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: Value::Null,
            output_schema: None,
            annotations: None,
        })
    }
}

impl ApprovedStore {
    /// What was approved of servers, each by its name and identity, without what is said about each tool; `None` of those of
    /// which nothing was. Blocks.
    ///
    /// # Errors
    /// An approval cannot be read, or is damaged.
    pub fn outlines(&self, servers: &[(String, String)]) -> Vec<io::Result<Option<Outline>>> {
        let known = self.0.read(INDEX).ok().flatten().map_or_else(Vec::new, |it| entries(&it.text));
        let mut known: HashMap<(String, String), Entry> = known
            .into_iter()
            .map(|entry| ((entry.server.clone(), entry.identity.clone()), entry))
            .collect();
        let mut new = Vec::new();
        let outlines = servers.iter().map(|server| {
            let entry = self.entry(server, known.remove(server), &mut new)?;
            Ok(entry.map(|Entry { server, identity, revision, tools, .. }| {
                let (store, read) = (self.clone(), OnceLock::new());
                let whole = Whole { store, server, identity, tools: read };
                Outline { revision, tools, whole }
            }))
        });
        let outlines = outlines.collect();
        if !new.is_empty() {
            let is_new = |entry: &Entry| {
                new.iter().any(|it| it.server == entry.server && it.identity == entry.identity)
            };
            let written = self.0.change(INDEX, Durability::Unsynced, &mut |text| {
                let mut index = text.map_or_else(Vec::new, entries);
                index.retain(|entry| !is_new(entry));
                index.extend(new.iter().cloned());
                serde_json::to_string(&index).unwrap_or_default()
            });
            if let Err(error) = written {
                tracing::debug!(%error, "the names of the tools of MCP servers cannot be kept");
            }
        }
        outlines
    }

    /// What the index says of an approval, or would say, which is then added to `new`.
    fn entry(
        &self,
        (server, identity): &(String, String),
        known: Option<Entry>,
        new: &mut Vec<Entry>,
    ) -> io::Result<Option<Entry>> {
        let Some(version) = self.0.version(&document_name(server, identity))? else {
            return Ok(None);
        };
        if let Some(known) = known.filter(|known| known.version == version) {
            return Ok(Some(known));
        }
        let Some(Approved { server, identity, revision, tools, .. }) =
            self.load(server, identity)?
        else {
            return Ok(None);
        };
        let tools = tools.into_iter().map(|tool| tool.name).collect();
        let entry = Entry { server, identity, version, revision, tools };
        new.push(entry.clone());
        Ok(Some(entry))
    }
}

/// What an index says; nothing if it is damaged.
fn entries(text: &str) -> Vec<Entry> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
