//! What a server asks the user in the middle of a call.
//!
//! A question is answered with yes or no, as those about approvals are, so that every front-end can ask it. A yes opens an
//! address, or sends a form as the question shows it. Forms that need words of the user are declined, and the model learns
//! what was asked.

use futures_util::future::BoxFuture;
use myclaw_engine::PreparedCall;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use url::Url;

use crate::lines::QUOTED;

/// Most fields of a form.
const MAX_FIELDS: usize = 32;

/// A question that can be answered with yes or no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    /// What the server asks, in its own words.
    pub message: String,
    /// What a yes does.
    pub yes: Yes,
}

/// What a yes does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Yes {
    /// The user opens an address, and goes on there.
    Opens(String),
    /// These values are sent to the server.
    Sends(Map<String, Value>),
}

/// Asks the user.
pub trait Asker: Send + Sync {
    /// Whether the user says yes. `call` is the call that waits for the answer.
    fn ask<'a>(
        &'a self,
        server: &'a str,
        call: &'a PreparedCall,
        question: Elicitation,
    ) -> BoxFuture<'a, bool>;
}

impl Elicitation {
    /// Reads the parameters of a question; nothing if it cannot be answered with yes or no.
    pub(crate) fn read(params: &Value) -> Option<Self> {
        let message = question_in(params);
        if params["mode"] == "url" {
            let url = Url::parse(params["url"].as_str()?).ok()?;
            let is_page = matches!(url.scheme(), "https" | "http") && url.as_str().len() <= QUOTED;
            return is_page.then(|| Self { message, yes: Yes::Opens(url.into()) });
        }
        let schema = &params["requestedSchema"];
        let fields = schema["properties"].as_object()?;
        if fields.len() > MAX_FIELDS {
            return None;
        }
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut values = Map::new();
        for (name, field) in fields {
            match value_of(field) {
                Some(value) => drop(values.insert(name.clone(), value)),
                None if is_required(name) => return None,
                None => {}
            }
        }
        // A form without a value that it could send wants words.
        let is_answer = !values.is_empty() || fields.is_empty();
        let is_short = json!(values).to_string().len() <= QUOTED;
        (is_answer && is_short).then_some(Self { message, yes: Yes::Sends(values) })
    }

    fn accepted(&self) -> Value {
        match &self.yes {
            Yes::Opens(_) => json!({"action": "accept"}),
            Yes::Sends(values) => json!({"action": "accept", "content": values}),
        }
    }
}

/// The value of a field that a yes means: its default, the only one that it may have, or that something is so.
fn value_of(field: &Value) -> Option<Value> {
    let only = |list: &Value| list.as_array().filter(|list| list.len() == 1)?.first().cloned();
    let default = field.get("default").filter(|value| !value.is_null()).cloned();
    let constant = || field.get("const").cloned();
    let choice = || only(&field["enum"]).or_else(|| only(&field["oneOf"])?.get("const").cloned());
    let is_so = || (field["type"] == "boolean").then_some(Value::Bool(true));
    default.or_else(constant).or_else(choice).or_else(is_so)
}

/// What a server asks the user, in its own words.
pub(crate) fn question_in(params: &Value) -> String {
    params["message"].as_str().unwrap_or_default().chars().take(QUOTED).collect()
}

/// Whether the user says yes to a question.
pub(crate) type Ask<'a> = dyn Fn(Elicitation) -> BoxFuture<'a, bool> + Send + Sync + 'a;

/// The questions of one call.
pub(crate) struct Questions<'a> {
    /// Who is asked; `None` if nobody can be.
    pub(crate) ask: Option<&'a Ask<'a>>,
    pub(crate) declined: Mutex<Vec<Declined>>,
}

/// A question that was answered with no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declined {
    pub(crate) question: String,
    /// Whether the user said so; else nobody could be asked.
    pub(crate) by_user: bool,
}

/// Answers what a server asks.
pub(crate) trait Answers: Sync {
    /// Whether somebody can be asked.
    fn has_user(&self) -> bool;

    /// The answer to a question, for the server.
    fn answer(&self, params: Value) -> BoxFuture<'_, Value>;
}

impl Answers for Questions<'_> {
    fn has_user(&self) -> bool {
        self.ask.is_some()
    }

    fn answer(&self, params: Value) -> BoxFuture<'_, Value> {
        Box::pin(async move {
            let question = Elicitation::read(&params);
            let by_user = question.is_some() && self.has_user();
            if let (Some(question), Some(ask)) = (question, self.ask) {
                let accepted = question.accepted();
                if ask(question).await {
                    return accepted;
                }
            }
            self.declined.lock().push(Declined { question: question_in(&params), by_user });
            json!({"action": "decline"})
        })
    }
}

#[cfg(test)]
mod tests;
