//! The open sessions as the client sees them: their updates, and the requests that still wait.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use agent_client_protocol_schema::v1::{
    AgentResponse, CloseSessionResponse, Error, NoticeSeverity, PromptResponse, RequestId,
    SessionId, SessionUpdate, StopReason, ToolCallUpdate,
};
use myclaw_agent::approvals::Question;
use myclaw_agent::subagents::SubagentTools;
use myclaw_agent::{
    AgentError, Done, FailureClass, Next, Outcome, Session, SessionEvent, SessionWork,
};
use myclaw_engine::ApprovalRequest;
use myclaw_llm::StopReason as ModelStop;
use myclaw_session::SessionKey;
use parking_lot::Mutex;

use super::failure::failed;
use super::translator::{Abilities, Translator};
use super::wire::Wire;

/// How a prompt ended.
type Ended = Result<StopReason, Error>;

/// All open sessions.
pub(super) struct ClientSessions {
    wire: Wire,
    state: Mutex<State>,
    subagents: OnceLock<Weak<SubagentTools>>,
}

#[derive(Default)]
struct State {
    abilities: Abilities,
    sessions: HashMap<SessionKey, ClientSession>,
}

/// One open session.
struct ClientSession {
    id: SessionId,
    session: Weak<Session>,
    translator: Translator,
    /// The prompts that are not answered yet.
    prompts: Vec<Waiting>,
    /// The prompts whose commands are being executed; they are answered elsewhere.
    commands: Vec<RequestId>,
    /// How the last turn ended.
    last: Option<Ended>,
    closing: Option<Closing>,
}

/// A request to close a session, answered when the session is idle and its background jobs have ended.
struct Closing {
    request: RequestId,
    /// Ends the jobs, and then calls [`ClientSessions::closed`].
    end_jobs: Option<Box<dyn FnOnce() + Send>>,
}

struct Waiting {
    request: RequestId,
    is_cancelled: bool,
}

