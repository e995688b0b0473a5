//! Errors that edits add, from language servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values;

/// Milliseconds that an edit waits: pyright answers within one second once it runs.
const DEFAULT_WAIT_MS: u64 = 2_000;
/// An edit that waits longer disturbs more than an error that is found later.
const MAX_WAIT_MS: u64 = 10_000;
/// Minutes without an edit after which a server is ended.
const DEFAULT_IDLE_MINUTES: u64 = 10;
/// A day.
const MAX_IDLE_MINUTES: u64 = 1_440;
/// What rust-analyzer takes in a large workspace.
const DEFAULT_MEMORY_MB: u64 = 4_096;
/// Less than this no server needs.
const LEAST_MEMORY_MB: u64 = 100;
/// A terabyte.
const MAX_MEMORY_MB: u64 = 1 << 20;

/// What the model is told of the errors that its edits add, as installed language servers report them: rust-analyzer,
/// pyright, gopls and typescript-language-server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DiagnosticsConfig {
    /// Whether language servers are started at all.
    pub enabled: bool,
    /// Milliseconds that an edit waits for the errors; 100 to 10000.
    #[serde(deserialize_with = "values::within::<_, _, 100, MAX_WAIT_MS>")]
    #[schemars(range(min = 100, max = MAX_WAIT_MS))]
    pub wait_ms: u64,
    /// Minutes without an edit after which a server is ended; 1 to 1440.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_IDLE_MINUTES>")]
    #[schemars(range(min = 1, max = MAX_IDLE_MINUTES))]
    pub idle_minutes: u64,
    /// Megabytes that a server may take before it is ended; 100 to 1048576.
    #[serde(deserialize_with = "values::within::<_, _, LEAST_MEMORY_MB, MAX_MEMORY_MB>")]
    #[schemars(range(min = LEAST_MEMORY_MB, max = MAX_MEMORY_MB))]
    pub memory_mb: u64,
    /// Directories of projects that you trust: there a server may run what the project names, such as build scripts and macros.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<values::NonBlankText>")]
    pub trusted_projects: Vec<TrustedProject>,
}

/// The directory of a project that the owner trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrustedProject(#[serde(deserialize_with = "values::non_blank")] pub String);

impl Default for DiagnosticsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            wait_ms: DEFAULT_WAIT_MS,
            idle_minutes: DEFAULT_IDLE_MINUTES,
            memory_mb: DEFAULT_MEMORY_MB,
            trusted_projects: Vec::new(),
        }
    }
}
