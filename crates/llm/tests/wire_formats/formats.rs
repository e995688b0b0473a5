//! What the suites must know of each wire format. A format is one entry here and one file below: the suites run over
//! [`FORMATS`].

mod anthropic_messages;
mod bedrock_converse;
mod google_generative_ai;
mod openai_completions;
mod openai_responses;

use myclaw_llm::{Api, ContentBlock};
use serde_json::Value;

/// Every format that is spoken over HTTP.
pub(crate) const FORMATS: [&Format; 5] = [
    &anthropic_messages::FORMAT,
    &openai_completions::FORMAT,
    &openai_responses::FORMAT,
    &google_generative_ai::FORMAT,
    &bedrock_converse::FORMAT,
];

/// How events are distinguished in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Text,
    /// Amazon's event streams.
    Binary,
}

/// One wire format. What is asked for twice or more is a function, since JSON is no constant.
pub(crate) struct Format {
    pub(crate) api: Api,
    pub(crate) framing: Framing,
    /// Whole answers as bytes. The first calls `read` and then `ls`.
    pub(crate) streams: &'static [&'static [u8]],
    /// An answer that is no stream: it thinks `hm`, says `Reading.` and calls `read` with `{"path": "a"}`, for 4
    /// tokens of input and 2 of output.
    pub(crate) document: fn() -> Value,
    /// The content of that answer.
    pub(crate) document_content: fn() -> Vec<ContentBlock>,
    /// A stream with status 200 that fails: its bytes, and the line that a user reads of it.
    pub(crate) failing_stream: (&'static [u8], &'static str),
    /// Where a call of the test model goes when the base URL is only a host.
    pub(crate) path: &'static str,
    /// Headers that the key and the format need, with the test key.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// The member of the request's body that holds the request.
    pub(crate) messages: &'static str,
    /// The whole body for [`crate::request::turn`].
    pub(crate) request: fn() -> Value,
    /// The messages of [`crate::request::pictures`].
    pub(crate) pictures: fn() -> Value,
    /// The messages of [`crate::request::annotated`].
    pub(crate) annotated: fn() -> Value,
    /// The messages of [`crate::request::with_blanks`].
    pub(crate) without_blanks: fn() -> Value,
    /// The arguments of the only call in a request, which were `{"path": ` when they came.
    pub(crate) unreadable_arguments: fn(messages: &Value) -> Value,
}

/// The entry of `api`.
pub(crate) fn format(api: Api) -> &'static Format {
    FORMATS.into_iter().find(|format| format.api == api).unwrap()
}
