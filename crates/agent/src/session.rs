//! An open session, which takes messages during and between its turns.
//!
//! A message is acknowledged only once it is on disk, whether or not a turn runs. One turn or compaction runs at a time, as
//! a task of its own, so callers of the session do not wait for it.

use std::sync::Arc;

use myclaw_config::Config;
use myclaw_engine::{
    CompactionReport, EventCallback, ModelSwitch, PendingMessage, QuietMessages, RunParams,
    RunResult, SessionInbox, SystemClock, WhenIdle,
};
use myclaw_llm::{ContentBlock, ThinkingLevel};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::blocking::with_threads;
use crate::driver::Driver;
use crate::selection::Selection;
use crate::{AgentError, FailureClass, Home, SessionConfig, SessionOptions, goal::Pursuit};

mod aside;
mod asked_by_program;
mod command;
mod event;
mod goal;
mod jobs;
mod mode;
mod model;
mod remark;
mod reminder;
mod rewind;
mod send;
mod undo;

pub use command::{
    CommandAnswer, SessionCommand, compacted, last_usage, offered_levels, thinking_difference,
    undone_in_words, window_tokens,
};
pub use event::{Accepted, Done, Next, Outcome, SessionCallback, SessionEvent, SessionWork};
pub use remark::{RAN_COMMAND, is_remark};
pub use reminder::{is_reminder, put_reminder};
pub use rewind::{Rewound, Said, messages_of_user, new_session_name};
pub use send::Handover;

/// An open session.
pub struct Session {
    driver: Arc<Driver>,
    key: SessionKey,
    inbox: SessionInbox,
    quiet: QuietMessages,
    /// Fires when another process has taken the session.
    abandoned: CancellationToken,
    state: Mutex<State>,
    reminders: reminder::Reminders,
}

struct State {
    /// What the next run uses.
    config: Arc<SessionConfig>,
    /// The model that was asked for, if it is not that of the config.
    model: Option<String>,
    /// The active model and its fallbacks; selected on first use.
    selection: Option<Arc<Selection>>,
    /// The requested thinking level, if there is one.
    thinking: Option<ThinkingLevel>,
    running: Option<Running>,
    /// Whether a message was sent that the current work may not take.
    is_due: bool,
    /// Whether another process has stopped a turn, until that is taken note of.
    was_stopped: bool,
    /// The goal that is worked on.
    pursued: Option<Pursuit>,
}

#[derive(Clone)]
struct Running {
    work: SessionWork,
    cancel: CancellationToken,
    switch: ModelSwitch,
}

impl State {
    fn new(config: SessionConfig, model: Option<String>) -> Self {
        Self {
            config: Arc::new(config),
            model,
            selection: None,
            thinking: None,
            running: None,
            is_due: false,
            was_stopped: false,
            pursued: None,
        }
    }

    /// The requested thinking level, or the nearest one that the model offers.
    fn thinking_of(&self, selection: &Selection) -> Option<ThinkingLevel> {
        self.thinking.map(|level| selection.model().thinking_level(level))
    }

    /// Makes the current run use the selected model and thinking level from its next model call on.
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
        self.0.state.lock().running = None;
    }
}

impl Session {
    /// Opens the session that `config` names. Its model and thinking level are at first those of `options`. Nothing is
    /// read before it is needed.
    pub fn open(driver: Arc<Driver>, config: SessionConfig, options: &SessionOptions) -> Arc<Self> {
        let mut state = State::new(config, options.model.clone());
        state.thinking = options.thinking;
        Self::with_state(driver, state)
    }

    /// Opens another session of the agent, which begins with the model and the thinking level of this one.
    pub fn open_beside(&self, key: SessionKey) -> Arc<Self> {
        let state = {
            let before = self.state.lock();
            let mut state = State::new(before.config.for_session(key), before.model.clone());
            (state.selection, state.thinking) = (before.selection.clone(), before.thinking);
            state
        };
        let session = Self::with_state(Arc::clone(&self.driver), state);
        if self.reminders.are_noticed() {
            session.notice_reminders();
        }
        session
    }

    fn with_state(driver: Arc<Driver>, state: State) -> Arc<Self> {
        let config = Arc::clone(&state.config);
        let key = config.session_key.clone();
        let sessions = Arc::clone(config.home.sessions());
        let inbox = SessionInbox::new(sessions, key.clone(), Arc::new(SystemClock));
        let (listener, of_events) = (Arc::clone(&driver), key.clone());
        let inbox = inbox.with_events(Arc::new(move |event| {
            (listener.on_event())(&of_events, SessionEvent::Run(&event));
        }));
        let session = Arc::new(Self {
            driver,
            key,
            inbox,
            quiet: QuietMessages::default(),
            abandoned: CancellationToken::new(),
            state: Mutex::new(state),
            reminders: reminder::Reminders::default(),
        });
        session.can_be_woken();
        session.driver.has_jobs(&config.background);
        session
    }

    /// The key of the session.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The config of the session, which the next run uses.
    pub fn config(&self) -> Arc<SessionConfig> {
        Arc::clone(&self.state.lock().config)
    }

