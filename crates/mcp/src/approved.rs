//! What the owner has approved of a server.
//!
//! A model is shown the tools of a server as they were when the owner approved them. A tool whose name, description or schema
//! has changed since is neither offered in its new form nor called in its old one.

use std::io;
use std::sync::Arc;

use myclaw_files::{Document, Documents, Durability};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ToolDefinition;

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

/// What a run needs of an approval before a tool is called. What is said about each tool is read when it is needed: a run has
/// the tools of all servers, and makes calls of few.
#[derive(Debug, Clone, Deserialize)]
pub struct Outline {
    server: String,
    identity: String,
    pub(crate) revision: String,
    pub(crate) tools: Vec<Sketch>,
}

/// An approved tool, of which only the name is known yet.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub(crate) struct Sketch {
    pub(crate) name: String,
    whole: Box<RawValue>,
}

impl TryFrom<Box<RawValue>> for Sketch {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let Named { name } = serde_json::from_str(whole.get())?;
        Ok(Self { name, whole })
    }
}

impl Sketch {
    /// All that was approved of the tool. One that cannot be read is none that a server could list, so it is not called.
    pub(crate) fn definition(&self) -> ToolDefinition {
        serde_json::from_str(self.whole.get()).unwrap_or_else(|_| ToolDefinition {
            name: self.name.clone(),
            title: None,
            description: String::new(),
            input_schema: Value::Null,
            output_schema: None,
            annotations: None,
        })
    }
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
pub struct ApprovedStore(Arc<dyn Documents>);

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
        let approved: Option<Approved> = self.read(server, identity)?;
        Ok(approved.filter(|it| it.server == server && it.identity == identity))
    }

    /// The same without what is said about each tool. Blocks.
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    pub fn outline(&self, server: &str, identity: &str) -> io::Result<Option<Outline>> {
        let outline: Option<Outline> = self.read(server, identity)?;
        Ok(outline.filter(|it| it.server == server && it.identity == identity))
    }

    fn read<T: DeserializeOwned>(&self, server: &str, identity: &str) -> io::Result<Option<T>> {
        let document = self.0.read(&document_name(server, identity))?;
        let parse =
            |document: Document| serde_json::from_str(&document.text).map_err(io::Error::other);
        document.map(parse).transpose()
    }

    /// Keeps what was approved. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn save(&self, approved: &Approved) -> io::Result<()> {
        let text = serde_json::to_string_pretty(approved).map_err(io::Error::other)?;
        let name = document_name(&approved.server, &approved.identity);
        self.0.change(&name, Durability::Synced, &mut |_| text.clone())
    }

    /// Forgets what was approved of a server. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        let of_server = self.0.list(&format!("{server}."))?;
        of_server.iter().try_for_each(|(name, _)| self.0.remove(name).map(drop))
    }
}

/// Names of servers have no dots.
fn document_name(server: &str, identity: &str) -> String {
    let short: String = identity.chars().take(16).collect();
    format!("{server}.{short}.json")
}
