//! Step `intake`: adds user messages to the log, at the beginning of the turn and during it.
//!
//! Waiting messages are taken in this order, so that a crash at any point neither loses nor repeats one: the inbox is
//! held; the rows, which name the messages' ids, are appended to the log in one write; the log is made durable; the
//! messages are removed from the inbox. Opening a session after a crash finds the ids in its last rows. For messages that
//! their senders keep until they are answered, nothing has to be durable before the end of the turn.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use myclaw_config::DeliveryMode;
use myclaw_files::Durability;
use myclaw_llm::outside::harmless;
use myclaw_llm::{ContentBlock, Message, UserMessage, joined_text};
use myclaw_session::{
    EntryId, FIRST_WORDS, HeldInbox, Inbox, MetaPatch, QueuedKind, QueuedMessage, SessionError,
    TranscriptMessage, durability_of, first_words,
};
use serde_json::Map;

use super::{Interrupts, Shared};
use crate::hook::unless_aborted;
use crate::open_log::NextStep;
use crate::transcript::{message_to_row, row_to_blocks, taken_row, with_meta};
use crate::{AgentRunEvent, AgentStart, RunError};

/// Most quiet periods that are waited for before collected messages are taken, so that a user who never stops writing
/// gets an answer.
const MOST_QUIET_WINDOWS: usize = 30;

/// A free inbox of at most so many bytes is read without a change to another thread, which would take longer and keep the
/// inbox locked meanwhile.
const READ_AT_ONCE: u64 = 64 * 1024;

/// Most dropped messages whose first words are reported to the model.
const MOST_REMAINS: usize = 50;

/// Precedes collected messages that are answered together.
const COLLECTED: &str = "[These messages arrived while you were busy. Answer them together.]";

/// An inbox that is held, and what waits in it.
type HeldMessages = (Box<dyn HeldInbox>, Vec<QueuedMessage>);

/// The points of a turn at which messages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// The model is about to be called: steering messages.
    BeforeCall,
    /// The turn would end: steering messages; if there are none, messages that wait for the end.
    TurnEnd,
}

/// How waiting messages are taken, from the config.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueRules {
    pub(crate) steering: DeliveryMode,
    pub(crate) follow_ups: DeliveryMode,
    /// How long no message may arrive before collected messages are answered.
    pub(crate) quiet: Duration,
}

/// The step and its state.
pub(crate) struct Intake {
    inbox: Arc<dyn Inbox>,
    delivery: QueueRules,
    pub(super) interrupts: Interrupts,
    /// The user message of this run, until it is in the log.
    user_message: Vec<ContentBlock>,
    /// Whether messages were taken since the last model call. The next call answers them.
    has_taken: bool,
}

impl Intake {
    pub(crate) fn new(
        inbox: Arc<dyn Inbox>,
        delivery: QueueRules,
        interrupts: Interrupts,
        user_message: Vec<ContentBlock>,
    ) -> Self {
        Self { inbox, delivery, interrupts, user_message, has_taken: false }
    }

    /// Whether messages were taken that no model call has answered yet.
    pub(super) fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Marks the taken messages as answered by a model call.
    pub(super) fn answered(&mut self) {
        self.has_taken = false;
    }

    /// Appends the user message, as changed by the hooks, after the steering messages that an earlier run left. Returns
    /// whether there was anything to append.
    pub(super) async fn take_user_message(
        &mut self,
        shared: &mut Shared,
    ) -> Result<bool, RunError> {
        let content = self.ask_hooks(shared).await?;
        let is_new_session = shared.log.messages().is_empty();
        let took = self.take_waiting(shared, Point::BeforeCall).await?;
        if content.is_empty() {
            let may_go_on = took || shared.log.next_step() != NextStep::Finish;
            if !may_go_on && self.waiting(shared).await?.is_none() {
                return Err(RunError::NothingToDo);
            }
        } else {
            let timestamp = shared.now_ms();
            let message = UserMessage { content, annotation: None, timestamp };
            let row = of_mode(shared, message_to_row(&Message::User(message)));
            shared.is_active = true;
            begin_with_append(shared);
            shared.log.append_user_rows(vec![row])?;
        }
        if is_new_session {
            enter_in_index(shared);
            if !shared.run.listed_with.is_empty()
                && let Some(entering) = shared.entering.take()
            {
                entering.await.map_err(|error| RunError::Internal(error.to_string()))?;
            }
        } else if !shared.is_quiet() && !shared.has_begun {
            let (store, key) = (shared.run.store.clone(), shared.run.session_key.clone());
            shared.entering = Some(tokio::task::spawn_blocking(move || store.begin_turn(&key)));
        }
        Ok(took)
    }

