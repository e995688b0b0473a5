//! The chunks of the Chat Completions format.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::content::Content;
use crate::wire::counters::InclusiveCounters;
use crate::wire::json::{self, Text};

/// A piece of a stream, or a whole answer.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// Which of several answers it belongs to.
    #[serde(default, deserialize_with = "lenient_number")]
    pub(super) index: Option<u64>,
    /// A piece of a stream.
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole message: in an answer that is not a stream, and at some hosts at the end of a stream. It is boxed
    /// because it is rare and a chunk is moved more than once.
    #[serde(borrow)]
    pub(super) message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    /// The finish reason of the host behind a gateway. It may be a failure although the gateway's own is a normal one.
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) native_finish_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) reasoning_text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<WireCall<'a>>>,
    /// OpenRouter's place for images, a list.
    #[serde(borrow)]
    images: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(default, deserialize_with = "lenient_number")]
    pub(super) index: Option<u64>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Option<WireFunction<'a>>,
    #[serde(borrow)]
    extra_content: Option<ExtraContent<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    /// A string with a fragment of JSON; some hosts send the object itself.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ExtraContent<'a> {
    #[serde(borrow)]
    google: Option<GoogleExtra<'a>>,
}

#[derive(Deserialize)]
struct GoogleExtra<'a> {
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's.
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Delta<'_> {
    /// Whether it holds nothing, except perhaps the role.
    pub(super) fn is_empty(&self) -> bool {
        let has_text =
            |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|text| !text.is_empty());
        let reasoning = [&self.reasoning_content, &self.reasoning, &self.reasoning_text];
        self.content.as_ref().is_none_or(Content::is_empty)
            && json::text(&self.refusal).is_empty()
            && !reasoning.into_iter().any(has_text)
            && !json::is_present(self.reasoning_details)
            && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
            && !self.has_images()
    }

    /// Whether it holds an image, in a place of its own or in the content.
    pub(super) fn has_images(&self) -> bool {
        let is_list = |images: &RawValue| !matches!(images.get(), "[]" | "null");
        self.images.is_some_and(is_list) || self.content.as_ref().is_some_and(Content::has_images)
    }
}

impl WireCall<'_> {
    /// Gemini's signature of the thought that led to the call; may be empty.
    pub(super) fn signature(&self) -> &str {
        let google = self.extra_content.as_ref().and_then(|extra| extra.google.as_ref());
        google.map_or("", |google| json::text(&google.thought_signature))
    }
}

impl WireUsage {
    pub(super) fn counters(&self) -> InclusiveCounters {
        let details = self.prompt_tokens_details.as_ref();
        InclusiveCounters {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            total: self.total_tokens,
            cache_read: details
                .and_then(|details| details.cached_tokens)
                .or(self.prompt_cache_hit_tokens)
                .or(self.cached_tokens)
                .unwrap_or(0),
            cache_write: details.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            reasoning: self
                .completion_tokens_details
                .as_ref()
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0),
        }
    }
}

fn lenient_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(json::lenient_text(deserializer)?.and_then(|text| text.parse().ok()))
}
