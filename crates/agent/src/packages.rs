//! The packages of others that the owner approved: what a session has of them, and where new ones come from.

mod download;
mod fetch;
mod git;
mod registry;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::{CommandLine, HooksConfig, McpServerConfig};
use myclaw_engine::Hook;
use myclaw_files::text_of_bytes;
use myclaw_hooks::{Check, ClaudeEvent, RunInfo, claude_hook, package_hooks};
pub use myclaw_packages::{
    CANNOT_KNOW, Changed, FileChange, LoadedPackage, Locked, PackageApproval, PackageContents,
    PackageError, PackageState, PackageStore, Source, Tree, plain_name, scan,
};
use myclaw_packages::{ROOT, TreeEntry, TreeError};
use myclaw_policy::escape;
use myclaw_tools::text_diff;
use serde_json::{Map, Value, json};

pub use self::fetch::{Fetched, Wanted, fetch_package};
use crate::blocking::blocking;
use crate::mcp::servers_of_text;
use crate::{AgentError, FailureClass, Home, SessionConfig};

/// Directory of the state directory with the packages.
const DIRECTORY: &str = "packages";
/// Longest name of a server that has more than the usual one.
const MAX_SERVER_NAME: usize = 24;

impl Home {
    /// The packages that were approved.
    pub fn packages(&self) -> PackageStore {
        PackageStore::new(self.paths.state_dir().join(DIRECTORY))
    }

    /// Compares the files of a package with its digests once more, before one of its programs starts. Blocks.
    pub(crate) fn check_package(&self, package: &str) -> Result<(), AgentError> {
        let state = self.packages().load_one(package)?;
        let why = match state.map(|state| state.loaded) {
            Some(Ok(_)) => return Ok(()),
            Some(Err(why)) => why.to_string(),
            None => "it was removed".to_owned(),
        };
        Err(AgentError::new(
            FailureClass::Packages,
            format!("the package {package} is off: {why}; `myclaw packages verify` says more"),
        ))
    }

    /// Whether no package was ever added; one system call.
    pub(crate) fn has_no_packages(&self) -> bool {
        !self.paths.state_dir().join(DIRECTORY).exists()
    }
}

impl From<PackageError> for AgentError {
    fn from(error: PackageError) -> Self {
        Self::new(FailureClass::Packages, error.0)
    }
}

impl From<TreeError> for AgentError {
    fn from(error: TreeError) -> Self {
        Self::new(FailureClass::Packages, error.0)
    }
}

impl SessionConfig {
    /// The packages that count: approved, unchanged on disk, and not disabled. Outside of a run it compares all their bytes, and
    /// blocks.
    pub(crate) fn packages(&self) -> Arc<Vec<LoadedPackage>> {
        self.run_packages.clone().unwrap_or_else(|| Arc::new(self.read_packages()))
    }

    /// Reads the packages that count.
    pub(crate) fn read_packages(&self) -> Vec<LoadedPackage> {
        if self.home.has_no_packages() {
            return Vec::new();
        }
        let states = self.home.packages().load().unwrap_or_else(|error| {
            tracing::warn!(%error, "the packages cannot be read");
            Vec::new()
        });
        let enabled =
            states.into_iter().filter(|state| self.config.packages.is_enabled(&state.name));
        let loaded = enabled.filter_map(|state| {
            state
                .loaded
                .inspect_err(|why| {
                    tracing::warn!(package = %state.name, %why, "a package is off; `myclaw packages verify`");
                })
                .ok()
        });
        loaded.collect()
    }

    /// The commands of the packages: `PACKAGE:COMMAND`, and the text. Blocks.
    pub fn package_commands(&self) -> Vec<(String, String)> {
        let mut commands = Vec::new();
        for package in &*self.packages() {
            let root = package.directory.display().to_string();
            for command in &package.contents.commands {
                let Some(entry) = package.tree.get(&command.path) else { continue };
                let stem = command.path.rsplit('/').next().unwrap_or(&command.path);
                let name = stem.trim_end_matches(".md");
                let text = text_of_bytes(&entry.bytes).replace(ROOT, &root);
                commands.push((format!("{}:{name}", package.name), text));
            }
        }
        commands
    }

