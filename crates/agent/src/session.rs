//! A conversation that stays open between its turns.
//!
//! Whatever is said to it is on disk before it is acknowledged, whether or not a turn runs. One piece of work, a turn
//! or a compaction, goes on at a time; it is a task of its own, so nobody who talks to the session waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_config::{QueueConfig, QueueMode};
use myclaw_engine::{
    Arrival, CompactionReport, EventCallback, ModelSwitch, PendingMessage, RunEvent, RunParams,
    RunResult, SessionInbox, SystemClock, WhenIdle,
};
use myclaw_llm::{ContentBlock, ThinkingLevel};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::selection::Selection;
use crate::{AgentError, FailureClass, SessionConfig, SessionOptions};

/// Receives the events of a session, in order.
pub type SessionCallback = Arc<dyn Fn(&SessionKey, SessionEvent<'_>) + Send + Sync>;

/// What happens in a session.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// Work begins.
    Begin(Work),
    /// A turn or a compaction tells something.
    Run(&'a RunEvent),
    /// Work is over. Whether more of it follows at once.
    End(&'a Outcome, Next),
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// It answers what waits.
    Turn,
    /// It puts a summary in the place of older messages.
    Compaction,
}

/// How work ended: with an answer or a report, or with what it failed of, which may be that it was aborted.
pub type Outcome = Result<Done, AgentError>;

/// What work gave.
#[derive(Debug)]
pub enum Done {
    /// There is an answer.
    Answered(Box<RunResult>),
    /// Older messages are summarised, unless there was nothing to summarise.
    Compacted(CompactionReport),
}

/// What a session does behind a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More work, for something was said that is still to be answered.
    GoesOn,
    /// Nothing.
    Idle,
}

/// What became of something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A turn begins with it.
    Started(EntryId),
    /// The work that goes on takes it, or the turn behind it, here or in another process.
    Queued(EntryId),
    /// The turn that goes on is aborted for it.
    Interrupting(EntryId),
}

/// A conversation that stays open.
pub struct Session {
    driver: Arc<Driver>,
    config: SessionConfig,
    /// The model that was asked for when the session was opened.
    first_model: Option<String>,
    inbox: SessionInbox,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who answers; chosen when that is first asked.
    selection: Option<Arc<Selection>>,
    /// How much the model should think, if anybody said so.
    thinking: Option<ThinkingLevel>,
    running: Option<Running>,
    /// Whether something was said that the work which goes on may not take.
    is_due: bool,
}

#[derive(Clone)]
struct Running {
    work: Work,
    cancel: CancellationToken,
    switch: ModelSwitch,
}

impl State {
    /// How much the model should think, as far as it can.
    fn thinking_of(&self, selection: &Selection) -> Option<ThinkingLevel> {
        self.thinking.map(|level| selection.model().thinking_level(level))
    }

    /// Tells the run that goes on what changes from its next model call on.
    fn switch(&self) {
        if let (Some(running), Some(selection)) = (&self.running, &self.selection) {
            running.switch.to(selection.models.clone(), self.thinking_of(selection));
        }
    }
}

/// How work in the foreground is observed and aborted.
pub struct Foreground {
    /// Aborts it.
    pub cancel: CancellationToken,
    /// Receives its events.
    pub on_event: EventCallback,
}

/// Frees the session when work in the foreground ends, also where its future is dropped.
struct Place<'a>(&'a Session);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.lock().running = None;
    }
}

impl Session {
    /// Opens the session that `config` names. Its model and thinking level are at first those of `options`. Nothing is
    /// read before it is needed.
    pub fn open(driver: Arc<Driver>, config: SessionConfig, options: &SessionOptions) -> Arc<Self> {
        let state = State { thinking: options.thinking, ..State::default() };
        Self::with_state(driver, config, options.model.clone(), state)
    }

