//! Carries out what the tools of the server say, with messages of the gateway. The id of a turn is that of its message, so it
//! is answered exactly once, whichever process works on it.

use std::future::pending;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::SessionConfig;
use myclaw_agent::mcp::serve::{
    self, ASK, Backend, Begun, MEMORY_SEARCH, Outcome, SEND, State, Turn, Watch,
};
use myclaw_agent::mcp::{served_answer, served_question};
use myclaw_delivery::delivery::{SpeakCall, Speech};
use myclaw_delivery::message::NewMessage;
use myclaw_delivery::questions::FullAnswer;
use myclaw_delivery::route::Route;
use myclaw_delivery::rows::{Incoming, MessageId, MessageState, Origin};
use myclaw_session::SessionKey;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::GatewayError;
use crate::devices::{Login, Needs};
use crate::hub::{Since, Watching};
use crate::server::answer::message as message_object;
use crate::server::rest::DEFAULT_SESSION;
use crate::server::{Server, route};

/// The turn of calls that no model has made, in the records of what was sent.
const SENT_BY_PROGRAM: &str = "mcp";
const ONLY_READS: &str =
    "this device may read and do nothing else; the owner can pair it with the scope operator";
const NO_TURN: &str = "there is no such turn; it may be older than 30 days. Begin another one";

/// The gateway, as one client may use it.
pub(super) struct Turns {
    server: Arc<Server>,
    login: Login,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    session: String,
    text: String,
}

impl Turns {
    pub(super) fn new(server: Arc<Server>, login: Login) -> Self {
        Self { server, login }
    }

    /// Tasks have methods of their own, which do not ask which tools there are.
    fn check_may_talk(&self) -> Result<(), String> {
        if self.login.scope.may(Needs::Talk) { Ok(()) } else { Err(ONLY_READS.to_owned()) }
    }

    fn config(&self) -> Result<SessionConfig, GatewayError> {
        Ok(self.server.delivery.session_config(DEFAULT_SESSION)?)
    }

    /// The message of a turn, and its session.
    async fn row(&self, turn: &Turn) -> Result<(MessageId, Incoming, SessionKey), String> {
        let id = MessageId::from_text(&turn.0);
        let row =
            self.server.delivery.ledger().message(&id).await.map_err(|error| error.to_string())?;
        let row = row.ok_or_else(|| NO_TURN.to_owned())?;
        let session = self.server.delivery.session(&row.session);
        let (key, _) = session.map_err(|error| error.to_string())?;
        Ok((id, row, key))
    }

    async fn find(&self, turn: &Turn) -> Result<State, String> {
        let (id, row, key) = self.row(turn).await?;
        let delivery = &self.server.delivery;
        Ok(match &row.state {
            MessageState::Open => {
                // Other messages of the session have questions of their own.
                let asked = delivery.questions().list(Some(key.as_str())).into_iter().next();
                match asked.filter(|_| delivery.works_on(key.as_str(), &id)) {
                    Some(question) => {
                        let own_id = question.names().0;
                        State::Asked(served_question(question.shown(), Some(own_id)))
                    }
                    None => State::Working,
                }
            }
            MessageState::Answered { .. } => {
                let answer = message_object(delivery, &id, &row).await;
                let answer = answer.map_err(|error| error.to_string())?;
                let reply = answer["reply"].as_str().unwrap_or_default().to_owned();
                let config = self.config().map_err(|error| error.to_string())?;
                State::Over(Outcome::Answered { reply, session: config.served_name(&key) })
            }
            MessageState::Reported { class, .. } if class == "aborted" => {
                State::Over(Outcome::Stopped)
            }
            MessageState::Reported { message, .. } => State::Over(Outcome::Failed(message.clone())),
            MessageState::Dropped { reason, .. } => State::Over(Outcome::Failed(reason.clone())),
        })
    }

    async fn accept(&self, text: String, session: Option<String>) -> Result<Begun, GatewayError> {
        let (route, source_id) = (route(&self.login), uuid::Uuid::new_v4().to_string());
        let session =
            session.unwrap_or_else(|| format!("mcp-{}", MessageId::of(&route, &source_id)));
        let (key, _) = self.server.delivery.session(&session)?;
        let new = NewMessage { route, source_id, session, text, images: Vec::new(), asked: None };
        let accepted = self.server.delivery.accept_from(new, Origin::default(), Vec::new()).await?;
        let session = self.config()?.served_name(&key);
        Ok(Begun { turn: Turn(accepted.id.as_str().to_owned()), session })
    }

