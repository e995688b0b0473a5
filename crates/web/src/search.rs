//! The `web_search` tool: a list of pages, from a service that the owner configured.

mod provider;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::access::one_line;
use myclaw_llm::outside::{mark, visible};
use myclaw_llm::{ContentBlock, ToolSchema};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::declarations;
use crate::download::{DownloadOptions, ServiceClient};
use provider::Found;
pub use provider::SearchService;

/// Most results that the services give in one answer.
const MAX_RESULTS: u64 = 20;
/// Longest query that the services take, in characters.
const MAX_QUERY_CHARS: usize = 400;
/// Most of a result's title and of its address that is shown, in characters.
const MAX_TITLE_CHARS: usize = 300;
/// Most of a result's excerpt that is shown, in characters.
const MAX_EXCERPT_CHARS: usize = 600;

const ALIASES: ToolAliases = ToolAliases {
    names: &["WebSearch", "web-search", "search_web", "google_web_search"],
    arguments: &[
        ("q", "query"),
        ("max_results", "count"),
        ("maxResults", "count"),
        ("num_results", "count"),
        ("limit", "count"),
    ],
    unlisted: &[],
};

/// Where and how searches are made.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// The service.
    pub service: SearchService,
    /// Its address, if not the usual one.
    pub base_url: Option<Url>,
    /// Its key.
    pub api_key: Option<SecretString>,
    /// Results when the model asks for no number.
    pub max_results: u64,
    /// How long a search may take.
    pub time: Duration,
}

static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    ToolSchema {
    name: "web_search".to_owned(),
    description: "Search the web. Returns titles, addresses and excerpts as external content; read a page with \
                  web_fetch."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS}
        },
        "required": ["query"],
    }),
}
});

/// The tool; see the module.
#[derive(Debug)]
pub struct WebSearchTool {
    options: SearchOptions,
    client: Arc<ServiceClient>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default)]
    count: Option<u64>,
}

impl WebSearchTool {
    /// The tool. The service is not asked before the first call.
    pub fn new(options: SearchOptions, download: DownloadOptions) -> Self {
        Self { options, client: Arc::new(ServiceClient::new(download)) }
    }

    async fn search(&self, query: &str, count: u64) -> Result<Vec<Found>, ToolError> {
        let asking = provider::search(&self.options, &self.client, query, count);
        match tokio::time::timeout(self.options.time, asking).await {
            Ok(found) => found.map_err(ToolError::Failed),
            Err(_) => Err(ToolError::Failed(format!(
                "the search was not answered within {} s; try again later",
                self.options.time.as_secs_f32()
            ))),
        }
    }
}

impl Tool for WebSearchTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::WEB_SEARCH
    }

    fn aliases(&self) -> ToolAliases {
        ALIASES
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let service = CallEffect::Connect("the search service of the config".to_owned());
        Ok(CallSubject::of(arguments).with(service))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { query, count } = invocation.call.arguments.parse()?;
            let query = query.trim();
            if query.is_empty() || query.chars().count() > MAX_QUERY_CHARS {
                return Err(ToolError::Failed(format!(
                    "the query must have 1 to {MAX_QUERY_CHARS} characters; say in a few words what to look for"
                )));
            }
            let count = count.unwrap_or(self.options.max_results).clamp(1, MAX_RESULTS);
            let found = tokio::select! {
                biased;
                () = invocation.cancel.cancelled() => {
                    return Err(ToolError::Aborted("aborted before the search was answered".to_owned()));
                }
                found = self.search(query, count) => found?,
            };
            Ok(show(&found, count as usize))
        })
    }
}

fn show(found: &[Found], count: usize) -> ToolOutput {
    let found = &found[..found.len().min(count)];
    if found.is_empty() {
        return ToolOutput::text("Nothing was found. Try other or fewer words.");
    }
    let entry = |(number, found): (usize, &Found)| {
        format!(
            "{number}. {}\n   {}\n   {}\n",
            one_line(&found.title, MAX_TITLE_CHARS),
            one_line(&found.url, MAX_TITLE_CHARS),
            one_line(&found.excerpt, MAX_EXCERPT_CHARS)
        )
    };
    let list: String = (1..).zip(found).map(entry).collect();
    let urls: Vec<&str> = found.iter().map(|found| found.url.as_str()).collect();
    let noun = if found.len() == 1 { "result" } else { "results" };
    let text = format!("{} {noun}\n{}", found.len(), mark(&visible(list.trim_end())));
    ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(json!({"urls": urls})),
        is_error: false,
    }
}