    /// Opens another session of the agent, which begins with the model and the thinking level of this one.
    pub fn open_beside(&self, key: SessionKey) -> Arc<Self> {
        let state = {
            let state = self.lock();
            State {
                selection: state.selection.clone(),
                thinking: state.thinking,
                ..State::default()
            }
        };
        let config = self.config.for_session(key);
        Self::with_state(Arc::clone(&self.driver), config, self.first_model.clone(), state)
    }

    fn with_state(
        driver: Arc<Driver>,
        config: SessionConfig,
        first_model: Option<String>,
        state: State,
    ) -> Arc<Self> {
        let key = config.session_key.clone();
        let store = Arc::new(config.home.session_store());
        let inbox = SessionInbox::new(store, key.clone(), Arc::new(SystemClock));
        let listener = Arc::clone(&driver);
        let inbox = inbox.with_events(Arc::new(move |event| {
            (listener.on_event())(&key, SessionEvent::Run(&event));
        }));
        Arc::new(Self { driver, config, first_model, inbox, state: Mutex::new(state) })
    }

    /// Which one.
    pub fn key(&self) -> &SessionKey {
        &self.config.session_key
    }

    /// Where it is and who answers in it.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// What it does at this moment.
    pub fn work(&self) -> Option<Work> {
        self.lock().running.as_ref().map(|running| running.work)
    }

