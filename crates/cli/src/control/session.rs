//! A conversation that stays open between its turns.
//!
//! Whatever is said to it is on disk before it is acknowledged, whether or not a turn runs. One piece of work, a turn
//! or a compaction, goes on at a time; it is a task of its own, so nobody who talks to the session waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_config::{QueueConfig, QueueMode};
use myclaw_engine::{
    Arrival, CompactionReport, InboxError, ModelSwitch, PendingMessage, RunEvent, RunResult,
    SessionInbox, SystemClock, WhenIdle,
};
use myclaw_llm::{ContentBlock, ThinkingLevel};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::args::ConversationArgs;
use crate::exit::CliError;
use crate::model_choice::ChosenModel;
use crate::settings::Settings;
use crate::turn::{Conversation, Turn, next_model};

/// Receives the events of a session, in order.
pub(super) type SessionCallback = Arc<dyn Fn(&SessionKey, SessionEvent<'_>) + Send + Sync>;

/// What happens in a session.
#[derive(Debug)]
pub(super) enum SessionEvent<'a> {
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
pub(super) enum Work {
    /// It answers what waits.
    Turn,
    /// It puts a summary in the place of older messages.
    Compaction,
}

/// How work ended: with an answer or a report, or with what it failed of, which may be that it was aborted.
pub(super) type Outcome = Result<Done, CliError>;

/// What work gave.
#[derive(Debug)]
pub(super) enum Done {
    /// There is an answer.
    Answered(Box<RunResult>),
    /// Older messages are summarised, unless there was nothing to summarise.
    Compacted(CompactionReport),
}

/// What a session does behind a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// More work, for something was said that is still to be answered.
    GoesOn,
    /// Nothing.
    Idle,
}

/// What became of something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// A turn begins with it.
    Started(EntryId),
    /// The work that goes on takes it, or the turn behind it, here or in another process.
    Queued(EntryId),
    /// The turn that goes on is aborted for it.
    Interrupting(EntryId),
}

/// What all sessions of the program share.
pub(super) struct Program {
    /// Runs turns.
    pub(super) conversation: Conversation,
    /// Aborts whatever runs.
    pub(super) stop: CancellationToken,
    /// All work that goes on.
    pub(super) tasks: TaskTracker,
    /// Who is told.
    pub(super) on_event: SessionCallback,
}

/// A conversation that stays open.
pub(super) struct Session {
    program: Arc<Program>,
    settings: Settings,
    /// The model that the command line names.
    first_model: Option<String>,
    inbox: SessionInbox,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who answers; chosen when that is first asked.
    model: Option<Arc<ChosenModel>>,
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
    /// How much `model` is to think, as far as it can. What differs from what was asked for is told once, by a reply.
    fn thinking_of(&self, model: &ChosenModel) -> Option<ThinkingLevel> {
        self.thinking.map(|level| model.known().thinking_level(level))
    }

    /// Tells the turn that goes on what it is to do from its next model call on.
    fn switch(&self) {
        if let (Some(running), Some(model)) = (&self.running, &self.model) {
            running.switch.to(next_model(model, self.thinking_of(model)));
        }
    }
}

impl Session {
    /// Opens the session that `settings` name. Who answers in it and how much it thinks is at first what `args` say.
    /// Nothing is read before something is asked of it.
    ///
    /// # Errors
    /// There is no folder for sessions.
    pub(super) fn new(
        program: Arc<Program>,
        settings: Settings,
        args: &ConversationArgs,
    ) -> Result<Arc<Self>, CliError> {
        let key = settings.session_key.clone();
        let inbox = SessionInbox::new(&settings.config, key.clone(), Arc::new(SystemClock))?;
        let listener = Arc::clone(&program);
        let inbox = inbox.with_events(Arc::new(move |event| {
            (listener.on_event)(&key, SessionEvent::Run(&event));
        }));
        let state = Mutex::new(State { thinking: args.thinking, ..State::default() });
        let first_model = args.model.clone();
        Ok(Arc::new(Self { program, settings, first_model, inbox, state }))
    }

    /// Which one.
    pub(super) fn key(&self) -> &SessionKey {
        &self.settings.session_key
    }

    /// Where it is and who answers in it.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it does at this moment.
    pub(super) fn work(&self) -> Option<Work> {
        self.lock().running.as_ref().map(|running| running.work)
    }

