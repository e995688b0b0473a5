//! Finding a model server that already listens on this machine.
//!
//! Each candidate address is asked for its list of models over a plain connection, all at the same time; where nothing
//! listens, the refused connection costs microseconds. Another program on such a port (a web server, a proxy, one that
//! does not answer) is never taken for a model server: only a well-formed list with a model that can chat counts.

mod choice;
mod facts;
mod http;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use facts::{LocalFacts, ask_local};

use crate::{Model, ResolveModel, resolve_model};

/// Default port of Ollama.
const OLLAMA_PORT: u16 = 11434;
/// Default port of llama.cpp's server.
const LLAMA_CPP_PORT: u16 = 8080;
/// Default port of LM Studio.
const LM_STUDIO_PORT: u16 = 1234;

/// A listening loopback port accepts much faster; a longer limit would only delay the start if packets are dropped.
const CONNECT_LIMIT: Duration = Duration::from_millis(300);

/// Listing models reads no weights, so even a busy server manages it.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// An address at which a model server may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalCandidate {
    /// Provider name to use for that server, such as `ollama`.
    pub provider: String,
    /// Where.
    pub address: SocketAddr,
}

/// Where to look and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalProbe {
    /// The addresses, the most preferred first.
    pub candidates: Vec<LocalCandidate>,
    /// Time limit for the connection.
    pub connect_limit: Duration,
    /// Time limit for the whole answer after that.
    pub answer_limit: Duration,
}

impl Default for LocalProbe {
    /// Ollama, llama.cpp and LM Studio on the loopback address at their default ports; 300 ms to connect, 1 s to
    /// answer.
    fn default() -> Self {
        let at = |provider: &str, port| LocalCandidate {
            provider: provider.to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        Self {
            candidates: vec![
                at("ollama", OLLAMA_PORT),
                at("llamacpp", LLAMA_CPP_PORT),
                at("lmstudio", LM_STUDIO_PORT),
            ],
            connect_limit: CONNECT_LIMIT,
            answer_limit: ANSWER_LIMIT,
        }
    }
}

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Provider name of the candidate.
    pub provider: String,
    /// Where requests go, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// Ids of the models that can chat, never empty; the first is the one to take when nobody chose.
    pub models: Vec<String>,
    /// What its list says about the first model.
    pub facts: LocalFacts,
}

impl LocalServer {
    /// The model to take when nobody chose, ready to be called.
    pub fn preferred_model(&self) -> Option<Model> {
        let (provider, base_url) = (&self.provider, Some(self.base_url.as_str()));
        self.models
            .first()
            .map(|id| resolve_model(ResolveModel { provider, id, base_url, api: None }))
    }
}

/// The result for one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalFinding {
    /// Nothing accepted a connection in time.
    NothingListens,
    /// Something accepted it, but gave no list of models in time.
    NotAModelServer,
    /// A model server without a model that can chat: one must be loaded or pulled first.
    NoModels,
    /// A model server that can be used.
    Server(LocalServer),
}

/// The first candidate, in their order, that is a usable model server. Later candidates are not waited for.
pub async fn discover_local(probe: &LocalProbe) -> Option<LocalServer> {
    let mut findings: FuturesOrdered<_> =
        probe.candidates.iter().map(|candidate| examine(candidate, probe)).collect();
    while let Some(finding) = findings.next().await {
        if let LocalFinding::Server(server) = finding {
            return Some(server);
        }
    }
    None
}

/// The result for each candidate, in their order, for a report to the user.
pub async fn survey_local(probe: &LocalProbe) -> Vec<(LocalCandidate, LocalFinding)> {
    let findings: FuturesOrdered<_> =
        probe.candidates.iter().map(|candidate| examine(candidate, probe)).collect();
    let findings: Vec<LocalFinding> = findings.collect().await;
    probe.candidates.iter().cloned().zip(findings).collect()
}

async fn examine(candidate: &LocalCandidate, probe: &LocalProbe) -> LocalFinding {
    let connecting = TcpStream::connect(candidate.address);
    let Ok(Ok(stream)) = timeout(probe.connect_limit, connecting).await else {
        return LocalFinding::NothingListens;
    };
    let host = candidate.address.to_string();
    let listing = http::fetch(stream, &host, "/v1/models", None);
    let Ok(Ok(body)) = timeout(probe.answer_limit, listing).await else {
        return LocalFinding::NotAModelServer;
    };
    let Ok(listed) = http::listed_models(&body) else { return LocalFinding::NotAModelServer };
    let ids = listed.iter().map(|listed| listed.id.clone()).collect();
    let models = choice::in_order_of_preference(&candidate.provider, ids);
    let Some(first) = listed.iter().find(|listed| models.first() == Some(&listed.id)) else {
        return LocalFinding::NoModels;
    };
    LocalFinding::Server(LocalServer {
        provider: candidate.provider.clone(),
        base_url: format!("http://{}/v1", candidate.address),
        facts: first.facts,
        models,
    })
}

#[cfg(test)]
mod tests;