    /// The messages that wait to be answered, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending(&self) -> Result<Vec<PendingMessage>, AgentError> {
        Ok(self.inbox.pending().await?)
    }

    /// Takes back a message that no run has taken yet; whether it was there.
    ///
    /// # Errors
    /// The inbox cannot be read or written; the message still waits then.
    pub async fn take_back(&self, id: EntryId) -> Result<bool, AgentError> {
        Ok(self.inbox.remove(id).await?)
    }

    /// The models that answer. They are selected when they are first needed.
    ///
    /// # Errors
    /// There is none: a key is missing, or the config names a model that does not exist.
    pub async fn selection(&self) -> Result<Arc<Selection>, AgentError> {
        if let Some(selection) = &self.lock().selection {
            return Ok(Arc::clone(selection));
        }
        self.select_model(self.first_model.as_deref()).await
    }

    /// Lets another model answer from the next call on; `None` means the one that the config gives.
    ///
    /// # Errors
    /// It cannot answer. The one before stays then.
    pub async fn select_model(&self, name: Option<&str>) -> Result<Arc<Selection>, AgentError> {
        let selection = Arc::new(self.config.select_model(name).await?);
        let mut state = self.lock();
        state.selection = Some(Arc::clone(&selection));
        state.switch();
        Ok(selection)
    }

    /// Lets the model think this much from the next call on.
    pub fn set_thinking(&self, level: ThinkingLevel) {
        let mut state = self.lock();
        state.thinking = Some(level);
        state.switch();
    }

    /// How much the model should think, if anybody asked for a level.
    pub fn asked_thinking(&self) -> Option<ThinkingLevel> {
        self.lock().thinking
    }

    /// How much the model should think, and how much it does, for not every model offers every level.
    pub fn thinking(&self, selection: &Selection) -> (ThinkingLevel, ThinkingLevel) {
        let requested = self.config.requested_thinking(self.lock().thinking);
        (requested, selection.model().thinking_level(requested))
    }

    /// Runs one turn and waits for its result, without telling the driver's listener. `message` is the user's; without
    /// one the turn answers what waits, or goes on where an interrupted one stopped.
    ///
    /// # Errors
    /// There is no reply. The session is in order, and holds whatever was said and done.
    pub async fn run(
        &self,
        message: Option<String>,
        foreground: Foreground,
    ) -> Result<RunResult, AgentError> {
        let selection = self.selection().await?;
        let running = self.begin_with(Work::Turn, foreground.cancel).ok_or_else(|| self.busy())?;
        let _place = Place(self);
        let mut params = self.params(&selection, running, foreground.on_event).await?;
        params.user_message.extend(message.map(ContentBlock::text));
        self.driver.run(params, &selection).await
    }

    /// As [`Session::compact`], in the foreground as [`Session::run`].
    ///
    /// # Errors
    /// As there.
    pub async fn compact_here(
        &self,
        focus: Option<&str>,
        foreground: Foreground,
    ) -> Result<CompactionReport, AgentError> {
        let selection = self.selection().await?;
        let running =
            self.begin_with(Work::Compaction, foreground.cancel).ok_or_else(|| self.busy())?;
        let _place = Place(self);
        let params = self.params(&selection, running, foreground.on_event).await?;
        self.driver.compact(params, &selection, focus).await
    }

    /// Puts a message into the inbox, whether or not anything runs. The run in progress takes it, or the next one.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn send(
        &self,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
    ) -> Result<EntryId, AgentError> {
        Ok(self.inbox.send(kind, content, WhenIdle::Keep).await?)
    }

    /// Says something. When this returns, it is on disk, and a turn that answers it runs or begins. While the session
    /// is busy, `mode` says what becomes of it; without one the setting `messages.queue.mode` does.
    ///
    /// # Errors
    /// It is not said: there is no model to answer it, too much waits, or it cannot be written.
    pub async fn say(
        self: &Arc<Self>,
        content: Vec<ContentBlock>,
        mode: Option<QueueMode>,
    ) -> Result<Said, AgentError> {
        self.selection().await?;
        let configured = &self.config.config.messages.queue;
        // Only the work that goes on now is interrupted: work that begins meanwhile may be there to answer this.
        let running_before = self.lock().running.clone();
        let work_before = running_before.as_ref().map(|running| running.work);
        // Work that is being aborted reads no more: what is said behind that comes next, as if it had interrupted it.
        let is_aborting =
            self.lock().running.as_ref().is_some_and(|running| running.cancel.is_cancelled());
        let mode = if is_aborting { QueueMode::Interrupt } else { mode.unwrap_or(configured.mode) };
        let queue = QueueConfig { mode, ..configured.clone() };
        match self.inbox.arrive(content.clone(), &queue).await? {
            Arrival::Idle => {
                let id = self.inbox.send(QueuedKind::Steer, content, WhenIdle::Keep).await?;
                self.go_on();
                Ok(Said::Started(id))
            }
            Arrival::Queued { id, .. } => {
                if work_before == Some(Work::Compaction) {
                    // It reads no messages.
                    self.go_on();
                }
                Ok(Said::Queued(id))
            }
            Arrival::Interrupting { id, .. } => {
                if let Some(running) = &running_before {
                    running.cancel.cancel();
                }
                // A run of another process ends too; the turn that begins waits for it.
                self.go_on();
                Ok(Said::Interrupting(id))
            }
            Arrival::Refused { waiting } => Err(AgentError::new(
                FailureClass::QueueFull,
                format!(
                    "the message was refused, because {waiting} wait already (messages.queue.cap); \
                     wait until they are answered"
                ),
            )),
        }
    }

    /// Says something to the turn that runs: before its next model call, or when it would end.
    ///
    /// # Errors
    /// Nobody runs the session, or it cannot be written.
    pub async fn say_meanwhile(
        self: &Arc<Self>,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
    ) -> Result<EntryId, AgentError> {
        // Work of this driver that has not yet opened the session, or has just closed it, is no reason to refuse.
        let is_working = self.work().is_some();
        let when_idle = if is_working { WhenIdle::Keep } else { WhenIdle::Refuse };
        let id = self.inbox.send(kind, content, when_idle).await?;
        if is_working {
            self.go_on();
        }
        Ok(id)
    }

    /// Aborts what goes on; whether anything did. What waits goes on waiting.
    pub fn abort(&self) -> bool {
        let mut state = self.lock();
        state.is_due = false;
        state.running.as_ref().map(|running| running.cancel.cancel()).is_some()
    }

    /// Summarises all but the newest messages. `focus` is what the summary should pay attention to.
    ///
    /// # Errors
    /// Something goes on already, or the summary failed or was aborted. The conversation is as it was.
    pub async fn compact(
        self: &Arc<Self>,
        focus: Option<String>,
    ) -> Result<CompactionReport, AgentError> {
        self.selection().await?;
        let running = self.begin(Work::Compaction).ok_or_else(|| self.busy())?;
        let (sender, receiver) = oneshot::channel();
        let this = Arc::clone(self);
        self.driver.spawn(async move {
            this.tell(SessionEvent::Begin(Work::Compaction));
            let report = this.run_compaction(focus.as_deref(), running).await;
            let next = this.end(report.clone().map(Done::Compacted)).await;
            // Whoever asked may have gone away.
            let _ = sender.send(report);
            this.answer(next).await;
        });
        receiver.await.map_err(|_| AgentError::aborted())?
    }

    /// Sees to it that what waits is answered.
    fn go_on(self: &Arc<Self>) {
        let Some(running) = self.begin(Work::Turn) else {
            self.lock().is_due = true;
            return;
        };
        let this = Arc::clone(self);
        self.driver.spawn(async move { this.answer(Some(running)).await });
    }

    /// Begins work in the background, unless something goes on already.
    fn begin(&self, work: Work) -> Option<Running> {
        self.begin_with(work, self.driver.stop().child_token())
    }

    fn begin_with(&self, work: Work, cancel: CancellationToken) -> Option<Running> {
        let mut state = self.lock();
        if state.running.is_some() {
            return None;
        }
        let running = Running { work, cancel, switch: ModelSwitch::default() };
        state.running = Some(running.clone());
        Some(running)
    }

    fn busy(&self) -> AgentError {
        let message =
            format!("session {} is busy; wait until it is idle, or abort what it does", self.key());
        AgentError::new(FailureClass::Busy, message)
    }

    /// Runs turns as long as one is due.
    async fn answer(self: &Arc<Self>, mut next: Option<Running>) {
        while let Some(running) = next.take() {
            self.tell(SessionEvent::Begin(Work::Turn));
            let result = self.run_turn(running).await;
            next = self.end(result.map(|result| Done::Answered(Box::new(result)))).await;
        }
    }

    /// Ends a piece of work: gives the turn that is due, or leaves the session idle.
    async fn end(&self, outcome: Outcome) -> Option<Running> {
        let next = self.next_turn().await;
        let follows = if next.is_some() { Next::GoesOn } else { Next::Idle };
        self.tell(SessionEvent::End(&outcome, follows));
        next
    }

    async fn next_turn(&self) -> Option<Running> {
        loop {
            {
                let mut state = self.lock();
                if !std::mem::take(&mut state.is_due) || self.driver.stop().is_cancelled() {
                    state.running = None;
                    return None;
                }
            }
            // The turn before may have taken it after all.
            if self.inbox.pending().await.is_ok_and(|pending| pending.is_empty()) {
                continue;
            }
            self.lock().running = None;
            return self.begin(Work::Turn);
        }
    }

    async fn run_turn(self: &Arc<Self>, running: Running) -> Result<RunResult, AgentError> {
        let selection = self.selection().await?;
        let params = self.params(&selection, running, self.listener()).await?;
        self.driver.run(params, &selection).await
    }

    async fn run_compaction(
        self: &Arc<Self>,
        focus: Option<&str>,
        running: Running,
    ) -> Result<CompactionReport, AgentError> {
        let selection = self.selection().await?;
        let params = self.params(&selection, running, self.listener()).await?;
        self.driver.compact(params, &selection, focus).await
    }

    /// Tells the driver's listener of the events of a run.
    fn listener(self: &Arc<Self>) -> EventCallback {
        let this = Arc::clone(self);
        Arc::new(move |event| this.tell(SessionEvent::Run(&event)))
    }

    async fn params(
        &self,
        selection: &Selection,
        running: Running,
        on_event: EventCallback,
    ) -> Result<RunParams, AgentError> {
        let mut params = self.config.run_params(selection).await?;
        params.thinking = self.lock().thinking_of(selection);
        params.switch = running.switch;
        params.cancel = running.cancel;
        params.on_event = Some(on_event);
        Ok(params)
    }

    fn tell(&self, event: SessionEvent<'_>) {
        (self.driver.on_event())(self.key(), event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
