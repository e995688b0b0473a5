//! Talking to models: messages, stream events, wire formats, the model catalog, error classes, usage and cost.
//!
//! A [`Provider`] turns a [`ModelRequest`] into stream events and one [`AssistantMessage`]. Wire formats do no I/O:
//! one function encodes a request, one decoder is fed frames; a single driver owns the connection, the time limits
//! and the abort. This crate knows nothing of sessions, tools or agents.
#![forbid(unsafe_code)]

pub mod access;
mod apart;
mod builtin;
mod catalog;
mod classify;
mod driver;
mod error;
mod event;
pub mod event_stream;
mod http;
mod local;
mod message;
mod model;
mod options;
pub mod outside;
mod pairing;
mod provider;
mod quirks;
mod redact;
mod retry_after;
pub mod sse;
mod thinking;
mod usage;
mod variables;
pub mod wire;

pub use apart::Apart;
pub use builtin::{BUILTIN_PROVIDER, DEMO_MODEL_ID, DemoProvider, demo_model};
pub use catalog::{
    KeyNeed, ModelCatalog, ModelRef, ModelRefError, ProviderInfo, ResolveModel,
    first_provider_with_key, parse_model_ref, provider_info, resolve_model, suggest_model,
};
pub use classify::classify;
pub use driver::{HttpProvider, list_models, oauth};
pub use error::{CallFailure, ErrorClass, ModelError, Repeat, Trouble};
pub use event::StreamEvent;
pub use http::{HttpOptions, install_crypto_provider, read_certificates};
pub use local::{
    LocalCandidate, LocalFacts, LocalFinding, LocalProbe, LocalServer, ask_local, discover_local,
    survey_local,
};
pub use message::{
    AssistantMessage, ContentBlock, ImageContent, Message, StopReason, TextContent,
    ThinkingContent, ToolCall, ToolResultMessage, UserMessage, joined_text,
};
pub use model::{Api, InputKind, Model, Price};
pub use options::{AnswerFormat, AnswerOptions, ForcedCall};
pub use pairing::{INTERRUPTED_RESULT, PairedMessages};
pub use provider::{CallLimits, EventSink, ModelRequest, Provider, ToolSchema, ToolUse};
pub use quirks::{Attribution, ExtraHeaders, Quirks};
pub use redact::{Redactor, redact};
pub use thinking::{ThinkingForm, ThinkingLevel, ThinkingLevels, UnknownThinkingLevel};
pub use usage::{Cost, Usage};
pub use variables::Variables;
pub use wire::{partial_arguments, without_fence};
