//! Step 1: messages are stored, and then acknowledged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use myclaw_session::{PeerKind, SessionKey};
use myclaw_store::{Blob, Write};

use super::Delivery;
use super::answering::picture_bytes;
use super::desk::Source;
use crate::DeliveryError;
use crate::ledger::{Acceptance, now_ms};
use crate::message::{Accepted, MAX_SOURCE_ID_BYTES, MAX_TEXT_BYTES, MessageFile, NewMessage};
use crate::rows::{Incoming, MessageId, MessageState, Origin, ReceivedFile};

/// Longest wait for the store. Its source waits too, and can send the message again.
const LONGEST: Duration = Duration::from_secs(10);
/// How often a message is stored anew because others changed the route of its session meanwhile.
const MOST_ROUTE_RACES: usize = 3;
/// Most messages without an answer. Each is in memory.
const MOST_OPEN: usize = 10_000;
/// Most bytes of the pictures of messages without an answer.
const MOST_OPEN_PICTURES: usize = 64 * 1024 * 1024;

impl Delivery {
    /// Step 1. When this returns, the message is on disk with its files and gets an answer or a report. The same message
    /// again gets the same result. Runs as its own task: if the channel closes meanwhile, or the store answers late, a
    /// stored message is still handed to its session.
    pub async fn accept_from(
        self: &Arc<Self>,
        new: NewMessage,
        origin: Origin,
        files: Vec<MessageFile>,
    ) -> Result<Accepted, DeliveryError> {
        let this = Arc::clone(self);
        let accepting =
            self.process.tasks.spawn(async move { this.accept_now(new, origin, files).await });
        match tokio::time::timeout(LONGEST, accepting).await {
            Ok(accepted) => accepted.map_err(|error| DeliveryError::Internal(error.to_string()))?,
            Err(_) => Err(DeliveryError::Late(LONGEST.as_secs())),
        }
    }

    async fn accept_now(
        self: &Arc<Self>,
        new: NewMessage,
        mut origin: Origin,
        files: Vec<MessageFile>,
    ) -> Result<Accepted, DeliveryError> {
        check(&new, &files)?;
        let key = self.session_config(&new.session)?.session_key;
        let id = MessageId::of(&new.route, &new.source_id);
        let mut contents = Vec::new();
        for file in files {
            let (blob, writes) = Blob::put(&file.bytes)?;
            let (blob, key) = (Some(blob), String::new());
            origin.files.push(ReceivedFile { name: file.name, blob, key });
            contents.extend(writes);
        }
        let session = key.as_str().to_owned();
        self.children.know(&session).await?;
        let row = Incoming {
            images: new.images,
            asked: new.asked,
            origin,
            ..Incoming::new(new.route, new.source_id, session, new.text, now_ms())
        };
        let bytes = match self.enter(&row) {
            Ok(bytes) => bytes,
            Err(full) => {
                // Duplicates do not count against the limit.
                let known = self.ledger().message(&id).await?.ok_or(full)?;
                return known_as(id, known, &row);
            }
        };
        let said = Incoming { origin: Origin::default(), ..row.clone() };
        match self.store_with_route(&id, row, contents).await {
            Ok(Acceptance::New(message)) => {
                self.watchers.counters.accepted();
                let row = message.row.clone();
                // It is stored, so whatever happens now, the next start hands it in.
                self.hand_in(message, Source::New).map_err(|(error, _)| error)?;
                Ok(Accepted { id, row })
            }
            Ok(Acceptance::Known(row)) => {
                self.leave(bytes);
                known_as(id, row, &said)
            }
            Err(error) => {
                self.leave(bytes);
                Err(error)
            }
        }
    }

    /// Stores a message, where it came from, and what was said in its group before, in one transaction.
    async fn store_with_route(
        &self,
        id: &MessageId,
        row: Incoming,
        files: Vec<Write>,
    ) -> Result<Acceptance, DeliveryError> {
        let key = SessionKey::parse_for_agent("main", &row.session);
        let is_group = key.is_ok_and(|key| key.parts().peer_kind == PeerKind::Group);
        for _ in 0..MOST_ROUTE_RACES {
            let mut row = row.clone();
            let mut more = self.schedule.routes.notes(&row.session, &row.route).await?;
            if is_group && let Some((context, forget)) = self.take_kept(&row.route).await? {
                row.context = Some(context);
                more.push(forget);
            }
            if more.is_empty() {
                break;
            }
            let stored = self.ledger().store_with(id.clone(), row, files.clone(), &[], more);
            if let Some(accepted) = stored.await? {
                if let Acceptance::New(message) = &accepted {
                    self.schedule.routes.noted(&message.row.session, &message.row.route);
                }
                return Ok(accepted);
            }
            // Another message has just noted a route of the same session, or was said in the same group. Either may count
            // as the last.
        }
        // Losing this race is harmless: only the last route is not updated, and the next message updates it.
        self.ledger().store_message(id.clone(), row, files, &[]).await
    }

    /// Takes a place among the messages without an answer. Returns the bytes of the message's pictures.
    pub(super) fn enter(&self, row: &Incoming) -> Result<usize, DeliveryError> {
        if self.process.closing.is_cancelled() {
            return Err(DeliveryError::Stopping);
        }
        let bytes = picture_bytes(row);
        let open = self.desks.open.fetch_add(1, Ordering::SeqCst);
        let pictures = self.desks.pictures.fetch_add(bytes, Ordering::SeqCst);
        if open >= MOST_OPEN || (bytes > 0 && pictures + bytes > MOST_OPEN_PICTURES) {
            self.leave(bytes);
            return Err(DeliveryError::Full(open));
        }
        Ok(bytes)
    }

    /// Gives the place back, with that of the pictures.
    pub(super) fn leave(&self, bytes: usize) {
        self.desks.open.fetch_sub(1, Ordering::SeqCst);
        self.desks.pictures.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// A message that is stored already, if it is the one that was sent.
fn known_as(id: MessageId, row: Incoming, sent: &Incoming) -> Result<Accepted, DeliveryError> {
    // What a dropped message said is cut or gone.
    let is_cut = matches!(row.state, MessageState::Dropped { .. });
    let is_same = row.text == sent.text && row.images == sent.images && row.asked == sent.asked;
    let is_it = row.session == sent.session && (is_cut || is_same);
    if is_it { Ok(Accepted { id, row }) } else { Err(DeliveryError::OtherMessage) }
}

fn check(new: &NewMessage, files: &[MessageFile]) -> Result<(), DeliveryError> {
    let is_empty = new.text.trim().is_empty() && new.images.is_empty() && files.is_empty();
    let problem = if is_empty {
        "the message is empty; say something".to_owned()
    } else if new.text.len() > MAX_TEXT_BYTES {
        let size = new.text.len();
        format!(
            "the message has {size} bytes; write at most {MAX_TEXT_BYTES}, or put it into a file"
        )
    } else if new.source_id.is_empty() || new.source_id.len() > MAX_SOURCE_ID_BYTES {
        format!("the id of the message needs 1 to {MAX_SOURCE_ID_BYTES} bytes; use a UUID")
    } else {
        return Ok(());
    };
    Err(DeliveryError::Unusable(problem))
}
