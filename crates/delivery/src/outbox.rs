//! Step 6: sends the parts of replies.
//!
//! The parts of one route are sent in order; routes do not wait for each other. How far a part is, is in the store
//! before and after each attempt, as far as the channel cannot find out by itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use myclaw_channels::{AfterInterruption, Button, Change, Channel, Choices, Poll, SendFailure};
use myclaw_session::Blobs;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

mod notice;
mod sharing;
mod to_send;

use to_send::to_send;

use crate::DeliveryError;
use crate::channels::Channels;
use crate::counters::Counters;
use crate::ledger::{Ledger, UnsentPart};
use crate::route::Route;
use crate::rows::{Act, ActOn, Outgoing, PartId, PartState};

/// Most attempts to send a part. With the pauses between them they take about a day.
const MOST_ATTEMPTS: u32 = 300;
/// Pause after the first attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause that nobody asked for: a channel that is back is noticed soon.
const LONGEST_OWN_PAUSE: Duration = Duration::from_secs(5 * 60);
/// How long the end of the process waits for parts that are being sent.
const REST_PATIENCE: Duration = Duration::from_secs(5);
/// Longest pause that a channel can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The parts that are to be sent.
pub struct Outbox {
    /// Where the parts are stored.
    pub ledger: Ledger,
    channels: Arc<Channels>,
    /// The copies of files that parts send.
    pub files: Arc<dyn Blobs>,
    routes: Mutex<HashMap<Route, VecDeque<UnsentPart>>>,
    /// The parts in `routes`, and those that are being sent.
    known: Mutex<HashSet<PartId>>,
    /// Fires when a part is sent, or cannot be.
    ended: Notify,
    tasks: TaskTracker,
    /// How many parts are being sent at this moment.
    sending: AtomicUsize,
    /// Whether no further sending is begun.
    is_resting: AtomicBool,
    /// Counts what becomes of the parts.
    pub counters: Arc<dyn Counters>,
    /// Itself, for what it has to send because of what it sends.
    this: Weak<Self>,
}

