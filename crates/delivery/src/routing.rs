//! Which session a message of a channel belongs to, and whether it is answered.
//!
//! Every message that arrives is stored: to be answered, or as dropped, with the reason. The route of the
//! answer, the session and what the model is shown of the sender are fixed here, before the message is acknowledged.

mod access;
mod answers;
mod bindings;
mod command;
mod decision;
mod groups;
mod intake;
mod pairing;
mod session;
mod versions;
mod wording;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use myclaw_agent::FailureClass;
use myclaw_channels::{
    Action, Arrival, Change, Channel, ChatKind, Part, PartKind, Receipt, SOCKET, WEBHOOK,
};
use myclaw_config::{AckReactionScope, Config, Persona};
use myclaw_session::SessionKey;
use myclaw_store::Records;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::DeliveryError;
use crate::channels::Channels;
use crate::current::Current;
use crate::delivery::{Delivery, GroupMessage};
use crate::failure_text::for_people;
use crate::ledger::now_ms;
use crate::message::NewMessage;
use crate::route::Route;
use crate::rows::{Incoming, MessageId, MessageState, Origin};
use access::Access;
use bindings::{agent_of, binding_of};
pub use command::Command;
use decision::Decision;
pub use pairing::Pairing;
pub use pairing::PairingChange;
pub use pairing::Pairings;

/// Dropped messages that `channels status` shows.
const MOST_SHOWN: usize = 50;
/// What channels keep.
const MEMORY: Records<String> = Records::new("channel-memory");
/// Longest text of a dropped message that is kept, in characters.
const MOST_DROPPED_CHARS: usize = 1_000;

/// Everything between the channels and delivery.
pub struct Router {
    delivery: Arc<Delivery>,
    current: Arc<Current>,
    channels: Arc<Channels>,
    pairings: Arc<Pairings>,
    /// The newest dropped messages, for the owner.
    dropped: Mutex<VecDeque<Value>>,
    /// The host of containers, if the gateway runs one.
    groups: OnceLock<Arc<dyn Groups>>,
}

impl Router {
    /// Gives what `channels` bring to `delivery`.
    pub fn new(
        delivery: Arc<Delivery>,
        current: Arc<Current>,
        channels: Arc<Channels>,
        pairings: Arc<Pairings>,
    ) -> Self {
        let (dropped, groups) = (Mutex::default(), OnceLock::new());
        Self { delivery, current, channels, pairings, dropped, groups }
    }

    /// Introduces the host of containers.
    pub fn link_groups(&self, groups: Arc<dyn Groups>) {
        // There is one only.
        let _ = self.groups.set(groups);
    }

    /// An account of a channel.
    pub fn channel(&self, name: &str, account: &str) -> Option<Arc<dyn Channel>> {
        self.channels.find(name, account)
    }

    /// The channel, the account and the name of the state of each.
    pub fn channel_states(&self) -> Vec<(String, String, &'static str)> {
        self.channels.states()
    }

    /// The people who asked to write.
    pub fn pairings(&self) -> &Pairings {
        &self.pairings
    }

    /// The channels with their states, the newest messages that they could not deliver, and the newest dropped ones. With
    /// `before`, only messages that are older than this part.
    pub async fn describe(&self, before: Option<&str>) -> Result<Value, DeliveryError> {
        let channels = self.channels.describe();
        let trouble = self.delivery.ledger().trouble().await?;
        let count = trouble.len();
        let skipped = match before {
            Some(part) => {
                let newest = trouble.iter().rev().position(|other| other.id.as_str() == part);
                newest.map_or(count, |at| at + 1)
            }
            None => 0,
        };
        let trouble: Vec<Value> = trouble
            .iter()
            .rev()
            .skip(skipped)
            .take(MOST_SHOWN)
            .map(|part| {
                json!({
                    "part": part.id, "route": part.row.route, "state": part.row.state,
                    "text": part.row.text, "createdAt": part.row.created_at,
                })
            })
            .collect();
        let dropped: Vec<Value> = self.dropped.lock().iter().cloned().collect();
        Ok(
            json!({"channels": channels, "undelivered": trouble, "undeliveredCount": count, "dropped": dropped}),
        )
    }