    /// Replaces the environment and the config file from the next run on; work in progress keeps those it began with.
    /// A model that was chosen for the session stays chosen.
    ///
    /// # Errors
    /// The new config has no such agent. The session keeps the one before.
    pub fn use_config(&self, home: Home, config: Arc<Config>) -> Result<(), AgentError> {
        let mut state = self.state.lock();
        state.config = Arc::new(state.config.with_config(home, config)?);
        state.selection = None;
        Ok(())
    }

    /// The messages that are no activity of the session, which its next runs will take.
    pub fn quiet(&self) -> &QuietMessages {
        &self.quiet
    }

    /// The current work, if any.
    pub fn work(&self) -> Option<SessionWork> {
        self.state.lock().running.as_ref().map(|running| running.work)
    }

    /// The messages that wait to be answered, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending(&self) -> Result<Vec<PendingMessage>, AgentError> {
        Ok(self.inbox.pending().await?)
    }

    /// Takes back a message that no run has taken yet. False if there is no such message.
    ///
    /// # Errors
    /// The inbox cannot be read or written; the message still waits then.
    pub async fn take_back(&self, id: EntryId) -> Result<bool, AgentError> {
        Ok(self.inbox.remove(id).await?)
    }

    /// Runs one turn and waits for its result. The driver's listener gets no events. `message` is the user's; without
    /// one the turn answers the messages that wait, or continues an interrupted turn.
    ///
    /// # Errors
    /// There is no reply. The session stays valid and holds all messages and results so far.
    pub async fn run(
        &self,
        message: Option<Vec<ContentBlock>>,
        foreground: Foreground,
    ) -> Result<RunResult, AgentError> {
        let (config, selection) = self.prepared().await?;
        let running =
            self.begin_with(SessionWork::Turn, foreground.cancel).ok_or_else(|| self.busy())?;
        let _place = Place(self);
        let cancel = running.cancel.clone();
        let _seen = config.seen_turn(move || cancel.cancel());
        let mut params = self.params((&config, &selection), running, foreground.on_event).await?;
        if message.is_some() {
            self.config().background.attended(self.key()).await;
        }
        params.user_message.extend(message.into_iter().flatten());
        self.driver.run(params, &selection).await
    }

    /// Like [`Session::compact`], in the foreground like [`Session::run`].
    ///
    /// # Errors
    /// As [`Session::compact`].
    pub async fn compact_here(
        &self,
        focus: Option<&str>,
        foreground: Foreground,
    ) -> Result<CompactionReport, AgentError> {
        let (config, selection) = self.prepared().await?;
        let running = self
            .begin_with(SessionWork::Compaction, foreground.cancel)
            .ok_or_else(|| self.busy())?;
        let _place = Place(self);
        let _mark = config.mark_turn();
        let params = self.params((&config, &selection), running, foreground.on_event).await?;
        self.driver.compact(params, &selection, focus).await
    }

    /// Puts a message into the inbox, whether or not anything runs. The run in progress takes it, or the next one.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn enqueue(
        &self,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
    ) -> Result<EntryId, AgentError> {
        Ok(self.inbox.send(kind, content, WhenIdle::Keep).await?)
    }

    /// Sends a message to the running turn, which reads it before its next model call or when it would end.
    ///
    /// # Errors
    /// No turn runs in the session, or the message cannot be written.
    pub async fn send_to_turn(
        self: &Arc<Self>,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
    ) -> Result<EntryId, AgentError> {
        // The message is accepted even if work of this driver has not yet opened the session, or has just closed it.
        let is_working = self.work().is_some();
        let when_idle = if is_working { WhenIdle::Keep } else { WhenIdle::Refuse };
        let id = self.inbox.send(kind, content, when_idle).await?;
        if is_working {
            self.go_on();
        }
        Ok(id)
    }

    /// Aborts the current work. False if there was none. Waiting messages keep waiting.
    pub fn abort(&self) -> bool {
        let mut state = self.state.lock();
        state.is_due = false;
        state.running.as_ref().map(|running| running.cancel.cancel()).is_some()
    }

    /// [`Session::abort`] for another process.
    fn stop_from_outside(&self) {
        let mut state = self.state.lock();
        // Before the end of the turn can be told.
        state.was_stopped = state.running.is_some();
        drop(state);
        self.abort();
    }

    /// Whether another process has stopped a turn since the last call.
    pub fn take_stopped(&self) -> bool {
        std::mem::take(&mut self.state.lock().was_stopped)
    }

    /// Summarises all but the newest messages. `focus` is what the summary should focus on.
    ///
    /// # Errors
    /// The session is busy, or the summary failed or was aborted. The session is unchanged.
    pub async fn compact(
        self: &Arc<Self>,
        focus: Option<String>,
    ) -> Result<CompactionReport, AgentError> {
        self.selection().await?;
        let running = self.begin(SessionWork::Compaction).ok_or_else(|| self.busy())?;
        let (sender, receiver) = oneshot::channel();
        let this = Arc::clone(self);
        self.spawn(async move {
            this.emit(SessionEvent::Begin(SessionWork::Compaction));
            let report = this.run_compaction(focus.as_deref(), running).await;
            let next = this.end(report.clone().map(Done::Compacted)).await;
            // The caller may have dropped its end.
            let _ = sender.send(report);
            this.answer(next).await;
        });
        receiver.await.map_err(|_| AgentError::aborted())?
    }

    /// Starts a turn for waiting messages, unless work is running.
    pub(crate) fn go_on(self: &Arc<Self>) {
        let Some(running) = self.begin(SessionWork::Turn) else {
            self.state.lock().is_due = true;
            return;
        };
        let this = Arc::clone(self);
        self.spawn(async move { this.answer(Some(running)).await });
    }

    /// Drops what the session does, as a crash of the process would, and begins nothing any more. To be called when another
    /// process has the session: it continues the turn.
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// Begins work in the background, unless the session is busy.
    fn begin(&self, work: SessionWork) -> Option<Running> {
        self.begin_with(work, self.driver.stop().child_token())
    }

    fn begin_with(&self, work: SessionWork, cancel: CancellationToken) -> Option<Running> {
        let mut state = self.state.lock();
        if state.running.is_some() || self.abandoned.is_cancelled() {
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
            self.emit(SessionEvent::Begin(SessionWork::Turn));
            let cancel = running.cancel.clone();
            let result = self.run_turn(running).await;
            self.after_turn(&result, &cancel).await;
            next = self.end(result.map(|result| Done::Answered(Box::new(result)))).await;
        }
    }

    /// Ends a piece of work: gives the turn that is due, or leaves the session idle.
    async fn end(&self, outcome: Outcome) -> Option<Running> {
        let next = self.next_turn().await;
        let follows = if next.is_some() { Next::GoesOn } else { Next::Idle };
        self.emit(SessionEvent::End(&outcome, follows));
        next
    }

    async fn next_turn(&self) -> Option<Running> {
        loop {
            {
                let mut state = self.state.lock();
                if !std::mem::take(&mut state.is_due) || self.driver.stop().is_cancelled() {
                    state.running = None;
                    return None;
                }
            }
            // The turn before may have taken it after all.
            if self.inbox.pending().await.is_ok_and(|pending| pending.is_empty()) {
                continue;
            }
            self.state.lock().running = None;
            return self.begin(SessionWork::Turn);
        }
    }

    async fn run_turn(self: &Arc<Self>, running: Running) -> Result<RunResult, AgentError> {
        // Boxed: what prepares a turn is large, and its memory would be held for as long as the turn.
        let (config, own) = Box::pin(self.prepared()).await?;
        let models = Box::pin(asked_by_program::models(&self.driver, &config, own));
        let (asked, selection) = models.await?;
        let this = Arc::clone(self);
        let _seen = config.seen_turn(move || this.stop_from_outside());
        let params = Box::pin(self.params((&config, &selection), running, self.listener()));
        let params = params.await?;
        self.driver.run(asked_by_program::with(params, asked), &selection).await
    }

    async fn run_compaction(
        self: &Arc<Self>,
        focus: Option<&str>,
        running: Running,
    ) -> Result<CompactionReport, AgentError> {
        let (config, selection) = self.prepared().await?;
        let _mark = config.mark_turn();
        let params = self.params((&config, &selection), running, self.listener()).await?;
        self.driver.compact(params, &selection, focus).await
    }

    /// Passes the events of a run to the driver's listener.
    fn listener(self: &Arc<Self>) -> EventCallback {
        let this = Arc::clone(self);
        Arc::new(move |event| this.emit(SessionEvent::Run(&event)))
    }

    /// The config and the models of the next run, which belong together.
    async fn prepared(&self) -> Result<(Arc<SessionConfig>, Arc<Selection>), AgentError> {
        loop {
            let config = self.config();
            let selection = with_threads(self.selection()).await?;
            if Arc::ptr_eq(&config, &self.config()) {
                return Ok((config, selection));
            }
        }
    }

    async fn params(
        &self,
        (config, selection): (&SessionConfig, &Selection),
        running: Running,
        on_event: EventCallback,
    ) -> Result<RunParams, AgentError> {
        let added = self.driver.additions(config);
        let mut params = with_threads(config.run_params(selection, added)).await?;
        config.subscribe_to_notices(&on_event);
        self.driver.spawn(config.trim_side_files());
        params.tools = self.driver.adapted(config, params.tools);
        params.thinking = self.state.lock().thinking_of(selection);
        params.switch = running.switch;
        params.quiet = self.quiet.clone();
        params.note = self.driver.note_for(config);
        params.cancel = running.cancel;
        params.on_event = Some(on_event);
        Ok(params)
    }

    /// Runs `work` in a task of its own, until the driver is finished or the session is abandoned.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.driver.spawn(async move {
            abandoned.run_until_cancelled(work).await;
        });
    }

    pub(crate) fn emit(&self, event: SessionEvent<'_>) {
        (self.driver.on_event())(self.key(), event);
    }
}
