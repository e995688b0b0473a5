//! Who may write, and which messages of a group are meant for the agent.

use myclaw_agent::config::{ChatId, Config, DmPolicy, GroupConfig, GroupPolicy, TelegramConfig};
use myclaw_channels::{Arrival, ChatKind, TELEGRAM};

use super::Pairings;

/// Whether a message is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// It is dropped, for this reason.
    Refused(String),
    /// The sender has to ask the owner first.
    Unpaired,
}

/// Stands for every group.
const EVERY_GROUP: &str = "*";

/// Decides about a message. Only the ids of chats and people count: names are chosen by people.
pub(super) fn decide(config: &Config, arrival: &Arrival, pairings: &Pairings) -> Access {
    if arrival.channel != TELEGRAM {
        // Whoever can sign, or is this machine's user, is the owner.
        return Access::Granted;
    }
    let Some(telegram) = &config.channels.telegram else {
        return Access::Refused("the config has no channel telegram".to_owned());
    };
    let is_named = |list: &[ChatId]| list.iter().any(|id| id.is(&arrival.chat.id, None));
    let is_listed = telegram.allowed_chat_ids.as_deref().map(is_named);
    if is_listed == Some(false) {
        return Access::Refused("the chat is not in channels.telegram.allowedChatIds".to_owned());
    }
    match arrival.chat.kind {
        ChatKind::Direct => direct(telegram, arrival, is_listed == Some(true), pairings),
        ChatKind::Group => group(telegram, arrival, is_listed == Some(true)),
    }
}

fn is_in(list: &[ChatId], arrival: &Arrival) -> bool {
    list.iter().any(|id| id.is(&arrival.sender.id, arrival.sender.handle.as_deref()))
}

fn direct(
    telegram: &TelegramConfig,
    arrival: &Arrival,
    is_listed: bool,
    pairings: &Pairings,
) -> Access {
    let is_known = is_listed || is_in(&telegram.allow_from, arrival);
    match telegram.dm_policy {
        DmPolicy::Disabled => Access::Refused(
            "direct messages are switched off (channels.telegram.dmPolicy)".to_owned(),
        ),
        DmPolicy::Open => Access::Granted,
        _ if is_known => Access::Granted,
        DmPolicy::Allowlist => {
            Access::Refused("the sender is not in channels.telegram.allowFrom".to_owned())
        }
        DmPolicy::Pairing if pairings.is_approved(arrival) => Access::Granted,
        DmPolicy::Pairing => Access::Unpaired,
    }
}

fn group(telegram: &TelegramConfig, arrival: &Arrival, is_listed: bool) -> Access {
    let rules = telegram.groups.get(&arrival.chat.id).or_else(|| telegram.groups.get(EVERY_GROUP));
    let is_allowed = is_listed || rules.is_some();
    match telegram.group_policy {
        GroupPolicy::Disabled => {
            return Access::Refused(
                "groups are switched off (channels.telegram.groupPolicy)".to_owned(),
            );
        }
        GroupPolicy::Allowlist if !is_allowed => {
            return Access::Refused("the group is not in channels.telegram.groups".to_owned());
        }
        GroupPolicy::Allowlist | GroupPolicy::Open => {}
    }
    let rules: &GroupConfig = rules.unwrap_or(&DEFAULT_RULES);
    if rules.allow_from.as_ref().is_some_and(|list| !is_in(list, arrival)) {
        return Access::Refused("the sender is not in allowFrom of the group".to_owned());
    }
    if rules.require_mention && !arrival.mentions_me {
        return Access::Refused("the message does not mention the bot (requireMention)".to_owned());
    }
    Access::Granted
}

static DEFAULT_RULES: GroupConfig = GroupConfig { require_mention: true, allow_from: None };
