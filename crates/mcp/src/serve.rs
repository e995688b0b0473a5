//! The other side of the protocol: MyClaw as a server, whose tools ask the agent and read its sessions.
//!
//! This module knows messages, revisions and tasks. It knows neither a transport nor a session: a transport makes a
//! [`Call`] of each request and has it [answered](Call::outcome), and a [`Backend`] carries out what the tools say. Nothing
//! is kept between two requests, so that any process with the same sessions can answer the next one: the id of a task, and
//! the state that a client hands back with its answer to a question, name the turn.

mod answer;
mod ask;
mod asks;
mod client;
mod follow;
mod message;
mod refusal;
mod tasks;
mod tools;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::WantedWords;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use asks::Asks;
pub use client::Client;
pub use message::{Message, Request};
pub use refusal::Refusal;

/// The tools that a server may offer.
pub const ASK: &str = "ask";
/// Sends a message to a chat.
pub const SEND: &str = "send";
/// Finds sessions.
pub const SESSIONS_SEARCH: &str = "sessions_search";
/// Reads messages of a session.
pub const SESSION_READ: &str = "session_read";
/// Searches what is remembered.
pub const MEMORY_SEARCH: &str = "memory_search";

/// A request with all that its answer depends on.
pub struct Call {
    /// Who carries it out.
    pub backend: Arc<dyn Backend>,
    /// What its client can do.
    pub client: Client,
    /// The way to that client while the request is answered.
    pub peer: Arc<dyn Peer>,
    /// What is asked.
    pub request: Request,
    /// Fires when nobody wants the answer any more; the turn that the request has begun ends then.
    pub cancel: CancellationToken,
}

/// The client, while a request of it is answered.
pub trait Peer: Send + Sync {
    /// Sends a notification that belongs to the request.
    fn notify(&self, method: &str, params: Value);

    /// Asks the client, and waits for its answer. Dropped before the end, the question is taken back.
    fn ask<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, String>>;
}

/// A turn of the agent: all that another process needs to find it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn(pub String);

/// A turn that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The turn.
    pub turn: Turn,
    /// The session, by the name with which a later call continues it.
    pub session: String,
}

/// Where a turn is.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It waits, or is being worked on.
    Working,
    /// It waits for an answer.
    Asked(Question),
    /// It is over.
    Over(Outcome),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a reply.
    Answered {
        /// The reply.
        reply: String,
        /// The session, by the name with which a later call continues it.
        session: String,
    },
    /// Without one; why.
    Failed(String),
    /// It was stopped.
    Stopped,
}

/// A question about a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The same for the same question, in each process.
    pub id: String,
    /// All that the owner is to read.
    pub text: String,
    /// The answers that approve: what a client sends, and what each means.
    pub approving: Vec<(String, String)>,
    /// The words that answer it; then nothing approves.
    pub wants: Option<WantedWords>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One of [`Question::approving`].
    Approved(String),
    /// No, with the reason for the model.
    Refused(Option<String>),
    /// The words that [`Question::wants`]; empty for none.
    Words(String),
    /// The question was closed without an answer.
    Closed,
}

/// What can have changed of a turn.
pub trait Watch: Send {
    /// Returns when the turn may be in another state, or has progressed; what it is at, for people.
    fn changed(&mut self) -> BoxFuture<'_, Option<String>>;
}

/// Carries out what the tools say. Errors are for the model and the person at the client: one sentence that says what to do.
pub trait Backend: Send + Sync {
    /// Whether this client may use a tool.
    fn offers(&self, tool: &str) -> bool;

    /// A tool that answers at once.
    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Value, String>>;

    /// Begins a turn, in a new session if none is named.
    fn begin(
        &self,
        message: String,
        session: Option<String>,
    ) -> BoxFuture<'_, Result<Begun, String>>;

    /// Watches a turn from now on.
    fn watch<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<Box<dyn Watch>, String>>;

    /// Where a turn is. One that a killed process has left continues.
    fn state<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<State, String>>;

    /// Answers a question of a turn.
    fn answer<'a>(
        &'a self,
        turn: &'a Turn,
        question: &'a str,
        answer: Answer,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Ends a turn.
    fn stop<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<(), String>>;
}