    /// Lets the hooks change the system prompt and the user message; returns the message.
    async fn ask_hooks(&mut self, shared: &mut Shared) -> Result<Vec<ContentBlock>, RunError> {
        let user_message = std::mem::take(&mut self.user_message);
        if !shared.run.hooks.iter().any(|hook| hook.heeds_start()) {
            return Ok(user_message);
        }
        let system_prompt = std::mem::take(&mut shared.prompt.system_prompt);
        let mut start = AgentStart { system_prompt, user_message, queued_messages: Vec::new() };
        if let Some((_, pending)) = self.waiting(shared).await? {
            let blocks = pending.into_iter().map(|message| TakenMessage::from(message).content);
            start.queued_messages = blocks.collect();
        }
        let cancel = &shared.run.cancel;
        for hook in &shared.run.hooks {
            let asked = hook.before_agent_start(&mut start);
            unless_aborted(cancel.token(), asked).await.map_err(|error| {
                if cancel.is_cancelled() {
                    return RunError::Aborted;
                }
                RunError::Hook { hook: hook.name().to_owned(), reason: error.to_string() }
            })?;
        }
        shared.prompt.system_prompt = start.system_prompt;
        Ok(start.user_message)
    }

    /// Whether a steering message waits.
    pub(super) async fn steering_waits(&self, shared: &Shared) -> Result<bool, RunError> {
        match self.waiting(shared).await {
            Ok(waiting) => Ok(waiting.is_some_and(|(_, pending)| has(&pending, QueuedKind::Steer))),
            // An interrupt: the open calls get a result that says so, and then the turn ends.
            Err(RunError::Aborted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the messages that are due at this point of the turn; returns whether there were any.
    pub(super) async fn take_waiting(
        &mut self,
        shared: &mut Shared,
        point: Point,
    ) -> Result<bool, RunError> {
        if point == Point::TurnEnd {
            self.wait_for_quiet(shared).await?;
        }
        let Some((mut inbox, pending)) = self.waiting(shared).await? else { return Ok(false) };
        let taken = select(&pending, point, self.delivery);
        if taken.is_empty() {
            return Ok(false);
        }
        let ids: Vec<EntryId> = taken.iter().flat_map(|message| message.ids.clone()).collect();
        let rows: Vec<TranscriptMessage> = taken
            .iter()
            .map(|message| {
                let content = message.content.clone();
                let user = UserMessage { content, annotation: None, timestamp: message.ts };
                of_mode(shared, taken_row(user, &message.ids))
            })
            .collect();
        shared.is_active |= !shared.run.quiet.hold_all(&ids);
        begin_with_append(shared);
        shared.log.append_user_rows(rows)?;
        match durability_of(&pending, &ids) {
            // Nothing waits for the disk.
            Durability::Unsynced => inbox.settle_taken(&pending, &ids)?,
            Durability::Synced => {
                let sync = shared.log.sync_handle();
                blocking(move || {
                    sync.sync()?;
                    inbox.settle_taken(&pending, &ids)
                })
                .await?;
            }
        }
        self.has_taken = true;
        for message in taken {
            let text = joined_text(&message.content, "\n");
            shared.emit(AgentRunEvent::Taken { ids: message.ids, text });
        }
        Ok(true)
    }

    /// Holds the inbox and reads the waiting messages; `None` if there are none. Usually this only checks a file's
    /// length.
    ///
    /// # Errors
    /// [`RunError::Aborted`] if a waiting message interrupts the run.
    async fn waiting(&self, shared: &Shared) -> Result<Option<HeldMessages>, RunError> {
        let at_once = match self.inbox.bytes() {
            0 => return Ok(None),
            1..=READ_AT_ONCE => Some(read(self.inbox.try_hold())),
            _ => None,
        };
        let found = match at_once {
            Some(Err(SessionError::Locked { .. })) | None => {
                let inbox = Arc::clone(&self.inbox);
                blocking(move || read(inbox.hold())).await?
            }
            Some(found) => found?,
        };
        if let Some((_, pending)) = &found {
            self.interrupts.heed(pending, &shared.run.cancel)?;
        }
        Ok(found)
    }

    /// If messages of the kind `collect` wait, waits until no further one has arrived for the quiet period.
    async fn wait_for_quiet(&self, shared: &Shared) -> Result<(), RunError> {
        let mut newest = None;
        for _ in 0..MOST_QUIET_WINDOWS {
            let Some((inbox, pending)) = self.waiting(shared).await? else { return Ok(()) };
            // Senders must be able to write during the wait.
            drop(inbox);
            let last = pending.iter().rfind(|message| message.kind == QueuedKind::Collect);
            let Some(last) = last.filter(|last| newest != Some(last.id)) else { return Ok(()) };
            if has(&pending, QueuedKind::Steer) || has(&pending, QueuedKind::FollowUp) {
                return Ok(());
            }
            newest = Some(last.id);
            let since = Duration::from_millis(shared.now_ms().saturating_sub(last.ts));
            let quiet = self.delivery.quiet.saturating_sub(since);
            if quiet.is_zero() {
                return Ok(());
            }
            tokio::select! {
                () = shared.run.clock.sleep(quiet) => {}
                () = shared.run.cancel.cancelled() => return Err(RunError::Aborted),
            }
        }
        Ok(())
    }
}

/// Reads the waiting messages of an inbox; `None` for an empty one.
fn read(
    opened: Result<Option<Box<dyn HeldInbox>>, SessionError>,
) -> Result<Option<HeldMessages>, SessionError> {
    let Some(held) = opened? else { return Ok(None) };
    let pending = held.pending()?;
    Ok(Some((held, pending)).filter(|(_, pending)| !pending.is_empty()))
}

/// Waiting messages that become one message of the session.
struct TakenMessage {
    ids: Vec<EntryId>,
    content: Vec<ContentBlock>,
    /// When the last of them was sent.
    ts: u64,
}

/// Selects from `pending` the messages to take at `point`.
fn select(pending: &[QueuedMessage], point: Point, delivery: QueueRules) -> Vec<TakenMessage> {
    let of_kind = |kind| -> Vec<QueuedMessage> {
        pending.iter().filter(|message| message.kind == kind).cloned().collect()
    };
    // Interrupts were sent before this run, which was started for them, so they come first.
    let mut steering = of_kind(QueuedKind::Interrupt);
    steering.extend(of_kind(QueuedKind::Steer));
    let steering = first_or_all(steering, delivery.steering);
    if point == Point::BeforeCall || !steering.is_empty() {
        return steering.into_iter().map(TakenMessage::from).collect();
    }
    let follow_ups = first_or_all(of_kind(QueuedKind::FollowUp), delivery.follow_ups);
    let mut taken: Vec<TakenMessage> = if follow_ups.is_empty() {
        merged(of_kind(QueuedKind::Collect)).into_iter().collect()
    } else {
        follow_ups.into_iter().map(TakenMessage::from).collect()
    };
    let remains = of_kind(QueuedKind::Overflow);
    if !remains.is_empty() {
        let ids = remains.iter().map(|message| message.id);
        let note = ContentBlock::text(remains_note(&remains));
        match taken.first_mut() {
            Some(first) => {
                first.ids.extend(ids);
                first.content.insert(0, note);
            }
            None => taken.push(TakenMessage {
                ids: ids.collect(),
                content: vec![note],
                ts: remains.iter().map(|message| message.ts).max().unwrap_or(0),
            }),
        }
    }
    taken
}

fn first_or_all(mut messages: Vec<QueuedMessage>, mode: DeliveryMode) -> Vec<QueuedMessage> {
    if mode == DeliveryMode::OneAtATime {
        messages.truncate(1);
    }
    messages
}

/// Joins collected messages into one; a single message is unchanged.
fn merged(messages: Vec<QueuedMessage>) -> Option<TakenMessage> {
    let count = messages.len();
    let parts: Vec<TakenMessage> = messages.into_iter().map(TakenMessage::from).collect();
    if count <= 1 {
        return parts.into_iter().next();
    }
    let mut whole = TakenMessage {
        ids: Vec::with_capacity(count),
        content: vec![ContentBlock::text(COLLECTED)],
        ts: 0,
    };
    for (at, part) in parts.into_iter().enumerate() {
        whole.ids.extend(part.ids);
        whole.ts = whole.ts.max(part.ts);
        whole.content.push(ContentBlock::text(format!("Message {} of {count}:", at + 1)));
        whole.content.extend(part.content);
    }
    Some(whole)
}

fn remains_note(remains: &[QueuedMessage]) -> String {
    let mut text =
        format!("[{} earlier messages were dropped, because too many waited.", remains.len());
    if remains.len() == 1 {
        text = "[An earlier message was dropped, because too many waited.".to_owned();
    }
    text.push_str(" They began so:");
    for message in remains.iter().take(MOST_REMAINS) {
        let _infallible = write!(text, "\n- {}", harmless(&message.content));
    }
    if remains.len() > MOST_REMAINS {
        let _infallible = write!(text, "\n- and {} more", remains.len() - MOST_REMAINS);
    }
    text.push(']');
    text
}

fn has(pending: &[QueuedMessage], kind: QueuedKind) -> bool {
    pending.iter().any(|message| message.kind == kind)
}

impl From<QueuedMessage> for TakenMessage {
    fn from(message: QueuedMessage) -> Self {
        Self {
            ids: vec![message.id],
            content: row_to_blocks(message.content, message.meta.as_ref()),
            ts: message.ts,
        }
    }
}

/// The row, with the mode in which the user wrote it, if one was chosen: the model reads it there, so the bytes before stay.
fn of_mode(shared: &Shared, row: TranscriptMessage) -> TranscriptMessage {
    match shared.run.mode.field() {
        Some((name, mode)) => with_meta(row, &name, mode),
        None => row,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, RunError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| RunError::Internal(error.to_string()))??)
}

/// Lets the first rows of a turn say that it begins, where that costs less than saying so alone.
fn begin_with_append(shared: &mut Shared) {
    let is_new_session = shared.log.messages().is_empty();
    if !is_new_session && !shared.has_begun && !shared.is_quiet() {
        shared.has_begun = shared.run.store.begins_turn_with_append(&shared.run.session_key);
    }
}

/// Adds a new session to the index before its first answer, so that a session whose process is killed in its first turn
/// can be found. The model is called at the same time, unless something is to be kept with it. A failure is reported by the update at the end of the turn,
/// which repeats the entry.
fn enter_in_index(shared: &mut Shared) {
    let (store, key) = (shared.run.store.clone(), shared.run.session_key.clone());
    // What is before it, such as the output of a command, says less about the session.
    let first = shared.log.messages().iter().rev().find_map(|message| match message {
        Message::User(user) => Some(joined_text(&user.content, "\n")),
        _ => None,
    });
    let words = first.as_deref().map(first_words);
    shared.opening = first;
    let words = words.map(|words| (FIRST_WORDS.to_owned(), words.into()));
    let given = shared.run.listed_with.clone();
    let fields: Map<_, _> = words.into_iter().chain(shared.run.mode.field()).chain(given).collect();
    let extra = (!fields.is_empty()).then_some(fields);
    let patch = MetaPatch { extra, in_turn: Some(true), ..MetaPatch::default() };
    shared.entering = Some(tokio::task::spawn_blocking(move || store.enter(&key, patch)));
}