    /// What waits to be answered, the oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub(super) async fn pending(&self) -> Result<Vec<PendingMessage>, CliError> {
        Ok(self.inbox.pending().await?)
    }

    /// Who answers.
    ///
    /// # Errors
    /// Nobody: a key is missing, or the settings name a model that does not exist.
    pub(super) async fn model(&self) -> Result<Arc<ChosenModel>, CliError> {
        if let Some(model) = &self.lock().model {
            return Ok(Arc::clone(model));
        }
        self.choose_model(self.first_model.as_deref()).await
    }

    /// Lets another model answer from the next call on; `None` means the one that the settings give.
    ///
    /// # Errors
    /// It cannot answer. The one before goes on then.
    pub(super) async fn choose_model(
        &self,
        name: Option<&str>,
    ) -> Result<Arc<ChosenModel>, CliError> {
        let model = Arc::new(self.settings.choose_model(name).await?);
        let mut state = self.lock();
        state.model = Some(Arc::clone(&model));
        state.switch();
        Ok(model)
    }

    /// Lets the model think this much from the next call on.
    pub(super) fn set_thinking(&self, level: ThinkingLevel) {
        let mut state = self.lock();
        state.thinking = Some(level);
        state.switch();
    }

    /// How much the model should think, and how much it does, for not every model offers every level.
    pub(super) fn thinking(&self, model: &ChosenModel) -> (ThinkingLevel, ThinkingLevel) {
        let requested = self.settings.requested_thinking(self.lock().thinking);
        (requested, model.known().thinking_level(requested))
    }

    /// Says something. When this returns, it is on disk, and a turn that answers it runs or begins. While the session
    /// is busy, `mode` says what becomes of it; without one the setting `messages.queue.mode` does.
    ///
    /// # Errors
    /// It is not said: there is no model to answer it, too much waits, or it cannot be written.
    pub(super) async fn say(
        self: &Arc<Self>,
        content: Vec<ContentBlock>,
        mode: Option<QueueMode>,
    ) -> Result<Said, CliError> {
        self.model().await?;
        let configured = &self.settings.config.messages.queue;
        let work_before = self.work();
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
                if let Some(running) = &self.lock().running {
                    running.cancel.cancel();
                }
                // A run of another process ends too; the turn that begins waits for it.
                self.go_on();
                Ok(Said::Interrupting(id))
            }
            Arrival::Refused { waiting } => Err(CliError::failure_of_class(
                "queue_full",
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
    pub(super) async fn say_meanwhile(
        self: &Arc<Self>,
        kind: QueuedKind,
        content: Vec<ContentBlock>,
    ) -> Result<EntryId, CliError> {
        // Work of this program that has not yet opened the session, or has just closed it, is no reason to refuse.
        let is_working = self.work().is_some();
        let when_idle = if is_working { WhenIdle::Keep } else { WhenIdle::Refuse };
        let id = self.inbox.send(kind, content, when_idle).await.map_err(|error| match error {
            InboxError::NotRunning { .. } => {
                CliError::failure_of_class("not_running", error.to_string())
            }
            error => error.into(),
        })?;
        if is_working {
            self.go_on();
        }
        Ok(id)
    }

    /// Aborts what goes on; whether anything did. What waits goes on waiting.
    pub(super) fn abort(&self) -> bool {
        let mut state = self.lock();
        state.is_due = false;
        state.running.as_ref().map(|running| running.cancel.cancel()).is_some()
    }

    /// Summarises all but the newest messages. `focus` is what the summary should pay attention to.
    ///
    /// # Errors
    /// Something goes on already, or the summary failed or was aborted. The conversation is as it was.
    pub(super) async fn compact(
        self: &Arc<Self>,
        focus: Option<String>,
    ) -> Result<CompactionReport, CliError> {
        self.model().await?;
        let Some(running) = self.begin(Work::Compaction) else {
            let message = format!(
                "session {} is busy; wait until it is idle, or abort what it does",
                self.key()
            );
            return Err(CliError::failure_of_class("busy", message));
        };
        let (sender, receiver) = oneshot::channel();
        let this = Arc::clone(self);
        self.program.tasks.spawn(async move {
            this.tell(SessionEvent::Begin(Work::Compaction));
            let report = this.run_compaction(focus.as_deref(), running).await;
            let next = this.end(report.clone().map(Done::Compacted)).await;
            // Whoever asked may have gone away.
            let _ = sender.send(report);
            this.answer(next).await;
        });
        receiver.await.map_err(|_| CliError::aborted())?
    }

    /// Sees to it that what waits is answered.
    fn go_on(self: &Arc<Self>) {
        let Some(running) = self.begin(Work::Turn) else {
            self.lock().is_due = true;
            return;
        };
        let this = Arc::clone(self);
        self.program.tasks.spawn(async move { this.answer(Some(running)).await });
    }

    /// Takes the place of the one that works, unless it is taken.
    fn begin(&self, work: Work) -> Option<Running> {
        let mut state = self.lock();
        if state.running.is_some() {
            return None;
        }
        Some(self.run(&mut state, work))
    }

    fn run(&self, state: &mut State, work: Work) -> Running {
        let cancel = self.program.stop.child_token();
        let running = Running { work, cancel, switch: ModelSwitch::default() };
        state.running = Some(running.clone());
        running
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
                if !std::mem::take(&mut state.is_due) || self.program.stop.is_cancelled() {
                    state.running = None;
                    return None;
                }
            }
            // The turn before may have taken it after all.
            if self.inbox.pending().await.is_ok_and(|pending| pending.is_empty()) {
                continue;
            }
            return Some(self.run(&mut self.lock(), Work::Turn));
        }
    }

    async fn run_turn(self: &Arc<Self>, running: Running) -> Result<RunResult, CliError> {
        let model = self.model().await?;
        self.program.conversation.run(self.turn(&model, running)).await
    }

    async fn run_compaction(
        self: &Arc<Self>,
        focus: Option<&str>,
        running: Running,
    ) -> Result<CompactionReport, CliError> {
        let model = self.model().await?;
        self.program.conversation.compact(self.turn(&model, running), focus).await
    }

    fn turn<'a>(self: &'a Arc<Self>, model: &'a ChosenModel, running: Running) -> Turn<'a> {
        let this = Arc::clone(self);
        Turn {
            settings: &self.settings,
            session_key: self.key(),
            model,
            message: None,
            thinking: self.lock().thinking_of(model),
            switch: running.switch,
            cancel: running.cancel,
            on_event: Arc::new(move |event| this.tell(SessionEvent::Run(&event))),
        }
    }

    fn tell(&self, event: SessionEvent<'_>) {
        (self.program.on_event)(self.key(), event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
