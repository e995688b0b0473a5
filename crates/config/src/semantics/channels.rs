//! Mistakes in channels and bindings.

use std::collections::HashSet;

use super::{Finding, finding, root};
use crate::agent::AgentId;
use crate::config_path::ConfigPath;
use crate::schema::channels::is_everybody;
use crate::schema::{BindingMatch, ChannelsConfig, ChatId, Config, DmPolicy};
use crate::suggest::nearest;

mod people;

/// The names of all channels.
const NAMES: &[&str] = ChannelsConfig::NAMES;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    people::check(config, findings);
    let channels = root().key("channels");
    for (name, channel) in config.channels.all() {
        channel.check(&channels.clone().key(name), findings);
    }
    check_everybody(config, &channels, findings);
    check_bindings(config, findings);
    check_host_bindings(config, findings);
}

/// The mistake at `path`, if there is no channel with the name that stands there.
pub(super) fn channel_problem(name: &str, path: ConfigPath) -> Option<Finding> {
    let help = || match nearest(name, NAMES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the channels are {}", NAMES.join(", ")),
    };
    (!NAMES.contains(&name)).then(|| finding(path, "there is no channel of this name", help()))
}

/// Refuses `*` in `allowFrom`, where it would let nobody in. With an open policy it changes nothing.
fn check_everybody(config: &Config, channels: &ConfigPath, findings: &mut Vec<Finding>) {
    for (name, rules) in config.channels.chat_rules() {
        let place = channels.clone().key(name);
        let found = rules.allow_from.iter().position(is_everybody);
        if let Some(index) = found.filter(|_| rules.dm_policy != DmPolicy::Open) {
            findings.push(finding(
                place.clone().key("allowFrom").index(index),
                "`*` names nobody here",
                format!("to answer everybody, set `channels.{name}.dmPolicy` to \"open\""),
            ));
        }
        for (id, group) in rules.groups {
            let found = group.allow_from.iter().flatten().position(is_everybody);
            if let Some(index) = found {
                findings.push(finding(
                    place.clone().key("groups").key(id).key("allowFrom").index(index),
                    "`*` names nobody here",
                    "to answer everybody in this group, leave `allowFrom` out",
                ));
            }
        }
    }
}

fn check_bindings(config: &Config, findings: &mut Vec<Finding>) {
    let agents = config.agent_ids();
    for (index, binding) in config.bindings.iter().enumerate() {
        let path = root().key("bindings").index(index);
        let id = AgentId::new(&binding.agent_id);
        if !agents.contains(&id) {
            let known = agents.iter().map(AgentId::as_str);
            let help = match nearest(id.as_str(), known.clone()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("known agents: {}", known.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no agent `{id}`");
            findings.push(finding(path.clone().key("agentId"), message, help));
        }
        check_match(config, &binding.matches, &path.key("match"), findings);
    }
}

/// A group of the host has one chat: what it sends goes there.
fn check_host_bindings(config: &Config, findings: &mut Vec<Finding>) {
    let mut folders = HashSet::new();
    let bindings = config.host.iter().flat_map(|host| &host.bindings);
    for (index, binding) in bindings.enumerate() {
        let path = root().key("host").key("bindings").index(index);
        if !folders.insert(&binding.folder) {
            findings.push(finding(
                path.clone().key("folder"),
                "a group of the host has one chat",
                "add a group for each chat with `myclaw groups add`",
            ));
        }
        let path = path.key("match");
        if binding.matches.peer.is_none() && binding.matches.group.is_none() {
            findings.push(finding(
                path.clone(),
                "a group of the host has one chat, and this names none",
                "add `peer` with the id of a person, or `group` with that of a group",
            ));
        }
        check_match(config, &binding.matches, &path, findings);
    }
}

fn check_match(
    config: &Config,
    rule: &BindingMatch,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let BindingMatch { channel, account, peer, group } = rule;
    if !NAMES.contains(&channel.as_str()) {
        let help = match nearest(channel, NAMES.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("channels: {}", NAMES.join(", ")),
        };
        findings.push(finding(path.clone().key("channel"), "there is no such channel", help));
    } else if let Some(account) = account {
        let all = config.channels.all().into_iter();
        let known = all.filter(|(name, _)| name == channel).flat_map(|(_, found)| found.accounts());
        let known: Vec<&str> = known.collect();
        if !known.contains(&account.as_str()) {
            let help = match nearest(account, known.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("accounts of {channel}: {}", known.join(", ")),
            };
            findings.push(finding(path.clone().key("account"), "there is no such account", help));
        }
    }
    if peer.is_some() && group.is_some() {
        findings.push(finding(
            path.clone().key("group"),
            "a message comes from a person or from a group, not from both",
            "make two bindings",
        ));
    }
}

impl ChatId {
    /// Whether this is the chat or person with the id `id`, or with the name `handle`, which has no `@`.
    pub fn is(&self, id: &str, handle: Option<&str>) -> bool {
        match self {
            Self::Number(number) => number.to_string() == id,
            Self::Name(name) if name.trim() == id => true,
            Self::Name(name) => match name.trim().strip_prefix('@') {
                Some(name) => handle.is_some_and(|handle| handle.eq_ignore_ascii_case(name)),
                None => false,
            },
        }
    }
}
