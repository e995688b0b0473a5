//! What the tools for sessions and sub-agents do.

use std::time::Duration;

use myclaw_agent::export::Excerpt;
use myclaw_config::AgentId;
use myclaw_delivery::delivery::{ChildOrder, SessionMessage, described};
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::rows::MessageState;
use myclaw_session::{About, Catalog, EntryId, SessionKey};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Call;
use crate::GatewayError;

/// Sessions of a list, and messages of a history, unless the caller wants another number.
const USUAL: usize = 20;
/// Most of each.
const MOST: usize = 100;
/// Most sessions among which those that a session may see are looked for.
const MOST_SEARCHED: usize = 1_000;
/// Wait for a reply, unless the caller wants another one.
const USUAL_WAIT_SECONDS: u64 = 30;
/// Longest wait for a reply.
const LONGEST_WAIT_SECONDS: u64 = 600;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpawnArguments {
    task: String,
    label: Option<String>,
    agent_id: Option<String>,
    model: Option<String>,
    thinking: Option<String>,
    run_timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SubagentsAction {
    List,
    Stop,
}

#[derive(Deserialize)]
struct SubagentsArguments {
    action: SubagentsAction,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListArguments {
    limit: Option<usize>,
    active_minutes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryArguments {
    session: String,
    limit: Option<usize>,
    before: Option<String>,
    #[serde(default)]
    include_tools: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendArguments {
    session: String,
    message: String,
    timeout_seconds: Option<u64>,
}

impl Call<'_> {
    pub(super) async fn spawn(&self) -> Result<Value, GatewayError> {
        let arguments: SpawnArguments = self.arguments()?;
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let order = ChildOrder {
            task: arguments.task,
            label: given(arguments.label),
            agent: given(arguments.agent_id),
            model: given(arguments.model),
            thinking: given(arguments.thinking),
            timeout_seconds: arguments.run_timeout_seconds,
        };
        let mut begun = self.delivery.begin_child(self.caller, self.id, order).await?;
        begun["note"] = json!("its result comes to you as a message; go on, or end your turn");
        Ok(begun)
    }

    pub(super) async fn subagents(&self) -> Result<Value, GatewayError> {
        let arguments: SubagentsArguments = self.arguments()?;
        let own = self.caller.session_key.as_str();
        if matches!(arguments.action, SubagentsAction::List) {
            let children = self.delivery.children().of(own);
            return Ok(json!({"subagents": children.iter().map(described).collect::<Vec<_>>()}));
        }
        let name = arguments.session.unwrap_or_default();
        let is_it = |session: &str, label: Option<&str>| session == name || label == Some(&name);
        let running = self
            .delivery
            .children()
            .running(|child| child.works_for(own) && is_it(&child.session, child.label.as_deref()));
        if running.is_empty() {
            return Err(unusable(format!(
                "no sub-agent of yours with the session or label \"{name}\" runs; see the action `list`"
            )));
        }
        for child in &running {
            self.delivery.abort(&child.session).await?;
        }
        let sessions: Vec<&str> = running.iter().map(|child| child.session.as_str()).collect();
        Ok(json!({"stopped": sessions, "note": "a message will tell you how each ended"}))
    }

    pub(super) fn agents(&self) -> Result<Value, GatewayError> {
        let (config, own) = (self.delivery.config(), &self.caller.agent.id);
        let rules = config.subagents(own);
        let allowed = config.agent_ids().into_iter().filter(|id| rules.allows_agent(own, id));
        let described = allowed.map(|id| {
            let agent = config.resolve_agent(Some(id.as_str())).ok();
            json!({
                "id": id.as_str(),
                "name": agent.as_ref().and_then(|agent| agent.name.clone()),
                "model": agent.and_then(|agent| agent.model),
                "isYourself": id == *own,
            })
        });
        Ok(json!({"agents": described.collect::<Vec<_>>()}))
    }

    pub(super) async fn list(&self) -> Result<Value, GatewayError> {
        let arguments: ListArguments = self.arguments()?;
        let limit = arguments.limit.unwrap_or(USUAL).clamp(1, MOST);
        let minutes = arguments.active_minutes.map(|minutes| minutes.saturating_mul(60_000));
        let since = minutes.map_or(0, |span| now_ms().saturating_sub(span));
        let latest = self
            .with_sessions(|catalog| {
                Ok(catalog.latest(MOST_SEARCHED).map_err(myclaw_agent::AgentError::from)?.0)
            })
            .await?;
        let working = self.delivery.working();
        let mut rows = Vec::new();
        for session in latest {
            if rows.len() == limit || session.entry.updated_at < since {
                break;
            }
            let key = session.key.as_str();
            if !self.delivery.reaches(self.caller, &session.key).await? {
                continue;
            }
            let parts = session.key.parts();
            let child = self.delivery.children().know(key).await?;
            let about = About::from_extra(session.entry.extra.as_ref());
            rows.push(json!({
                "session": key,
                "agent": parts.agent_id,
                "channel": parts.channel,
                "kind": parts.peer_kind,
                "title": about.title,
                "updatedAt": session.entry.updated_at,
                "model": session.entry.model,
                "totalTokens": session.entry.total_tokens,
                "isBusy": working.contains(key),
                "isYourself": session.key == self.caller.session_key,
                "subagent": child.as_ref().map(described),
            }));
        }
        Ok(json!({"sessions": rows}))
    }

    pub(super) async fn history(&self) -> Result<Value, GatewayError> {
        let arguments: HistoryArguments = self.arguments()?;
        let key = self.reachable(&arguments.session).await?;
        let limit = arguments.limit.unwrap_or(USUAL).clamp(1, MOST);
        let before = arguments.before.as_deref().map(EntryId::from_text);
        let (of_session, include_tools) = (key.clone(), arguments.include_tools);
        let messages = self
            .with_sessions(move |catalog| {
                history(catalog, &of_session, before, limit, include_tools)
            })
            .await?;
        Ok(json!({"session": key.as_str(), "messages": messages}))
    }

    pub(super) async fn send(&self) -> Result<Value, GatewayError> {
        let arguments: SendArguments = self.arguments()?;
        let to = self.reachable(&arguments.session).await?;
        let seconds = arguments.timeout_seconds.unwrap_or(USUAL_WAIT_SECONDS);
        let message = SessionMessage {
            to: to.clone(),
            text: arguments.message,
            call: format!("{}/{}", self.turn, self.id),
        };
        let id = self.delivery.send_between(self.caller, message).await?;
        let wait = Duration::from_secs(seconds.min(LONGEST_WAIT_SECONDS));
        let until = async {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.cancel.cancelled() => {}
            }
        };
        let row = self.delivery.outcome(&id, until).await?;
        let row = row.ok_or_else(|| GatewayError::Internal("the message is gone".to_owned()))?;
        Ok(match row.state {
            MessageState::Answered { .. } => {
                json!({"status": "answered", "session": to.as_str(), "reply": row.said})
            }
            MessageState::Reported { class, message, .. } => {
                json!({"status": "failed", "session": to.as_str(), "class": class, "reason": message})
            }
            MessageState::Dropped { reason, .. } => {
                json!({"status": "failed", "session": to.as_str(), "class": "dropped", "reason": reason})
            }
            MessageState::Open => json!({
                "status": "accepted",
                "session": to.as_str(),
                "note": "there is no reply yet; sessions_history shows it later",
            }),
        })
    }

    /// The session with this key or name, if the caller may read it and write to it.
    pub(super) async fn reachable(&self, name: &str) -> Result<SessionKey, GatewayError> {
        let agent: &AgentId = &self.caller.agent.id;
        let key = SessionKey::parse_for_agent(agent.as_str(), name)
            .map_err(|error| unusable(error.to_string()))?;
        // The same words for both, so that nobody learns which sessions there are.
        let unknown = || {
            GatewayError::NotFound(format!(
                "there is no session {name} that you may use (tools.sessions); sessions_list shows those"
            ))
        };
        if !self.delivery.reaches(self.caller, &key).await? {
            return Err(unknown());
        }
        let of_store = key.clone();
        let exists = self.with_sessions(move |catalog| Ok(catalog.exists(&of_store))).await?;
        let is_begun = exists || self.delivery.children().get(key.as_str()).is_some();
        if is_begun { Ok(key) } else { Err(unknown()) }
    }

    pub(super) async fn with_sessions<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Catalog) -> Result<T, GatewayError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let home = self.delivery.home();
        let working = tokio::task::spawn_blocking(move || work(&**home.catalog()));
        working.await.map_err(|error| GatewayError::Internal(error.to_string()))?
    }
}

/// The newest messages of a session that fit, the oldest of them first.
fn history(
    catalog: &dyn Catalog,
    key: &SessionKey,
    before: Option<EntryId>,
    limit: usize,
    include_tools: bool,
) -> Result<Vec<Value>, GatewayError> {
    let failed = |error| GatewayError::Agent(myclaw_agent::AgentError::from(error));
    let Some(reader) = catalog.read(key).map_err(failed)? else { return Ok(Vec::new()) };
    let excerpt = Excerpt { before, most: limit, with_tools: include_tools };
    let found = excerpt.read(&*reader).map_err(failed)?;
    found.ok_or_else(|| unusable("the session has no message with the id in `before`"))
}

fn unusable(message: impl Into<String>) -> GatewayError {
    GatewayError::Unusable(message.into())
}
