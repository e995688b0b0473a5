//! The answers of the server, request by request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::{RecordedRequest, Reply, Step};

/// Decides the answer to the request with the given number (from 0, counting only those answered from the script).
type Decide = dyn Fn(&RecordedRequest, usize) -> Step + Send + Sync;

/// Answers in order, and the answer after the last of them.
///
/// Made from one [`Reply`] or [`Step`], from an array or vector of either, or by [`Script::repeat`] and
/// [`Script::answer_with`].
#[derive(Clone, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    tail: Tail,
    pub(crate) settings: Settings,
}

/// The behaviour of a server besides its steps.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Ids listed by `GET /v1/models`.
    pub(crate) models: Vec<String>,
    /// Whether requests that break the providers' pairing rules are answered by 400, as providers do.
    pub(crate) pairing: PairingCheck,
    /// How many of the latest requests keep their bodies.
    pub(crate) kept_bodies: usize,
    /// The answers at certain paths, for any method.
    pub(crate) documents: Vec<(String, Value)>,
    /// Whether every request takes a step, with any method and path.
    pub(crate) every_route: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairingCheck {
    Refuse,
    Accept,
}

#[derive(Clone, Default)]
enum Tail {
    #[default]
    End,
    Repeat(Box<Step>),
    Decide(Arc<Decide>),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            models: vec!["test-model".to_owned()],
            pairing: PairingCheck::Refuse,
            kept_bodies: usize::MAX,
            documents: Vec::new(),
            every_route: false,
        }
    }
}

impl Script {
    /// A script without steps: every model call fails until steps are pushed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers every request alike.
    pub fn repeat(step: impl Into<Step>) -> Self {
        Self::new().then_repeat(step)
    }

    /// Asks `decide` for each answer; its second argument counts the requests from 0.
    pub fn answer_with(
        decide: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static,
    ) -> Self {
        Self { tail: Tail::Decide(Arc::new(decide)), ..Self::default() }
    }

    /// Adds one more step.
    #[must_use]
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push_back(step.into());
        self
    }

    /// Answers every request after the last step with `step`.
    #[must_use]
    pub fn then_repeat(mut self, step: impl Into<Step>) -> Self {
        self.tail = Tail::Repeat(Box::new(step.into()));
        self
    }

    /// Sets the ids that `GET /v1/models` lists (`test-model` unless set).
    #[must_use]
    pub fn models<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.settings.models = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Answers requests to `path` with `document`, before anything else is considered: for what servers tell about
    /// themselves.
    #[must_use]
    pub fn document(mut self, path: &str, document: Value) -> Self {
        self.settings.documents.push((path.to_owned(), document));
        self
    }

    /// Also answers requests that break the pairing rules, which are otherwise refused with 400 as a provider would
    /// (see [`crate::validate_pairing`]). It also saves the time of the check, which parses every body: a debug build
    /// needs seconds for runs whose bodies come to tens of megabytes.
    #[must_use]
    pub fn accept_invalid_requests(mut self) -> Self {
        self.settings.pairing = PairingCheck::Accept;
        self
    }

    /// Keeps the bodies of the last `count` requests only, for runs of thousands of turns. Otherwise the oldest are
    /// forgotten once there are 512 MB of them.
    #[must_use]
    pub fn keep_last_bodies(mut self, count: usize) -> Self {
        self.settings.kept_bodies = count;
        self
    }

    /// Answers every request from the script, not model calls alone: for servers that give out tokens. The pairing rules
    /// still hold for model calls.
    #[must_use]
    pub fn answer_every_route(mut self) -> Self {
        self.settings.every_route = true;
        self
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// Takes the step for request `number`; `None` when the script is over.
    pub(crate) fn take(&mut self) -> Option<Answering> {
        if let Some(step) = self.steps.pop_front() {
            return Some(Answering::Step(Box::new(step)));
        }
        match &self.tail {
            Tail::End => None,
            Tail::Repeat(step) => Some(Answering::Step(step.clone())),
            Tail::Decide(decide) => Some(Answering::Decide(Arc::clone(decide))),
        }
    }

    /// Steps that no request has taken yet.
    pub(crate) fn steps_left(&self) -> usize {
        self.steps.len()
    }
}

/// A step, or the function that makes it: the function runs outside the script's lock.
pub(crate) enum Answering {
    Step(Box<Step>),
    Decide(Arc<Decide>),
}

impl Answering {
    pub(crate) fn into_step(self, request: &RecordedRequest, number: usize) -> Step {
        match self {
            Self::Step(step) => *step,
            Self::Decide(decide) => decide(request, number),
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail = match self.tail {
            Tail::End => "end",
            Tail::Repeat(_) => "repeat",
            Tail::Decide(_) => "decide",
        };
        f.debug_struct("Script").field("steps", &self.steps.len()).field("tail", &tail).finish()
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        Self::new().then(step)
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::new().then(reply)
    }
}

impl<S: Into<Step>> From<Vec<S>> for Script {
    fn from(steps: Vec<S>) -> Self {
        steps.into_iter().collect()
    }
}

impl<S: Into<Step>, const N: usize> From<[S; N]> for Script {
    fn from(steps: [S; N]) -> Self {
        steps.into_iter().collect()
    }
}

impl<S: Into<Step>> FromIterator<S> for Script {
    fn from_iter<I: IntoIterator<Item = S>>(steps: I) -> Self {
        Self { steps: steps.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}
