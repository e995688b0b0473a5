//! Sends messages that begin a turn or join one, and finds out where sent messages are.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use myclaw_config::{QueueConfig, QueueMode};
use myclaw_engine::{AnswerSearch, Arrival, TakenState};
use myclaw_llm::ContentBlock;
use myclaw_session::{EntryId, Keeper, MessageSearch, QueuedMessage, TranscriptMessage};

use super::{Accepted, Session, SessionWork};
use crate::{AgentError, FailureClass};

/// Rows of a log that are searched for a message that waits too: a run that took it may have been killed before it
/// settled it.
const NEWEST_ROWS: usize = 32;

/// Where a message is that was sent with a given id.
#[derive(Debug, Clone, PartialEq)]
pub enum Handover {
    /// Neither in the inbox nor in the log.
    Missing,
    /// In the inbox.
    Waiting,
    /// In the log, or dropped by a full queue; then the log has a notice of that for the model.
    Taken(TakenState),
}

impl Session {
    /// Sends a message. When this returns, the message is on disk, and a turn that answers it runs or begins. `mode`
    /// decides what happens while the session is busy; the default is `messages.queue.mode` of the config.
    ///
    /// # Errors
    /// The message is not accepted: no model can be used, too many messages wait, or it cannot be written.
    pub async fn send(
        self: &Arc<Self>,
        content: Vec<ContentBlock>,
        mode: Option<QueueMode>,
    ) -> Result<Accepted, AgentError> {
        let message = (EntryId::generate(), Keeper::Inbox);
        self.send_with(message, content, mode).await.map(|(accepted, _)| accepted)
    }

    /// Like [`Session::send`], with an id that the caller has given the message, and which the caller keeps on disk until
    /// the message is answered: a crash of the machine may take it from the session, not one of the program. A message
    /// that still waits is not sent again, so a caller that does not know whether its call succeeded repeats it; where the
    /// message is, is known to [`Session::whereabouts`]. Also returns the messages that were dropped for this one, because
    /// too many waited.
    ///
    /// # Errors
    /// As for [`Session::send`].
    pub async fn send_as(
        self: &Arc<Self>,
        id: EntryId,
        content: Vec<ContentBlock>,
        mode: Option<QueueMode>,
    ) -> Result<(Accepted, Vec<EntryId>), AgentError> {
        self.send_with((id, Keeper::Sender), content, mode).await
    }

    async fn send_with(
        self: &Arc<Self>,
        (id, keeper): (EntryId, Keeper),
        content: Vec<ContentBlock>,
        mode: Option<QueueMode>,
    ) -> Result<(Accepted, Vec<EntryId>), AgentError> {
        self.selection().await?;
        let config = self.config();
        config.background.attended(self.key()).await;
        let configured = &config.config.messages.queue;
        let running_before = self.state.lock().running.clone();
        let work_before = running_before.as_ref().map(|running| running.work);
        // Work that is being aborted reads no more messages: this one comes next, as if it had interrupted the work.
        let is_aborting =
            self.state.lock().running.as_ref().is_some_and(|running| running.cancel.is_cancelled());
        let mode = if is_aborting { QueueMode::Interrupt } else { mode.unwrap_or(configured.mode) };
        let queue = QueueConfig { mode, ..configured.clone() };
        match self.inbox.arrive_as((id, keeper), &content, &queue).await? {
            Arrival::Idle => {
                self.go_on();
                Ok((Accepted::Started(id), Vec::new()))
            }
            Arrival::Queued { id, dropped } => {
                if work_before == Some(SessionWork::Compaction) {
                    // A compaction reads no messages.
                    self.go_on();
                }
                Ok((Accepted::Queued(id), dropped.iter().map(|message| message.id).collect()))
            }
            Arrival::Interrupting { id, dropped } => {
                // A turn stops by itself, unless it is the one that takes the message. A compaction takes none.
                if let Some(running) = running_before
                    && running.work == SessionWork::Compaction
                {
                    running.cancel.cancel();
                }
                // A run of another process ends too; the turn that begins waits for it.
                self.go_on();
                Ok((Accepted::Interrupting(id), dropped.iter().map(|message| message.id).collect()))
            }
            Arrival::Refused { waiting } => Err(AgentError::new(
                FailureClass::QueueFull,
                format!(
                    "the message was refused, because {waiting} messages already wait (messages.queue.cap); \
                     wait until they are answered"
                ),
            )),
        }
    }

