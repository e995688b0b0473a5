//! Messages that nobody sent: those of the clock.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_agent::{CRON_CHANNEL, MAIN_SESSION};
use myclaw_session::{PeerKind, SessionKey, SessionKeyParts};
use myclaw_store::{Batch, Version};
use serde_json::{Value, json};

use super::Delivery;
use super::desk::Source;
use crate::DeliveryError;
use crate::ledger::{OpenMessage, now_ms};
use crate::route::Route;
use crate::rows::{Incoming, MessageId, Occasion, PartKind};
use crate::schedule::{Asker, CronAnswer, CronRequest, Report, Service, report};

/// Characters of an answer that are kept with the message.
const SAID_CHARS: usize = 1_000;
/// The same for the answer to another session, which reads it there.
const SAID_TO_SESSION_CHARS: usize = 20_000;

impl Delivery {
    /// Step 1 for a message that nobody sent, in one transaction with `batch`. `None` if a condition of the batch does
    /// not hold; then nothing is stored.
    pub async fn begin(
        self: &Arc<Self>,
        id: MessageId,
        row: Incoming,
        batch: Batch,
    ) -> Result<Option<Version>, DeliveryError> {
        let bytes = self.enter(&row)?;
        match self.ledger().accept_with(batch, id, row).await {
            Ok(Some(message)) => {
                let version = message.version;
                // It is stored, so if this fails, the next start hands it in or reports it.
                self.hand_in(message, Source::New).map_err(|(error, _)| error)?;
                Ok(Some(version))
            }
            other => {
                self.leave(bytes);
                other.map(|_| None)
            }
        }
    }

    /// Answers a request about scheduled jobs.
    pub async fn cron(
        self: &Arc<Self>,
        request: CronRequest,
        asker: Asker,
    ) -> Result<Value, DeliveryError> {
        let service = Service {
            book: &self.schedule.book,
            routes: &self.schedule.routes,
            config: &self.config(),
            asker,
            now: now_ms(),
        };
        match service.answer(request).await? {
            CronAnswer::Done(value) => Ok(value),
            CronAnswer::Tell { agent, text } => {
                let session = self.main_session(&agent)?;
                let route = self.schedule.routes.last(&session).await?;
                let route = route.unwrap_or_else(Route::nowhere);
                let source = uuid::Uuid::new_v4().to_string();
                let id = MessageId::of(&Route::internal("wake"), &source);
                let row = Incoming {
                    occasion: Some(Occasion::Job),
                    ..Incoming::new(route, source, session, text, now_ms())
                };
                self.begin(id.clone(), row, Batch::default()).await?;
                Ok(json!({"messageId": id}))
            }
        }
    }

    /// The key of an agent's main session.
    ///
    /// # Errors
    /// The id of the agent cannot be used.
    pub fn main_session(&self, agent: &str) -> Result<String, DeliveryError> {
        let key = SessionKey::parse_for_agent(agent, MAIN_SESSION);
        key.map(|key| key.as_str().to_owned())
            .map_err(|error| DeliveryError::Internal(error.to_string()))
    }

    /// The key of the session that a job has for itself.
    pub(crate) fn job_session(&self, agent: &str, job: &str) -> String {
        let parts = SessionKeyParts {
            agent_id: agent.to_owned(),
            channel: CRON_CHANNEL.to_owned(),
            account_id: String::new(),
            peer_kind: PeerKind::Direct,
            peer_id: job.to_owned(),
        };
        SessionKey::build(&parts).as_str().to_owned()
    }

    /// The directory in which an agent works.
    pub fn workspace(&self, agent: &str) -> Result<PathBuf, DeliveryError> {
        let agent = self.config().resolve_agent(Some(agent));
        agent
            .map(|agent| agent.workspace)
            .map_err(|error| DeliveryError::Unusable(error.to_string()))
    }

    /// Whether a session works, or has messages that are new.
    pub fn is_busy(&self, session: &str) -> bool {
        let desk = self.desks().get(session).cloned();
        desk.is_some_and(|desk| !desk.is_idle())
    }
}

/// What is sent on a route for these messages; `None` for nothing. An answer to heartbeats alone may mean that there is
/// nothing to report. If it also answers somebody, that person gets the rest of it.
pub(super) fn spoken<'a>(
    mut messages: impl Iterator<Item = &'a OpenMessage> + Clone,
    kind: PartKind,
    text: &'a str,
) -> Option<Cow<'a, str>> {
    if messages.clone().any(|message| !message.row.route.leads_somewhere()) {
        return None;
    }
    let has_heartbeat = messages.clone().any(|message| message.row.is_heartbeat());
    let is_alone = messages.all(|message| message.row.is_heartbeat());
    match (kind, has_heartbeat) {
        (_, false) => Some(Cow::Borrowed(text)),
        // That a heartbeat failed is in the list of its runs. The owner did not ask for it.
        (PartKind::Report, true) => (!is_alone).then_some(Cow::Borrowed(text)),
        (PartKind::Reply, true) => match report(text) {
            Report::Message(text) => Some(Cow::Owned(text)),
            Report::Nothing if is_alone => None,
            Report::Nothing => Some(Cow::Owned("Nothing needs attention.".to_owned())),
        },
    }
}

/// The messages with what the agent said to them, as far as somebody has to know later.
pub(super) fn with_result(
    messages: &[OpenMessage],
    kind: PartKind,
    text: &str,
) -> Vec<OpenMessage> {
    let mut messages = messages.to_vec();
    for message in messages.iter_mut().filter(|_| kind == PartKind::Reply) {
        let said = match &message.row.occasion {
            None | Some(Occasion::Task | Occasion::Result { .. }) => None,
            Some(Occasion::Heartbeat) => match report(text) {
                Report::Nothing => None,
                Report::Message(text) => Some(text),
            },
            Some(Occasion::Job | Occasion::Session { .. }) => Some(text.to_owned()),
        };
        let most = match &message.row.occasion {
            Some(Occasion::Session { .. }) => SAID_TO_SESSION_CHARS,
            _ => SAID_CHARS,
        };
        message.row.said = said.map(|said| said.chars().take(most).collect());
    }
    messages
}
