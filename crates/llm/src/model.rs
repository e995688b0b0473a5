//! What is known about a model.

use serde::{Deserialize, Serialize};

use crate::{Quirks, ThinkingLevels};

/// The wire formats. Differences between hosts of one format are data, not another variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API, spoken by most other hosts.
    #[default]
    OpenaiCompletions,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// Google's Generative Language API, which AI Studio and Vertex AI both speak.
    GoogleGenerativeAi,
    /// Amazon Bedrock's Converse API.
    BedrockConverse,
    /// A model inside this process, such as `builtin/demo`.
    Builtin,
}

impl Api {
    /// The name of the format, as the config file writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::GoogleGenerativeAi => "google-generative-ai",
            Self::BedrockConverse => "bedrock-converse",
            Self::Builtin => "builtin",
        }
    }

    /// Whether requests in this format use [`ThinkingForm`](crate::ThinkingForm).
    pub fn has_thinking_form(self) -> bool {
        matches!(self, Self::AnthropicMessages | Self::BedrockConverse)
    }
}

/// A kind of input block that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// Text.
    Text,
    /// Images.
    Image,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache.
    pub cache_write: f64,
}

/// One model at one provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The id that the provider knows it by.
    pub id: String,
    /// Provider name, such as `anthropic`.
    pub provider: String,
    /// Wire format.
    pub api: Api,
    /// Where requests go, without the format's own path; empty for [`Api::Builtin`].
    pub base_url: String,
    /// Whether it can think before it answers.
    pub reasoning: bool,
    /// The thinking levels that it offers; used only with `reasoning`.
    #[serde(default)]
    pub thinking_levels: ThinkingLevels,
    /// What it takes as input.
    pub input: Vec<InputKind>,
    /// What it costs; `None` when unknown, and zero when it is free.
    pub price: Option<Price>,
    /// Context window in tokens.
    pub context_window: u64,
    /// Largest answer in tokens; zero when unknown.
    pub max_output: u64,
    /// What requests to it need in addition. Not serialised: it may hold secrets.
    #[serde(skip)]
    pub quirks: Quirks,
}