    /// Tells a person that they may write now.
    pub async fn announce(&self, pairing: &Pairing) -> Result<(), DeliveryError> {
        if !pairing.is_approved() {
            return Ok(());
        }
        let said = format!("paired {}", pairing.code);
        self.delivery.say(&pairing.route, &said, "You are paired now. Write your message.").await
    }

    async fn route_version(&self, mut arrival: Arrival) -> Result<Receipt, DeliveryError> {
        let route = route_of(&arrival);
        let id = MessageId::of(&route, &arrival.source_id);
        if let Some(known) = self.delivery.ledger().message(&id).await? {
            return match is_other(&known, &arrival) {
                true => Err(DeliveryError::OtherMessage),
                false => Ok(receipt(&id, &known.state)),
            };
        }
        let config = self.current.config();
        let persona = config.persona(&agent_of(&config, &arrival));
        match self.decide((&config, &persona), &mut arrival, &route).await? {
            Decision::Answer(answer) => self.heed_answer(answer, &arrival, route).await,
            Decision::Overhear(reason) => {
                self.overhear(&arrival, route, reason, persona.group_history()).await
            }
            Decision::Drop(reason, say) => self.drop(&arrival, route, reason, say).await,
            Decision::Pair => {
                let (reason, say) = self.pairings.ask(&arrival, &route).await?;
                self.drop(&arrival, route, reason, say).await
            }
            Decision::SendAgain => self.send_again(&arrival, route).await,
            Decision::HandOver(binding, command) => {
                self.hand_over(&config, binding, (&arrival, route), command).await
            }
            Decision::Obey(command) => {
                let origin = origin_of(&arrival);
                self.obey(command, &arrival, (route, origin)).await
            }
            Decision::Take => self.take((&config, &persona), arrival, route).await,
        }
    }

