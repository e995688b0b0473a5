//! Providers, keys, and models of one's own.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::MAX_SECONDS;
use super::values::{self, BaseUrl, ModelName, NonBlankText, SecretText};

/// The model provider that answers, with its keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// Its name, such as `anthropic`, `openai` or `openrouter`, or one of `models.providers`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub name: String,
    /// The model's id at that provider.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub model: String,
    /// Keys, at least one. When one fails the next is tried.
    #[serde(deserialize_with = "values::non_empty_list")]
    #[schemars(length(min = 1))]
    pub auth_profiles: Vec<AuthProfile>,
    /// Where requests go instead of the provider's usual address.
    #[serde(
        default,
        deserialize_with = "values::optional_url",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<BaseUrl>")]
    pub base_url: Option<String>,
}

/// One key of a provider.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthProfile {
    /// What the key is called in messages.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub id: String,
    /// The key. Better a reference such as `"${ANTHROPIC_API_KEY}"`, or where it is kept: `"!command"`, `"file:path"`,
    /// `"env:NAME"` or `"keyring:service/account"`.
    #[serde(with = "values::secret")]
    #[schemars(with = "SecretText")]
    pub api_key: SecretString,
}

/// Time limits of model calls, and models of your own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// Time limits of one model call.
    pub timeouts: ModelTimeouts,
    /// The models that come first where one is chosen, each as `provider/model`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<NonBlankText>")]
    pub favorites: Vec<ModelName>,
    /// What OpenRouter is told about the program that asks.
    pub attribution: AttributionConfig,
    /// Providers that MyClaw does not know, or models that it does not know there, by provider name.
    pub providers: BTreeMap<String, ProviderModels>,
}

/// What OpenRouter is told about the program that asks. It counts requests by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AttributionConfig {
    /// Whether it is told anything.
    pub enabled: bool,
    /// The header `HTTP-Referer`.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "BaseUrl")]
    pub url: String,
    /// The header `X-Title`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub title: String,
}

impl Default for AttributionConfig {
    fn default() -> Self {
        Self { enabled: true, url: "http://localhost".to_owned(), title: "MyClaw".to_owned() }
    }
}

/// Time limits of one model call. There is no limit on the whole call: a model may write for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelTimeouts {
    /// Seconds until the connection is established.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub connect_seconds: u64,
    /// Seconds until the first event of the answer; a model on this machine may read a long prompt for minutes.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub first_event_seconds: u64,
    /// Seconds between two events of the answer.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub between_events_seconds: u64,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self { connect_seconds: 10, first_event_seconds: 300, between_events_seconds: 120 }
    }
}

impl ModelTimeouts {
    /// Until the connection is established.
    pub fn connect(&self) -> Duration {
        Duration::from_secs(self.connect_seconds)
    }

    /// Until the first event of the answer.
    pub fn first_event(&self) -> Duration {
        Duration::from_secs(self.first_event_seconds)
    }

    /// Between two events of the answer.
    pub fn between_events(&self) -> Duration {
        Duration::from_secs(self.between_events_seconds)
    }
}

/// A provider of your own, a server on this machine, or changes to a known provider.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProviderModels {
    /// Where requests go, such as `http://127.0.0.1:8080/v1`. May be left out for a provider that MyClaw knows.
    #[serde(deserialize_with = "values::optional_url", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BaseUrl>")]
    pub base_url: Option<String>,
    /// The key, if the server requires one. Better a reference such as `"${MY_SERVER_KEY}"`, or where it is kept:
    /// `"!command"`, `"file:path"`, `"env:NAME"` or `"keyring:service/account"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SecretText>")]
    pub api_key: Option<SecretString>,
    /// Further headers of every request, by name. They replace headers of the same name that MyClaw would send.
    #[serde(with = "values::secret_map", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, SecretText>")]
    pub headers: BTreeMap<String, SecretString>,
    /// The wire format that the server speaks. Default: that of the provider of this name, else `openai-completions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<ModelApi>,
    /// What the server requires in the format `openai-completions`, if MyClaw does not know it.
    pub compat: ModelCompat,
    /// What is known about its models. A model that is not listed can still be used, with cautious guesses.
    pub models: Vec<ModelDefinition>,
}

