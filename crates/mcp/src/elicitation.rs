//! What a server asks the user in the middle of a call.
//!
//! A page to open, and a form that has one possible answer, are asked about with yes or no, as approvals are. Of other forms,
//! each field is asked for in words, which are checked here.

mod field;

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use myclaw_engine::PreparedCall;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

pub use self::field::Field;
use self::field::size_of;
use crate::lines::QUOTED;

/// Most fields of a form.
const MAX_FIELDS: usize = 32;
/// Most bytes that are kept for a call whose process may be killed.
const MAX_BEGUN: usize = 256 << 10;

/// A question for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// What the server asks, in its own words.
    pub message: String,
    /// How it is answered.
    pub wants: Wants,
    /// Whether an answer has the server begin the call again, because an earlier process was killed.
    pub repeats: bool,
}

/// How a question is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Wants {
    /// With yes: the user opens this address, and continues there.
    Page(String),
    /// With yes: these values are sent to the server, which are the only ones that it takes.
    Yes(Map<String, Value>),
    /// With a value for each field.
    Fields(Vec<Field>),
}

/// The answer of the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Yes, with these values; none for a page.
    Accept(Map<String, Value>),
    /// No; why, for the model.
    Decline(String),
    /// The user closed the question, or did not answer in time; why, for the model.
    Cancel(String),
}

/// A question, and what is needed to continue with its call in another process.
pub struct Asked<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The call that waits for the answer.
    pub call: &'a PreparedCall,
    /// The question.
    pub question: Elicitation,
    /// What the call continues with if this process is killed meanwhile.
    pub begun: Option<Begun>,
}

/// What a call continues with whose process was killed while the user was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Begun {
    /// A server with sessions asked this, and has forgotten it. The call is made again.
    Question(Value),
    /// A server without sessions answered this. It wants to see the answers with the call.
    Round(Value),
}

impl Begun {
    /// The same if it is small enough to be kept.
    fn small(self) -> Option<Self> {
        let (Self::Question(value) | Self::Round(value)) = &self;
        (value.to_string().len() <= MAX_BEGUN).then_some(self)
    }
}

/// Asks the user.
pub trait Asker: Send + Sync {
    /// Asks, and waits for the answer.
    fn ask<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Reply>;

    /// Takes a question back that nobody will answer: its call is over.
    fn forget<'a>(&'a self, tool_call_id: &'a str) -> BoxFuture<'a, ()>;

    /// What a call continues with that waited for the user when its process was killed. The model made it at `asked_at`, in
    /// milliseconds since the Unix epoch.
    fn begun<'a>(&'a self, tool_call_id: &'a str, asked_at: u64) -> BoxFuture<'a, Option<Begun>>;
}

impl Elicitation {
    /// Reads the parameters of a question; nothing if it has no answer that could be given here.
    pub(crate) fn read(params: &Value) -> Option<Self> {
        let message = question_in(params);
        if params["mode"] == "url" {
            let url = Url::parse(params["url"].as_str()?).ok()?;
            let is_page = matches!(url.scheme(), "https" | "http") && url.as_str().len() <= QUOTED;
            let wants = Wants::Page(url.into());
            return is_page.then_some(Self { message, wants, repeats: false });
        }
        let schema = &params["requestedSchema"];
        let properties = schema["properties"].as_object()?;
        if properties.len() > MAX_FIELDS {
            return None;
        }
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut fields = Vec::new();
        for (name, schema) in properties {
            match Field::read(name, schema, is_required(name)) {
                Some(field) => fields.push(field),
                None if is_required(name) => return None,
                None => {}
            }
        }
        let wants = match only_answer(&fields) {
            Some(values) if size_of(&values) <= QUOTED => Wants::Yes(values),
            _ => Wants::Fields(fields),
        };
        Some(Self { message, wants, repeats: false })
    }

    /// An answer, for the server.
    fn reply(&self, reply: &Reply) -> Value {
        match (reply, &self.wants) {
            (Reply::Accept(_), Wants::Page(_)) => json!({"action": "accept"}),
            (Reply::Accept(values), _) => json!({"action": "accept", "content": values}),
            (Reply::Decline(_), _) => json!({"action": "decline"}),
            (Reply::Cancel(_), _) => json!({"action": "cancel"}),
        }
    }
}

/// What a form sends that has nothing to choose: fields with one possible value, and defaults of those that are not needed.
fn only_answer(fields: &[Field]) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for field in fields {
        let optional = field.default.clone().filter(|_| !field.is_required);
        match field.only_value().or(optional) {
            Some(value) => drop(values.insert(field.name.clone(), value)),
            None => return None,
        }
    }
    Some(values)
}

/// What a server asks the user, in its own words.
pub(crate) fn question_in(params: &Value) -> String {
    params["message"].as_str().unwrap_or_default().chars().take(QUOTED).collect()
}

/// The user's answer to a question.
pub(crate) type Ask<'a> =
    dyn Fn(Elicitation, Option<Begun>) -> BoxFuture<'a, Reply> + Send + Sync + 'a;

/// The questions of one call.
pub(crate) struct Questions<'a> {
    /// Who is asked; `None` if nobody can be.
    pub(crate) ask: Option<&'a Ask<'a>>,
    pub(crate) declined: Mutex<Vec<Declined>>,
    /// The answer to a question that an earlier process asked, with the parameters of that question.
    pub(crate) earlier: Mutex<Option<(Value, Value)>>,
    /// Whether an answer has the server begin the call again.
    pub(crate) repeats: bool,
    /// Whether the user is asked at the moment.
    pub(crate) is_asking: AtomicBool,
}

/// A question that was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declined {
    pub(crate) question: String,
    /// Why, if the user was asked.
    pub(crate) why: Option<String>,
}

/// Answers what a server asks.
pub(crate) trait Answers: Sync {
    /// Whether somebody can be asked.
    fn has_user(&self) -> bool;

    /// The answer to a question, for the server. `begun` is what the call continues with after a kill.
    fn answer(&self, params: Value, begun: Begun) -> BoxFuture<'_, Value>;
}

impl<'a> Questions<'a> {
    /// Questions that go to this user.
    pub(crate) fn of(ask: Option<&'a Ask<'a>>) -> Self {
        let (declined, earlier, is_asking) = Default::default();
        Self { ask, declined, earlier, repeats: false, is_asking }
    }
}

impl Answers for Questions<'_> {
    fn has_user(&self) -> bool {
        self.ask.is_some()
    }

    fn answer(&self, params: Value, begun: Begun) -> BoxFuture<'_, Value> {
        Box::pin(async move {
            if let Some((_, answer)) = self.earlier.lock().take_if(|(asked, _)| *asked == params) {
                return answer;
            }
            let (mut why, mut answer) = (None, json!({"action": "decline"}));
            if let (Some(mut question), Some(ask)) = (Elicitation::read(&params), self.ask) {
                question.repeats = self.repeats;
                self.is_asking.store(true, Ordering::Relaxed);
                let reply = ask(question.clone(), begun.small()).await;
                self.is_asking.store(false, Ordering::Relaxed);
                answer = question.reply(&reply);
                why = match reply {
                    Reply::Accept(_) => return answer,
                    Reply::Decline(why) | Reply::Cancel(why) => Some(why),
                };
            }
            self.declined.lock().push(Declined { question: question_in(&params), why });
            answer
        })
    }
}

#[cfg(test)]
mod tests;
