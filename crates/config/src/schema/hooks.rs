//! Commands that are run around an agent's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// Seconds that a hook may take: the user waits for it.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;
/// An hour: enough to ask a person.
const MAX_TIMEOUT_SECONDS: u64 = 3_600;

/// Commands that are run around an agent's work. Each reads one JSON object from its standard input and may answer
/// with one on its standard output. They are run in the order in which they stand here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HooksConfig {
    /// Before the user's message is stored: may change it and the system prompt, or refuse the run.
    pub before_agent_start: Vec<HookCommand>,
    /// Before each model call: may change the messages that are sent.
    pub context: Vec<HookCommand>,
    /// Before a tool runs: may block the call or change its arguments.
    pub tool_call: Vec<ToolHookCommand>,
    /// After a tool ran: may change the result.
    pub tool_result: Vec<ToolHookCommand>,
    /// Before older messages become a summary: may forbid that, or give the summary.
    pub before_session_compact: Vec<HookCommand>,
    /// After older messages have become a summary.
    pub session_compact: Vec<HookCommand>,
    /// When a run is over, however it ended.
    pub agent_end: Vec<HookCommand>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookCommand {
    /// A program with its arguments, or one string for the shell.
    pub command: CommandLine,
    /// Seconds after which it is stopped and counts as failed.
    #[serde(
        default = "default_timeout_seconds",
        deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>"
    )]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
}

/// A command for the calls of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolHookCommand {
    /// A program with its arguments, or one string for the shell.
    pub command: CommandLine,
    /// Seconds after which it is stopped and counts as failed.
    #[serde(
        default = "default_timeout_seconds",
        deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>"
    )]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
    /// Names of the tools it is run for, in which `*` stands for any characters. Leave it out for all tools.
    #[serde(rename = "match", default = "every_tool", deserialize_with = "values::non_empty_list")]
    #[schemars(length(min = 1))]
    pub tools: Vec<String>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum CommandLine {
    /// For `sh -c`.
    Shell(
        #[serde(deserialize_with = "values::non_blank")]
        #[schemars(with = "NonBlankText")]
        String,
    ),
    /// A program and its arguments, without a shell.
    Program(
        #[serde(deserialize_with = "values::non_empty_list")]
        #[schemars(length(min = 1))]
        Vec<String>,
    ),
}

/// What a hook is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// See [`HooksConfig::before_agent_start`].
    BeforeAgentStart,
    /// See [`HooksConfig::context`].
    Context,
    /// See [`HooksConfig::tool_call`].
    ToolCall,
    /// See [`HooksConfig::tool_result`].
    ToolResult,
    /// See [`HooksConfig::before_session_compact`].
    BeforeSessionCompact,
    /// See [`HooksConfig::session_compact`].
    SessionCompact,
    /// See [`HooksConfig::agent_end`].
    AgentEnd,
}

impl HookEvent {
    /// The key in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgentStart => "before_agent_start",
            Self::Context => "context",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::BeforeSessionCompact => "before_session_compact",
            Self::SessionCompact => "session_compact",
            Self::AgentEnd => "agent_end",
        }
    }
}

/// A command of any event.
#[derive(Debug, Clone, Copy)]
pub struct AnyHookCommand<'a> {
    /// What is run.
    pub command: &'a CommandLine,
    /// Seconds after which it is stopped.
    pub timeout_seconds: u64,
    /// Patterns of tool names; `None` where there is no tool.
    pub tools: Option<&'a [String]>,
}

impl HooksConfig {
    /// All commands, each with its event and its place in the event's list.
    pub fn commands(&self) -> impl Iterator<Item = (HookEvent, usize, AnyHookCommand<'_>)> {
        let plain = [
            (HookEvent::BeforeAgentStart, &self.before_agent_start),
            (HookEvent::Context, &self.context),
            (HookEvent::BeforeSessionCompact, &self.before_session_compact),
            (HookEvent::SessionCompact, &self.session_compact),
            (HookEvent::AgentEnd, &self.agent_end),
        ];
        let with_tools =
            [(HookEvent::ToolCall, &self.tool_call), (HookEvent::ToolResult, &self.tool_result)];
        let plain = plain.into_iter().flat_map(|(event, commands)| {
            commands.iter().enumerate().map(move |(index, hook)| {
                let HookCommand { command, timeout_seconds } = hook;
                let timeout_seconds = *timeout_seconds;
                (event, index, AnyHookCommand { command, timeout_seconds, tools: None })
            })
        });
        let with_tools = with_tools.into_iter().flat_map(|(event, commands)| {
            commands.iter().enumerate().map(move |(index, hook)| {
                let ToolHookCommand { command, timeout_seconds, tools } = hook;
                let timeout_seconds = *timeout_seconds;
                (event, index, AnyHookCommand { command, timeout_seconds, tools: Some(tools) })
            })
        });
        plain.chain(with_tools)
    }
}

fn default_timeout_seconds() -> u64 {
    DEFAULT_TIMEOUT_SECONDS
}

fn every_tool() -> Vec<String> {
    vec!["*".to_owned()]
}
