//! What a program chooses for a session: its model, how much that thinks, and the permission mode.

use myclaw_agent::{Session, selection::Selection};
use serde_json::{Value, json};

use super::request::{SetMode, SetModel, SetThinking};
use myclaw_front::exit::CliError;

pub(super) async fn set_model(session: &Session, wanted: SetModel) -> Result<Value, CliError> {
    let name = match wanted.provider {
        Some(provider) => format!("{provider}/{}", wanted.model),
        None => wanted.model,
    };
    let model = session.select_model(Some(&name)).await?;
    Ok(json!({
        "model": model.reference.to_string(),
        "contextWindow": model.model().context_window,
        "thinking": thinking(session, &model),
    }))
}

pub(super) async fn set_thinking(
    session: &Session,
    wanted: &SetThinking,
) -> Result<Value, CliError> {
    let level =
        wanted.level.parse().map_err(|error| CliError::usage(format!("set_thinking: {error}")))?;
    let model = session.selection().await?;
    session.set_thinking(level);
    Ok(thinking(session, &model))
}

pub(super) async fn set_mode(session: &Session, wanted: &SetMode) -> Result<Value, CliError> {
    let mode =
        wanted.mode.parse().map_err(|error| CliError::usage(format!("set_mode: {error}")))?;
    session.set_mode(mode).await?;
    Ok(json!({"mode": mode}))
}

/// The requested thinking level, the level in use, and those that the model offers.
pub(super) fn thinking(session: &Session, model: &Selection) -> Value {
    let (asked, level) = session.thinking(model);
    json!({"asked": asked, "level": level, "offered": model.model().offered_thinking_levels()})
}

/// What the tools have changed in the session.
pub(super) async fn changes(session: &Session) -> Result<Value, CliError> {
    let config = session.config();
    let comparing = tokio::task::spawn_blocking(move || config.differences()).await;
    let files = comparing.map_err(|error| CliError::failure(error.to_string()))??;
    Ok(json!({"files": files}))
}
