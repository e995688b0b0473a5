//! The sessions of this machine that work at this moment, also those of other processes: what they do, cost and ask.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::{Home, ask_to_stop, running_sessions};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::config::blocking;
use super::request::Body;
use super::sessions::name_of;
use crate::GatewayError;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/running", get(running)).route("/api/running/{change}", post(change))
}

async fn running(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let home = server.delivery.home();
    let agent = server.delivery.config().default_agent_id().to_string();
    let found = blocking(move || Ok(running_sessions(&home)?)).await?;
    let described = found.iter().map(|session| {
        let mut described = json!(session);
        described["name"] = json!(name_of(&agent, &session.session));
        described
    });
    Ok(Json(json!({"sessions": described.collect::<Vec<_>>()})))
}

/// Which session, and the answer to which of its questions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    session: String,
    #[serde(default)]
    tool_call_id: String,
    #[serde(default)]
    answer: String,
}

async fn change(
    State(server): State<Arc<Server>>,
    Path(change): Path<String>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Value>, GatewayError> {
    let home = server.delivery.home();
    let asked = match change.as_str() {
        "stop" => blocking(move || stop(&home, &wanted)).await,
        "answer" => blocking(move || answer(&home, &wanted)).await,
        _ => Err(GatewayError::NotFound("there are stop and answer".to_owned())),
    };
    asked.map(|()| Json(json!({"asked": true})))
}

fn stop(home: &Home, wanted: &Wanted) -> Result<(), GatewayError> {
    let found = running_sessions(home)?;
    let session = found.iter().find(|found| found.session.as_str() == wanted.session);
    let session = session.ok_or_else(|| idle(&wanted.session))?;
    Ok(ask_to_stop(home, &session.session)?)
}

fn answer(home: &Home, wanted: &Wanted) -> Result<(), GatewayError> {
    let found = running_sessions(home)?;
    let session = found.iter().find(|found| found.session.as_str() == wanted.session);
    let session = session.ok_or_else(|| idle(&wanted.session))?;
    let mut open = session.questions.iter();
    let question = open.find(|open| open.tool_call_id == wanted.tool_call_id);
    let gone = || GatewayError::NotFound("the question is answered already".to_owned());
    let question = question.ok_or_else(gone)?;
    if question.begun.is_some() {
        let why = "a server asks that in the middle of a call; answer it where the session is";
        return Err(GatewayError::Unusable(why.to_owned()));
    }
    if wanted.answer.trim().is_empty() {
        return Err(GatewayError::Unusable("an answer is yes or no".to_owned()));
    }
    let approvals = &home.stores().approvals;
    match approvals.answer(&question.session, &question.tool_call_id, &wanted.answer) {
        Ok(true) => Ok(()),
        Ok(false) => Err(gone()),
        Err(error) => Err(GatewayError::Internal(error.to_string())),
    }
}

fn idle(session: &str) -> GatewayError {
    GatewayError::NotFound(format!("the session `{session}` does nothing at this moment"))
}