    /// Sends a text to the chat of a session.
    async fn send(&self, arguments: Map<String, Value>) -> Result<Value, GatewayError> {
        let unusable = GatewayError::Unusable;
        let SendArguments { session, text } = serde_json::from_value(Value::Object(arguments))
            .map_err(|error| {
                unusable(format!("the arguments of `{SEND}` cannot be used: {error}"))
            })?;
        if text.trim().is_empty() {
            return Err(unusable("`text` is empty; say what is to be sent".to_owned()));
        }
        let delivery = &self.server.delivery;
        let caller = delivery.session_config(&session)?;
        let key = &caller.session_key;
        let route = delivery.routes().last(key.as_str()).await?;
        let route = route.filter(Route::leads_somewhere).ok_or_else(|| {
            unusable(format!("nobody has written to the session {session} from a chat yet"))
        })?;
        delivery.check_may_write(key, &route)?;
        let id = uuid::Uuid::new_v4().to_string();
        let call = SpeakCall { id: &id, turn: SENT_BY_PROGRAM };
        let speech = Speech { text, ..Speech::default() };
        Ok(delivery.speak(&caller, call, &route, speech, pending()).await?)
    }

    async fn found(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, GatewayError> {
        if tool == SEND {
            return self.send(arguments).await;
        }
        let (config, tool) = (self.config()?, tool.to_owned());
        let reading = tokio::task::spawn_blocking(move || config.serve_reading(&tool, arguments));
        let found = reading.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        found.map_err(GatewayError::Agent)
    }
}

impl Backend for Turns {
    fn offers(&self, tool: &str) -> bool {
        match tool {
            ASK | SEND => self.login.scope.may(Needs::Talk),
            MEMORY_SEARCH => self.config().is_ok_and(|config| config.notebook().is_some()),
            _ => true,
        }
    }

    fn read<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(
            async move { self.found(tool, arguments).await.map_err(|error| error.to_string()) },
        )
    }

    fn begin(
        &self,
        message: String,
        session: Option<String>,
    ) -> BoxFuture<'_, Result<Begun, String>> {
        Box::pin(async move {
            self.check_may_talk()?;
            self.accept(message, session).await.map_err(|error| error.to_string())
        })
    }

    fn watch<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<Box<dyn Watch>, String>> {
        Box::pin(async move {
            let (message, _, key) = self.row(turn).await?;
            self.server.relay.join(key.as_str()).await;
            let watching = self.server.hub.watch(key.as_str());
            let server = Arc::clone(&self.server);
            Ok(Box::new(Changes { server, message, key, watching }) as Box<dyn Watch>)
        })
    }

    fn state<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<State, String>> {
        Box::pin(self.find(turn))
    }

    fn answer<'a>(
        &'a self,
        turn: &'a Turn,
        question: &'a str,
        answer: serve::Answer,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.check_may_talk()?;
            self.row(turn).await?;
            let asked = self.server.delivery.questions().find(question);
            let asked = asked.ok_or_else(|| "the question does not wait any more".to_owned())?;
            let given = FullAnswer::from(served_answer(answer, &asked.shown().always));
            let answered = self.server.approve(question, given, &self.login).await;
            answered.map(drop).map_err(|error| error.to_string())
        })
    }

    fn stop<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.check_may_talk()?;
            let (id, row, _) = self.row(turn).await?;
            self.server.stop_message(&id, row).await.map_err(|error| error.to_string())
        })
    }
}

/// What changes of a message and its session.
struct Changes {
    server: Arc<Server>,
    message: MessageId,
    key: SessionKey,
    watching: Watching,
}

impl Watch for Changes {
    fn changed(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let delivery = &self.server.delivery;
            tokio::select! {
                changed = self.watching.news.changed() => if changed.is_err() {
                    pending::<()>().await;
                },
                // The end of a message whose session says nothing more.
                _ = delivery.outcome(&self.message, pending()) => return None,
            }
            match self.server.hub.since(self.key.as_str(), self.watching.newest) {
                Since::Events(events) => {
                    let newest = events.last().map(|newest| *newest.numbers.end());
                    self.watching.newest = newest.unwrap_or(self.watching.newest);
                    events.iter().rev().find_map(|event| at(&event.text))
                }
                Since::Gap(now) => {
                    self.watching.newest = now;
                    None
                }
            }
        })
    }
}

/// What an event says that the session is at.
fn at(event: &str) -> Option<String> {
    // Most events are deltas; they are not parsed.
    let event: Value =
        event.contains("\"tool_start\"").then(|| serde_json::from_str(event).ok())??;
    let tool = event["toolName"].as_str().filter(|_| event["type"] == "tool_start")?;
    Some(format!("uses {tool}"))
}
