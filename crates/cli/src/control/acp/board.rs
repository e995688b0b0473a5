//! The open sessions as the client sees them: what it is told of them, and which of its requests still wait.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    AgentResponse, CloseSessionResponse, Error, NoticeSeverity, PromptResponse, RequestId,
    SessionId, SessionUpdate, StopReason,
};
use myclaw_agent::llm::StopReason as ModelStop;
use myclaw_agent::sessions::SessionKey;

use myclaw_agent::{AgentError, Done, FailureClass, Next, Outcome, SessionEvent, Work};

use super::failure::failed;
use super::translator::{Abilities, Translator};
use super::wire::Wire;

/// How a prompt ended.
type Ended = Result<StopReason, Error>;

/// All open sessions.
pub(super) struct Board {
    wire: Wire,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    abilities: Abilities,
    talks: HashMap<SessionKey, Talk>,
}

/// One open session.
struct Talk {
    id: SessionId,
    translator: Translator,
    /// The prompts that are not answered yet.
    prompts: Vec<Waiting>,
    /// The prompts whose commands are being done; they are answered elsewhere.
    commands: Vec<RequestId>,
    /// How the last turn ended.
    last: Option<Ended>,
    /// The request to close the session, answered when nothing goes on in it any more.
    closing: Option<RequestId>,
}

struct Waiting {
    request: RequestId,
    is_cancelled: bool,
}

impl Board {
    /// No session is open.
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, state: Mutex::default() }
    }

    /// Remembers what the client can show.
    pub(super) fn set_abilities(&self, abilities: Abilities) {
        let state = &mut *self.lock();
        state.abilities = abilities;
        for talk in state.talks.values_mut() {
            talk.translator.abilities = abilities;
        }
    }

    /// What the client can show.
    pub(super) fn abilities(&self) -> Abilities {
        self.lock().abilities
    }

    /// Opens a session, or opens it again.
    pub(super) fn open(&self, key: SessionKey, id: SessionId, translator: Translator) {
        let (prompts, commands) = (Vec::new(), Vec::new());
        let talk = Talk { id, translator, prompts, commands, last: None, closing: None };
        self.lock().talks.insert(key, talk);
    }

    /// Whether a session is being closed.
    pub(super) fn is_closing(&self, key: &SessionKey) -> bool {
        self.lock().talks.get(key).is_some_and(|talk| talk.closing.is_some())
    }

    /// Forgets a session in which nothing goes on.
    pub(super) fn remove(&self, key: &SessionKey) {
        self.lock().talks.remove(key);
    }

    /// Closes a session as soon as nothing goes on in it; then `request` is answered.
    pub(super) fn close_when_idle(&self, key: &SessionKey, request: RequestId) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.closing = Some(request);
        }
    }

    /// The session's model takes this many tokens from now on.
    pub(super) fn set_window(&self, key: &SessionKey, window: u64) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.translator.window = window;
        }
    }

    /// Answers `request` when the session is idle.
    pub(super) fn wait(&self, key: &SessionKey, request: RequestId) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.prompts.push(Waiting { request, is_cancelled: false });
        }
    }

    /// A command that `request` gives is being done.
    pub(super) fn begin_command(&self, key: &SessionKey, request: RequestId) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.commands.push(request);
        }
    }

    /// A command is done, or was given up.
    pub(super) fn end_command(&self, key: &SessionKey, request: &RequestId) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.commands.retain(|other| other != request);
        }
    }

    /// How the last turn ended.
    pub(super) fn last(&self, key: &SessionKey) -> Ended {
        let last = self.lock().talks.get(key).and_then(|talk| talk.last.clone());
        last.unwrap_or(Ok(StopReason::EndTurn))
    }

    /// What was asked so far is to be answered as cancelled, when the work that goes on has ended.
    pub(super) fn cancel(&self, key: &SessionKey) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            talk.prompts.iter_mut().for_each(|waiting| waiting.is_cancelled = true);
        }
    }

    /// The session in which a request waits.
    pub(super) fn session_of(&self, request: &RequestId) -> Option<SessionKey> {
        let waits = |talk: &Talk| {
            let prompts = talk.prompts.iter().map(|waiting| &waiting.request);
            prompts.chain(&talk.commands).any(|waiting| waiting == request)
        };
        let state = self.lock();
        state.talks.iter().find(|(_, talk)| waits(talk)).map(|(key, _)| key.clone())
    }

    /// Tells something that the user should know.
    pub(super) fn notice(&self, key: &SessionKey, severity: NoticeSeverity, line: String) {
        if let Some(talk) = self.lock().talks.get_mut(key) {
            let update = talk.translator.notice(severity, line);
            talk.tell(&self.wire, update);
        }
    }

    /// Tells something.
    pub(super) fn tell(&self, key: &SessionKey, update: SessionUpdate) {
        if let Some(talk) = self.lock().talks.get(key) {
            talk.tell(&self.wire, [update]);
        }
    }

    /// Passes on what happens in a session.
    pub(super) fn hear(&self, key: &SessionKey, event: &SessionEvent<'_>) {
        let state = &mut *self.lock();
        let Some(talk) = state.talks.get_mut(key) else { return };
        match event {
            SessionEvent::Begin(work) => {
                let updates = talk.translator.begin(*work);
                talk.tell(&self.wire, updates);
            }
            SessionEvent::Run(event) => {
                let updates = talk.translator.translate(&event.kind);
                talk.tell(&self.wire, updates);
            }
            SessionEvent::End(outcome, next) => {
                talk.end(&self.wire, outcome, *next);
                if *next == Next::Idle && talk.closing.is_some() {
                    let closed = state.talks.remove(key).and_then(|talk| talk.closing);
                    if let Some(request) = closed {
                        let response = CloseSessionResponse::new();
                        self.wire
                            .answer(request, Ok(AgentResponse::CloseSessionResponse(response)));
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talk {
    fn tell(&self, wire: &Wire, updates: impl IntoIterator<Item = SessionUpdate>) {
        for update in updates {
            wire.update(&self.id, update);
        }
    }

    /// Answers those who wait for it.
    fn end(&mut self, wire: &Wire, outcome: &Outcome, next: Next) {
        let ended = match self.translator.work() {
            // A message that came meanwhile is answered by a turn, unless it was given up.
            Some(Work::Compaction) => Ok(StopReason::Cancelled),
            _ => ended(outcome, self.translator.last_stop()),
        };
        let updates = self.translator.end(outcome, next);
        self.tell(wire, updates);
        let (over, waiting) = std::mem::take(&mut self.prompts)
            .into_iter()
            .partition(|waiting| next == Next::Idle || waiting.is_cancelled);
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

/// What a turn's outcome is to those who asked. `last` says why its last message ended.
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
