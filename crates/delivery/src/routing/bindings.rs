//! Who answers a message: an agent, or a group of the host.

use myclaw_channels::{Arrival, ChatKind, Receipt};
use myclaw_config::{AgentId, Binding, BindingMatch, ChatId, Config, HostBinding};

use super::access::{is_chat, is_person};
use super::{Command, Handed, Router, incoming, receipt};
use crate::DeliveryError;
use crate::route::Route;
use crate::rows::{MessageId, Origin};

impl Router {
    /// Gives a message to a group of the host.
    pub(super) async fn hand_over(
        &self,
        config: &Config,
        binding: &HostBinding,
        (arrival, route): (&Arrival, Route),
        command: Option<Command>,
    ) -> Result<Receipt, DeliveryError> {
        let Some(groups) = self.groups.get() else {
            let reason = "the host of containers runs after a restart of the gateway".to_owned();
            return self.drop(arrival, route, reason, None).await;
        };
        if let Some(command) = command {
            let answer = groups.obey(binding, command, &arrival.sender.id).await?;
            return self.answer_at_once(arrival, route, answer).await;
        }
        match groups.take(&self.delivery, binding, (arrival, &route)).await? {
            Handed::Taken { is_for_agent } => {
                if is_for_agent {
                    let persona = config.persona(&agent_of(config, arrival));
                    self.acknowledge(config, arrival, &route, &persona);
                }
                let id = MessageId::of(&route, &arrival.source_id);
                Ok(Receipt { id: id.as_str().to_owned(), dropped: None })
            }
            Handed::Dropped { reason, say } => self.drop(arrival, route, reason, say).await,
        }
    }

    /// Answers a command. What it is about has no session here.
    async fn answer_at_once(
        &self,
        arrival: &Arrival,
        route: Route,
        answer: String,
    ) -> Result<Receipt, DeliveryError> {
        let id = MessageId::of(&route, &arrival.source_id);
        let origin = Origin { reply_id: arrival.reply_id.clone(), ..Origin::default() };
        let session = self.chat_session(arrival);
        let row = incoming(arrival, route, &session, origin, arrival.text.clone());
        let row = self.delivery.settle_at_once(row, Some(answer), None).await?;
        Ok(receipt(&id, &row.state))
    }
}

/// The bindings of chats to groups.
pub fn bindings(config: &Config) -> impl Iterator<Item = &HostBinding> {
    config.host.iter().flat_map(|host| &host.bindings)
}

/// The binding of a message's chat to a group.
pub(crate) fn binding_of<'a>(config: &'a Config, arrival: &Arrival) -> Option<&'a HostBinding> {
    bindings(config).find(|binding| matches(&binding.matches, arrival))
}

/// The agent that answers a message: that of the most specific binding, else the default one.
pub(super) fn agent_of(config: &Config, arrival: &Arrival) -> AgentId {
    let mut best: Option<(u8, &Binding)> = None;
    for binding in &config.bindings {
        let Some(weight) = weight(&binding.matches, arrival) else { continue };
        if best.is_none_or(|(other, _)| weight > other) {
            best = Some((weight, binding));
        }
    }
    best.map_or_else(|| config.default_agent_id(), |(_, binding)| AgentId::new(&binding.agent_id))
}

/// How specific a binding is for a message; `None` if it does not fit.
pub(super) fn weight(rule: &BindingMatch, arrival: &Arrival) -> Option<u8> {
    let is_group = arrival.chat.kind == ChatKind::Group;
    let is_account = |account: &String| *account == arrival.account;
    let is_peer = |peer: &ChatId| !is_group && is_person(peer, &arrival.sender);
    let is_of_group = |group: &ChatId| is_group && is_chat(group, arrival);
    let fits = rule.channel == arrival.channel
        && rule.account.as_ref().is_none_or(is_account)
        && rule.peer.as_ref().is_none_or(is_peer)
        && rule.group.as_ref().is_none_or(is_of_group);
    let chat = if rule.peer.is_some() || rule.group.is_some() { 2 } else { 0 };
    fits.then_some(chat + u8::from(rule.account.is_some()))
}

/// Whether a rule fits a message.
pub(crate) fn matches(rule: &BindingMatch, arrival: &Arrival) -> bool {
    weight(rule, arrival).is_some()
}
