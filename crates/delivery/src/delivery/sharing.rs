//! Several gateways on one store: this one works on the sessions whose desks it holds.
//!
//! **What arrives:** messages without an answer that this process does not know, because another gateway accepted them or died
//! before it answered them. **What leaves:** desks that this process got, and desks that another one has. **What may fail:** the
//! store; then everything stays as it is until the next look.
//!
//! **Why this shape:** a desk is claimed once and held while it is in memory, so a message costs nothing more. Who accepts a
//! message for a desk that another gateway holds leaves it in the store, where the holder finds it. Whose holder dies is found by
//! all, and one gets it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use myclaw_store::{Held, Version};
use tokio::time::Instant;

use super::answering::picture_bytes;
use super::desk::{Desk, Source};
use super::{Delivery, Report};
use crate::DeliveryError;
use crate::ledger::{LOOK_PAUSE, OpenMessage};
use crate::rows::{Incoming, MessageId, MessageState};
use crate::sharing::desk_of;
use serde_json::json;

/// What this process has left to others.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// The sessions of others, with the time at which they may be free.
    sessions: HashMap<String, Instant>,
    /// Messages of which this process knows, and whose end it tells those who wait.
    messages: HashSet<MessageId>,
}

impl Delivery {
    /// The claim of a desk; `None` if another gateway has it.
    pub(super) async fn claim_desk(&self, desk: &Desk) -> Option<Held> {
        let (claims, id) = (self.ledger().claims(), desk_of(desk.session.key().as_str()));
        loop {
            // A desk of the same session that this process has just closed is waited for.
            let claimed = match claims.is_shared() && !claims.holds(&id) {
                true => claims.acquire(&id).await,
                false => claims.own(&id).await.map(Some),
            };
            match claimed {
                Ok(held) => return held,
                Err(error) => tracing::error!(desk = %id, %error, "not claimed; trying again"),
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Prepares a desk that this process has got.
    pub(super) async fn take_over(self: &Arc<Self>, desk: &Desk) -> Result<(), DeliveryError> {
        let session = desk.session.key().as_str();
        if self.ledger().claims().is_shared() {
            self.desks.elsewhere.lock().sessions.remove(session);
            // Of its former holder.
            self.end_cut_questions(Some(session)).await?;
        }
        if let Some(child) = self.children.get(session).filter(|child| child.is_running()) {
            self.stop_in_time(&child);
        }
        Ok(())
    }

    /// Leaves a desk to the gateway that has its session. What it does is dropped, as a crash would; the other one continues it.
    pub(super) async fn leave_to_others(&self, desk: &Desk, mut open: Vec<OpenMessage>) {
        let session = desk.session.key().as_str();
        desk.session.abandon();
        desk.session.config().home.sessions().inbox(desk.session.key()).forget_kept();
        {
            let mut desks = self.desks();
            if desks.get(session).is_some_and(|known| std::ptr::eq(&**known, desk)) {
                desks.remove(session);
            }
            // Under the lock: from here on, messages get another desk.
            open.extend(desk.take_arrived());
        }
        tracing::info!(session, messages = open.len(), "another gateway has the session");
        {
            let mut elsewhere = self.desks.elsewhere.lock();
            let until = Instant::now() + self.ledger().claims().look();
            elsewhere.sessions.insert(session.to_owned(), until);
            elsewhere.messages.extend(open.iter().map(|message| message.id.clone()));
        }
        desk.settled(&open);
        self.leave_all(&open);
        self.watchers.live.end(session).await;
        let front = Arc::clone(&self.watchers.front);
        let on_event = move |event: myclaw_engine::RunEvent| {
            front.publish(event.session.as_str(), &json!(event));
        };
        desk.session.config().close_own_jobs(&on_event).await;
    }

    /// Forgets messages that were settled before this process had their desk.
    pub(super) async fn drop_settled(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
    ) -> Result<(), DeliveryError> {
        if !self.ledger().claims().is_shared() || !desk.has_unchecked() {
            return Ok(());
        }
        let (still_open, over) = self.ledger().still_open(open.clone()).await?;
        desk.is_checked();
        *open = still_open;
        self.are_over(&over);
        desk.settled(&over);
        Ok(())
    }

    /// Works together with other gateways, for ever; without others there is nothing to do.
    pub async fn share(self: Arc<Self>) {
        let claims = self.ledger().claims();
        if !claims.is_shared() {
            return;
        }
        tokio::join!(
            claims.keep(),
            self.follow(),
            self.outbox.follow(),
            self.children.follow(),
            self.follow_goals()
        );
    }

    /// Looks at the messages without an answer now and after each change.
    async fn follow(self: &Arc<Self>) {
        let (claims, mut changes) = (self.ledger().claims(), self.ledger().watch_open());
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the messages of other gateways are not seen; trying again");
            }
            // That a lease ends is no change. A pause lets several changes be one look.
            tokio::time::sleep(LOOK_PAUSE.min(claims.look()) / 10).await;
            drop(tokio::time::timeout(claims.look(), changes.changed()).await);
        }
    }

    /// Takes the messages that this process does not know and whose session it has, or nobody. Tells those who wait of messages
    /// that others have answered. Returns how many it took.
    pub(super) async fn look(self: &Arc<Self>) -> Result<usize, DeliveryError> {
        let all = self.ledger().open_messages().await?;
        let open: HashSet<&MessageId> = all.iter().map(|message| &message.id).collect();
        self.tell_of_ends(&open).await?;
        let (mut count, now) = (0, Instant::now());
        for message in &all {
            let session = message.row.session.as_str();
            let desk = self.desks().get(session).cloned();
            let is_wanted = match desk {
                Some(desk) => !desk.knows(message.id.entry()),
                None => {
                    let elsewhere = self.desks.elsewhere.lock();
                    elsewhere.sessions.get(session).is_none_or(|until| *until <= now)
                }
            };
            if is_wanted && !self.process.closing.is_cancelled() {
                self.take_in(message.clone()).await?;
                count += 1;
            }
        }
        self.desks.elsewhere.lock().sessions.retain(|_, until| *until > now);
        Ok(count)
    }

    /// Puts a stored message onto the desk of its session, or reports it.
    pub(super) async fn take_in(
        self: &Arc<Self>,
        message: OpenMessage,
    ) -> Result<(), DeliveryError> {
        let message = self.ledger().with_pictures(message).await?;
        self.desks.elsewhere.lock().messages.remove(&message.id);
        self.desks.open.fetch_add(1, Ordering::SeqCst);
        self.desks.pictures.fetch_add(picture_bytes(&message.row), Ordering::SeqCst);
        self.children.know(&message.row.session).await?;
        // Its agent may be gone from the config since.
        let Err((error, message)) = self.hand_in(message, Source::Recovered) else {
            return Ok(());
        };
        let id = desk_of(&message.row.session);
        let Some(held) = self.ledger().claims().acquire(&id).await? else {
            self.leave_all(&[*message]);
            return Ok(());
        };
        let report = Report { class: "unusable".to_owned(), message: error.to_string() };
        self.report(vec![*message], &report).await?;
        held.release().await?;
        Ok(())
    }

    /// Tells those who wait of messages that are not open any more.
    async fn tell_of_ends(&self, open: &HashSet<&MessageId>) -> Result<(), DeliveryError> {
        for (id, waiter) in self.waiters().iter().filter(|(id, _)| !open.contains(id)) {
            tracing::debug!(message = %id, "is over");
            waiter.notify_waiters();
        }
        let over: Vec<MessageId> = {
            let mut elsewhere = self.desks.elsewhere.lock();
            elsewhere.messages.extract_if(|id| !open.contains(id)).collect()
        };
        for id in over {
            let Some(row) = self.ledger().message(&id).await? else { continue };
            // It may have been stored after this look began.
            match row.state {
                MessageState::Open => drop(self.desks.elsewhere.lock().messages.insert(id)),
                _ => self.announce(id, row),
            }
        }
        Ok(())
    }

    fn announce(&self, id: MessageId, row: Incoming) {
        let state = row.state.clone();
        self.announce_end(&OpenMessage::new(id, Version(0), row), &state);
    }
}
