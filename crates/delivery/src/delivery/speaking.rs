//! What a session says and does in chats besides its answers, through the tool `message`.
//!
//! It enters at step 5: the parts are stored together with a record of the call, and then sent as all others. So a call is
//! carried out once, and its outcome is known also after a crash.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::SessionConfig;
use myclaw_channels::Action;
use myclaw_session::SessionKey;
use myclaw_speech::Audio;
use myclaw_store::{Place, Records};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Delivery;
use super::media::Saying;
use crate::DeliveryError;
use crate::ledger::{OVER, now_ms};
use crate::message::MAX_TEXT_BYTES;
use crate::route::Route;
use crate::routing::check_may_write;
use crate::rows::{Act, Outgoing, PartId, PartKind, PartState, hash};

/// The calls of the tool.
const CALLS: Records<CallRecord> = Records::new("message-call");
/// How long a call waits until the channel has taken what it says. It is sent in any case.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call of the tool.
#[derive(Debug, Clone, Copy)]
pub struct SpeakCall<'a> {
    /// The model's id of the call.
    pub id: &'a str,
    /// The turn, in which no two calls have the same id.
    pub turn: &'a str,
}

/// What is said or done.
#[derive(Debug, Clone, Default)]
pub struct Speech {
    /// Markdown, an emoji or a question.
    pub text: String,
    /// Files of the workspace.
    pub files: Vec<String>,
    /// What the agent says, as a file that is not in the workspace.
    pub audio: Option<Audio>,
    /// What is done instead of sending the text.
    pub act: Option<Act>,
    /// The channel's id of the message that it answers.
    pub reply_to: Option<String>,
}

/// A chat, as a session sees it.
#[derive(Debug, Clone)]
pub struct ChatPlace {
    /// Where it is.
    pub route: Route,
    /// The channel's id of the newest message that is being answered there.
    pub newest: Option<String>,
}

/// What is kept of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallRecord {
    turn: String,
    /// Milliseconds since the Unix epoch.
    at: u64,
    parts: Vec<PartId>,
}

impl Delivery {
    /// The chat in which a session talks at this moment.
    ///
    /// # Errors
    /// No chat is being answered in this session.
    pub async fn current_place(&self, session: &str) -> Result<ChatPlace, DeliveryError> {
        let route = self.current_route(session).await?;
        if !route.leads_somewhere() {
            return Err(unusable(
                "this session talks in no chat; what you answer at the end stays in the session",
            ));
        }
        let desk = self.desks().get(session).cloned();
        let running = desk.map(|desk| desk.running_routes()).unwrap_or_default();
        let newest = running.into_iter().find(|(other, _)| *other == route);
        Ok(ChatPlace { newest: newest.and_then(|(_, id)| id), route })
    }

    /// A message that a session has sent with the tool, and its part.
    ///
    /// # Errors
    /// The session has sent no such message.
    pub async fn sent_by(
        &self,
        session: &str,
        id: &str,
    ) -> Result<(PartId, Outgoing), DeliveryError> {
        let part = PartId::from_text(id);
        let is_message = |row: &Outgoing| {
            row.session == session
                && row.kind == PartKind::Reply
                && row.act.as_ref().is_none_or(|act| act.on().is_none())
        };
        let row = self.ledger().part(&part).await?.filter(is_message);
        let row = row.ok_or_else(|| {
            unusable(format!("you have sent no message `{id}`; use an id that this tool returned"))
        })?;
        Ok((part, row))
    }

    /// Whether the channel of a route can do this.
    ///
    /// # Errors
    /// It cannot; the text says what it can.
    pub fn check_ability(&self, route: &Route, action: Action) -> Result<(), DeliveryError> {
        let channel = self.outbox.channel(route);
        let actions = channel.map_or(&[][..], |channel| channel.capabilities().actions);
        if actions.contains(&action) {
            return Ok(());
        }
        let names: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
        let can = if names.is_empty() { "only send".to_owned() } else { names.join(", ") };
        Err(unusable(format!(
            "the channel {} cannot {}; it can {can}",
            route.channel,
            action.as_str()
        )))
    }

    /// Whether the agent may write to the chat of another session by itself.
    ///
    /// # Errors
    /// The rules of its channel forbid it.
    pub fn check_may_write(
        &self,
        session: &SessionKey,
        route: &Route,
    ) -> Result<(), DeliveryError> {
        let (config, kind) = (self.config(), session.parts().peer_kind);
        check_may_write(&config, route, kind, &self.schedule.pairings)
            .map_err(|why| unusable(format!("the agent may not write to this chat: {why}")))
    }