impl ClientSessions {
    /// No open sessions.
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, state: Mutex::default(), subagents: OnceLock::new() }
    }

    /// Has the results of sub-agents in the background answered. Prompts wait for that, because many editors show nothing
    /// outside of a turn.
    pub(super) fn await_results_of(self: &Arc<Self>, subagents: &Arc<SubagentTools>) {
        // It is the first call.
        let _ = self.subagents.set(Arc::downgrade(subagents));
        let this = Arc::downgrade(self);
        subagents.await_results(Arc::new(move |key| {
            let Some(this) = this.upgrade() else { return };
            let state = this.state.lock();
            let open = state.sessions.get(key).filter(|open| !open.prompts.is_empty());
            let session = open.and_then(|open| open.session.upgrade());
            drop(state);
            // Without a prompt that waits the result is read with the next one.
            if let Some(session) = session {
                session.resume();
            }
        }));
    }

    /// The sub-agents, as long as the program runs.
    fn subagents(&self) -> Option<Arc<SubagentTools>> {
        self.subagents.get().and_then(Weak::upgrade)
    }

    /// Stops the sub-agents of a session that work in the background.
    pub(super) fn stop_background(&self, key: &SessionKey) {
        if let Some(subagents) = self.subagents() {
            subagents.stop_background(key);
        }
    }

    /// Answers the prompts of an idle session that wait for sub-agents.
    pub(super) fn release(&self, key: &SessionKey) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            for Waiting { request, .. } in std::mem::take(&mut session.prompts) {
                self.wire.answer(request, Ok(prompt_response(StopReason::Cancelled)));
            }
        }
    }

    /// Sets the abilities of the client.
    pub(super) fn set_abilities(&self, abilities: Abilities) {
        let state = &mut *self.state.lock();
        state.abilities = abilities;
        for session in state.sessions.values_mut() {
            session.translator.abilities = abilities;
        }
    }

    /// What the client can show.
    pub(super) fn abilities(&self) -> Abilities {
        self.state.lock().abilities
    }

    /// Opens a session, or opens it again.
    pub(super) fn open(&self, session: &Arc<Session>, id: SessionId, translator: Translator) {
        let (prompts, commands) = (Vec::new(), Vec::new());
        let key = session.key().clone();
        let session = Arc::downgrade(session);
        let session =
            ClientSession { id, session, translator, prompts, commands, last: None, closing: None };
        self.state.lock().sessions.insert(key, session);
    }

    /// Whether a session is being closed.
    pub(super) fn is_closing(&self, key: &SessionKey) -> bool {
        self.state.lock().sessions.get(key).is_some_and(|session| session.closing.is_some())
    }

    /// Removes an idle session.
    pub(super) fn remove(&self, key: &SessionKey) {
        self.state.lock().sessions.remove(key);
    }

    /// Closes a session as soon as it is idle: `end_jobs` is called then, and has [`ClientSessions::closed`] called.
    pub(super) fn close_when_idle(
        &self,
        key: &SessionKey,
        request: RequestId,
        end_jobs: impl FnOnce() + Send + 'static,
    ) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.closing = Some(Closing { request, end_jobs: Some(Box::new(end_jobs)) });
        }
    }

    /// Ends the jobs of a session that is being closed, now that it is idle.
    pub(super) fn is_idle(&self, key: &SessionKey) {
        let mut state = self.state.lock();
        let session = state.sessions.get_mut(key);
        let closing = session.and_then(|session| session.closing.as_mut());
        if let Some(end_jobs) = closing.and_then(|closing| closing.end_jobs.take()) {
            drop(state);
            end_jobs();
        }
    }

    /// Answers the request to close a session, whose jobs have ended.
    pub(super) fn closed(&self, key: &SessionKey) {
        let closing = self.state.lock().sessions.remove(key).and_then(|session| session.closing);
        if let Some(Closing { request, .. }) = closing {
            let response = AgentResponse::CloseSessionResponse(CloseSessionResponse::new());
            self.wire.answer(request, Ok(response));
        }
    }

    /// Sets the context window of the session's model, in tokens.
    pub(super) fn set_window(&self, key: &SessionKey, window: u64) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.translator.window = window;
        }
    }

    /// Answers `request` when the session is idle.
    pub(super) fn wait(&self, key: &SessionKey, request: RequestId) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.prompts.push(Waiting { request, is_cancelled: false });
        }
    }

    /// Records that the command of `request` is being executed.
    pub(super) fn begin_command(&self, key: &SessionKey, request: RequestId) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.commands.push(request);
        }
    }

    /// Records that a command has ended or was aborted.
    pub(super) fn end_command(&self, key: &SessionKey, request: &RequestId) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.commands.retain(|other| other != request);
        }
    }

    /// How the last turn ended.
    pub(super) fn last(&self, key: &SessionKey) -> Ended {
        let last = self.state.lock().sessions.get(key).and_then(|session| session.last.clone());
        last.unwrap_or(Ok(StopReason::EndTurn))
    }

    /// Marks the current prompts to be answered as cancelled when the current work has ended.
    pub(super) fn cancel(&self, key: &SessionKey) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            session.prompts.iter_mut().for_each(|waiting| waiting.is_cancelled = true);
        }
    }

    /// The session in which a request waits.
    pub(super) fn session_of(&self, request: &RequestId) -> Option<SessionKey> {
        let waits = |session: &ClientSession| {
            let prompts = session.prompts.iter().map(|waiting| &waiting.request);
            prompts.chain(&session.commands).any(|waiting| waiting == request)
        };
        let state = self.state.lock();
        state.sessions.iter().find(|(_, session)| waits(session)).map(|(key, _)| key.clone())
    }

    /// A call that needs an approval, as the client is to show it, and its session.
    pub(super) fn call_to_approve(
        &self,
        request: &ApprovalRequest,
        question: &Question,
    ) -> Option<(SessionId, ToolCallUpdate)> {
        let state = self.state.lock();
        let session = state.sessions.get(&*request.session)?;
        Some((session.id.clone(), session.translator.call_to_approve(request, question)))
    }

    /// Sends a notice.
    pub(super) fn notice(&self, key: &SessionKey, severity: NoticeSeverity, line: String) {
        if let Some(session) = self.state.lock().sessions.get_mut(key) {
            let update = session.translator.notice(severity, line);
            session.send(&self.wire, update);
        }
    }

    /// The client's id of an open session.
    pub(super) fn id(&self, key: &SessionKey) -> Option<SessionId> {
        self.state.lock().sessions.get(key).map(|session| session.id.clone())
    }

    /// Sends an update.
    pub(super) fn send(&self, key: &SessionKey, update: SessionUpdate) {
        if let Some(session) = self.state.lock().sessions.get(key) {
            session.send(&self.wire, [update]);
        }
    }

    /// Translates an event of a session and sends the updates.
    pub(super) fn on_event(&self, key: &SessionKey, event: &SessionEvent<'_>) {
        let mut state = self.state.lock();
        let Some(session) = state.sessions.get_mut(key) else { return };
        match event {
            SessionEvent::Begin(work) => {
                let updates = session.translator.begin(*work);
                session.send(&self.wire, updates);
            }
            SessionEvent::Run(event) => {
                let updates = session.translator.translate(&event.kind);
                session.send(&self.wire, updates);
            }
            SessionEvent::End(outcome, next) => {
                let subagents = self.subagents();
                let works = subagents.is_some_and(|subagents| subagents.in_background(key) > 0);
                session.end(&self.wire, outcome, (*next, works));
                drop(state);
                if *next == Next::Idle {
                    self.is_idle(key);
                }
            }
        }
    }
}

