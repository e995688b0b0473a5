//! Commands of chats, which the gateway answers itself.

use myclaw_channels::{Arrival, EMAIL, Receipt, TELEGRAM};
use myclaw_config::Persona;

use super::session::ChatSession;
use super::{Router, incoming, receipt};
use crate::DeliveryError;
use crate::route::Route;
use crate::rows::{MessageId, Origin};

const HELP: &str = "Write a message, and the agent answers. While it works, more messages are read when it is done.\n\n\
                    /stop – stops what it does\n/new – begins a new session; the old one is kept\n\
                    /again – sends again what may not have arrived\n\
                    /status – shows who answers here\n/help – shows this\n\
                    /approve, /always, /deny – answer a question of the agent, for its owner\n\n\
                    Where / is for commands of the app, write !stop, !new, !again, !status and !help.";
const SHARED: &str = "This chat is in the main session of the agent, which goes on: the terminal and what is scheduled \
                      have it too (channels.dmScope).";
const NOTHING_MISSING: &str =
    "Nothing is missing here: everything that I sent has arrived, or is still being sent.";
/// How often `/new` is tried again because the same chat began another session, or said something, at that moment.
const MOST_RACES: usize = 5;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Shows the commands.
    Help,
    /// Stops what the agent does.
    Stop,
    /// Shows who answers.
    Status,
    /// Begins a new session.
    New,
    /// Sends again what may be missing.
    Again,
}

impl Command {
    /// Reads a command, also one behind a call of the agent. `None` for every other message.
    pub fn of(arrival: &Arrival, route: &Route, persona: &Persona) -> Option<Self> {
        if route.channel == EMAIL {
            // A letter that answers what it was told in one. The others are no lines to type.
            let body = arrival.text.split_once("\n\n").map_or("", |(_, body)| body);
            let line = body.trim_start().lines().next().unwrap_or_default();
            return Self::named(line, route).filter(|command| *command == Self::Again);
        }
        if !route.is_chat() || !arrival.is_plain() {
            return None;
        }
        let behind = || Self::named(persona.called_at_start_of(&arrival.text)?, route);
        Self::named(&arrival.text, route).or_else(behind)
    }

    fn named(text: &str, route: &Route) -> Option<Self> {
        // The apps of many channels keep a line that begins with / for themselves.
        match text.trim().strip_prefix(['/', '!'])? {
            "start" if route.channel == TELEGRAM => Some(Self::Help),
            "help" => Some(Self::Help),
            "stop" => Some(Self::Stop),
            "status" => Some(Self::Status),
            "new" => Some(Self::New),
            "again" => Some(Self::Again),
            _ => None,
        }
    }
}

impl Router {
    /// Does what a command says, for an agent's session. The answer is stored with the message.
    pub(super) async fn obey(
        &self,
        command: Command,
        arrival: &Arrival,
        (route, origin): (Route, Origin),
    ) -> Result<Receipt, DeliveryError> {
        let id = MessageId::of(&route, &arrival.source_id);
        for _ in 0..MOST_RACES {
            let session = self.session_of(arrival).await?;
            let mut writes = Vec::new();
            let said = match command {
                Command::Help => HELP.to_owned(),
                Command::Stop => self.stop(&session).await?,
                Command::Status => self.status(&session, arrival)?,
                Command::New if session.is_main() => SHARED.to_owned(),
                Command::Again => return self.send_again(arrival, route).await,
                Command::New => {
                    writes.push(session.begin_next()?);
                    // What the group said before is not for the new session.
                    writes.extend(self.delivery.take_kept(&route).await?.map(|(_, forget)| forget));
                    "The next message begins a new session. The old one is kept.".to_owned()
                }
            };
            let text = arrival.text.clone();
            let row = incoming(arrival, route.clone(), &session.key, origin.clone(), text);
            if let Some(row) = self.delivery.answer_at_once(row, said, writes).await? {
                return Ok(receipt(&id, &row.state));
            }
        }
        Err(DeliveryError::Internal("too many messages of one chat at the same moment".to_owned()))
    }

    /// Sends again what may be missing in a chat.
    pub(super) async fn send_again(
        &self,
        arrival: &Arrival,
        route: Route,
    ) -> Result<Receipt, DeliveryError> {
        let id = MessageId::of(&route, &arrival.source_id);
        let origin = Origin { reply_id: arrival.reply_id.clone(), ..Origin::default() };
        let session = self.session_of(arrival).await?.key;
        let row = incoming(arrival, route.clone(), &session, origin, arrival.text.clone());
        for _ in 0..MOST_RACES {
            let again = self.delivery.ledger().missing(&route).await?;
            let settled = match again.parts.is_empty() {
                true => {
                    let said = NOTHING_MISSING.to_owned();
                    self.delivery.answer_at_once(row.clone(), said, Vec::new()).await?
                }
                false => self.delivery.answer_again(row.clone(), again).await?,
            };
            if let Some(row) = settled {
                return Ok(receipt(&id, &row.state));
            }
        }
        Err(DeliveryError::Internal("too much of one chat is sent at the same moment".to_owned()))
    }

    async fn stop(&self, session: &ChatSession) -> Result<String, DeliveryError> {
        let mut is_stopped = self.delivery.abort(session.key.as_str()).await?;
        // A run that began before `/new` still reports to this chat.
        if let Some(before) = session.before() {
            is_stopped |= self.delivery.abort(before.as_str()).await?;
        }
        Ok(if is_stopped { "Stopped." } else { "Nothing runs." }.to_owned())
    }

    fn status(&self, session: &ChatSession, arrival: &Arrival) -> Result<String, DeliveryError> {
        let (key, works) = self.delivery.session(session.key.as_str())?;
        let does = if works { "works" } else { "waits" };
        let (agent, sender) = (key.parts().agent_id, &arrival.sender.id);
        let chat = &arrival.chat.id;
        let chat = if chat == sender { String::new() } else { format!(", this chat {chat}") };
        Ok(format!("agent {agent}, which {does}, session `{key}`, your id {sender}{chat}"))
    }
}
