//! Who may write, and which messages of a group are meant for the agent.

use myclaw_channels::{Arrival, Chat, ChatKind, Sender, Target};
use myclaw_config::{ChatId, ChatRules, Config, DmPolicy, GroupConfig, GroupPolicy};
use myclaw_session::PeerKind;

use super::Pairings;
use crate::route::Route;

/// Whether a message is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// It is dropped, for this reason.
    Refused(String),
    /// It is dropped, for this reason, because it is not meant for the agent. The sender may write.
    Unaddressed(&'static str),
    /// The sender has to ask the owner first.
    Unpaired,
}

/// Stands for every group.
const EVERY_GROUP: &str = "*";

/// Decides about a message. Only the ids of chats and people count: names are chosen by people.
pub(super) fn decide(config: &Config, arrival: &Arrival, pairings: &Pairings) -> Access {
    let of_channel = config.channels.chat_rules().find(|(name, _)| *name == arrival.channel);
    let Some((channel, rules)) = of_channel else {
        // A client that can sign, or is this machine's user, is the owner.
        return Access::Granted;
    };
    let is_named = |list: &[ChatId]| list.iter().any(|id| is_chat(id, arrival));
    let is_listed = rules.allowed_chat_ids.map(is_named);
    let decided = match (is_listed, arrival.chat.kind) {
        (Some(false), _) => Err("the chat is not in {}.allowedChatIds"),
        (_, ChatKind::Direct) => direct(&rules, arrival, is_listed == Some(true), pairings),
        (_, ChatKind::Group) => group(&rules, arrival, is_listed == Some(true)),
    };
    decided.unwrap_or_else(|reason| {
        Access::Refused(reason.replace("{}", &format!("channels.{channel}")))
    })
}

fn is_in(list: &[ChatId], sender: &Sender) -> bool {
    list.iter().any(|id| is_person(id, sender))
}

/// Whether an id of the config names a person.
pub(super) fn is_person(id: &ChatId, sender: &Sender) -> bool {
    let is_other = || sender.other_id.as_ref().is_some_and(|other| id.is(other, None));
    id.is(&sender.id, sender.handle.as_deref()) || is_other()
}

/// Whether an id of the config names the chat of a message.
pub(super) fn is_chat(id: &ChatId, arrival: &Arrival) -> bool {
    let Chat { id: chat, other_id, .. } = &arrival.chat;
    id.is(chat, None) || other_id.as_ref().is_some_and(|other| id.is(other, None))
}

/// Whether what a person said earlier in the group of a message may be shown with it.
pub(super) fn is_heard(config: &Config, arrival: &Arrival, sender: &Sender) -> bool {
    let of_channel = config.channels.chat_rules().find(|(name, _)| *name == arrival.channel);
    let of_group = of_channel.and_then(|(_, rules)| of_group(&rules, arrival));
    let allowed = of_group.and_then(|group| group.allow_from.as_ref());
    allowed.is_none_or(|list| is_in(list, sender))
}

fn of_group<'a>(rules: &ChatRules<'a>, arrival: &Arrival) -> Option<&'a GroupConfig> {
    let ids = [Some(&arrival.chat.id), arrival.chat.other_id.as_ref()];
    let mut named = ids.into_iter().flatten().filter_map(|id| rules.groups.get(id));
    named.next().or_else(|| rules.groups.get(EVERY_GROUP))
}

/// `{}` in a reason stands for the key of the channel.
fn direct(
    rules: &ChatRules<'_>,
    arrival: &Arrival,
    is_listed: bool,
    pairings: &Pairings,
) -> Result<Access, &'static str> {
    let is_known = is_listed || is_in(rules.allow_from, &arrival.sender);
    match rules.dm_policy {
        DmPolicy::Disabled => Err("direct messages are switched off ({}.dmPolicy)"),
        DmPolicy::Open => Ok(Access::Granted),
        _ if is_known => Ok(Access::Granted),
        DmPolicy::Allowlist => Err("the sender is not in {}.allowFrom"),
        DmPolicy::Pairing if pairings.is_approved(arrival) => Ok(Access::Granted),
        DmPolicy::Pairing => Ok(Access::Unpaired),
    }
}

fn group(
    rules: &ChatRules<'_>,
    arrival: &Arrival,
    is_listed: bool,
) -> Result<Access, &'static str> {
    let of_group = of_group(rules, arrival);
    let is_allowed = is_listed || of_group.is_some();
    match rules.group_policy {
        GroupPolicy::Disabled => return Err("groups are switched off ({}.groupPolicy)"),
        GroupPolicy::Allowlist if !is_allowed => return Err("the group is not in {}.groups"),
        GroupPolicy::Allowlist | GroupPolicy::Open => {}
    }
    let of_group: &GroupConfig = of_group.unwrap_or(&DEFAULT_RULES);
    if of_group.allow_from.as_ref().is_some_and(|list| !is_in(list, &arrival.sender)) {
        return Err("the sender is not in allowFrom of the group");
    }
    if of_group.require_mention && !arrival.mentions_me {
        return Ok(Access::Unaddressed("the message does not mention the bot (requireMention)"));
    }
    Ok(Access::Granted)
}

/// Whether the agent may write to a chat by itself. Who writes there counts as far as the chat names them.
pub(crate) fn check_may_write(
    config: &Config,
    route: &Route,
    kind: PeerKind,
    pairings: &Pairings,
) -> Result<(), String> {
    let of_channel = config.channels.chat_rules().find(|(name, _)| *name == route.channel);
    let Some((channel, rules)) = of_channel else { return Ok(()) };
    let chat = Target::from_text(&route.chat).chat;
    let is_in = |list: &[ChatId]| list.iter().any(|id| id.is(&chat, None));
    let listed = rules.allowed_chat_ids.map(is_in);
    let is_group = kind != PeerKind::Direct;
    let is_known_group = || {
        listed == Some(true)
            || [chat.as_str(), EVERY_GROUP].iter().any(|id| rules.groups.contains_key(*id))
    };
    let refused = if listed == Some(false) {
        Some("the chat is not in {}.allowedChatIds")
    } else if is_group {
        match rules.group_policy {
            GroupPolicy::Disabled => Some("groups are switched off ({}.groupPolicy)"),
            GroupPolicy::Allowlist if !is_known_group() => Some("the group is not in {}.groups"),
            GroupPolicy::Allowlist | GroupPolicy::Open => None,
        }
    } else {
        // On Telegram and by e-mail a direct chat has the id of the person; elsewhere the pairing says whose chat it is.
        let paired = pairings.of_route(route);
        let is_known = listed == Some(true) || is_in(rules.allow_from) || paired == Some(true);
        let is_named = matches!(channel, "telegram" | "email") || paired == Some(false);
        match rules.dm_policy {
            DmPolicy::Disabled => Some("direct messages are switched off ({}.dmPolicy)"),
            DmPolicy::Allowlist | DmPolicy::Pairing if is_named && !is_known => {
                Some("the person may not write any more ({}.dmPolicy)")
            }
            _ => None,
        }
    };
    match refused {
        Some(reason) => Err(reason.replace("{}", &format!("channels.{channel}"))),
        None => Ok(()),
    }
}

static DEFAULT_RULES: GroupConfig = GroupConfig { require_mention: true, allow_from: None };
