//! Carries out what the tools of the server say, with sessions of this process.
//!
//! The id of a turn names the session and the message in it, so a turn that another process has begun is found in the log.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::mcp::serve::{
    Answer, Backend, Begun, MEMORY_SEARCH, Outcome, SEND, State, Turn, Watch,
};
use myclaw_agent::{Accepted, Driver, Handover, Session, SessionConfig};
use myclaw_engine::{TakenState, incomplete_remark};
use myclaw_front::args::SessionArgs;
use myclaw_front::time::new_session_name;
use myclaw_llm::{ContentBlock, StopReason};
use myclaw_session::{EntryId, SessionKey};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use super::place::Places;

/// Between the session of a turn and its message.
const SEPARATOR: char = '#';

/// The sessions of the server.
pub(super) struct Turns {
    pub(super) driver: Arc<Driver>,
    places: Arc<Places>,
    config: SessionConfig,
    args: SessionArgs,
    open: Mutex<HashMap<SessionKey, Arc<Session>>>,
    /// The messages whose turns were stopped.
    stopped: Mutex<HashSet<EntryId>>,
}

impl Turns {
    pub(super) fn new(
        driver: Arc<Driver>,
        places: Arc<Places>,
        config: SessionConfig,
        args: SessionArgs,
    ) -> Self {
        let (open, stopped) = (Mutex::default(), Mutex::default());
        Self { driver, places, config, args, open, stopped }
    }

    /// The session with this key, opened if it is not.
    async fn session(&self, key: &SessionKey) -> Result<Arc<Session>, String> {
        if let Some(session) = self.open.lock().get(key) {
            return Ok(Arc::clone(session));
        }
        let (config, of_session) = (self.config.clone(), key.clone());
        let config = spawn_blocking(move || config.for_session(of_session)).await;
        let config = config.map_err(|error| error.to_string())?;
        let mut open = self.open.lock();
        let session = open.entry(key.clone()).or_insert_with(|| {
            Session::open(Arc::clone(&self.driver), config, &self.args.options())
        });
        Ok(Arc::clone(session))
    }

    fn key(&self, name: &str) -> Result<SessionKey, String> {
        SessionKey::parse_for_agent(self.config.agent.id.as_str(), name)
            .map_err(|error| error.to_string())
    }

    /// The key of a new session. Another process may begin one within the same second.
    fn new_key(&self) -> Result<SessionKey, String> {
        let process = std::process::id();
        let key = |name: &str| self.key(&format!("mcp-{name}-{process}"));
        let open = self.open.lock();
        let name = new_session_name(|name| {
            let is_taken = |key: SessionKey| {
                self.config.home.catalog().exists(&key) || open.contains_key(&key)
            };
            key(name).is_ok_and(is_taken)
        });
        key(&name)
    }

    /// The session and the message of a turn.
    fn parts(&self, turn: &Turn) -> Result<(SessionKey, EntryId), String> {
        let unknown = || "there is no such turn; begin another one".to_owned();
        let (session, message) = turn.0.rsplit_once(SEPARATOR).ok_or_else(unknown)?;
        let key = self.key(session).ok().filter(|key| key.as_str() == session);
        Ok((key.ok_or_else(unknown)?, EntryId::from_text(message)))
    }

    async fn find(&self, turn: &Turn) -> Result<State, String> {
        let (key, message) = self.parts(turn)?;
        let (session, place) = (self.session(&key).await?, self.places.of(&key));
        let failed = |why: String| Ok(State::Over(Outcome::Failed(why)));
        if self.stopped.lock().contains(&message) {
            return Ok(State::Over(Outcome::Stopped));
        }
        // Before the log is read: what fails later is found with the next look.
        let failure = place.failure().filter(|_| session.work().is_none());
        let mut found = session.whereabouts(vec![message]).await.map_err(|error| error.message)?;
        match found.remove(&message) {
            Some(Handover::Taken(TakenState::Answered { text, stop_reason, .. })) => {
                let session = self.config.served_name(&key);
                let cut = matches!(stop_reason, StopReason::Length | StopReason::Refusal);
                let remark = cut.then(|| incomplete_remark(stop_reason)).flatten();
                let reply = [Some(text.as_str()), remark].into_iter().flatten();
                let reply = reply.collect::<Vec<_>>().join("\n\n");
                Ok(State::Over(Outcome::Answered { reply, session }))
            }
            Some(Handover::Taken(TakenState::Dropped)) => {
                failed("the message was dropped, because too many waited".to_owned())
            }
            Some(Handover::Taken(TakenState::Broken { why })) => {
                failed(place.failure().unwrap_or_else(|| format!("the answer {why}")))
            }
            Some(Handover::Taken(TakenState::Open) | Handover::Waiting) => {
                if let Some(why) = failure {
                    return failed(why);
                }
                if let Some(question) = place.question() {
                    return Ok(State::Asked(question));
                }
                // A killed process has left it, or another one works on it, for which the turn waits.
                if session.work().is_none() {
                    session.resume();
                }
                Ok(State::Working)
            }
            Some(Handover::Missing) | None => {
                Err("there is no such turn; begin another one".to_owned())
            }
        }
    }
}

impl Backend for Turns {
    fn offers(&self, tool: &str) -> bool {
        match tool {
            SEND => false,
            MEMORY_SEARCH => self.config.notebook().is_some(),
            _ => true,
        }
    }

    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let (config, tool) = (self.config.clone(), tool.to_owned());
            let reading = spawn_blocking(move || config.serve_reading(&tool, arguments));
            let found = reading.await.map_err(|error| error.to_string())?;
            found.map_err(|error| error.message)
        })
    }

    fn begin(
        &self,
        message: String,
        session: Option<String>,
    ) -> BoxFuture<'_, Result<Begun, String>> {
        Box::pin(async move {
            let key = match session {
                Some(name) => self.key(&name)?,
                None => self.new_key()?,
            };
            let session = self.session(&key).await?;
            self.places.of(&key).begin();
            let sent = session.send(vec![ContentBlock::text(message)], None).await;
            let (Accepted::Started(id) | Accepted::Queued(id) | Accepted::Interrupting(id)) =
                sent.map_err(|error| error.message)?;
            let turn = Turn(format!("{key}{SEPARATOR}{id}"));
            Ok(Begun { turn, session: self.config.served_name(&key) })
        })
    }

    fn watch<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<Box<dyn Watch>, String>> {
        let watching = self.parts(turn).map(|(key, _)| self.places.of(&key).watch());
        Box::pin(async move { watching.map(|watching| Box::new(watching) as Box<dyn Watch>) })
    }

    fn state<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<State, String>> {
        Box::pin(self.find(turn))
    }

    fn answer<'a>(
        &'a self,
        turn: &'a Turn,
        question: &'a str,
        answer: Answer,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (key, _) = self.parts(turn)?;
            let is_answered = self.places.of(&key).answer(question, answer);
            is_answered
                .then_some(())
                .ok_or_else(|| "the question does not wait any more".to_owned())
        })
    }

    fn stop<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (key, message) = self.parts(turn)?;
            let session = self.session(&key).await?;
            self.stopped.lock().insert(message);
            let was_waiting = session.take_back(message).await.map_err(|error| error.message)?;
            if !was_waiting {
                session.abort();
            }
            Ok(())
        })
    }
}
