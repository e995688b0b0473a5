//! What is known about models and providers without asking them.
//!
//! The models are a sorted text compiled into the binary, one JSON object a line; a lookup bisects it and reads the one
//! line it needs, so start-up parses one model and not all. The address of each provider, its wire format and the place
//! of its key are a table in [`providers`]. This module reads neither config nor environment.

mod providers;
mod reference;
mod resolve;

use std::cmp::Ordering;

use serde::Deserialize;

pub use providers::{KeyNeed, ProviderInfo, first_provider_with_key, provider_info};
pub use reference::{ModelRef, ModelRefError, parse_model_ref, suggest_model};
pub use resolve::{ResolveModel, resolve_model};

use crate::{Api, InputKind, Model, Price, Quirks, ThinkingForm, ThinkingLevels};
use providers::PROVIDERS;

/// The models, sorted by the bytes of `provider/id`. See `data/SOURCE.md` for where the figures come from.
const MODELS: &str = include_str!("../data/models.jsonl");

/// How each line begins; the sort key follows up to the next quote. Neither providers nor ids hold a quote.
const KEY_PREFIX: &str = "{\"model\":\"";

/// Known models and providers.
#[derive(Debug, Clone, Copy)]
pub struct ModelCatalog {
    lines: &'static str,
}

impl ModelCatalog {
    /// The catalog that is compiled in.
    pub const fn builtin() -> Self {
        Self { lines: MODELS }
    }

    /// One model, with its provider's default base URL; `None` if the catalog does not have it.
    pub fn find(&self, provider: &str, id: &str) -> Option<Model> {
        read_line(self.line_of(provider, id)?)
    }

    /// Every known provider, in the order in which they are preferred when several have a key.
    pub fn providers(&self) -> impl Iterator<Item = &'static ProviderInfo> {
        PROVIDERS.iter()
    }

    /// Every known model, sorted by provider and id.
    pub fn iter(&self) -> impl Iterator<Item = Model> {
        self.lines.lines().filter_map(read_line)
    }

    /// `provider/id` of every known model, without reading the rest of its line.
    pub(crate) fn references(&self) -> impl Iterator<Item = &'static str> {
        self.lines.lines().map(key_of)
    }

    fn line_of(&self, provider: &str, id: &str) -> Option<&'static str> {
        let (mut low, mut high) = (0, self.lines.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let bytes = self.lines.as_bytes();
            let start = memchr::memrchr(b'\n', &bytes[low..middle])
                .map_or(low, |newline| low + newline + 1);
            let end =
                memchr::memchr(b'\n', &bytes[start..high]).map_or(high, |newline| start + newline);
            let line = &self.lines[start..end];
            let wanted = provider.bytes().chain([b'/']).chain(id.bytes());
            match key_of(line).bytes().cmp(wanted) {
                Ordering::Equal => return Some(line),
                Ordering::Less => low = (end + 1).min(high),
                Ordering::Greater => high = start,
            }
        }
        None
    }
}

/// One line of the data, as it is stored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    model: &'a str,
    /// Present only if it differs from its provider's.
    api: Option<Api>,
    context_window: u64,
    max_output: u64,
    reasoning: bool,
    #[serde(default)]
    thinking_levels: ThinkingLevels,
    #[serde(default)]
    thinking_form: ThinkingForm,
    input: Vec<InputKind>,
    /// `null` if unknown.
    price: Option<Price>,
}

fn key_of(line: &'static str) -> &'static str {
    let key = line.strip_prefix(KEY_PREFIX).unwrap_or_default();
    key.split_once('"').map_or(key, |(key, _)| key)
}

/// `None` only for a line that a test of this module would have refused.
fn read_line(line: &'static str) -> Option<Model> {
    let line: Line<'_> = serde_json::from_str(line).ok()?;
    let (provider, id) = line.model.split_once('/')?;
    let info = provider_info(provider)?;
    Some(Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        api: line.api.unwrap_or(info.api),
        base_url: info.base_url.to_owned(),
        reasoning: line.reasoning,
        thinking_levels: line.thinking_levels,
        input: line.input,
        price: line.price,
        context_window: line.context_window,
        max_output: line.max_output,
        quirks: Quirks { thinking_form: line.thinking_form, ..Quirks::default() },
    })
}

#[cfg(test)]
mod tests;
