//! Asks the user what an MCP server wants to know in the middle of a call, through the approver of the front-end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{Approval, ApprovalRequest, Approver, ShownFact, WantedWords};
use myclaw_files::now_ms;
use myclaw_mcp::{Asked, Asker, Begun, Field, Reply, Wants};
use myclaw_session::SessionKey;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::approvals::{ApprovalStore, ApprovalsError, WaitingApproval, escape};
use crate::blocking::blocking;

/// Most answers to one field that do not fit.
const MAX_TRIES: usize = 5;
/// What the model reads if the user closes a question.
const CLOSED: &str = "the user closed the question";

/// The user of a session.
pub(super) struct UserOf {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) session: Arc<SessionKey>,
    /// Keeps the questions, so that they are asked again if this process is killed.
    pub(super) store: ApprovalStore,
    /// Longest wait for an answer.
    pub(super) limit: Duration,
}

impl Asker for UserOf {
    fn ask<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let call = asked.call.tool_call_id.clone();
            if let Some(begun) = &asked.begun {
                let waiting = WaitingApproval {
                    session: self.session.to_string(),
                    tool_call_id: call.clone(),
                    tool: escape(&asked.call.tool_name),
                    call: escape(&asked.question.message),
                    reason: reason(asked.server),
                    ts: now_ms(),
                    begun: serde_json::to_value(begun).ok(),
                    answer: None,
                };
                self.on_disk(move |store| store.begin_wait(&waiting)).await;
            }
            let reply = self.reply(&asked).await;
            self.forget(&call).await;
            reply
        })
    }

    fn forget<'a>(&'a self, tool_call_id: &'a str) -> BoxFuture<'a, ()> {
        let (session, call) = (self.session.to_string(), tool_call_id.to_owned());
        Box::pin(async move {
            self.on_disk(move |store| store.end_wait(&session, &call)).await;
        })
    }

    fn begun<'a>(&'a self, tool_call_id: &'a str, asked_at: u64) -> BoxFuture<'a, Option<Begun>> {
        Box::pin(async move {
            let (session, call) = (self.session.to_string(), tool_call_id.to_owned());
            let waiting = self.on_disk(move |store| store.waiting(&session, &call)).await??;
            let begun = waiting.begun.filter(|_| waiting.ts >= asked_at)?;
            serde_json::from_value(begun).ok()
        })
    }
}

impl UserOf {
    async fn reply(&self, asked: &Asked<'_>) -> Reply {
        let mut request = self.request(asked);
        let fields = match &asked.question.wants {
            Wants::Page(url) => {
                request.shown.push(ShownFact::text("page to open in your browser", url.clone()));
                return self.yes_or_no(&request, Map::new()).await;
            }
            Wants::Yes(values) if values.is_empty() => {
                request.shown.push(ShownFact::text("a yes sends", "nothing else"));
                return self.yes_or_no(&request, Map::new()).await;
            }
            Wants::Yes(values) => {
                let facts = values.iter().map(|(name, value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    ShownFact::text(format!("a yes sends {name}"), text)
                });
                request.shown.extend(facts);
                return self.yes_or_no(&request, values.clone()).await;
            }
            Wants::Fields(fields) => fields,
        };
        let (mut values, mut sent) = (Map::new(), Vec::new());
        for (number, field) in fields.iter().enumerate() {
            let place = (fields.len() > 1).then(|| format!("{} of {}", number + 1, fields.len()));
            match self.field(&request, field, place).await {
                Ok(Some(value)) => {
                    let label = format!("a yes sends {}", field.label);
                    sent.push(ShownFact::text(label, field.shown(&value)));
                    values.insert(field.name.clone(), value);
                }
                Ok(None) => {}
                Err(reply) => return reply,
            }
        }
        if fields.len() == 1 {
            return Reply::Accept(values);
        }
        // Several answers are shown once more before they are sent.
        if sent.is_empty() {
            sent.push(ShownFact::text("a yes sends", "no value"));
        }
        request.shown.extend(sent);
        self.yes_or_no(&request, values).await
    }

    fn request(&self, asked: &Asked<'_>) -> ApprovalRequest {
        let (session, call) = (Arc::clone(&self.session), asked.call.clone());
        let mut request = ApprovalRequest::new(session, call, reason(asked.server));
        request.shown.push(ShownFact::text("what it asks", asked.question.message.clone()));
        if asked.question.repeats {
            let text = "this was asked when MyClaw ended. After your answer the call is made again, from its beginning";
            request.shown.push(ShownFact::text("again", text));
        }
        request
    }

    /// Asks for the value of a field until it fits; nothing if it is left out.
    async fn field(
        &self,
        request: &ApprovalRequest,
        field: &Field,
        place: Option<String>,
    ) -> Result<Option<Value>, Reply> {
        let mut request = request.clone();
        let place = place.map_or_else(|| "field".to_owned(), |place| format!("field {place}"));
        request.shown.push(ShownFact::text(place, field.label.clone()));
        if !field.about.is_empty() {
            request.shown.push(ShownFact::text("about it", field.about.clone()));
        }
        request.shown.push(ShownFact::text("expected", field.rule()));
        request.wants = Some(WantedWords {
            label: field.label.clone(),
            choices: field.choices(),
            without: field.without(),
        });
        let (mut tries, shown) = (0, request.shown.len());
        loop {
            let words = match self.decide(&request).await? {
                Approval::Said { words } => words,
                _ => return Err(Reply::Cancel(CLOSED.to_owned())),
            };
            match field.value(&words) {
                Ok(value) => return Ok(value),
                Err(_) if tries == MAX_TRIES => {
                    return Err(Reply::Cancel(format!(
                        "none of {MAX_TRIES} answers of the user fitted the field {}",
                        field.label
                    )));
                }
                Err(why) => {
                    tries += 1;
                    request.shown.truncate(shown);
                    request.shown.push(ShownFact::text("your answer does not fit", why));
                }
            }
        }
    }

    async fn yes_or_no(&self, request: &ApprovalRequest, values: Map<String, Value>) -> Reply {
        match self.decide(request).await {
            Ok(_) => Reply::Accept(values),
            Err(reply) => reply,
        }
    }

    /// The answer to a question; the error ends the form.
    async fn decide(&self, request: &ApprovalRequest) -> Result<Approval, Reply> {
        let seconds = self.limit.as_secs();
        let unanswered = |_| {
            Reply::Cancel(format!(
                "nobody answered within {seconds} s (tools.approvals.timeoutSeconds)"
            ))
        };
        let answer = timeout(self.limit, self.approver.decide(request)).await;
        match answer.map_err(unanswered)? {
            Approval::Denied { reason } => Err(Reply::Decline(reason)),
            Approval::Cancelled => Err(Reply::Cancel(CLOSED.to_owned())),
            answer => Ok(answer),
        }
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ApprovalStore) -> Result<T, ApprovalsError> + Send + 'static,
    ) -> Option<T> {
        let store = self.store.clone();
        let done = blocking(move || work(&store)).await;
        let failed = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "the question of an MCP server cannot be kept");
        };
        match done {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                failed(&error);
                None
            }
            Err(error) => {
                failed(&error);
                None
            }
        }
    }
}

fn reason(server: &str) -> String {
    format!("the MCP server {server} asks you something before it answers")
}
