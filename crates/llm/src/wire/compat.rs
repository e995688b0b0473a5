//! Differences between hosts of the Chat Completions format, as data.
//!
//! A host is recognised by its address or, if that says nothing (a proxy, a port on this machine), by the provider's
//! name. An unknown host gets what most hosts understand.

mod hosts;

use url::Url;

pub use crate::wire::tool_ids::ToolIdRule;

use crate::Model;
use crate::wire::is_loopback;

use hosts::{COMMON, HOSTS, LOCAL};

/// The field that limits the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimitField {
    /// `max_tokens`, the older name, which most hosts know.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models insist on.
    MaxCompletionTokens,
}

/// The role that carries the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer` for models that reason, else `system`.
    DeveloperWhenReasoning,
}

impl SystemRole {
    pub(super) fn name(self, model: &Model) -> &'static str {
        match self {
            Self::DeveloperWhenReasoning if model.reasoning => "developer",
            Self::DeveloperWhenReasoning | Self::System => "system",
        }
    }
}

/// How a stream reports token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamUsage {
    /// Only if `stream_options.include_usage` asks for them.
    OnRequest,
    /// Always; the host may refuse the option.
    Always,
}

/// Whether a model's own reasoning goes back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// Never.
    Never,
    /// In the host's own field, while the tool calls of one turn go on. The host refuses a call without the field, so it
    /// is sent with every call of a model that thinks, even if it is empty.
    WithinTurn,
    /// The same, but only where there was reasoning.
    WhereGiven,
    /// As `reasoning_details`, unchanged and always: they hold signatures and encrypted state.
    Details,
}

/// How a host is asked to think, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingField {
    /// It may refuse the field: `reasoning_effort` is sent only for a model whose words are listed.
    None,
    /// `reasoning_effort: "high"`.
    ReasoningEffort,
    /// `reasoning: {"effort": "high"}`, or `{"enabled": false}`.
    ReasoningObject,
    /// `reasoning: {"enabled": true}`, or `reasoning_effort` for a model with several levels.
    ReasoningSwitch,
    /// `thinking: {"type": "enabled"}`, or `"disabled"`, with `reasoning_effort` for a model that has words of its own.
    ThinkingType,
    /// `enable_thinking: true`.
    EnableThinking,
    /// `chat_template_kwargs`, for servers that pass it to the model's own template.
    TemplateArguments,
}

/// Whether the content may begin with reasoning as text in `<think>` tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlineThinking {
    /// It does not; a tag is the model's own text.
    Never,
    /// With some models it does.
    Tagged,
}

/// Which message may follow the results of tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterResults {
    /// Any message.
    Anything,
    /// No user message: an assistant message must stand between.
    NoUser,
}

/// The header that carries the key, and the paths that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `authorization: Bearer`, and the path of the format.
    Usual,
    /// `authorization: Bearer`, and the path of the format without a version: Copilot's.
    Unversioned,
    /// Azure's: `api-key`, with the deployment in the path or below `/openai/v1`.
    Azure,
}

/// The requirements of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compat {
    /// The field that limits the output.
    pub output_limit: OutputLimitField,
    /// The role of the system prompt.
    pub system_role: SystemRole,
    /// How counters are asked for.
    pub stream_usage: StreamUsage,
    /// The allowed form of tool-call ids.
    pub tool_ids: ToolIdRule,
    /// What may follow tool results.
    pub after_results: AfterResults,
    /// How thinking is asked for.
    pub thinking_field: ThinkingField,
    /// Whether reasoning goes back.
    pub reasoning_replay: ReasoningReplay,
    /// Fields of a delta that carry reasoning; the first that is not empty counts, because some hosts send the same
    /// text under two names.
    pub reasoning_fields: &'static [ReasoningField],
    /// Whether reasoning may stand in the content.
    pub inline_thinking: InlineThinking,
    /// The place of the key and the model in a request.
    pub addressing: Addressing,
    /// Whether it counts the programs that use it.
    pub counts_programs: bool,
}

/// Values of the config that override the row of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompatOverrides {
    /// See [`Compat::output_limit`].
    pub output_limit: Option<OutputLimitField>,
    /// See [`Compat::system_role`].
    pub system_role: Option<SystemRole>,
    /// See [`Compat::stream_usage`].
    pub stream_usage: Option<StreamUsage>,
    /// See [`Compat::tool_ids`].
    pub tool_ids: Option<ToolIdRule>,
    /// See [`Compat::reasoning_replay`].
    pub reasoning_replay: Option<ReasoningReplay>,
}

/// A name under which hosts send reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningField {
    /// `reasoning_content`: DeepSeek, llama.cpp, older vLLM, xAI, LM Studio and most others.
    ReasoningContent,
    /// `reasoning`: OpenRouter, Groq, Ollama, newer vLLM.
    Reasoning,
    /// `reasoning_text`: GitHub Copilot.
    ReasoningText,
}

impl Compat {
    /// The requirements of the host of `model`.
    pub fn of(model: &Model) -> Self {
        let url = Url::parse(model.base_url.trim()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let by_host =
            HOSTS.iter().find(|row| row.hosts.iter().any(|known| is_host_or_below(host, known)));
        let by_name = || {
            HOSTS.iter().find(|row| {
                row.providers.iter().any(|name| name.eq_ignore_ascii_case(&model.provider))
            })
        };
        let unknown = || if url.as_ref().is_some_and(is_loopback) { LOCAL } else { COMMON };
        let mut compat = by_host.or_else(by_name).map_or_else(unknown, |row| row.compat);
        // Such a host may refuse the field, unless the catalog or the config lists the words of the model.
        if compat.thinking_field == ThinkingField::None && model.thinking_levels.has_words() {
            compat.thinking_field = ThinkingField::ReasoningEffort;
        }
        compat.with(&model.quirks.compat)
    }

    fn with(self, overrides: &CompatOverrides) -> Self {
        Self {
            output_limit: overrides.output_limit.unwrap_or(self.output_limit),
            system_role: overrides.system_role.unwrap_or(self.system_role),
            stream_usage: overrides.stream_usage.unwrap_or(self.stream_usage),
            tool_ids: overrides.tool_ids.unwrap_or(self.tool_ids),
            reasoning_replay: overrides.reasoning_replay.unwrap_or(self.reasoning_replay),
            ..self
        }
    }
}

fn is_host_or_below(host: &str, parent: &str) -> bool {
    host.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests;
