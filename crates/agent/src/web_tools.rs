//! The web tools of a run, made from the config. Before its first call a tool neither connects nor loads anything.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_config::{Config, SearchProvider};
use myclaw_engine::{ActiveModel, Tool};
use myclaw_llm::{HttpOptions, ImageContent, InputKind, Model};
use myclaw_web::{
    AddressGuard, AddressRules, AllowedHost, DownloadOptions, Downloader, FetchLimits, ImageTool,
    InvalidHost, PrivateNetworks, SearchOptions, SearchService, Sight, Viewer, Wanted,
    WebFetchTool, WebSearchTool,
};
use tokio_util::sync::CancellationToken;

use crate::home::USER_AGENT;
use crate::trial::TrialQuestion;
use crate::{AgentError, SessionConfig};

/// Longest answer of the model that looks at pictures, in tokens.
const MAX_VIEWER_OUTPUT: u64 = 2_000;

/// The web tools that the config asks for. `tools` are those of the run so far: files are read with one of them.
///
/// # Errors
/// A value of `tools.web` cannot be used.
pub(crate) fn web_tools(
    session: &SessionConfig,
    models: &[ActiveModel],
    tools: &[Arc<dyn Tool>],
) -> Result<Vec<Arc<dyn Tool>>, AgentError> {
    let mut made: Vec<Arc<dyn Tool>> = Vec::new();
    let config = &session.config;
    let fetch = &config.tools.web.fetch;
    let time = Duration::from_secs(fetch.timeout_seconds);
    let extra_ca_files = HttpOptions::default().extra_ca_files;
    let options = DownloadOptions { user_agent: USER_AGENT.to_owned(), extra_ca_files };
    let mistake = |key: &str, problem: String| {
        AgentError::config(format!(
            "tools.web.{key}: {problem}; `myclaw config check` shows the place"
        ))
    };
    let search = search_options(config).map_err(|problem| mistake("search", problem))?;
    if let Some(search) = search {
        made.push(Arc::new(WebSearchTool::new(search, options.clone())));
    }
    if fetch.enabled {
        let rules =
            address_rules(config).map_err(|problem| mistake("fetch.allowHosts", problem))?;
        let guard = AddressGuard::new(rules);
        let downloader = Arc::new(Downloader::new(guard, options));
        let limits = FetchLimits { time, max_chars: fetch.max_chars };
        made.push(Arc::new(WebFetchTool::new(Arc::clone(&downloader), limits)));
        let read = tools.iter().find(|tool| tool.schema().name == "read").cloned();
        made.push(Arc::new(ImageTool::new(downloader, time, read, sight(session, models))));
    }
    Ok(made)
}

/// Downloads files from addresses that strangers wrote, under the rules of `tools.web.fetch`.
pub struct FileDownloads {
    downloader: Downloader,
    time: Duration,
}

impl FileDownloads {
    /// Downloads as the config permits. Nothing is set up before the first one.
    ///
    /// # Errors
    /// An entry of `tools.web.fetch.allowHosts` names no host; the problem.
    pub fn of(config: &Config) -> Result<Self, String> {
        let extra_ca_files = HttpOptions::default().extra_ca_files;
        let options = DownloadOptions { user_agent: USER_AGENT.to_owned(), extra_ca_files };
        let downloader = Downloader::new(AddressGuard::new(address_rules(config)?), options);
        let time = Duration::from_secs(config.tools.web.fetch.timeout_seconds);
        Ok(Self { downloader, time })
    }

    /// A file of at most `most` bytes, with the media type that its server gave.
    ///
    /// # Errors
    /// The address is not permitted, the file is too large, or there is no answer; why.
    pub async fn get(&self, url: &str, most: usize) -> Result<(Option<String>, Vec<u8>), String> {
        let wanted = Wanted { url, accept: "*/*", max_bytes: most, limit: self.time };
        let download = self.downloader.get(wanted).await.map_err(|error| error.to_string())?;
        if !download.status.is_success() {
            return Err(format!("its server said {}", download.status));
        }
        if download.is_cut {
            return Err(format!("it has more than {most} bytes"));
        }
        let media_type = Some(download.media_type()).filter(|name| !name.is_empty());
        Ok((media_type, download.body))
    }
}

