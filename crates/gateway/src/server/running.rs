//! The sessions of this machine that work at this moment, also those of other processes: what they do, cost and ask.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use myclaw_agent::{
    Home,
    running::{NotAnswered, RunningSession, answer_from_outside, ask_to_stop, running_sessions},
};
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
    Ok(ask_to_stop(home, &named(home, wanted)?.session)?)
}

fn answer(home: &Home, wanted: &Wanted) -> Result<(), GatewayError> {
    let session = named(home, wanted)?;
    let mut open = session.questions.iter();
    let question = open.find(|open| open.tool_call_id == wanted.tool_call_id);
    let question = question.ok_or_else(|| GatewayError::NotFound(NotAnswered::Gone.to_string()))?;
    if wanted.answer.trim().is_empty() && question.begun.is_none() {
        return Err(GatewayError::Unusable("an answer is yes or no".to_owned()));
    }
    answer_from_outside(home, question, &wanted.answer).map_err(|refusal| {
        let why = refusal.to_string();
        match refusal {
            NotAnswered::InCall => GatewayError::Unusable(why),
            NotAnswered::Gone => GatewayError::NotFound(why),
            NotAnswered::Failed(_) => GatewayError::Internal(why),
        }
    })
}

/// The session, if it works.
fn named(home: &Home, wanted: &Wanted) -> Result<RunningSession, GatewayError> {
    let mut found = running_sessions(home)?.into_iter();
    found.find(|found| found.session.as_str() == wanted.session).ok_or_else(|| {
        let session = &wanted.session;
        GatewayError::NotFound(format!("the session `{session}` does nothing at this moment"))
    })
}
