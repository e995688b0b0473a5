//! A turn of the agent on behalf of a request: its progress, its questions, its result.

use std::collections::HashSet;

use jiff::Timestamp;
use myclaw_engine::WantedWords;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{Answer, Call, Outcome, Question, Refusal, State, Turn};

/// Why the agent may not do what it asks about.
const NOBODY: &str = "the program that asked cannot show a question to its user; ask from one that can (elicitation), or \
                      permit the call in the policy";
/// Longest name that is shown of a choice, in characters.
const MAX_CHOICE: usize = 200;
/// The answer that refuses.
const NO: &str = "no";

/// How far a turn was followed.
pub(super) enum Followed {
    /// To its end.
    Over(Outcome),
    /// To a question that the client answers with another request.
    Asked(Question),
    /// Until the time was over.
    Working,
}

/// Follows a turn to its end, to a question that ends this request, or until the time is over.
pub(super) async fn follow(
    call: &Call,
    turn: &Turn,
    until: Option<Instant>,
) -> Result<Followed, Refusal> {
    let backend = &call.backend;
    let mut watch = backend.watch(turn).await.map_err(Refusal::invalid)?;
    let mut progress = Progress::of(call);
    // A question whose answer is on its way is not asked again.
    let mut answered = HashSet::new();
    loop {
        match backend.state(turn).await.map_err(Refusal::invalid)? {
            State::Over(outcome) => return Ok(Followed::Over(outcome)),
            State::Asked(question) if !answered.contains(&question.id) => {
                let answer = match given(call, &question) {
                    Some(answer) => Some(answer),
                    None if !call.client.can_be_asked => {
                        Some(Answer::Refused(Some(NOBODY.to_owned())))
                    }
                    None if call.client.is_stateless => return Ok(Followed::Asked(question)),
                    None => elicited(call, turn, &question, &mut *watch).await?,
                };
                if let Some(answer) = answer {
                    // Somebody else may have answered meanwhile.
                    let _ = backend.answer(turn, &question.id, answer).await;
                    answered.insert(question.id);
                }
                continue;
            }
            State::Asked(_) | State::Working => {}
        }
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                backend.stop(turn).await.map_err(Refusal::invalid)?;
                return Ok(Followed::Over(Outcome::Stopped));
            }
            what = watch.changed() => if let Some(what) = what { progress.show(call, &what) },
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                return Ok(Followed::Working);
            }
        }
    }
}

/// Asks the client in the middle of its request; nothing if the question does not wait any more, or the call is cancelled.
async fn elicited(
    call: &Call,
    turn: &Turn,
    question: &Question,
    watch: &mut dyn super::Watch,
) -> Result<Option<Answer>, Refusal> {
    let asking = call.peer.ask("elicitation/create", form(question));
    tokio::pin!(asking);
    loop {
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Ok(None),
            said = &mut asking => {
                return Ok(Some(match said {
                    Ok(said) => answer_in(question, &said),
                    Err(why) => Answer::Refused(Some(format!("the program that asked cannot show the question: {why}"))),
                }));
            }
            _ = watch.changed() => {
                let now = call.backend.state(turn).await.map_err(Refusal::invalid)?;
                if !matches!(now, State::Asked(other) if other.id == question.id) {
                    return Ok(None);
                }
            }
        }
    }
}

/// The answer to a question that a request brings.
fn given(call: &Call, question: &Question) -> Option<Answer> {
    let responses = call.request.params.get("inputResponses")?;
    Some(answer_in(question, responses.get(&question.id)?))
}

/// Everything but a clear yes counts as no.
pub(super) fn answer_in(question: &Question, said: &Value) -> Answer {
    let chosen = said["content"]["answer"].as_str().unwrap_or_default();
    let is_offered = question.approving.iter().any(|(answer, _)| answer == chosen);
    match said["action"].as_str() {
        Some("accept") if question.wants.is_some() => Answer::Words(chosen.to_owned()),
        Some("cancel") => Answer::Closed,
        Some("accept") if is_offered => Answer::Approved(chosen.to_owned()),
        _ => Answer::Refused(None),
    }
}

/// A question in the form of an `input_required` result.
pub(super) fn input_requests(question: &Question) -> Value {
    json!({question.id.as_str(): {"method": "elicitation/create", "params": form(question)}})
}

/// A question as a form.
fn form(question: &Question) -> Value {
    if let Some(WantedWords { label, choices, without }) = &question.wants {
        let mut field = json!({"type": "string", "title": label});
        let without = without.as_ref().map(|without| format!("empty for {without}"));
        let choices = (!choices.is_empty()).then(|| choices.join(", "));
        let about: Vec<String> = choices.into_iter().chain(without.clone()).collect();
        if !about.is_empty() {
            field["description"] = json!(about.join("; "));
        }
        let required: &[&str] = if without.is_none() { &["answer"] } else { &[] };
        return json!({
            "mode": "form",
            "message": question.text,
            "requestedSchema": {"type": "object", "properties": {"answer": field}, "required": required},
        });
    }
    let offered = question.approving.iter().map(|(answer, _)| answer.as_str());
    let answers: Vec<&str> = offered.chain([NO]).collect();
    let meaning = question.approving.iter().map(|(answer, meaning)| {
        let meaning: String = meaning.chars().take(MAX_CHOICE).collect();
        format!("{answer}: {meaning}")
    });
    let meaning: Vec<String> = meaning.chain([format!("{NO}: it does not run")]).collect();
    json!({
        "mode": "form",
        "message": question.text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": "May the agent do that?",
                    "description": meaning.join("; "),
                    "enum": answers,
                },
            },
            "required": ["answer"],
        },
    })
}

/// The result of a turn.
pub(super) fn result(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Answered { reply, session } => json!({
            "content": [{"type": "text", "text": reply}],
            "structuredContent": {"session": session, "reply": reply},
            "isError": false,
        }),
        Outcome::Failed(why) => failed(why),
        Outcome::Stopped => failed("the turn was stopped before it was over"),
    }
}

/// The result of a call that could not do what it was to do.
pub(super) fn failed(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

/// Refuses a question that nobody can be asked.
pub(super) async fn refuse(call: &Call, turn: &Turn, question: &Question) {
    let answer = Answer::Refused(Some(NOBODY.to_owned()));
    let _ = call.backend.answer(turn, &question.id, answer).await;
}

/// The time now, as tasks have it.
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// The progress of a request whose client wants to know it.
struct Progress {
    token: Option<Value>,
    count: u64,
}

impl Progress {
    fn of(call: &Call) -> Self {
        let token = call.request.meta().and_then(|meta| meta.get("progressToken")).cloned();
        Self { token: token.filter(|token| !token.is_null()), count: 0 }
    }

    fn show(&mut self, call: &Call, message: &str) {
        let Some(token) = &self.token else { return };
        self.count += 1;
        let params = json!({"progressToken": token, "progress": self.count, "message": message});
        call.peer.notify("notifications/progress", params);
    }
}
