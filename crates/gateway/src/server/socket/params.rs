//! What the methods take, and those that ask or change something about sessions, which need nothing of the connection.

use std::sync::Arc;

use myclaw_delivery::choice::Choice;
use myclaw_delivery::questions::Answer;
use myclaw_engine::{Mode, ScopeKind};
use myclaw_llm::ThinkingLevel;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::GatewayError;
use crate::server::Server;
use crate::server::attachments::Attachment;
use crate::server::branches::ForkPlace;
use crate::server::rest::DEFAULT_SESSION;
use crate::server::sessions::{ListRange, Marks};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params {
    pub(super) session: Option<String>,
    pub(super) text: Option<String>,
    pub(super) after: Option<u64>,
    pub(super) stream: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) before: Option<String>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) search: Option<String>,
    pub(super) new_session: Option<String>,
    pub(super) at: Option<String>,
    pub(super) title: Option<String>,
    pub(super) pinned: Option<bool>,
    pub(super) archived: Option<bool>,
    pub(super) folder: Option<String>,
    pub(super) mode: Option<Mode>,
    pub(super) model: Option<String>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) id: Option<String>,
    pub(super) answer: Option<Answer>,
    pub(super) scope: Option<ScopeKind>,
    pub(super) reason: Option<String>,
    pub(super) words: Option<String>,
}

impl Server {
    pub(super) async fn answer_about(
        self: &Arc<Self>,
        method: &str,
        params: Params,
    ) -> Result<Value, GatewayError> {
        let named = params.session.clone();
        let session = named.clone().unwrap_or_else(|| DEFAULT_SESSION.to_owned());
        // What changes or ends a session is never aimed at the default one by omission.
        let chosen = || named.clone().ok_or_else(|| missing(method, "session"));
        let delivery = &self.delivery;
        match method {
            "sessions" => {
                let Params { search, limit, archived, .. } = params;
                let archived = archived.unwrap_or_default();
                self.sessions(ListRange { search, limit, archived }).await
            }
            "fork" => {
                let to = params.new_session.ok_or_else(|| missing(method, "newSession"))?;
                let place = ForkPlace { at: params.at, before: params.before };
                self.fork(&chosen()?, &to, place).await
            }
            "branches" => self.branches(&session).await,
            "title" => self.title(&chosen()?, params.title).await,
            "mark" => {
                let Params { pinned, archived, folder, .. } = params;
                self.mark(&chosen()?, Marks { pinned, archived, folder }).await
            }
            "mode" => {
                if let Some(mode) = params.mode {
                    delivery.set_mode(&chosen()?, mode).await?;
                }
                Ok(json!({"mode": delivery.mode(&session)?}))
            }
            "model" => {
                // Empty for the model of the config.
                let model = params.model.map(|name| Some(name).filter(|name| !name.is_empty()));
                let choice = Choice { model, thinking: params.thinking };
                match choice == Choice::default() {
                    true => Ok(delivery.choices(&session).await?),
                    false => Ok(delivery.choose(&chosen()?, choice).await?),
                }
            }
            "commands" => self.commands(&session).await,
            "expand" => {
                let line = params.text.ok_or_else(|| missing(method, "text"))?;
                self.expand(&session, line).await
            }
            "plan" => self.plan(&session).await,
            "changes" => self.changes(&session).await,
            "delete" => self.delete(&chosen()?).await,
            "approvals" => self.approvals(named.as_deref()).await,
            "status" => Ok(self.state()),
            other => Err(GatewayError::Internal(format!("nothing answers the method {other}"))),
        }
    }
}

pub(super) fn missing(method: &str, name: &str) -> GatewayError {
    GatewayError::Unusable(format!(
        "{method} needs `{name}`; docs/operate/gateway.md has the protocol"
    ))
}
