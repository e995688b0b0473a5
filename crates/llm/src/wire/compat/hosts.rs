//! The hosts, one row each, based on their API references and on what they refuse.

use super::*;

/// One row: hosts (or any host below them) and the provider names that mean the same.
pub(super) struct HostRow {
    pub(super) hosts: &'static [&'static str],
    pub(super) providers: &'static [&'static str],
    pub(super) compat: Compat,
}

const REASONING_CONTENT_FIRST: &[ReasoningField] =
    &[ReasoningField::ReasoningContent, ReasoningField::Reasoning, ReasoningField::ReasoningText];
const REASONING_FIRST: &[ReasoningField] =
    &[ReasoningField::Reasoning, ReasoningField::ReasoningContent, ReasoningField::ReasoningText];

/// An unknown host. 40 bytes is the shortest known limit on ids among hosts without a form of their own.
pub(super) const COMMON: Compat = Compat {
    output_limit: OutputLimitField::MaxTokens,
    system_role: SystemRole::System,
    stream_usage: StreamUsage::OnRequest,
    tool_ids: ToolIdRule::Token(40),
    after_results: AfterResults::Anything,
    thinking_field: ThinkingField::None,
    reasoning_replay: ReasoningReplay::Never,
    reasoning_fields: REASONING_CONTENT_FIRST,
    inline_thinking: InlineThinking::Never,
    addressing: Addressing::Usual,
    counts_programs: false,
};

/// An unknown server on this machine: it runs open models, whose thinking it may leave in the text.
pub(super) const LOCAL: Compat = Compat { inline_thinking: InlineThinking::Tagged, ..COMMON };

/// A host of open models that takes an effort.
const OPEN_MODELS: Compat = Compat {
    thinking_field: ThinkingField::ReasoningEffort,
    reasoning_replay: ReasoningReplay::WhereGiven,
    ..LOCAL
};

/// A server that passes on what the template of the model reads.
const TEMPLATES: Compat = Compat {
    thinking_field: ThinkingField::TemplateArguments,
    reasoning_replay: ReasoningReplay::WhereGiven,
    ..LOCAL
};

/// A gateway that keeps the signatures and encrypted parts of the models behind it.
const GATEWAY: Compat = Compat {
    thinking_field: ThinkingField::ReasoningObject,
    reasoning_replay: ReasoningReplay::Details,
    reasoning_fields: REASONING_FIRST,
    ..COMMON
};

/// It hides the reasoning of its models in this format, so there is nothing to send back.
const OPENAI: Compat = Compat {
    output_limit: OutputLimitField::MaxCompletionTokens,
    system_role: SystemRole::DeveloperWhenReasoning,
    thinking_field: ThinkingField::ReasoningEffort,
    ..COMMON
};

/// Hosts that switch thinking on and off, and require it in requests while tools are called.
const SWITCHED: Compat = Compat {
    thinking_field: ThinkingField::ThinkingType,
    reasoning_replay: ReasoningReplay::WithinTurn,
    ..COMMON
};

/// Ollama, llama.cpp, LM Studio, vLLM and LiteLLM have no address of their own.
pub(super) const HOSTS: &[HostRow] = &[
    row(&["api.openai.com"], &["openai"], OPENAI),
    row(
        &["openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"],
        &["azure", "azure-openai"],
        Compat { addressing: Addressing::Azure, ..OPENAI },
    ),
    row(&["openrouter.ai"], &["openrouter"], Compat { counts_programs: true, ..GATEWAY }),
    row(
        &["api.groq.com"],
        &["groq"],
        Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            reasoning_fields: REASONING_FIRST,
            ..OPEN_MODELS
        },
    ),
    row(
        &["api.cerebras.ai"],
        &["cerebras"],
        Compat {
            output_limit: OutputLimitField::MaxCompletionTokens,
            reasoning_fields: REASONING_FIRST,
            ..OPEN_MODELS
        },
    ),
    // Some of its models think by default, and refuse the field.
    row(
        &["api.x.ai"],
        &["xai", "grok"],
        Compat { reasoning_replay: ReasoningReplay::WhereGiven, ..COMMON },
    ),
    row(&["ai-gateway.vercel.sh"], &["vercel-ai-gateway"], GATEWAY),
    row(
        &["api.mistral.ai"],
        &["mistral"],
        Compat {
            stream_usage: StreamUsage::Always,
            tool_ids: ToolIdRule::NineAlphanumeric,
            after_results: AfterResults::NoUser,
            ..COMMON
        },
    ),
    row(&["api.deepseek.com"], &["deepseek"], SWITCHED),
    // Its models number their calls (`functions.read:0`), and read the numbers.
    row(
        &["api.moonshot.ai", "api.moonshot.cn"],
        &["moonshot", "moonshotai", "kimi"],
        Compat { tool_ids: ToolIdRule::Printable(64), ..SWITCHED },
    ),
    row(&["api.z.ai", "open.bigmodel.cn"], &["zai", "z.ai", "zhipu"], SWITCHED),
    row(
        &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
        &["qwen", "dashscope"],
        Compat {
            thinking_field: ThinkingField::EnableThinking,
            reasoning_replay: ReasoningReplay::WhereGiven,
            ..COMMON
        },
    ),
    row(
        &["api.together.xyz", "api.together.ai"],
        &["together"],
        Compat {
            thinking_field: ThinkingField::ReasoningSwitch,
            reasoning_replay: ReasoningReplay::WhereGiven,
            reasoning_fields: REASONING_FIRST,
            ..LOCAL
        },
    ),
    row(&["api.fireworks.ai"], &["fireworks"], OPEN_MODELS),
    row(&["router.huggingface.co"], &["huggingface"], OPEN_MODELS),
    row(&["api.perplexity.ai"], &["perplexity"], OPEN_MODELS),
    row(&["integrate.api.nvidia.com"], &["nvidia"], TEMPLATES),
    row(&["api.sambanova.ai"], &["sambanova"], TEMPLATES),
    row(
        &["githubcopilot.com", "ghe.com"],
        &["github-copilot"],
        Compat { tool_ids: ToolIdRule::Token(64), addressing: Addressing::Unversioned, ..COMMON },
    ),
    // The signatures of its thoughts come and go with the calls (`extra_content`), and the thoughts do not come.
    row(
        &["generativelanguage.googleapis.com"],
        &["google", "gemini"],
        Compat {
            tool_ids: ToolIdRule::Token(64),
            thinking_field: ThinkingField::ReasoningEffort,
            ..COMMON
        },
    ),
    row(&[], &["ollama"], Compat { reasoning_fields: REASONING_FIRST, ..OPEN_MODELS }),
    row(
        &[],
        &["llama.cpp", "llamacpp", "llama-cpp"],
        Compat { reasoning_replay: ReasoningReplay::WithinTurn, ..TEMPLATES },
    ),
    row(&[], &["lmstudio", "lm-studio"], OPEN_MODELS),
    row(&[], &["vllm"], Compat { reasoning_fields: REASONING_FIRST, ..TEMPLATES }),
    row(
        &[],
        &["litellm"],
        Compat {
            thinking_field: ThinkingField::ReasoningEffort,
            reasoning_replay: ReasoningReplay::WhereGiven,
            ..COMMON
        },
    ),
];

const fn row(
    hosts: &'static [&'static str],
    providers: &'static [&'static str],
    compat: Compat,
) -> HostRow {
    HostRow { hosts, providers, compat }
}