    /// The hooks of the packages.
    ///
    /// # Errors
    /// A command names a path in a home, and there is no home.
    pub(crate) async fn package_hooks(
        &self,
        run: RunInfo,
    ) -> Result<Vec<Arc<dyn Hook>>, AgentError> {
        let session = self.clone();
        let packages = blocking(move || session.packages()).await?;
        let mut hooks = Vec::new();
        for package in &*packages {
            let own = rooted(&package.contents.hooks, &package.directory);
            let (home, name) = (self.home.clone(), package.name.clone());
            // What was compared at the beginning of the run may have changed since.
            let check: Check = Arc::new(move || -> BoxFuture<'static, Result<(), String>> {
                let (home, name) = (home.clone(), name.clone());
                Box::pin(async move {
                    let checked = blocking(move || home.check_package(&name)).await;
                    checked.and_then(|checked| checked).map_err(|error| error.message)
                })
            });
            let of_package = (package.directory.as_path(), &check);
            hooks.extend(package_hooks(&own, &self.home.paths, of_package, run.clone())?);
            for hook in &package.contents.claude_hooks {
                let Some(event) = ClaudeEvent::named(&hook.event) else { continue };
                let (line, limit) = (hook.command.as_str(), hook.timeout_seconds);
                let wanted = (event, hook.matcher.as_deref());
                let paths = &self.home.paths;
                hooks.push(claude_hook(wanted, (line, limit), paths, of_package, run.clone())?);
            }
        }
        Ok(hooks)
    }

    /// The MCP servers of the packages, each with its package. Blocks.
    pub(crate) fn package_servers(&self) -> Vec<(String, McpServerConfig, String)> {
        let mut found = Vec::new();
        for package in &*self.packages() {
            for server in &package.contents.servers {
                let name = server_name(&package.name, &server.name);
                let mut entry = server.entry.clone();
                with_root(&mut entry, &package.directory);
                let sandbox = asked_sandbox(&entry, &package.directory);
                let file = Value::Object(Map::from_iter([(
                    "mcpServers".to_owned(),
                    json!({ name.as_str(): entry }),
                )]));
                let Some(mut config) =
                    servers_of_text(&file.to_string(), &package.directory, &self.home.environment)
                        .into_iter()
                        .next()
                        .map(|(_, config)| config)
                else {
                    tracing::warn!(package = %package.name, server = %server.name, "an MCP server of a package cannot be used");
                    continue;
                };
                match serde_json::from_value(sandbox) {
                    Ok(sandbox) => config.sandbox = sandbox,
                    Err(error) => {
                        tracing::warn!(package = %package.name, server = %server.name, %error, "its sandbox cannot be used");
                        continue;
                    }
                }
                // A server may change the directory in which it starts, and a package must not change.
                config.cwd = None;
                found.push((name, config, package.name.clone()));
            }
        }
        found
    }
}

/// How the texts of two packages differ, line by line.
pub fn differences(before: &Tree, after: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, entry) in after.files() {
        let old = before.get(path).and_then(TreeEntry::text).unwrap_or_default();
        let Some(new) = entry.text().filter(|new| *new != old) else { continue };
        let difference = text_diff(path, old, new).unwrap_or_default();
        lines.extend(difference.lines().map(escape));
    }
    lines
}

/// The name of a server here, which names its package.
fn server_name(package: &str, server: &str) -> String {
    let server = plain_name(server).unwrap_or_else(|| "server".to_owned());
    let full = if server == package { server } else { format!("{package}-{server}") };
    if full.len() <= MAX_SERVER_NAME && full != "mcp" {
        return full;
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, full.as_bytes());
    let short: String = full.chars().take(MAX_SERVER_NAME - 6).collect();
    format!("{}-{}", short.trim_end_matches('-'), &myclaw_files::hex(digest.as_ref())[..5])
}

/// What a server may do: what its package asked for, except to be without a sandbox; its own files may be read.
fn asked_sandbox(entry: &Value, root: &Path) -> Value {
    let mut sandbox = entry["sandbox"].as_object().cloned().unwrap_or_default();
    sandbox.remove("enabled");
    let mut readable =
        sandbox.get("readOnly").and_then(Value::as_array).cloned().unwrap_or_default();
    readable.push(json!(root));
    sandbox.insert("readOnly".to_owned(), Value::Array(readable));
    Value::Object(sandbox)
}

/// Puts the directory of the package in the place of its variable.
fn with_root(value: &mut Value, root: &Path) {
    match value {
        Value::String(text) => *text = text.replace(ROOT, &root.display().to_string()),
        Value::Array(items) => items.iter_mut().for_each(|item| with_root(item, root)),
        Value::Object(fields) => fields.values_mut().for_each(|field| with_root(field, root)),
        _ => {}
    }
}

/// The hooks of a package: its own programs are in its directory. A line for the shell finds it in the variable.
fn rooted(hooks: &HooksConfig, root: &Path) -> HooksConfig {
    let mut own = hooks.clone();
    let change = |line: &mut CommandLine| {
        if let CommandLine::Program(words) = line {
            for word in words.iter_mut() {
                *word = word.replace(ROOT, &root.display().to_string());
            }
            if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
                *program = root.join(program.as_str()).display().to_string();
            }
        }
    };
    for list in [
        &mut own.before_agent_start,
        &mut own.context,
        &mut own.before_session_compact,
        &mut own.session_compact,
        &mut own.agent_end,
    ] {
        list.iter_mut().for_each(|hook| change(&mut hook.command));
    }
    for list in [&mut own.tool_call, &mut own.tool_result] {
        list.iter_mut().for_each(|hook| change(&mut hook.command));
    }
    own
}
