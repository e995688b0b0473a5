//! Parses `provider/model`, and suggests known names for an unknown one.

use std::fmt;

use strsim::levenshtein;

use super::ModelCatalog;

/// Most suggestions that one message gives.
const MAX_SUGGESTIONS: usize = 3;

/// Shortest text that counts as a part of a name; shorter ones are in too many names.
const MIN_PART_LENGTH: usize = 3;

/// Longest text that is compared with the known names, in bytes; a longer one is not a misspelt name.
const MAX_COMPARED_LENGTH: usize = 128;

/// A model named as `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// Provider name, such as `openrouter`.
    pub provider: String,
    /// Model id; it may hold slashes itself, such as `openai/gpt-5-mini`.
    pub id: String,
}

impl fmt::Display for ModelRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.provider, self.id)
    }
}

/// A text that does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelRefError {
    /// The text is empty.
    #[error("the model's name is empty: write provider/model, such as anthropic/claude-sonnet-4-6")]
    Empty,
    /// There is no slash, or nothing before it.
    #[error("`{text}` names no provider: write provider/model{}", did_you_mean(suggestions))]
    NoProvider {
        /// The given text.
        text: String,
        /// Known models that look like it, best first.
        suggestions: Vec<String>,
    },
    /// There is nothing after the slash.
    #[error("`{text}` names no model: write provider/model{}", did_you_mean(suggestions))]
    NoModel {
        /// The given text.
        text: String,
        /// Known models of that provider, or ones that look like it, best first.
        suggestions: Vec<String>,
    },
}

/// Splits `provider/model` at the first slash. Any provider and any model is allowed; a known provider may be written
/// in capitals.
///
/// # Errors
/// A part is missing; the message suggests the nearest known models.
pub fn parse_model_ref(text: &str) -> Result<ModelRef, ModelRefError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ModelRefError::Empty);
    }
    let (provider, id) =
        text.split_once('/').map_or(("", text), |(provider, id)| (provider.trim(), id.trim()));
    if id.is_empty() {
        return Err(ModelRefError::NoModel {
            text: text.to_owned(),
            suggestions: suggest_model(provider),
        });
    }
    if provider.is_empty() {
        return Err(ModelRefError::NoProvider {
            text: text.to_owned(),
            suggestions: suggest_model(id),
        });
    }
    let known =
        ModelCatalog::builtin().providers().find(|known| known.name.eq_ignore_ascii_case(provider));
    let provider = known.map_or(provider, |known| known.name);
    Ok(ModelRef { provider: provider.to_owned(), id: id.to_owned() })
}

/// Known models that `text` may have meant, best first, at most three: a provider's default model for a provider's
/// name, else the names with the fewest letters to change, else those that hold the text.
pub fn suggest_model(text: &str) -> Vec<String> {
    let wanted = text.trim().trim_matches('/').to_ascii_lowercase();
    if wanted.is_empty() || wanted.len() > MAX_COMPARED_LENGTH {
        return Vec::new();
    }
    if let Some(default) = default_of_provider_like(&wanted) {
        return vec![default];
    }
    let mut ranked: Vec<(usize, usize, &str)> = ModelCatalog::builtin()
        .references()
        .filter_map(|reference| {
            Some((unlikeness(&wanted, reference)?, provider_rank(reference), reference))
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(MAX_SUGGESTIONS).map(|(_, _, reference)| reference.to_owned()).collect()
}

/// Many hosts serve one model; the better-known ones are named first.
fn provider_rank(reference: &str) -> usize {
    let provider = reference.split_once('/').map_or(reference, |(provider, _)| provider);
    ModelCatalog::builtin().providers().take_while(|known| known.name != provider).count()
}

fn default_of_provider_like(wanted: &str) -> Option<String> {
    ModelCatalog::builtin().providers().find_map(|provider| {
        let is_like = !wanted.contains('/')
            && levenshtein(wanted, provider.name) <= allowed_slips(provider.name);
        is_like.then_some(provider.default_model?).map(|model| format!("{}/{model}", provider.name))
    })
}

/// How far `reference` is from `wanted`; `None` if they have nothing to do with each other. A text without a provider
/// is compared with the id alone.
fn unlikeness(wanted: &str, reference: &str) -> Option<usize> {
    let reference = reference.to_ascii_lowercase();
    let name = match reference.split_once('/') {
        Some((_, id)) if !wanted.contains('/') => id,
        _ => reference.as_str(),
    };
    let distance = levenshtein(wanted, name);
    let allowed = allowed_slips(name);
    if distance <= allowed {
        return Some(distance);
    }
    let is_part = wanted.len() >= MIN_PART_LENGTH && reference.contains(wanted);
    is_part.then_some(allowed + distance)
}

/// Share of the letters that may differ in a misspelt name: one in five.
fn allowed_slips(name: &str) -> usize {
    (name.len() / 5).max(1)
}

fn did_you_mean(suggestions: &[String]) -> String {
    if suggestions.is_empty() {
        return ", such as anthropic/claude-sonnet-4-6".to_owned();
    }
    format!("; did you mean {}?", suggestions.join(" or "))
}
