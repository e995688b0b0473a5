//! The address, the wire format and the usual key variables of each known provider.

use crate::Api;

/// Whether a provider answers without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyNeed {
    /// It refuses requests without one.
    Required,
    /// The cloud's own credentials can replace it; they are looked for when the call is made.
    Cloud,
    /// A server on this machine, or no server at all.
    None,
}

/// What is known about a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderInfo {
    /// Its name in `provider/model`.
    pub name: &'static str,
    /// Where requests go unless the config says otherwise, without the wire format's own path; `{region}` is replaced
    /// by the region of the caller's AWS config. Empty for [`Api::Builtin`], and if every customer has an address of
    /// their own.
    pub base_url: &'static str,
    /// Its wire format, also of servers at other addresses that copy it; the catalog names another for some models.
    pub api: Api,
    /// Environment variables that may hold its key; the first that is set is used.
    pub key_variables: &'static [&'static str],
    /// Whether it requires a key.
    pub key: KeyNeed,
    /// The model that is used if only a key is set; `None` if it depends on what the server has loaded.
    pub default_model: Option<&'static str>,
}

/// The known providers, in the order in which they are preferred when several have a key.
pub(super) const PROVIDERS: &[ProviderInfo] = &[
    ProviderInfo {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        api: Api::AnthropicMessages,
        key_variables: &["ANTHROPIC_API_KEY"],
        key: KeyNeed::Required,
        default_model: Some("claude-sonnet-4-6"),
    },
    hosted("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"], "gpt-5.1"),
    ProviderInfo {
        api: Api::GoogleGenerativeAi,
        ..hosted(
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            "gemini-2.5-flash",
        )
    },
    hosted(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        "anthropic/claude-sonnet-4.6",
    ),
    hosted("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "openai/gpt-oss-120b"),
    hosted("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], "mistral-medium-latest"),
    hosted("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], "deepseek-flash"),
    hosted("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], "grok-4.3"),
    hosted("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], "openai/gpt-oss-120b"),
    hosted(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
        "accounts/fireworks/models/glm-5p3-flash",
    ),
    hosted("cerebras", "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"], "gpt-oss-120b"),
    hosted("moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"], "kimi-k3"),
    hosted("zai", "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"], "glm-5.3"),
    ProviderInfo {
        api: Api::AnthropicMessages,
        ..hosted(
            "minimax",
            "https://api.minimax.io/anthropic/v1",
            &["MINIMAX_API_KEY"],
            "MiniMax-M3",
        )
    },
    hosted(
        "huggingface",
        "https://router.huggingface.co/v1",
        &["HF_TOKEN"],
        "deepseek-ai/DeepSeek-V4.1-Flash",
    ),
    hosted(
        "vercel-ai-gateway",
        "https://ai-gateway.vercel.sh/v1",
        &["AI_GATEWAY_API_KEY"],
        "anthropic/claude-sonnet-4.6",
    ),
    ProviderInfo {
        default_model: None,
        ..hosted("azure-openai", "", &["AZURE_OPENAI_API_KEY"], "")
    },
    ProviderInfo {
        default_model: None,
        ..hosted("github-copilot", "https://api.githubcopilot.com", &["COPILOT_GITHUB_TOKEN"], "")
    },
    // It may be chosen if the key for Bedrock alone is set. The inference profile works in every region.
    ProviderInfo {
        default_model: Some("global.anthropic.claude-sonnet-4-6"),
        ..cloud(
            "amazon-bedrock",
            "https://bedrock-runtime.{region}.amazonaws.com",
            Api::BedrockConverse,
            &["AWS_BEARER_TOKEN_BEDROCK"],
        )
    },
    cloud(
        "google-vertex",
        "https://aiplatform.googleapis.com",
        Api::GoogleGenerativeAi,
        &["GOOGLE_CLOUD_API_KEY"],
    ),
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
    ProviderInfo {
        name: "builtin",
        base_url: "",
        api: Api::Builtin,
        key_variables: &[],
        key: KeyNeed::None,
        default_model: Some("demo"),
    },
];

/// A provider that speaks the Chat Completions format and requires a key.
const fn hosted(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    default_model: &'static str,
) -> ProviderInfo {
    ProviderInfo {
        name,
        base_url,
        api: Api::OpenaiCompletions,
        key_variables,
        key: KeyNeed::Required,
        default_model: Some(default_model),
    }
}

/// A cloud whose own credentials can replace a key. Such credentials alone never select it, because they serve many
/// other purposes.
const fn cloud(
    name: &'static str,
    base_url: &'static str,
    api: Api,
    key_variables: &'static [&'static str],
) -> ProviderInfo {
    ProviderInfo { name, base_url, api, key_variables, key: KeyNeed::Cloud, default_model: None }
}

/// A model server on this machine, at its default port.
const fn local(name: &'static str, base_url: &'static str) -> ProviderInfo {
    ProviderInfo {
        name,
        base_url,
        api: Api::OpenaiCompletions,
        key_variables: &[],
        key: KeyNeed::None,
        default_model: None,
    }
}

/// What is known about the provider of that exact name.
pub fn provider_info(name: &str) -> Option<&'static ProviderInfo> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// The most preferred provider that has a default model and a key variable for which `is_set` returns true, with the
/// name of that variable. The caller looks the variables up, so that this module needs no environment.
pub fn first_provider_with_key(
    is_set: impl Fn(&str) -> bool,
) -> Option<(&'static ProviderInfo, &'static str)> {
    PROVIDERS.iter().filter(|provider| provider.default_model.is_some()).find_map(|provider| {
        let variable = provider.key_variables.iter().find(|variable| is_set(variable))?;
        Some((provider, *variable))
    })
}