/// Which addresses web tools may connect to.
///
/// # Errors
/// An entry of `allowHosts` names no host; the problem.
pub(crate) fn address_rules(config: &Config) -> Result<AddressRules, String> {
    let fetch = &config.tools.web.fetch;
    let private_networks = match fetch.allow_private {
        true => PrivateNetworks::Allowed,
        false => PrivateNetworks::Refused,
    };
    let allowed_hosts = fetch
        .allow_hosts
        .iter()
        .map(|entry| entry.0.parse())
        .collect::<Result<Vec<AllowedHost>, InvalidHost>>()
        .map_err(|error| error.to_string())?;
    Ok(AddressRules { private_networks, allowed_hosts, ..AddressRules::default() })
}

/// How the web is searched; `None` if no provider is configured.
///
/// # Errors
/// The provider needs a key or an address that is missing; the problem.
pub(crate) fn search_options(config: &Config) -> Result<Option<SearchOptions>, String> {
    let search = &config.tools.web.search;
    let service = match search.provider {
        None => return Ok(None),
        Some(SearchProvider::Searxng) => SearchService::Searxng,
        Some(SearchProvider::Brave) => SearchService::Brave,
        Some(SearchProvider::Tavily) => SearchService::Tavily,
    };
    let refuse = |problem: &str| Err(problem.to_owned());
    let base_url = match search.base_url.as_deref().map(str::parse) {
        Some(Err(_)) => {
            return refuse("`baseUrl` is not a valid URL; write it like https://search.example");
        }
        Some(Ok(url)) => Some(url),
        None if service.usual_url().is_none() => {
            return refuse(
                "SearXNG needs the address of a server; set `baseUrl`, such as http://127.0.0.1:8888",
            );
        }
        None => None,
    };
    if service.needs_key() && search.api_key.is_none() {
        return refuse("this provider needs a key; set `apiKey`, such as \"${BRAVE_API_KEY}\"");
    }
    Ok(Some(SearchOptions {
        service,
        base_url,
        api_key: search.api_key.clone(),
        max_results: search.max_results,
        time: Duration::from_secs(search.timeout_seconds),
    }))
}

fn sight(session: &SessionConfig, models: &[ActiveModel]) -> Sight {
    let sees = |model: &Model| model.input.contains(&InputKind::Image);
    if models.first().is_some_and(|active| sees(&active.model)) {
        return Sight::Own;
    }
    let named = &session.config.agents.defaults.image_model;
    match named.clone() {
        Some(name) => Sight::Other(Arc::new(ImageModel { name, session: session.clone() })),
        None => Sight::Missing,
    }
}

/// The model that the config names for pictures. It is looked up when it is first needed.
struct ImageModel {
    name: String,
    session: SessionConfig,
}

impl ImageModel {
    async fn ask(
        &self,
        picture: ImageContent,
        question: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let name = &self.name;
        let failed = |why: String| {
            format!(
                "the model {name}, which looks at pictures (agents.defaults.imageModel), failed: {why}"
            )
        };
        let selection = self.session.select_model(Some(name)).await;
        let selection = selection.map_err(|error| failed(error.message))?;
        let Some(active) = selection.models.first() else {
            return Err(failed("it is not configured; the user must check its name".to_owned()));
        };
        if !active.model.input.contains(&InputKind::Image) {
            return Err(failed(
                "it cannot see pictures; the user must name another one".to_owned(),
            ));
        }
        let question = TrialQuestion {
            text: question,
            picture: Some(&picture),
            tools: &[],
            max_output: MAX_VIEWER_OUTPUT,
        };
        self.session.ask_once(active, question, cancel).await.map_err(failed)
    }
}

impl Viewer for ImageModel {
    fn look<'a>(
        &'a self,
        picture: ImageContent,
        question: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(self.ask(picture, question, cancel))
    }
}
