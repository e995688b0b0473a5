//! The web tools.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::values::{self, BaseUrl, NonBlankText};

/// Characters of a page that one result holds: about 4,000 tokens.
const DEFAULT_FETCH_CHARS: usize = 15_000;
/// A smaller result would hold little more than the line about the page.
const MIN_FETCH_CHARS: u64 = 500;
/// Seconds that a download or a search may take.
const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
/// Ten minutes: a slower download needs a command.
const MAX_TIMEOUT_SECONDS: u64 = 600;
/// Results of a search: enough to choose from, few enough to read.
const DEFAULT_RESULTS: u64 = 5;
/// Most results that the services give in one answer.
const MAX_RESULTS: u64 = 20;

/// The web tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebToolsConfig {
    /// The tool that reads web pages. The tool that looks at pictures downloads with the same rules.
    pub fetch: WebFetchConfig,
    /// The tool that searches the web. Models get it only when a provider is configured.
    pub search: WebSearchConfig,
}

/// The tool that reads web pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebFetchConfig {
    /// Whether models get the tool.
    pub enabled: bool,
    /// Whether it may connect to this machine and its private networks. Never to the local link, where clouds have
    /// their metadata services; list such a host in `allowHosts`.
    pub allow_private: bool,
    /// Hosts that it may connect to wherever they are: `wiki.example`, `*.corp.example`, `192.168.1.5`,
    /// `10.1.0.0/16`, each also with a port, such as `localhost:8080`.
    #[schemars(with = "Vec<NonBlankText>")]
    pub allow_hosts: Vec<HostEntry>,
    /// Characters of a page that one result holds, at least 500.
    #[serde(deserialize_with = "values::within::<_, _, MIN_FETCH_CHARS, { u64::MAX }>")]
    #[schemars(range(min = MIN_FETCH_CHARS))]
    pub max_chars: usize,
    /// Seconds that a download may take, 1 to 600.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
}

/// A host in `allowHosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostEntry(#[serde(deserialize_with = "values::non_blank")] pub String);

impl Default for WebFetchConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_private: false,
            allow_hosts: Vec::new(),
            max_chars: DEFAULT_FETCH_CHARS,
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
        }
    }
}

/// The tool that searches the web. Models get it only when a provider is configured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebSearchConfig {
    /// Who searches. Leave it out to have no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SearchProvider>,
    /// The key of the provider. Preferably a reference such as `"${BRAVE_API_KEY}"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub api_key: Option<SecretString>,
    /// The address of the service, if not the provider's own: that of a SearXNG server, or of a service that answers
    /// like the provider.
    #[serde(deserialize_with = "values::optional_url", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BaseUrl>")]
    pub base_url: Option<String>,
    /// Results of a search when the model asks for no number, 1 to 20.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_RESULTS>")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    pub max_results: u64,
    /// Seconds that a search may take, 1 to 600.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
}

impl Default for WebSearchConfig {
    fn default() -> Self {
        Self {
            provider: None,
            api_key: None,
            base_url: None,
            max_results: DEFAULT_RESULTS,
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
        }
    }
}

/// A service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SearchProvider {
    /// A SearXNG server, at `baseUrl`. It needs no key.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily. Without a key it takes fewer searches.
    Tavily,
}
