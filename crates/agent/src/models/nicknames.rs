//! What providers are called elsewhere.

use myclaw_llm::provider_info;

/// Other common names of providers, each with the name that the config uses.
const NICKNAMES: [(&str, &str); 15] = [
    ("azure", "azure-openai"),
    ("bedrock", "amazon-bedrock"),
    ("chatgpt", "openai"),
    ("claude", "anthropic"),
    ("codex", "openai"),
    ("copilot", "github-copilot"),
    ("gemini", "google"),
    ("github", "github-copilot"),
    ("google-ai", "google"),
    ("grok", "xai"),
    ("hf", "huggingface"),
    ("kimi", "moonshot"),
    ("vercel", "vercel-ai-gateway"),
    ("vertex", "google-vertex"),
    ("zhipu", "zai"),
];

/// The config's name of the provider that is also known as `name`.
pub fn meant_provider(name: &str) -> Option<&'static str> {
    let nickname = NICKNAMES.iter().find(|(nickname, _)| nickname.eq_ignore_ascii_case(name));
    nickname.map(|(_, provider)| *provider).filter(|provider| provider_info(provider).is_some())
}