/// What a server requires in the format `openai-completions`. Fields that are left out follow from its address and
/// name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelCompat {
    /// The field that limits the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<OutputLimitName>,
    /// The role of the system prompt for models that think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_role: Option<SystemRoleName>,
    /// How token counts come with a stream: only when asked for, or always, where asking is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<StreamUsageRule>,
    /// Whether a model's own reasoning goes back to it while its tool calls go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_replay: Option<ReasoningReplayRule>,
}

impl ModelCompat {
    /// These values; fields that are left out are taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            output_limit: self.output_limit.or(other.output_limit),
            system_role: self.system_role.or(other.system_role),
            stream_usage: self.stream_usage.or(other.stream_usage),
            reasoning_replay: self.reasoning_replay.or(other.reasoning_replay),
        }
    }
}

/// The name of the field that limits the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OutputLimitName {
    /// The older name, which most servers know.
    MaxTokens,
    /// The newer name, which some models require.
    MaxCompletionTokens,
}

/// The role of the system prompt for models that think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SystemRoleName {
    /// The usual one.
    System,
    /// The one of OpenAI's newer models.
    Developer,
}

/// How token counts come with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum StreamUsageRule {
    /// Only when asked for.
    OnRequest,
    /// Always; asking may be refused.
    Always,
}

/// Whether a model's own reasoning goes back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReasoningReplayRule {
    /// Never.
    Never,
    /// While the tool calls of one turn go on.
    WithinTurn,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ThinkingDefault {
    /// Not at all.
    Off,
    /// The least there is.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// The most.
    Xhigh,
}

impl ThinkingDefault {
    /// The name used in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

/// The thinking levels that a model offers, each with the provider's word for it. One that is left out is not offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ThinkingWords {
    /// The word for not at all, such as `"none"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// The word for the least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimal: Option<String>,
    /// The word for a little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<String>,
    /// The word for some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// The word for much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<String>,
    /// The word for the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xhigh: Option<String>,
}

/// How a model of Claude's wire formats is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ThinkingFormName {
    /// With a number of tokens: models up to Claude 4.5.
    Budget,
    /// With an effort: Claude 4.6 and later.
    Adaptive,
    /// The same, for models whose thinking is valid only after the same messages: Claude 5.1 and later.
    BoundAdaptive,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ModelApi {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API, spoken by most other servers.
    OpenaiCompletions,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// Google's Generative Language API (AI Studio, Vertex AI).
    GoogleGenerativeAi,
    /// Amazon Bedrock's Converse API.
    BedrockConverse,
}

/// What is known about one model. What is left out is taken from the catalog, else guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDefinition {
    /// The id that the server knows it by.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub id: String,
    /// Context window in tokens.
    #[serde(
        default,
        deserialize_with = "values::optional_within::<_, _, 1, { u64::MAX }>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// Longest answer in tokens.
    #[serde(
        default,
        deserialize_with = "values::optional_within::<_, _, 1, { u64::MAX }>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub max_output: Option<u64>,
    /// Whether it can think before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// The thinking levels that it offers, each with the server's word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_levels: Option<ThinkingWords>,
    /// How it is asked to think, in the formats `anthropic-messages` and `bedrock-converse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_form: Option<ThinkingFormName>,
    /// The wire format for this model, where it is not the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ModelApi>,
    /// What the server requires for this model in the format `openai-completions`; takes precedence over the provider's
    /// `compat`.
    #[serde(default)]
    pub compat: ModelCompat,
    /// What it takes as input, such as `["text", "image"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Vec<ModelInput>>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
}

/// A kind of input that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ModelInput {
    /// Text.
    Text,
    /// Images.
    Image,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelPrice {
    /// Uncached input.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Output.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Input read from the provider's cache.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub cache_read: f64,
    /// Input written to the provider's cache.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub cache_write: f64,
}