    /// Starts a turn that answers the messages that wait, or continues an interrupted turn, unless work is running.
    pub fn resume(self: &Arc<Self>) {
        self.go_on();
    }

    /// Where the messages with these ids are. Reads the log from its end, as far as needed. For an id that is
    /// nowhere that is the whole log, unless the store knows which messages a log has taken.
    ///
    /// # Errors
    /// The inbox or the log cannot be read.
    pub async fn whereabouts(
        &self,
        ids: Vec<EntryId>,
    ) -> Result<HashMap<EntryId, Handover>, AgentError> {
        let sessions = Arc::clone(self.config().home.sessions());
        let (key, works) = (self.key().clone(), self.work().is_some());
        let looked = tokio::task::spawn_blocking(move || {
            let mut search = Search::new(ids);
            sessions.whereabouts(&key, &mut search)?;
            let found = search.into_found();
            let is_answered =
                |state: &Handover| matches!(state, Handover::Taken(TakenState::Answered { .. }));
            // An answer that leaves the session during a run must not be lost behind it.
            if works && found.values().any(is_answered) {
                sessions.sync(&key)?;
            }
            Ok::<_, AgentError>(found)
        });
        looked.await.map_err(|error| {
            AgentError::new(FailureClass::Internal, format!("internal error: {error}"))
        })?
    }
}

/// The search for messages that were sent with these ids.
struct Search {
    ids: Vec<EntryId>,
    waiting: HashSet<EntryId>,
    answers: AnswerSearch,
    /// Rows that were read.
    rows: usize,
}

impl Search {
    fn new(ids: Vec<EntryId>) -> Self {
        let answers = AnswerSearch::new(ids.iter().copied());
        Self { ids, waiting: HashSet::new(), answers, rows: 0 }
    }

    fn of_waiting(&self, id: EntryId) -> Option<Handover> {
        let waits = |id| self.waiting.contains(&id);
        if waits(id) {
            return Some(Handover::Waiting);
        }
        waits(id.of_remains()).then_some(Handover::Taken(TakenState::Dropped))
    }

    fn into_found(mut self) -> HashMap<EntryId, Handover> {
        let ids = std::mem::take(&mut self.ids);
        let waiting: Vec<Option<Handover>> = ids.iter().map(|id| self.of_waiting(*id)).collect();
        let mut found = self.answers.into_found();
        let state = |(id, waiting): (EntryId, Option<Handover>)| {
            let taken = found.remove(&id).map(Handover::Taken);
            (id, taken.or(waiting).unwrap_or(Handover::Missing))
        };
        ids.into_iter().zip(waiting).map(state).collect()
    }
}

impl MessageSearch for Search {
    fn ids(&self) -> &[EntryId] {
        &self.ids
    }

    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()> {
        self.waiting = pending.iter().map(|message| message.id).collect();
        match self.answers.is_complete() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        self.answers.row(row);
        self.rows += 1;
        // A waiting message is usually not in the log, so the log is not searched to its beginning for it.
        let is_known = |id: &EntryId| {
            self.answers.has_found(*id)
                || (self.rows >= NEWEST_ROWS && self.of_waiting(*id).is_some())
        };
        match self.answers.is_complete() || self.ids.iter().all(is_known) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn has_found(&self, id: EntryId) -> bool {
        self.answers.has_found(id)
    }
}
