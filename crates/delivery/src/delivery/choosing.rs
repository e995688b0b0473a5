//! Chooses the model and the thinking level of a session, for clients.

use std::sync::Arc;

use myclaw_agent::{AgentError, SessionConfig, selection::Selection};
use myclaw_llm::ThinkingLevel;
use myclaw_session::SessionError;
use serde_json::{Value, json};

use super::Delivery;
use super::desk::Desk;
use crate::DeliveryError;
use crate::choice::Choice;

impl Delivery {
    /// The model and the thinking level of a session, and what else can be chosen for it.
    ///
    /// # Errors
    /// The name is none of a session, the session cannot be read, or its model cannot be used.
    pub async fn choices(&self, name: &str) -> Result<Value, DeliveryError> {
        let config = self.session_config(name)?;
        let desk = self.desks().get(config.session_key.as_str()).cloned();
        let (selection, asked) = match desk {
            Some(desk) => (desk.session.selection().await?, desk.session.asked_thinking()),
            None => {
                let chosen = stored(&config).await?;
                let asked = chosen.thinking;
                (Arc::new(config.select_model(chosen.model().as_deref()).await?), asked)
            }
        };
        Ok(described(&config, &selection, asked))
    }

    /// Chooses a model, a thinking level or both for a session, from its next model call on. The answer is that of
    /// [`Self::choices`].
    ///
    /// # Errors
    /// The name is none of a session, the model cannot be used, or the choice cannot be stored.
    pub async fn choose(
        self: &Arc<Self>,
        name: &str,
        choice: Choice,
    ) -> Result<Value, DeliveryError> {
        let key = self.session_config(name)?.session_key;
        let desk = self.desk_in(&mut self.desks(), key.as_str())?;
        if let Some(model) = &choice.model {
            desk.session.select_model(model.as_deref()).await?;
        }
        if let Some(level) = choice.thinking {
            desk.session.set_thinking(level);
        }
        // A desk without messages is closed again where there are many.
        desk.wake.notify_one();
        self.note_choice(&desk, choice).await
    }

    /// Keeps what was chosen for the session of a desk, and shows it to those that watch the session. The answer is that of
    /// [`Self::choices`].
    pub(super) async fn note_choice(
        &self,
        desk: &Desk,
        choice: Choice,
    ) -> Result<Value, DeliveryError> {
        desk.chose(choice);
        self.keep_choice(desk).await?;
        let key = desk.session.key().as_str();
        let described = self.choices(key).await?;
        let event = json!({"type": "model_chosen", "session": key, "choices": described});
        self.watchers.front.publish(key, &event);
        Ok(described)
    }

    /// Stores what was chosen for the session of a desk, as soon as there is that session.
    pub(super) async fn keep_choice(&self, desk: &Desk) -> Result<(), DeliveryError> {
        let Some(choice) = desk.choice() else { return Ok(()) };
        let (config, key) = (desk.session.config(), desk.session.key().clone());
        let kept = choice.clone();
        let storing =
            tokio::task::spawn_blocking(move || kept.store(&**config.home.catalog(), &key));
        if done(storing.await)? {
            desk.keeps(&choice);
        }
        Ok(())
    }
}

async fn stored(config: &SessionConfig) -> Result<Choice, DeliveryError> {
    let (home, key) = (config.home.clone(), config.session_key.clone());
    done(tokio::task::spawn_blocking(move || Choice::stored(&**home.catalog(), &key)).await)
}

/// The result of work with the list of sessions.
fn done<T>(
    worked: Result<Result<T, SessionError>, tokio::task::JoinError>,
) -> Result<T, DeliveryError> {
    let worked = worked.map_err(|error| DeliveryError::Internal(error.to_string()))?;
    Ok(worked.map_err(AgentError::from)?)
}

fn described(config: &SessionConfig, selection: &Selection, asked: Option<ThinkingLevel>) -> Value {
    let model = selection.model();
    let requested = config.requested_thinking(asked);
    let current = selection.reference.to_string();
    let favorites = config.config.models.favorites.iter().map(|name| name.0.clone());
    let of_config = config.agent.model.iter().chain(&config.agent.fallbacks).cloned();
    let mut models = vec![current.clone()];
    for name in of_config.chain(favorites) {
        if !models.contains(&name) {
            models.push(name);
        }
    }
    json!({
        "model": current,
        "models": models,
        "thinking": {
            "asked": requested,
            "level": model.thinking_level(requested),
            "offered": model.offered_thinking_levels(),
        },
    })
}
