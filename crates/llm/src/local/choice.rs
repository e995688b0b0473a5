//! Chooses one of a server's models if the user named none.

/// Parts of the names of models that embed or rank text and cannot chat. LM Studio lists one even when nothing else is
/// loaded.
const NOT_FOR_CHAT: &[&str] = &["embed", "rerank", "bge-", "minilm", "whisper"];

/// Beginnings of the names under which Ollama offers models that were trained to call tools. Ollama lists models by
/// date, and the newest may be one that cannot call tools at all.
const TOOL_FAMILIES: &[&str] = &[
    "qwen3",
    "gpt-oss",
    "qwen2.5",
    "llama3.1",
    "llama3.2",
    "llama3.3",
    "llama4",
    "mistral",
    "ministral",
    "devstral",
    "granite",
    "command-r",
    "hermes3",
    "glm-4",
    "nemotron",
    "smollm2",
    "cogito",
    "deepseek-v3",
    "kimi",
    "minimax",
];

/// Parts of names that say a model follows instructions, where the family is not known.
const INSTRUCTED: &[&str] = &["instruct", "-it", "chat", "tool"];

/// The models that can chat. The server's own order is kept, but for Ollama models of a known tool-calling family come
/// first, then those whose name says that they follow instructions.
pub(super) fn in_order_of_preference(provider: &str, listed: Vec<String>) -> Vec<String> {
    let mut models: Vec<String> = listed.into_iter().filter(|id| can_chat(id)).collect();
    if provider == "ollama" {
        models.sort_by_key(|id| preference(id));
    }
    models
}

fn can_chat(id: &str) -> bool {
    let name = id.to_ascii_lowercase();
    !NOT_FOR_CHAT.iter().any(|part| name.contains(part))
}

/// Ordered from most to least preferred.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Preference {
    CallsTools,
    FollowsInstructions,
    Unknown,
}

fn preference(id: &str) -> Preference {
    let id = id.to_ascii_lowercase();
    // The namespace of a user or registry may precede the name.
    let name = id.rsplit('/').next().unwrap_or_default();
    if TOOL_FAMILIES.iter().any(|family| name.starts_with(family)) {
        Preference::CallsTools
    } else if INSTRUCTED.iter().any(|part| name.contains(part)) {
        Preference::FollowsInstructions
    } else {
        Preference::Unknown
    }
}
