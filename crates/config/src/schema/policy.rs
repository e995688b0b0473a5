//! Which tools and commands may run, as the file says it. What the rules mean is the work of `myclaw-policy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sandbox::ConfinementConfig;
use super::values::{self, NonBlankText};

/// Which tools may run. Every level of the config has such rules, and a tool must be permitted by all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolRules {
    /// A named set of tools. Tools outside it are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PolicyProfile>,
    /// The only tools that may run: names, names with `*`, and groups such as `group:fs`. Leave it out to set no
    /// limit; an empty list denies every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools that may not run, written as in `allow`. A tool in both lists is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
}

/// A named set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PolicyProfile {
    /// The status of the session.
    Minimal,
    /// Files, commands, sessions, memory and images.
    Coding,
    /// Messages and sessions.
    Messaging,
    /// Every tool.
    Full,
}

impl PolicyProfile {
    /// The name used in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Coding => "coding",
            Self::Messaging => "messaging",
            Self::Full => "full",
        }
    }
}

/// Which sessions are sandboxed, and what may run in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxRules {
    /// Which sessions are sandboxed.
    pub mode: SandboxMode,
    /// The only tools of a sandboxed session, instead of the built-in list; an empty list denies every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowlist: Option<Vec<String>>,
    /// Tools that a sandboxed session may not use, instead of the built-in list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denylist: Option<Vec<String>>,
    /// Which commands may run in a sandboxed session.
    pub exec: ExecRules,
    /// What the operating system enforces in a sandboxed session.
    pub confinement: ConfinementConfig,
}

/// Where the sandbox of an agent differs from that of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentSandboxRules {
    /// Which sessions are sandboxed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// The only tools of a sandboxed session, instead of the list of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowlist: Option<Vec<String>>,
    /// Tools that a sandboxed session may not use, instead of the list of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denylist: Option<Vec<String>>,
    /// What the operating system enforces in a sandboxed session.
    pub confinement: ConfinementConfig,
}

/// Which sessions are sandboxed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SandboxMode {
    /// No session.
    Off,
    /// Every session but the owner's main one.
    #[default]
    NonMain,
    /// Every session.
    All,
}

impl SandboxMode {
    /// The name used in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NonMain => "non-main",
            Self::All => "all",
        }
    }
}

/// Which commands may run. Every level of the config has such rules, and the strictest answer counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecRules {
    /// How commands are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<ExecSecurity>,
    /// When the user is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<ExecAsk>,
    /// The commands that `"security": "allowlist"` lets through; an empty list lets nothing through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowlist: Option<Vec<CommandRule>>,
}

/// How commands are checked.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ExecSecurity {
    /// Every command may run.
    Full,
    /// Only commands of the allowlist may run.
    Allowlist,
    /// No command may run.
    Deny,
}

/// When the user is asked before a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ExecAsk {
    /// Never: what the allowlist does not let through is denied.
    Off,
    /// When the allowlist does not let a command through.
    OnMiss,
    /// Before every command.
    Always,
}

/// One entry of the allowlist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum CommandRule {
    /// A program with any arguments: `git`, `/usr/bin/git` or `/opt/tools/*`.
    Program(
        #[serde(deserialize_with = "values::non_blank")]
        #[schemars(with = "NonBlankText")]
        String,
    ),
    /// A program with arguments.
    WithArguments(ProgramRule),
}

/// A program that may run with certain arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgramRule {
    /// The program: a name, a path, or a path with `*`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub program: String,
    /// One pattern for each argument, in which `*` stands for any characters. `...` at the end stands for any further
    /// arguments. Leave it out to permit any arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
}
