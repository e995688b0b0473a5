//! The options that hosts have refused. They are remembered for a host and a model while the process lives.

use crate::wire::EncodedRequest;
use crate::wire::optional::{self, OptionalField, Refusal};
use crate::{Api, ErrorClass, Model, ModelError};
use parking_lot::Mutex;

/// Most times that one call is made again without an option.
pub(super) const MAX_LEFT_OUT: u32 = 3;

/// Most models whose refusals are remembered. The oldest is forgotten first.
const MAX_MODELS: usize = 64;

/// The statuses with which hosts refuse an option. Some call it an error of theirs.
const REFUSALS: [u16; 5] = [400, 404, 422, 500, 501];

/// The words in front of what a host says in the middle of an answer.
const IN_ANSWER: &str = "reported an error";

/// A failed exchange.
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// What the host says, if it answered with a status that is no success.
    pub(super) refusal: Option<Refusal>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self { error, refusal: None }
    }
}

impl Failure {
    /// Whether the host refuses the request as it is.
    pub(super) fn is_refusal(&self) -> bool {
        let is_plain = match self.error.class {
            ErrorClass::Unknown => true,
            ErrorClass::Timeout => matches!(self.error.status, Some(500 | 501)),
            ErrorClass::Auth
            | ErrorClass::RateLimit
            | ErrorClass::Billing
            | ErrorClass::Quota
            | ErrorClass::ContextOverflow => false,
        };
        match &self.refusal {
            Some(_) => {
                is_plain && self.error.status.is_some_and(|status| REFUSALS.contains(&status))
            }
            None => is_plain && self.error.message.contains(IN_ANSWER),
        }
    }

    fn words(&self) -> Option<Refusal> {
        match &self.refusal {
            Some(refusal) => Some(refusal.clone()),
            None => {
                let (_, words) = self.error.message.split_once(IN_ANSWER)?;
                Some(Refusal { field: None, words: words.to_owned() })
            }
        }
    }
}

/// The options of one request that are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    fields: Vec<&'static OptionalField>,
    /// Whether this call has added some.
    has_grown: bool,
}

impl Options {
    /// Takes them out of a request.
    pub(super) fn leave_out(&self, request: &mut EncodedRequest) {
        if !self.fields.is_empty() {
            request.body = optional::without(&request.body, &self.fields);
        }
    }

    /// Adds what the host refuses of `body` by a [`Failure::is_refusal`], and returns its name; `None` if nothing can be left
    /// out.
    pub(super) fn refuse(&mut self, api: Api, body: &[u8], failure: &Failure) -> Option<String> {
        let refusal = failure.words()?;
        let mut refused = optional::refused(api, body, &refusal);
        refused.retain(|field| !self.fields.contains(field));
        if refused.is_empty() {
            return None;
        }
        let names = refused.iter().map(|field| field.label()).collect::<Vec<_>>().join(", ");
        self.fields.extend(refused);
        self.has_grown = true;
        Some(names)
    }
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    api: Api,
    base_url: String,
    id: String,
    options: Options,
}

impl Known {
    fn is_of(&self, model: &Model) -> bool {
        (self.api, &*self.base_url, &*self.id) == (model.api, &*model.base_url, &*model.id)
    }
}

impl LeftOut {
    /// What the host of `model` refuses.
    pub(super) fn options_of(&self, model: &Model) -> Options {
        let known = self.0.lock();
        let options = known.iter().find(|known| known.is_of(model)).map(|known| &known.options);
        options.cloned().unwrap_or_default()
    }

    /// Remembers what a call has found.
    pub(super) fn learn(&self, model: &Model, options: Options) {
        if !options.has_grown {
            return;
        }
        let mut known = self.0.lock();
        known.retain(|known| !known.is_of(model));
        if known.len() == MAX_MODELS {
            known.remove(0);
        }
        let Model { api, base_url, id, .. } = model;
        let options = Options { has_grown: false, ..options };
        known.push(Known { api: *api, base_url: base_url.clone(), id: id.clone(), options });
    }
}
