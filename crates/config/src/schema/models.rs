//! Providers, keys, and models of one's own.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::MAX_SECONDS;
use super::values::{self, BaseUrl, NonBlankText, SecretText};

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
    /// Providers that MyClaw does not know, or models that it does not know there, by provider name.
    pub providers: BTreeMap<String, ProviderModels>,
}

/// Time limits of one model call. There is no limit on the whole call: a model may write for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelTimeouts {
    /// Seconds until the connection stands.
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
    /// Until the connection stands.
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

/// A provider of your own, or a server on this machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderModels {
    /// Where requests go, such as `http://127.0.0.1:8080/v1`.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "BaseUrl")]
    pub base_url: String,
    /// The key, if the server wants one. Better a reference such as `"${MY_SERVER_KEY}"`, or where it is kept:
    /// `"!command"`, `"file:path"`, `"env:NAME"` or `"keyring:service/account"`.
    #[serde(default, with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SecretText>")]
    pub api_key: Option<SecretString>,
    /// The wire format that the server speaks. Default: `openai-completions`, and `anthropic-messages` for the
    /// provider `anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ModelApi>,
    /// What is known about its models. A model that is not listed can still be used, with cautious guesses.
    #[serde(default)]
    pub models: Vec<ModelDefinition>,
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