    /// Stores a message that the agent answers. One that cannot be used gets an answer that says why.
    async fn take(
        &self,
        (config, persona): (&Config, &Persona),
        mut arrival: Arrival,
        route: Route,
    ) -> Result<Receipt, DeliveryError> {
        let id = MessageId::of(&route, &arrival.source_id);
        self.delivery.remind(&route, &id).await?;
        let session = self.session_of(&arrival).await?.key;
        self.leave_out_known(config, &mut arrival, &route).await?;
        let worded = match self.worded(&arrival, &route).await? {
            Ok(worded) => worded,
            Err(reason) => return self.drop(&arrival, route, reason, None).await,
        };
        let files = wording::files(&arrival);
        let origin = Origin { outside: worded.outside, ..origin_of(&arrival) };
        let new = NewMessage {
            source_id: arrival.source_id.clone(),
            session: session.as_str().to_owned(),
            text: worded.text,
            images: Vec::new(),
            route: route.clone(),
            asked: None,
        };
        match self.delivery.accept_from(new, origin, files).await {
            Ok(accepted) => {
                self.acknowledge(config, &arrival, &route, persona);
                Ok(receipt(&accepted.id, &accepted.row.state))
            }
            Err(error) if is_final(&error) => {
                let (why, said) = refusal(&error);
                self.drop(&arrival, route, why, Some(said)).await
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a message is answered. One that calls the agent by its name in the config counts as addressed to it.
    fn access(&self, config: &Config, persona: &Persona, arrival: &mut Arrival) -> Access {
        let is_group = arrival.chat.kind == ChatKind::Group;
        arrival.mentions_me |= is_group && persona.is_called_in(&arrival.text);
        access::decide(config, arrival, &self.pairings)
    }

    /// Whether a message is new and will be answered.
    async fn wants(&self, mut arrival: Arrival) -> Result<bool, DeliveryError> {
        let id = MessageId::of(&route_of(&arrival), &arrival.source_id);
        if self.delivery.ledger().message(&id).await?.is_some() {
            return Ok(false);
        }
        let config = self.current.config();
        let persona = config.persona(&agent_of(&config, &arrival));
        Ok(match self.access(&config, &persona, &mut arrival) {
            Access::Granted => true,
            Access::Unaddressed(_) => binding_of(&config, &arrival).is_some(),
            _ => false,
        })
    }

    /// Leaves out the earlier messages of a thread that the agent knows or is shown anyway, and those of people who are not
    /// heard there.
    async fn leave_out_known(
        &self,
        config: &Config,
        arrival: &mut Arrival,
        route: &Route,
    ) -> Result<(), DeliveryError> {
        for passage in std::mem::take(&mut arrival.passages) {
            if let Some(earlier) = &passage.earlier {
                let id = MessageId::of(route, &earlier.source_id);
                let known = self.delivery.ledger().message(&id).await?;
                let is_of_thread = known.is_some_and(|row| row.route == *route);
                if is_of_thread || !access::is_heard(config, arrival, &earlier.sender) {
                    continue;
                }
            }
            arrival.passages.push(passage);
        }
        Ok(())
    }

    /// Shows the person by a reaction that their message has arrived. If that fails, the answer says so too.
    fn acknowledge(&self, config: &Config, arrival: &Arrival, route: &Route, persona: &Persona) {
        let is_group = arrival.chat.kind == ChatKind::Group;
        let is_wanted = match config.messages.ack_reaction_scope {
            AckReactionScope::Group => is_group,
            AckReactionScope::Direct => !is_group,
            AckReactionScope::All => true,
            AckReactionScope::Off => false,
        };
        let emoji = config.messages.ack_reaction.as_ref().or(persona.identity.emoji.as_ref());
        let channel = self.channels.of(route);
        let (Some(emoji), Some(message), Some(channel)) = (emoji, &arrival.reply_id, channel)
        else {
            return;
        };
        if !is_wanted || !channel.capabilities().actions.contains(&Action::React) {
            return;
        }
        let part = Part {
            id: format!("a{}", uuid::Uuid::new_v4().simple()),
            target: arrival.chat.target(),
            session: String::new(),
            answers: Vec::new(),
            kind: PartKind::Report,
            created_at: now_ms(),
            number: 0,
            count: 1,
            text: emoji.trim().to_owned(),
            buttons: Vec::new(),
            file: None,
            reply_to: None,
            replaces: None,
            is_repeat: false,
        };
        let message = message.clone();
        tokio::spawn(async move {
            if let Err(failure) = channel.change(Change::React, &part, &message).await {
                tracing::warn!(channel = channel.name(), ?failure, "a message is not acknowledged");
            }
        });
    }

    /// Stores a message of a group that is not addressed to the agent, which is shown the newest `most` of them later.
    async fn overhear(
        &self,
        arrival: &Arrival,
        route: Route,
        reason: &str,
        most: usize,
    ) -> Result<Receipt, DeliveryError> {
        if most == 0 {
            return self.drop(arrival, route, reason.to_owned(), None).await;
        }
        self.note_dropped(arrival, reason);
        let first = arrival.edits.as_ref().map(|first| MessageId::of(&route, first));
        let replaces = match &first {
            Some(first) => Some(self.delivery.newest_version(first).await?),
            None => None,
        };
        let text = wording::overheard(arrival, MOST_DROPPED_CHARS);
        let row = self.dropped_row(arrival, route);
        let id = MessageId::of(&row.route, &row.source_id);
        let new = GroupMessage { text, replaces, most };
        let row = self.delivery.keep_at_once(row, reason.to_owned(), new).await?;
        if let Some(first) = first {
            self.delivery.note_version(&first, &id).await?;
        }
        Ok(receipt(&id, &row.state))
    }

    /// Drops a message that its channel refused.
    async fn refuse_arrival(
        &self,
        arrival: &Arrival,
        reason: String,
    ) -> Result<Receipt, DeliveryError> {
        let route = route_of(arrival);
        let id = MessageId::of(&route, &arrival.source_id);
        match self.delivery.ledger().message(&id).await? {
            Some(known) => Ok(receipt(&id, &known.state)),
            None => self.drop(arrival, route, reason, None).await,
        }
    }

    /// Stores a message that gets no answer, and the reply to its sender.
    async fn drop(
        &self,
        arrival: &Arrival,
        route: Route,
        reason: String,
        say: Option<String>,
    ) -> Result<Receipt, DeliveryError> {
        self.note_dropped(arrival, &reason);
        let row = self.dropped_row(arrival, route);
        let id = MessageId::of(&row.route, &row.source_id);
        let row = self.delivery.settle_at_once(row, say, Some(reason)).await?;
        Ok(receipt(&id, &row.state))
    }

    fn dropped_row(&self, arrival: &Arrival, route: Route) -> Incoming {
        let session = self.chat_session(arrival);
        let text = wording::as_one_text(arrival).chars().take(MOST_DROPPED_CHARS).collect();
        let origin = Origin { reply_id: arrival.reply_id.clone(), ..Origin::default() };
        incoming(arrival, route, &session, origin, text)
    }

    /// Shows the owner that a message was dropped.
    fn note_dropped(&self, arrival: &Arrival, reason: &str) {
        tracing::info!(
            channel = arrival.channel, account = arrival.account, chat = arrival.chat.id,
            sender = arrival.sender.id, %reason, "a message was dropped"
        );
        let shown = json!({
            "at": now_ms(),
            "channel": arrival.channel,
            "account": arrival.account,
            "chat": arrival.chat.id,
            "title": arrival.chat.title,
            "sender": arrival.sender.id,
            "name": arrival.sender.name,
            "reason": reason,
        });
        let mut dropped = self.dropped.lock();
        if dropped.len() >= MOST_SHOWN {
            dropped.pop_front();
        }
        dropped.push_back(shown);
    }
}

/// Who sent a message, and to what an answer refers.
fn origin_of(arrival: &Arrival) -> Origin {
    let named = |id| format!("{}:{id}", arrival.channel);
    Origin {
        sender: Some(named(&arrival.sender.id)),
        other_sender: arrival.sender.other_id.as_ref().map(named),
        reply_id: arrival.reply_id.clone(),
        ..Origin::default()
    }
}

/// The route of the answer to a message.
fn route_of(arrival: &Arrival) -> Route {
    Route {
        channel: arrival.channel.clone(),
        account: arrival.account.clone(),
        chat: arrival.chat.target().to_text(),
    }
}

/// Whether a program used the id of a known message for another one. The ids of people's messages are their vendors'.
fn is_other(known: &Incoming, arrival: &Arrival) -> bool {
    let is_programs = [WEBHOOK, SOCKET].contains(&&*arrival.channel);
    let is_cut = matches!(known.state, MessageState::Dropped { .. });
    is_programs
        && !is_cut
        && known.text != arrival.text
        && known.text != wording::text(arrival).text
}

fn incoming(
    arrival: &Arrival,
    route: Route,
    session: &SessionKey,
    origin: Origin,
    text: String,
) -> Incoming {
    let session = session.as_str().to_owned();
    let source_id = arrival.source_id.clone();
    Incoming { origin, ..Incoming::new(route, source_id, session, text, now_ms()) }
}

fn receipt(id: &MessageId, state: &MessageState) -> Receipt {
    let dropped = match state {
        MessageState::Dropped { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    Receipt { id: id.as_str().to_owned(), dropped }
}

/// Why a message is never accepted, for the owner and for its sender.
fn refusal(error: &DeliveryError) -> (String, String) {
    let why = error.to_string();
    let said = match error {
        DeliveryError::Agent(error) => for_people(error.class.as_str(), &why).to_owned(),
        _ => why.clone(),
    };
    (why, said)
}

/// Whether a message that failed so will never be accepted.
fn is_final(error: &DeliveryError) -> bool {
    match error {
        DeliveryError::Unusable(_) | DeliveryError::OtherMessage => true,
        DeliveryError::Agent(error) => {
            matches!(error.class, FailureClass::Usage | FailureClass::Config)
        }
        _ => false,
    }
}

pub(crate) use access::check_may_write;
pub use bindings::bindings;
pub use groups::{Groups, Handed};
pub use versions::says;
pub(crate) use wording::{ShownFile, content};
pub use wording::{as_one_text, edited, file_name, files, text_of};

#[cfg(test)]
mod tests;