impl ClientSession {
    fn send(&self, wire: &Wire, updates: impl IntoIterator<Item = SessionUpdate>) {
        for update in updates {
            wire.update(&self.id, update);
        }
    }

    /// Answers the requests that wait for the end of this work, unless more follows or sub-agents work in the background.
    fn end(&mut self, wire: &Wire, outcome: &Outcome, (next, works): (Next, bool)) {
        let has_nothing = matches!(outcome, Err(error) if error.class == FailureClass::NothingToDo);
        let ended = match self.translator.work() {
            // A message that came meanwhile is answered by a turn, unless it was cancelled.
            Some(SessionWork::Compaction) => Ok(StopReason::Cancelled),
            // The turn before has taken what this one was begun for.
            _ if has_nothing => self.last.clone().unwrap_or(Ok(StopReason::EndTurn)),
            _ => ended(outcome, self.translator.last_stop()),
        };
        let updates = self.translator.end(outcome, next);
        self.send(wire, updates);
        let is_over = next == Next::Idle && !(works && ended.is_ok());
        let (over, waiting) = std::mem::take(&mut self.prompts)
            .into_iter()
            .partition(|waiting| is_over || waiting.is_cancelled);
        self.prompts = waiting;
        let over: Vec<Waiting> = over;
        for Waiting { request, is_cancelled } in over {
            let ended = if is_cancelled { Ok(StopReason::Cancelled) } else { ended.clone() };
            wire.answer(request, ended.map(prompt_response));
        }
        self.last = Some(ended);
    }
}

/// The answer to a prompt that did not fail.
pub(super) fn prompt_response(reason: StopReason) -> AgentResponse {
    AgentResponse::PromptResponse(PromptResponse::new(reason))
}

/// The response for a turn's outcome. `last` is the stop reason of its last message.
fn ended(outcome: &Outcome, last: Option<ModelStop>) -> Ended {
    match outcome {
        Err(error) if error.class == FailureClass::Aborted => Ok(StopReason::Cancelled),
        Err(AgentError { class: FailureClass::Bound(_), .. }) => Ok(StopReason::MaxTurnRequests),
        Ok(Done::Answered(_) | Done::Compacted(_)) => Ok(match last {
            Some(ModelStop::Length) => StopReason::MaxTokens,
            Some(ModelStop::Refusal) => StopReason::Refusal,
            _ => StopReason::EndTurn,
        }),
        Err(error) if error.class == FailureClass::EmptyReply => match last {
            Some(ModelStop::Length) => Ok(StopReason::MaxTokens),
            Some(ModelStop::Refusal) => Ok(StopReason::Refusal),
            _ => Err(failed(error.clone())),
        },
        Err(error) => Err(failed(error.clone())),
    }
}