impl Outbox {
    /// Nothing is sent until parts are pushed. `files` are the copies of files to send.
    pub fn new(
        ledger: Ledger,
        channels: Arc<Channels>,
        files: Arc<dyn Blobs>,
        counters: Arc<dyn Counters>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| {
            let (routes, ended) = (Mutex::default(), Notify::new());
            let (sending, is_resting) = (AtomicUsize::new(0), AtomicBool::new(false));
            let this = Weak::clone(this);
            let known = Mutex::default();
            Self {
                ledger,
                channels,
                files,
                routes,
                known,
                ended,
                tasks,
                sending,
                is_resting,
                counters,
                this,
            }
        })
    }

    /// Sends parts, after those of their routes that wait already. Those of accounts that another gateway has are left to it.
    pub fn push(self: &Arc<Self>, parts: Vec<UnsentPart>) {
        let mut routes = self.routes.lock();
        for part in parts {
            let route = part.row.route.clone();
            if !self.is_mine(&route) || !self.known.lock().insert(part.id.clone()) {
                continue;
            }
            match routes.get_mut(&route) {
                Some(waiting) => waiting.push_back(part),
                None => {
                    routes.insert(route.clone(), VecDeque::from([part]));
                    let this = Arc::clone(self);
                    self.tasks.spawn(async move { this.serve(&route).await });
                }
            }
        }
    }

    /// A text in parts that the channel of a route can send.
    pub fn split(&self, route: &Route, text: &str) -> Vec<String> {
        match self.channel(route) {
            Some(channel) => channel.split(text),
            None => vec![text.to_owned()],
        }
    }

    /// The state of a new part. For the clients of the server it is delivered once it is stored.
    pub(crate) fn first_state(&self, route: &Route, id: &PartId) -> PartState {
        match self.channels.is_own(route) {
            true => PartState::Sent { id: id.as_str().to_owned() },
            false => PartState::Queued,
        }
    }

    /// The channel of a route.
    pub fn channel(&self, route: &Route) -> Option<Arc<dyn Channel>> {
        self.channels.of(route)
    }

    /// A button for a command, where the channel of a route has buttons.
    pub(crate) fn button(&self, route: &Route, text: &str, command: String) -> Option<Button> {
        let has_buttons = self.channel(route).is_some_and(|channel| channel.has_buttons());
        has_buttons.then(|| Button::new(text, command))
    }

    /// All channels.
    pub fn channels(&self) -> Vec<Arc<dyn Channel>> {
        self.channels.all()
    }

    /// Whether a channel can send files: that of this name, or any.
    pub fn sends_files(&self, name: Option<&str>) -> bool {
        self.channels.any(|channel| {
            name.is_none_or(|name| channel.name() == name)
                && channel.capabilities().most_file_bytes.is_some()
        })
    }

    /// The parts of these ids, once all of them are sent or cannot be; as they are when `until` is ready before that.
    pub(crate) async fn settled(
        &self,
        ids: &[PartId],
        until: impl Future<Output = ()>,
    ) -> Result<Vec<Outgoing>, DeliveryError> {
        tokio::pin!(until);
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on, no end is missed.
            ended.as_mut().enable();
            let mut parts = Vec::with_capacity(ids.len());
            for id in ids {
                parts.extend(self.ledger.part(id).await?);
            }
            let is_open = |part: &Outgoing| {
                matches!(part.state, PartState::Queued | PartState::Sending { .. })
            };
            if !parts.iter().any(is_open) {
                return Ok(parts);
            }
            tokio::select! {
                () = ended => {}
                () = &mut until => return Ok(parts),
            }
        }
    }

    async fn serve(&self, route: &Route) {
        while let Some(part) = self.next(route) {
            let id = part.id.clone();
            let delivered = self.deliver(part).await;
            self.known.lock().remove(&id);
            if let Err(error) = delivered {
                // The part stays unsent in the store, and the next start sends it.
                tracing::error!(channel = %route.channel, %error, "the state of a reply is not stored");
            }
        }
    }

    /// The next part of a route. Without one, the route is idle from now on.
    fn next(&self, route: &Route) -> Option<UnsentPart> {
        let mut routes = self.routes.lock();
        let part = routes.get_mut(route)?.pop_front();
        if part.is_none() {
            routes.remove(route);
        }
        part
    }

    /// Sends a part, until it is sent or cannot be.
    async fn deliver(&self, part: UnsentPart) -> Result<(), DeliveryError> {
        let Some(mut part) = self.to_deliver(part).await? else { return Ok(()) };
        let Some(mut channel) = self.channel(&part.row.route) else {
            return self.end_without_channel(part).await;
        };
        if let PartState::Sent { .. } = part.row.state {
            // Nothing is left to record. A client that is not connected finds the part in the store.
            drop(channel.send(&to_send(&part, &self.files, false)).await);
            return Ok(());
        }
        let (mut attempt, mut is_repeat) = match self.earlier_attempts(&channel, &part).await {
            Ok(earlier) => earlier,
            Err(state) => return self.end(part, state).await,
        };
        if let (Some(pause), PartState::Queued) = (part.row.pause_ms, &part.row.state) {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let mut pause = FIRST_PAUSE;
        loop {
            if !self.is_mine(&part.row.route) {
                return Ok(());
            }
            attempt += 1;
            let sending = self.begin_sending().await;
            let interrupted = after_interruption(&channel, &part);
            // Where sending again does no harm, nobody needs to know that it was begun.
            if interrupted != AfterInterruption::SendAgain
                && !self.mark(&mut part, PartState::Sending { attempt }).await?
            {
                return Ok(());
            }
            let attempt_now = self.attempt(&channel, &part, is_repeat);
            let Some(outcome) = self.while_mine(&part.row.route, attempt_now).await else {
                return Ok(());
            };
            let (wait, reason) = match outcome {
                Ok(id) => return self.end(part, PartState::Sent { id }).await,
                Err(SendFailure::Never { reason }) => {
                    return self.end(part, PartState::Failed { reason }).await;
                }
                Err(SendFailure::NoPreview) => {
                    // From here on it is a message of its own, whose sending must not be repeated unnoticed.
                    part.row.refers.replaces = None;
                    continue;
                }
                Err(SendFailure::Later { after, reason }) => {
                    if !self.is_not_sent(&mut part, interrupted).await? {
                        return Ok(());
                    }
                    (after.unwrap_or(pause), reason)
                }
                Err(SendFailure::Unknown { reason }) => match interrupted {
                    AfterInterruption::Report => {
                        return self.end(part, PartState::Uncertain).await;
                    }
                    AfterInterruption::Look => match self.look(&channel, &part).await {
                        Some(state) => return self.end(part, state).await,
                        None => (pause, reason),
                    },
                    AfterInterruption::SendMarked => {
                        is_repeat = true;
                        (pause, reason)
                    }
                    AfterInterruption::SendAgain => (pause, reason),
                },
            };
            if attempt >= MOST_ATTEMPTS {
                return self.end(part, PartState::Failed { reason }).await;
            }
            drop(sending);
            tracing::info!(channel = channel.name(), attempt, %reason, "a reply was not sent");
            let route = part.row.route.clone();
            self.channels.pause(&route, &channel, wait.min(LONGEST_PAUSE)).await;
            pause = pause.saturating_mul(2).min(LONGEST_OWN_PAUSE);
            match self.channel(&route) {
                Some(now) if Arc::ptr_eq(&now, &channel) => {}
                Some(now) => (channel, pause) = (now, FIRST_PAUSE),
                None => return self.end_without_channel(part).await,
            }
        }
    }

    /// How often a part was tried to be sent, and whether it is sent again now. If it is not sent again, the state in which it
    /// ends.
    async fn earlier_attempts(
        &self,
        channel: &Arc<dyn Channel>,
        part: &UnsentPart,
    ) -> Result<(u32, bool), PartState> {
        let PartState::Sending { attempt } = part.row.state else { return Ok((0, false)) };
        match after_interruption(channel, part) {
            AfterInterruption::Report => Err(PartState::Uncertain),
            AfterInterruption::Look => match self.look(channel, part).await {
                Some(state) => Err(state),
                None => Ok((attempt, false)),
            },
            AfterInterruption::SendMarked => Ok((attempt, true)),
            AfterInterruption::SendAgain => Ok((attempt, false)),
        }
    }

    /// Sends a part, or does what it is there for. Gives the channel's id of the message.
    async fn attempt(
        &self,
        channel: &Arc<dyn Channel>,
        part: &UnsentPart,
        is_repeat: bool,
    ) -> Result<String, SendFailure> {
        let sending = to_send(part, &self.files, is_repeat);
        let Some(act) = &part.row.act else { return channel.send(&sending).await };
        let change = match act {
            Act::Poll { options, several } => {
                let choices = if *several { Choices::Several } else { Choices::One };
                let (question, options) = (part.row.text.clone(), options.clone());
                return channel.poll(&sending, &Poll { question, options, choices }).await;
            }
            Act::React { .. } => Change::React,
            Act::Edit { .. } => Change::Edit,
            Act::Unsend { .. } => Change::Unsend,
        };
        let message = self.message_of(act).await?;
        channel.change(change, &sending, &message).await?;
        Ok(message)
    }

    /// The channel's id of the message that a part changes. What is sent before it on the same route is over.
    async fn message_of(&self, act: &Act) -> Result<String, SendFailure> {
        let never = |reason: &str| SendFailure::Never { reason: reason.to_owned() };
        match act.on() {
            Some(ActOn::Received(id)) => Ok(id.clone()),
            Some(ActOn::Sent(part)) => match self.ledger.part(part).await {
                Ok(Some(Outgoing { state: PartState::Sent { id }, .. })) => Ok(id),
                Ok(_) => Err(never("the message was not sent")),
                Err(error) => Err(SendFailure::Later { after: None, reason: error.to_string() }),
            },
            None => Err(never("it names no message")),
        }
    }

    async fn end_without_channel(&self, part: UnsentPart) -> Result<(), DeliveryError> {
        let Route { channel, account, .. } = &part.row.route;
        let reason = format!("the config has no account {account} of the channel {channel}");
        self.end(part, PartState::Failed { reason }).await
    }

    /// Records that an attempt delivered nothing, so that a kill during the pause leaves no doubt. False if somebody else
    /// has the part now.
    async fn is_not_sent(
        &self,
        part: &mut UnsentPart,
        interrupted: AfterInterruption,
    ) -> Result<bool, DeliveryError> {
        Ok(interrupted == AfterInterruption::SendAgain
            || self.mark(part, PartState::Queued).await?)
    }

    /// Records how far a part is. False if somebody else has changed it, who then does the rest.
    async fn mark(&self, part: &mut UnsentPart, state: PartState) -> Result<bool, DeliveryError> {
        part.row.state = state;
        let account = self.account(&part.row.route);
        let version = self.ledger.mark(part, account.as_ref()).await?;
        match version {
            Some(version) => part.version = version,
            None => tracing::info!(part = part.id.as_str(), "a part is sent by another process"),
        }
        Ok(version.is_some())
    }

    /// Looks until the channel answers: sending without knowing could deliver the part twice. Gives the end of the part, or
    /// `None` if it has to be sent again.
    async fn look(&self, channel: &Arc<dyn Channel>, part: &UnsentPart) -> Option<PartState> {
        let mut pause = FIRST_PAUSE;
        loop {
            match channel.find(&to_send(part, &self.files, false)).await {
                Ok(found) => return found.map(|id| PartState::Sent { id }),
                Err(SendFailure::Never { reason }) => {
                    tracing::warn!(channel = channel.name(), %reason, "nobody can look for a part");
                    return Some(PartState::Uncertain);
                }
                Err(failure) => tracing::info!(channel = channel.name(), ?failure, "no look"),
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    async fn end(&self, mut part: UnsentPart, state: PartState) -> Result<(), DeliveryError> {
        let (id, channel) = (part.id.as_str(), part.row.route.channel.as_str());
        match &state {
            PartState::Failed { reason } => {
                tracing::warn!(part = id, channel, %reason, "a reply cannot be delivered");
            }
            PartState::Uncertain => {
                tracing::warn!(part = id, channel, "a reply may not have been delivered");
            }
            _ => {}
        }
        self.counters.delivered(channel, &state);
        if state == PartState::Uncertain {
            part.row.state = state;
            // What the tool `message` sent is for the model to tell, which gets the outcome of its call. There is no notice of a
            // notice: if it was interrupted, the next message to the chat repeats it.
            let is_of_tool = part.row.answers.is_empty() && !part.row.session.is_empty();
            if is_of_tool || part.row.refers.tells_of.is_some() {
                self.mark(&mut part, PartState::Uncertain).await?;
            } else {
                let account = self.account(&part.row.route);
                let notice = self.notice(&part);
                let notice = self.ledger.uncertain(&part, notice, account.as_ref()).await?;
                if let Some(this) = self.this.upgrade() {
                    this.push(notice.into_iter().collect());
                }
            }
            self.ended.notify_waiters();
            // A file stays for the case that its reader asks for it again.
            return Ok(());
        }
        let is_mine = self.mark(&mut part, state).await?;
        self.ended.notify_waiters();
        // Clients of the server fetch files later.
        if let Some(file) = &part.row.refers.file
            && is_mine
            && !self.channels.is_own(&part.row.route)
        {
            let (files, blob) = (Arc::clone(&self.files), file.blob.clone());
            let removed = tokio::task::spawn_blocking(move || files.remove(&blob)).await;
            if let Ok(Err(error)) = removed {
                let part = part.id.as_str();
                tracing::debug!(part, %error, "the copy of a file is not removed");
            }
        }
        Ok(())
    }

    /// Begins no further sending, and waits for what was begun: a part whose sending is cut off may have been delivered.
    pub async fn rest(&self) {
        self.is_resting.store(true, Ordering::SeqCst);
        let sent = async {
            while self.sending.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(REST_PATIENCE, sent).await;
    }

    /// Counts a part as being sent. At the end of the process this waits for ever.
    async fn begin_sending(&self) -> Sending<'_> {
        self.sending.fetch_add(1, Ordering::SeqCst);
        let sending = Sending(&self.sending);
        if self.is_resting.load(Ordering::SeqCst) {
            drop(sending);
            return std::future::pending().await;
        }
        sending
    }

    /// How many parts wait to be sent.
    pub fn waiting(&self) -> usize {
        self.routes.lock().values().map(VecDeque::len).sum()
    }
}

/// One part that is being sent, until it is dropped.
struct Sending<'a>(&'a AtomicUsize);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What happens to an interrupted sending of a part. A change of a message can be made
/// twice.
fn after_interruption(channel: &Arc<dyn Channel>, part: &UnsentPart) -> AfterInterruption {
    let changes_message = part.row.act.as_ref().is_some_and(|act| act.on().is_some());
    match changes_message || part.row.refers.replaces.is_some() {
        true => AfterInterruption::SendAgain,
        false => channel.capabilities().after_interruption,
    }
}

#[cfg(test)]
mod tests;
