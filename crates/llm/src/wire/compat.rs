//! How hosts of the Chat Completions format differ, as data.
//!
//! A host is known by its address or, where that says nothing (a proxy, a port on this machine), by the provider's
//! name. Whoever is in no row gets what most hosts understand.

use url::Url;

pub use crate::wire::tool_ids::ToolIdRule;

use crate::Model;
use crate::wire::endpoint::host_label;

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

/// How counters come with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamUsage {
    /// Only if `stream_options.include_usage` asks for them.
    OnRequest,
    /// Always; the host may refuse to be asked.
    Always,
}

/// Whether a model's own reasoning goes back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// Never.
    Never,
    /// As `reasoning_content`, while the tool calls of one turn go on; the host refuses the request without it.
    WithinTurn,
}

/// What one host wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compat {
    /// The field that limits the output.
    pub output_limit: OutputLimitField,
    /// The role of the system prompt.
    pub system_role: SystemRole,
    /// How counters are asked for.
    pub stream_usage: StreamUsage,
    /// What ids of tool calls may look like.
    pub tool_ids: ToolIdRule,
    /// Whether reasoning goes back.
    pub reasoning_replay: ReasoningReplay,
    /// Fields of a delta that carry reasoning; the first that is not empty counts, because some hosts send the same
    /// text under two names.
    pub reasoning_fields: &'static [ReasoningField],
}

/// What the settings say about a host, where that is not what its row says.
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

const REASONING_CONTENT_FIRST: &[ReasoningField] =
    &[ReasoningField::ReasoningContent, ReasoningField::Reasoning, ReasoningField::ReasoningText];
const REASONING_FIRST: &[ReasoningField] =
    &[ReasoningField::Reasoning, ReasoningField::ReasoningContent, ReasoningField::ReasoningText];

/// What a host in no row gets. 40 bytes is the shortest limit on ids known among hosts without a form of their own.
const COMMON: Compat = Compat {
    output_limit: OutputLimitField::MaxTokens,
    system_role: SystemRole::System,
    stream_usage: StreamUsage::OnRequest,
    tool_ids: ToolIdRule::Token(40),
    reasoning_replay: ReasoningReplay::Never,
    reasoning_fields: REASONING_CONTENT_FIRST,
};

/// One row: a host (or any host below it) and the provider names that mean the same.
struct HostRow {
    host: &'static str,
    providers: &'static [&'static str],
    compat: Compat,
}

/// The hosts, from their API references. Ollama, llama.cpp, LM Studio and vLLM have no address of their own.
const HOSTS: &[HostRow] = &[
    HostRow {
        host: "api.openai.com",
        providers: &["openai"],
        compat: Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            system_role: SystemRole::DeveloperWhenReasoning,
            ..COMMON
        },
    },
    HostRow {
        host: "openai.azure.com",
        providers: &["azure", "azure-openai"],
        compat: Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            system_role: SystemRole::DeveloperWhenReasoning,
            ..COMMON
        },
    },
    HostRow {
        host: "openrouter.ai",
        providers: &["openrouter"],
        compat: Compat { reasoning_fields: REASONING_FIRST, ..COMMON },
    },
    HostRow {
        host: "api.groq.com",
        providers: &["groq"],
        compat: Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            reasoning_fields: REASONING_FIRST,
            ..COMMON
        },
    },
    HostRow {
        host: "api.cerebras.ai",
        providers: &["cerebras"],
        compat: Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            reasoning_fields: REASONING_FIRST,
            ..COMMON
        },
    },
    HostRow { host: "api.x.ai", providers: &["xai", "grok"], compat: COMMON },
    HostRow {
        host: "api.mistral.ai",
        providers: &["mistral"],
        compat: Compat {
            stream_usage: StreamUsage::Always,
            tool_ids: ToolIdRule::NineAlphanumeric,
            ..COMMON
        },
    },
    HostRow {
        host: "api.deepseek.com",
        providers: &["deepseek"],
        compat: Compat { reasoning_replay: ReasoningReplay::WithinTurn, ..COMMON },
    },
    HostRow {
        host: "api.moonshot.ai",
        providers: &["moonshot", "moonshotai", "kimi"],
        compat: Compat { reasoning_replay: ReasoningReplay::WithinTurn, ..COMMON },
    },
    HostRow {
        host: "generativelanguage.googleapis.com",
        providers: &["google", "gemini"],
        compat: Compat { tool_ids: ToolIdRule::Token(64), ..COMMON },
    },
    HostRow {
        host: "",
        providers: &["ollama"],
        compat: Compat { reasoning_fields: REASONING_FIRST, ..COMMON },
    },
    HostRow { host: "", providers: &["llama.cpp", "llamacpp", "llama-cpp"], compat: COMMON },
    HostRow { host: "", providers: &["lmstudio", "lm-studio"], compat: COMMON },
    HostRow {
        host: "",
        providers: &["vllm"],
        compat: Compat { reasoning_fields: REASONING_FIRST, ..COMMON },
    },
];

impl Compat {
    /// What the host of `model` wants.
    pub fn of(model: &Model) -> Self {
        let host =
            Url::parse(model.base_url.trim()).map(|url| host_label(&url)).unwrap_or_default();
        let by_host =
            HOSTS.iter().find(|row| !row.host.is_empty() && is_host_or_below(&host, row.host));
        let by_name = || {
            HOSTS.iter().find(|row| {
                row.providers.iter().any(|name| name.eq_ignore_ascii_case(&model.provider))
            })
        };
        by_host.or_else(by_name).map_or(COMMON, |row| row.compat).with(&model.quirks.compat)
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
