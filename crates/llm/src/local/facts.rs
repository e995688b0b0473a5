//! What a server on this machine says about a model: the context window that it was started with, and what it takes.
//!
//! A guess would be wrong here: the same weights are served with 4,096 or 262,144 tokens, as the memory allows. Every
//! kind of server has its own place for the figures.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::http::{fetch, listed_models};
use crate::wire::{is_loopback, models_url};
use crate::{InputKind, Model};

/// Share of a window that one answer may take: more would leave no room for the request in a small one.
const LARGEST_OUTPUT_SHARE: u64 = 4;

/// What a server on this machine says about one of its models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalFacts {
    /// The context window that requests have, in tokens.
    pub context_window: Option<u64>,
    /// The largest window that the model was made for, in tokens.
    pub largest_window: Option<u64>,
    /// Whether it takes images.
    pub takes_images: Option<bool>,
}

impl LocalFacts {
    /// Corrects what the catalog says, or what was guessed.
    pub fn apply(&self, model: &mut Model) {
        let known = self.context_window.unwrap_or(model.context_window);
        model.context_window = known.min(self.largest_window.unwrap_or(u64::MAX));
        model.max_output = model.max_output.min(model.context_window / LARGEST_OUTPUT_SHARE);
        match self.takes_images {
            Some(true) => model.input = vec![InputKind::Text, InputKind::Image],
            Some(false) => model.input = vec![InputKind::Text],
            None => {}
        }
    }

    /// From an entry of a list of models: llama.cpp and vLLM tell more than the id in `/v1/models`, LM Studio in
    /// `/api/v0/models`.
    pub(super) fn from_entry(entry: &Value) -> Self {
        let meta = &entry["meta"];
        let windows = [&meta["n_ctx"], &entry["max_model_len"], &entry["loaded_context_length"]];
        let modalities = [&entry["input_modalities"], &entry["architecture"]["input_modalities"]];
        let takes_images = match (first(modalities, Value::as_array), entry["type"].as_str()) {
            (Some(kinds), _) => Some(kinds.iter().any(|kind| kind == "image")),
            (None, Some("vlm")) => Some(true),
            (None, Some("llm")) => Some(false),
            _ => None,
        };
        Self {
            context_window: first(windows, tokens),
            largest_window: first([&meta["n_ctx_train"], &entry["max_context_length"]], tokens),
            takes_images,
        }
    }

    /// Reads Ollama's description of the model, and its list of loaded models.
    fn from_ollama(id: &str, shown: &Value, loaded: &Value) -> Self {
        let info = shown["model_info"].as_object().into_iter().flatten();
        let largest_window = info
            .filter(|(name, _)| name.ends_with(".context_length"))
            .find_map(|(_, value)| tokens(value));
        let parameters = shown["parameters"].as_str().unwrap_or_default();
        let stated = parameters.lines().find_map(|line| {
            line.trim().strip_prefix("num_ctx")?.trim().parse().ok().filter(|&tokens| tokens > 0)
        });
        let is_it = |entry: &&Value| {
            let name = entry["model"].as_str().or(entry["name"].as_str()).unwrap_or_default();
            name == id || name.strip_suffix(":latest") == Some(id)
        };
        let entry = loaded["models"].as_array().into_iter().flatten().find(is_it);
        let in_use = || tokens(&entry?["context_length"]);
        // A model that Ollama runs elsewhere has its whole window.
        let elsewhere = || largest_window.filter(|_| shown["remote_host"].is_string());
        let capabilities = shown["capabilities"].as_array();
        Self {
            // The model's own file takes precedence over the window with which another client's request loaded it.
            context_window: stated.or_else(in_use).or_else(elsewhere),
            largest_window,
            takes_images: capabilities.map(|can| can.iter().any(|word| word == "vision")),
        }
    }
}

/// Asks the server of `model` about it, if that kind of server answers such questions and runs on this machine. No other server
/// is sent anything. `None` if it says nothing of use within `limit`.
pub async fn ask_local(model: &Model, limit: Duration) -> Option<LocalFacts> {
    timeout(limit, ask(model)).await.ok()?
}

async fn ask(model: &Model) -> Option<LocalFacts> {
    let provider = model.provider.as_str();
    if !matches!(provider, "ollama" | "llamacpp" | "lmstudio" | "vllm") {
        return None;
    }
    let url = models_url(model.api, &model.base_url).ok()?;
    if url.scheme() != "http" || !is_loopback(&url) {
        return None;
    }
    let host = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    let answer_of = async |path: &str, body: Option<String>| {
        let stream = TcpStream::connect(&host).await.ok()?;
        fetch(stream, &host, path, body.as_deref()).await.ok()
    };
    let root = url.path().strip_suffix("/v1/models").unwrap_or_default();
    if provider == "ollama" {
        let body = json!({"model": model.id}).to_string();
        let (show, ps) = (format!("{root}/api/show"), format!("{root}/api/ps"));
        let (shown, loaded) = tokio::join!(answer_of(&show, Some(body)), answer_of(&ps, None));
        let shown = serde_json::from_slice(&shown?).ok()?;
        let loaded = loaded.and_then(|body| serde_json::from_slice(&body).ok());
        return Some(LocalFacts::from_ollama(&model.id, &shown, &loaded.unwrap_or_default()));
    }
    let path = match provider {
        "lmstudio" => format!("{root}/api/v0/models"),
        _ => url.path().to_owned(),
    };
    let listed = listed_models(&answer_of(&path, None).await?).ok()?;
    // llama.cpp answers with its only model, for any name in the request.
    let only = listed.first().filter(|_| listed.len() == 1 && provider == "llamacpp");
    listed.iter().find(|listed| listed.id == model.id).or(only).map(|listed| listed.facts)
}

fn first<'a, const N: usize, T>(
    places: [&'a Value; N],
    read: impl Fn(&'a Value) -> Option<T>,
) -> Option<T> {
    places.into_iter().find_map(read)
}

fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|&tokens| tokens > 0)
}
