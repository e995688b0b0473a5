//! The events of the Responses format.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{MessageState, ReasoningState};
use crate::wire::counters::InclusiveCounters;
use crate::wire::json;
use crate::{ErrorClass, ModelError, classify};

/// The kinds of item that make up a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
}

/// The kind of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prose {
    Text,
    Summary,
    Reasoning,
}

/// Identifies the item of an event. Places are more reliable than ids: some gateways change the ids with every event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'e> {
    pub(super) number: Option<u64>,
    pub(super) id: &'e str,
}

/// Text of one part of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'e> {
    pub(super) prose: Prose,
    pub(super) part: u64,
    pub(super) text: &'e str,
    pub(super) extent: Extent,
}

/// How much of a part a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The next piece.
    Delta,
    /// The whole text.
    Whole,
}

/// Whether the ids of items are kept and sent back with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemIds {
    Kept,
    /// Reasoning came that cannot be replayed: an item that names itself is refused without the reasoning before it.
    Dropped,
}

/// Any event. The type is flat, because a tagged one would copy each event before it is read. Large and rare fields are
/// boxed, because an event is moved more than once.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) kind: Option<Cow<'a, str>>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    item_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) delta: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) arguments: Option<Cow<'a, str>>,
    #[serde(borrow)]
    part: Option<Box<WirePart<'a>>>,
    #[serde(borrow)]
    pub(super) item: Option<Box<WireItem<'a>>>,
    #[serde(borrow)]
    pub(super) response: Option<Box<WireResponse<'a>>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

const _: () = assert!(size_of::<Event<'_>>() <= 264, "every delta pays for a large event");

/// An item of any kind. Fields that only some kinds have are read when the kind is known.
#[derive(Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    encrypted_content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    format: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    /// What a tool of the server made, such as an image.
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(rename = "type", borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    refusal: Option<Cow<'a, str>>,
}

/// The whole response: the end of a stream, or an answer that is not a stream.
#[derive(Deserialize)]
pub(super) struct WireResponse<'a> {
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<WireItem<'a>>>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default, deserialize_with = "json::lenient_text")]
    pub(super) reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Event<'_> {
    pub(super) fn place(&self) -> Place<'_> {
        Place { number: self.output_index, id: text(&self.item_id) }
    }

    pub(super) fn item_place(&self) -> Place<'_> {
        let id = self.item.as_ref().map_or("", |item| text(&item.id));
        Place { number: self.output_index, id }
    }

    /// The text that an event of this name (without its `response.`) brings.
    pub(super) fn piece(&self, name: &str) -> Option<Piece<'_>> {
        use Extent::{Delta, Whole};
        let (prose, part, text_field, extent) = match name {
            "output_text.delta" => (Prose::Text, self.content_index, &self.delta, Delta),
            "output_text.done" => (Prose::Text, self.content_index, &self.text, Whole),
            "refusal.delta" => (Prose::Text, self.content_index, &self.delta, Delta),
            "refusal.done" => (Prose::Text, self.content_index, &self.refusal, Whole),
            "reasoning_summary_text.delta" => {
                (Prose::Summary, self.summary_index, &self.delta, Delta)
            }
            "reasoning_summary_text.done" => {
                (Prose::Summary, self.summary_index, &self.text, Whole)
            }
            // The second is vLLM's former name.
            "reasoning_text.delta" | "reasoning.delta" => {
                (Prose::Reasoning, self.content_index, &self.delta, Delta)
            }
            "reasoning_text.done" | "reasoning.done" => {
                (Prose::Reasoning, self.content_index, &self.text, Whole)
            }
            "content_part.done" => return self.part.as_ref()?.piece(self.content_index?),
            "reasoning_summary_part.done" => {
                return self.part.as_ref()?.piece(self.summary_index?);
            }
            _ => return None,
        };
        Some(Piece { prose, part: part.unwrap_or(0), text: text(text_field), extent })
    }

    /// The failure that an `error` event reports. OpenAI's own has its fields at the top, those of others in `error`.
    pub(super) fn failure(&self, data: &str) -> ModelError {
        if json::is_present(self.error) || !json::is_present(self.message) {
            return classify::stream_error(data);
        }
        let error = json!({"error": {"code": self.code, "message": self.message}});
        classify::stream_error(&error.to_string())
    }
}

impl WireItem<'_> {
    /// Other kinds belong to tools that run at the server, which are never requested.
    pub(super) fn kind(&self) -> Option<Kind> {
        match text(&self.kind) {
            "message" => Some(Kind::Message),
            "reasoning" => Some(Kind::Reasoning),
            "function_call" => Some(Kind::Call),
            _ => None,
        }
    }

    /// Whether it is an image, made at the server. Some models make them without being asked to.
    pub(super) fn is_image(&self) -> bool {
        text(&self.kind) == "image_generation_call" && json::is_present(self.result)
    }

    pub(super) fn message_state(&self, ids: ItemIds) -> Option<String> {
        let id = non_empty(&self.id).filter(|_| ids == ItemIds::Kept);
        let state = MessageState { id, phase: non_empty(&self.phase) };
        let says_something = state.id.is_some() || state.phase.is_some();
        says_something.then(|| serde_json::to_string(&state).ok()).flatten()
    }

    pub(super) fn reasoning_state(&self) -> Option<String> {
        let state = ReasoningState {
            id: non_empty(&self.id),
            summary: json::optional(self.summary).unwrap_or_default(),
            content: json::optional(self.content).unwrap_or_default(),
            encrypted_content: non_empty(&self.encrypted_content),
            signature: non_empty(&self.signature),
            format: non_empty(&self.format),
        };
        state.is_replayable().then(|| serde_json::to_string(&state).ok()).flatten()
    }
}

impl WirePart<'_> {
    pub(super) fn piece(&self, part: u64) -> Option<Piece<'_>> {
        let (prose, field) = match text(&self.kind) {
            "output_text" | "text" => (Prose::Text, &self.text),
            "refusal" => (Prose::Text, &self.refusal),
            "summary_text" => (Prose::Summary, &self.text),
            "reasoning_text" => (Prose::Reasoning, &self.text),
            _ => return None,
        };
        Some(Piece { prose, part, text: text(field), extent: Extent::Whole })
    }

    pub(super) fn is_refusal(&self) -> bool {
        text(&self.kind) == "refusal"
    }
}

impl WireResponse<'_> {
    pub(super) fn failure(&self) -> ModelError {
        match self.error.filter(|error| json::is_present(Some(error))) {
            Some(error) => classify::stream_error(&format!(r#"{{"error":{error}}}"#)),
            None => ModelError {
                status: Some(200),
                ..ModelError::new(ErrorClass::Timeout, "the answer failed without a reason")
            },
        }
    }
}

impl WireUsage {
    pub(super) fn counters(&self) -> InclusiveCounters {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        InclusiveCounters {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            total: self.total_tokens,
            cache_read: input.and_then(|details| details.cached_tokens).unwrap_or(0),
            cache_write: input.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            reasoning: output.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        }
    }
}

pub(super) fn text<'t>(field: &'t Option<Cow<'_, str>>) -> &'t str {
    field.as_deref().unwrap_or_default()
}

fn non_empty<'t>(field: &'t Option<Cow<'_, str>>) -> Option<Cow<'t, str>> {
    field.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed)
}
