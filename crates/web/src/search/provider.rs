//! The services: how each is asked, and what its answers look like.

use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::SearchOptions;
use crate::download::{ServiceClient, read_answer};

/// Longest answer that is read, in bytes; twenty results are below 200 KB.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// The header with which Tavily answers without a key; <https://docs.tavily.com/documentation/keyless>.
const TAVILY_ACCESS: &str = "x-tavily-access-mode";

/// A service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchService {
    /// A SearXNG server. It has no usual address.
    Searxng,
    /// Brave Search.
    Brave,
    /// Tavily. Without a key it takes fewer searches.
    Tavily,
}

/// One result.
#[derive(Debug, Deserialize)]
pub(super) struct Found {
    #[serde(default)]
    pub(super) title: String,
    pub(super) url: String,
    #[serde(default, alias = "content", alias = "description")]
    pub(super) excerpt: String,
}

/// An answer of SearXNG or Tavily.
#[derive(Deserialize)]
struct List {
    results: Vec<Found>,
}

/// An answer of Brave. Without results it has no part `web`.
#[derive(Deserialize)]
struct BraveAnswer {
    web: Option<List>,
}

impl SearchService {
    /// The address that is used without another; `None` if there must be one in the config.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com/res/v1"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// Whether it answers only with a key.
    pub fn needs_key(self) -> bool {
        match self {
            Self::Searxng | Self::Tavily => false,
            Self::Brave => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave Search",
            Self::Tavily => "Tavily",
        }
    }

    /// The path of a search below the base address.
    fn path(self) -> &'static str {
        match self {
            Self::Searxng | Self::Tavily => "search",
            Self::Brave => "web/search",
        }
    }

    fn request(
        self,
        client: &Client,
        url: Url,
        key: Option<&SecretString>,
        query: &str,
        count: u64,
    ) -> RequestBuilder {
        let key = key.map(SecretString::expose_secret).unwrap_or_default();
        match self {
            Self::Searxng => {
                let request = client.get(with_query(url, &[("q", query), ("format", "json")]));
                if key.is_empty() { request } else { request.bearer_auth(key) }
            }
            Self::Brave => {
                let count = count.to_string();
                let pairs = [("q", query), ("count", &count), ("text_decorations", "false")];
                client.get(with_query(url, &pairs)).header("x-subscription-token", key)
            }
            Self::Tavily => {
                let body = json!({"query": query, "max_results": count}).to_string();
                let request =
                    client.post(url).header("content-type", "application/json").body(body);
                match key.is_empty() {
                    true => request.header(TAVILY_ACCESS, "keyless"),
                    false => request.bearer_auth(key),
                }
            }
        }
        .header(ACCEPT, "application/json")
    }

    fn parse(self, body: &[u8]) -> serde_json::Result<Vec<Found>> {
        match self {
            Self::Searxng | Self::Tavily => {
                serde_json::from_slice(body).map(|list: List| list.results)
            }
            Self::Brave => {
                let answer: BraveAnswer = serde_json::from_slice(body)?;
                Ok(answer.web.map(|list| list.results).unwrap_or_default())
            }
        }
    }

    /// What a refusal of a search with or without a key means.
    fn refusal(self, status: StatusCode, key: Option<&SecretString>) -> String {
        let name = self.name();
        match (status.as_u16(), self) {
            (401..=403 | 429 | 432 | 433, Self::Tavily) if key.is_none() => format!(
                "{name} takes no more searches without a key for now ({status}): wait, or go on without; the user can set \
                 tools.web.search.apiKey, for which Tavily has free keys"
            ),
            (403, Self::Searxng) => format!(
                "{name} refuses answers as JSON (403): its owner adds json to search.formats in its settings.yml"
            ),
            (401 | 403, _) => {
                format!(
                    "{name} refuses the key ({status}): the user must check tools.web.search.apiKey of the config"
                )
            }
            (402 | 429 | 432 | 433, _) => {
                format!("{name} takes no more searches for now ({status}): wait, or go on without")
            }
            (404, _) => format!(
                "{name} is not at this address ({status}): the user must check tools.web.search.baseUrl of the config"
            ),
            _ => {
                format!("{name} could not search ({status}); try again later, or with other words")
            }
        }
    }
}

/// Asks the service of `options`.
///
/// # Errors
/// What went wrong and what to do, for the model.
pub(super) async fn search(
    options: &SearchOptions,
    client: &ServiceClient,
    query: &str,
    count: u64,
) -> Result<Vec<Found>, String> {
    let service = options.service;
    let url = search_url(options)?;
    let client = client.client_for(&url).await.map_err(|error| error.to_string())?;
    let request = service.request(&client, url.clone(), options.api_key.as_ref(), query, count);
    let answer =
        read_answer(request, url, MAX_ANSWER_BYTES).await.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(service.refusal(answer.status, options.api_key.as_ref()));
    }
    service.parse(&answer.body).map_err(|error| {
        format!(
            "{} answered with something other than a list of results (line {}, column {}): the user must check \
             tools.web.search of the config",
            service.name(),
            error.line(),
            error.column()
        )
    })
}

/// The address of a search, below the base address, whose query is kept.
fn search_url(options: &SearchOptions) -> Result<Url, String> {
    let missing =
        || "tools.web.search.baseUrl is missing in the config; the user must set it".to_owned();
    let usual = || options.service.usual_url().and_then(|url| Url::parse(url).ok());
    let mut url = options.base_url.clone().or_else(usual).ok_or_else(missing)?;
    let path = format!("{}/{}", url.path().trim_end_matches('/'), options.service.path());
    url.set_path(&path);
    Ok(url)
}

fn with_query(mut url: Url, pairs: &[(&str, &str)]) -> Url {
    url.query_pairs_mut().extend_pairs(pairs);
    url
}
