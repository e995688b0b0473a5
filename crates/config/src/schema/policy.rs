//! The rules of the file about tools and commands. `myclaw-policy` applies them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::MAX_SECONDS;
use super::sandbox::ConfinementConfig;
use super::values::{self, NonBlankText};

/// Seconds until an unanswered question counts as answered with no: long enough to come back to the desk, short enough
/// that a session does not wait for a day.
const DEFAULT_APPROVAL_SECONDS: u64 = 300;

/// Which tools may run. Every level of the config has such rules, and a tool must be permitted by all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolRules {
    /// A named set of tools. Tools outside it are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// The only tools that may run: names, names with `*`, and groups such as `group:fs`. Leave it out to set no
    /// limit; an empty list denies every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools that may not run, written as in `allow`. A tool in both lists is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
    /// Tools whose calls need your approval, written as in `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
}

/// Which tools and commands an agent may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentToolRules {
    /// A named set of tools. Tools outside it are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// The only tools that may run: names, names with `*`, and groups such as `group:fs`. Leave it out to set no
    /// limit; an empty list denies every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools that may not run, written as in `allow`. A tool in both lists is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
    /// Tools whose calls need your approval, written as in `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
    /// Which commands may run.
    pub exec: ExecRules,
    /// Further rules for models of a provider, by its name, or for one model, as `provider/model`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_provider: BTreeMap<String, ToolRules>,
}

impl AgentToolRules {
    /// The rules for tools alone.
    pub fn rules(&self) -> ToolRules {
        let Self { profile, allow, deny, ask, .. } = self.clone();
        ToolRules { profile, allow, deny, ask }
    }
}

/// How questions about tool calls are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ApprovalConfig {
    /// Seconds until a question that nobody answers counts as answered with no; at most 86400 (a day).
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub timeout_seconds: u64,
    /// Who may answer questions in chats, as `channel:id`: you. Nobody may by default; then questions are answered in the
    /// web chat and in a terminal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// A chat of yours, as `channel:id`, in which the questions of other people's chats are asked as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_to: Option<String>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        let (owners, send_to) = Default::default();
        Self { timeout_seconds: DEFAULT_APPROVAL_SECONDS, owners, send_to }
    }
}

/// A named set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ToolProfile {
    /// The status of the session.
    Minimal,
    /// Files, commands, sessions, memory and images.
    Coding,
    /// Messages and sessions.
    Messaging,
    /// Every tool.
    Full,
    /// The first eight built-in tools: files, search and bash.
    Myclaw,
    /// The four of the Pi agent: read, bash, edit and write.
    Pi,
}

impl ToolProfile {
    /// The name used in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Coding => "coding",
            Self::Messaging => "messaging",
            Self::Full => "full",
            Self::Myclaw => "myclaw",
            Self::Pi => "pi",
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

impl SandboxRules {
    /// These rules with what an agent's own entry changes.
    #[must_use]
    pub fn with(&self, own: &AgentSandboxRules) -> Self {
        let mut rules = self.clone();
        rules.mode = own.mode.unwrap_or(rules.mode);
        rules.allowlist = own.allowlist.clone().or(rules.allowlist);
        rules.denylist = own.denylist.clone().or(rules.denylist);
        rules.confinement = own.confinement.clone().or(rules.confinement);
        rules
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum CommandRule {
    /// A program with any arguments: `git`, `/usr/bin/git` or `/opt/tools/*`.
    Program(#[schemars(with = "NonBlankText")] String),
    /// A program with arguments.
    WithArguments(ProgramRule),
}

impl<'de> Deserialize<'de> for CommandRule {
    /// An untagged enum would also take an object that is written as a list.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandRuleVisitor)
    }
}

struct CommandRuleVisitor;

impl<'de> Visitor<'de> for CommandRuleVisitor {
    type Value = CommandRule;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a program as a string or an object")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<CommandRule, E> {
        values::non_blank(value.into_deserializer()).map(CommandRule::Program)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<CommandRule, A::Error> {
        ProgramRule::deserialize(MapAccessDeserializer::new(entries))
            .map(CommandRule::WithArguments)
    }
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
