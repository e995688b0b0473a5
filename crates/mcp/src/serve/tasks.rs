//! Calls that take long, as tasks. The id of a task names its turn, so nothing is kept of it here.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::follow::{Followed, answer_in, follow, input_requests, now, refuse, result};
use super::{Call, Outcome, Refusal, State, Turn};

/// How often a client may look, in milliseconds.
const POLL_MS: u64 = 2_000;
/// Between the time at which a task has begun and its turn.
const SEPARATOR: char = '.';
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The id of the task of a turn that begins now.
pub(super) fn id_of(turn: &Turn) -> String {
    format!("{}{SEPARATOR}{}", now().as_millisecond(), turn.0)
}

/// The task that a request names.
fn named(call: &Call) -> Result<(String, Turn), Refusal> {
    let method = &call.request.method;
    let id = call.request.text("taskId");
    let id = id.ok_or_else(|| Refusal::invalid(format!("{method}: `taskId` is missing")))?;
    let turn = id.split_once(SEPARATOR).filter(|(begun, _)| begun.parse::<i64>().is_ok());
    let turn = turn.map(|(_, turn)| Turn(turn.to_owned()));
    let turn =
        turn.ok_or_else(|| Refusal::invalid(format!("{method}: there is no task `{id}`")))?;
    Ok((id.to_owned(), turn))
}

/// Where the task is that a request names. A question that nobody can be asked is refused.
async fn found(call: &Call) -> Result<(String, Turn, State), Refusal> {
    let (id, turn) = named(call)?;
    let state = call.backend.state(&turn).await.map_err(Refusal::invalid)?;
    match state {
        State::Asked(question) if !call.client.can_be_asked => {
            refuse(call, &turn, &question).await;
            Ok((id, turn, State::Working))
        }
        state => Ok((id, turn, state)),
    }
}

/// `tasks/get`.
pub(super) async fn get(call: &Call) -> Result<Value, Refusal> {
    let (id, _, state) = found(call).await?;
    Ok(task(call, &id, &state))
}

/// `tasks/result`, which waits for the end and asks meanwhile.
pub(super) async fn result_of(call: &Call) -> Result<Value, Refusal> {
    let (id, turn) = named(call)?;
    let mut result = match follow(call, &turn, None).await? {
        Followed::Over(outcome) => result(&outcome),
        // Those are for requests of the other revision.
        Followed::Asked(_) | Followed::Working => json!({}),
    };
    result["_meta"][RELATED] = json!({"taskId": id});
    Ok(result)
}

/// `tasks/update`: answers to the questions of a task.
pub(super) async fn update(call: &Call) -> Result<Value, Refusal> {
    let (_, turn, state) = found(call).await?;
    let responses = call.request.params.get("inputResponses").and_then(Value::as_object);
    let responses =
        responses.ok_or_else(|| Refusal::invalid("tasks/update: `inputResponses` is missing"))?;
    // An answer to a question that does not wait any more changes nothing.
    if let State::Asked(question) = state
        && let Some(said) = responses.get(&question.id)
    {
        let answer = answer_in(&question, said);
        call.backend.answer(&turn, &question.id, answer).await.map_err(Refusal::invalid)?;
    }
    Ok(json!({}))
}

/// `tasks/cancel`.
pub(super) async fn stop(call: &Call) -> Result<Value, Refusal> {
    let (id, turn) = named(call)?;
    let state = call.backend.state(&turn).await.map_err(Refusal::invalid)?;
    if let State::Over(_) = state {
        if call.client.is_stateless {
            return Ok(task(call, &id, &state));
        }
        return Err(Refusal::invalid(format!("tasks/cancel: the task `{id}` is over")));
    }
    call.backend.stop(&turn).await.map_err(Refusal::invalid)?;
    Ok(task(call, &id, &State::Over(Outcome::Stopped)))
}

/// A task in the form of the client's revision.
pub(super) fn task(call: &Call, id: &str, state: &State) -> Value {
    let begun = id.split_once(SEPARATOR).and_then(|(begun, _)| begun.parse().ok());
    let begun = begun.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_else(now);
    let mut task = json!({
        "taskId": id, "status": status(call, state),
        "createdAt": begun.to_string(), "lastUpdatedAt": now().to_string(),
    });
    if !call.client.is_stateless {
        (task["ttl"], task["pollInterval"]) = (Value::Null, json!(POLL_MS));
        return task;
    }
    (task["ttlMs"], task["pollIntervalMs"]) = (Value::Null, json!(POLL_MS));
    match state {
        State::Working | State::Over(Outcome::Stopped) => {}
        State::Asked(question) => task["inputRequests"] = input_requests(question),
        State::Over(outcome) => {
            let mut result = result(outcome);
            result["resultType"] = json!("complete");
            task["result"] = result;
        }
    }
    task
}

/// A turn without a reply is a failed task in the older revision, and the result of a completed one in the newer.
fn status(call: &Call, state: &State) -> &'static str {
    match state {
        State::Working => "working",
        State::Asked(_) => "input_required",
        State::Over(Outcome::Stopped) => "cancelled",
        State::Over(Outcome::Failed(_)) if !call.client.is_stateless => "failed",
        State::Over(_) => "completed",
    }
}