    /// One line: the actions that this session's channels support.
    pub fn abilities(&self, session: &SessionConfig) -> String {
        let own = session.session_key.parts().channel;
        let mut lines: Vec<String> = Vec::new();
        let channels = self.outbox.channels();
        let is_own = channels.iter().any(|channel| channel.name() == own);
        for channel in channels.iter().filter(|channel| !is_own || channel.name() == own) {
            let able = channel.capabilities();
            let files = able.most_file_bytes.map(|_| "files");
            let names = files.into_iter().chain(able.actions.iter().map(|action| action.as_str()));
            let names: Vec<&str> = ["send"].into_iter().chain(names).collect();
            let line = format!("{}: {}", channel.name(), names.join(", "));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.join("; ")
    }

    /// Stores what a call says, sends it, and waits for a while until it is sent. The same call again sends nothing and
    /// has the same outcome.
    pub async fn speak(
        self: &Arc<Self>,
        caller: &SessionConfig,
        call: SpeakCall<'_>,
        route: &Route,
        speech: Speech,
        until: impl Future<Output = ()>,
    ) -> Result<Value, DeliveryError> {
        let session = caller.session_key.as_str();
        if speech.text.len() > MAX_TEXT_BYTES / 2 {
            return Err(unusable(format!("the text has more than {} bytes", MAX_TEXT_BYTES / 2)));
        }
        let key = key_of(session, call.id);
        let known = CALLS.get(self.ledger().store(), &key).await?;
        let parts = match known {
            Some(known) if known.row.turn == call.turn => known.row.parts,
            known => {
                let said = format!("{} {}", call.turn, call.id);
                let parts = self.parts_of_speech(session, &said, route, speech).await?;
                let ids: Vec<PartId> = parts.iter().map(|(id, _)| id.clone()).collect();
                let (turn, at) = (call.turn.to_owned(), now_ms());
                let record = CallRecord { turn, at, parts: ids.clone() };
                let version = known.map(|known| known.version);
                let write = CALLS.put(&key, version, &record, Place::new(OVER, at))?;
                let this = Arc::clone(self);
                // A call that is dropped meanwhile does not leave it half-way.
                let storing = self.process.tasks.spawn(async move {
                    let stored = this.ledger().say_with(parts, vec![write]).await?;
                    this.outbox.push(stored.unwrap_or_default());
                    Ok::<_, DeliveryError>(())
                });
                storing.await.map_err(|error| DeliveryError::Internal(error.to_string()))??;
                ids
            }
        };
        let until = async {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                () = until => {}
            }
        };
        Ok(outcome(&parts, &self.outbox.settled(&parts, until).await?))
    }

    /// The outcome of a call that an earlier process carried out; `None` if none did since `since`.
    pub async fn spoken(
        &self,
        session: &str,
        call: &str,
        since: u64,
    ) -> Result<Option<Value>, DeliveryError> {
        let known = CALLS.get(self.ledger().store(), &key_of(session, call)).await?;
        let Some(record) = known.map(|known| known.row).filter(|record| record.at >= since) else {
            return Ok(None);
        };
        let parts = self.outbox.settled(&record.parts, tokio::time::sleep(PATIENCE)).await?;
        Ok(Some(outcome(&record.parts, &parts)))
    }

    async fn parts_of_speech(
        &self,
        session: &str,
        said: &str,
        route: &Route,
        speech: Speech,
    ) -> Result<Vec<(PartId, Outgoing)>, DeliveryError> {
        let Speech { text, files, audio, act, reply_to } = speech;
        if let Some(act) = act {
            let (id, mut part) =
                self.part_of(route, session, said, PartKind::Reply, (0, 1), (text, None));
            part.act = Some(act);
            part.refers.reply_to = reply_to;
            return Ok(vec![(id, part)]);
        }
        let mut files = self.copies(route, session, said, files).await?;
        if let Some(audio) = audio {
            files.push(self.keep_audio(route, session, said, audio).await?);
        }
        let mut parts =
            self.parts_of(route, session, said, PartKind::Reply, Saying { text, files });
        if let Some((_, first)) = parts.first_mut() {
            first.refers.reply_to = reply_to;
        }
        Ok(parts)
    }
}

/// The result for the model.
fn outcome(ids: &[PartId], parts: &[Outgoing]) -> Value {
    let is_in = |is_such: fn(&PartState) -> bool| parts.iter().any(|part| is_such(&part.state));
    let reason = parts.iter().find_map(|part| match &part.state {
        PartState::Failed { reason } => Some(reason.clone()),
        _ => None,
    });
    let (status, note) = if reason.is_some() {
        ("failed", "")
    } else if is_in(|state| matches!(state, PartState::Uncertain)) {
        ("uncertain", "nobody knows whether it was delivered; do not send it again unasked")
    } else if is_in(|state| matches!(state, PartState::Queued | PartState::Sending { .. })) {
        ("stored", "it is sent as soon as the channel takes it; do not send it again")
    } else {
        ("sent", "")
    };
    let is_message = |part: &Outgoing| part.act.as_ref().is_none_or(|act| act.on().is_none());
    let messages = ids.iter().zip(parts).filter(|(_, part)| is_message(part));
    let messages: Vec<&PartId> = messages.map(|(id, _)| id).collect();
    let mut value = json!({"status": status});
    if !messages.is_empty() {
        value["messageIds"] = json!(messages);
    }
    if let Some(reason) = reason {
        value["reason"] = json!(reason);
    }
    if !note.is_empty() {
        value["note"] = json!(note);
    }
    value
}

fn key_of(session: &str, call: &str) -> String {
    hash("c", &[session, call])
}

fn unusable(message: impl Into<String>) -> DeliveryError {
    DeliveryError::Unusable(message.into())
}
