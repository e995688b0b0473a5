//! Who may answer questions in chats, and where they are asked.

use super::{Finding, finding, root};
use crate::schema::{ApprovalConfig, ChannelPeople, ChannelsConfig, Config};

/// What proves who somebody is.
type Proof = (&'static str, fn(&str) -> bool);

/// The channels in which people chat, and what proves there who somebody is. Others carry letters, or belong to programs.
fn with_chats() -> impl Iterator<Item = (&'static str, Proof)> {
    ChannelsConfig::declared().into_iter().filter_map(|(name, channel)| match channel.people {
        ChannelPeople::Chats { proof, is_proof } => Some((name, (proof, is_proof))),
        ChannelPeople::None | ChannelPeople::Letters => None,
    })
}

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let path = root().key("tools").key("approvals");
    let approvals = &config.tools.approvals;
    for (index, owner) in approvals.owners.iter().enumerate() {
        if let Some((message, help)) = mistake(owner) {
            findings.push(finding(path.clone().key("owners").index(index), message, help));
        }
    }
    if let Some(chat) = &approvals.send_to
        && kind(chat).is_none()
    {
        let message = "expected a chat as `channel:id`";
        findings.push(finding(path.key("sendTo"), message, chats()));
    }
}

/// The id of an entry, with what proves an id in its channel.
fn kind(entry: &str) -> Option<(Proof, &str)> {
    let (channel, id) = entry.split_once(':')?;
    let (_, proof) = with_chats().find(|(name, _)| *name == channel)?;
    (!id.trim().is_empty()).then_some((proof, id))
}

fn mistake(owner: &str) -> Option<(&'static str, String)> {
    let Some(((proof, is_proof), id)) = kind(owner) else {
        return Some(("expected a person as `channel:id`", chats()));
    };
    (!is_proof(id)).then(|| ("this does not prove who writes", format!("write {proof}")))
}

fn chats() -> String {
    let names: Vec<&str> = with_chats().map(|(name, _)| name).collect();
    format!("such as \"telegram:123456\"; channels with chats are {}", names.join(", "))
}

impl ApprovalConfig {
    /// Whether a person of a channel may answer questions. `ids` are the person's ids, which the channel has proved.
    pub fn is_owner<'a>(&self, channel: &str, ids: impl IntoIterator<Item = &'a str>) -> bool {
        let mut ids = ids.into_iter();
        ids.any(|id| self.of_channel(channel).any(|owner| owner == id))
    }

    /// Whether anybody may answer questions in a channel.
    pub fn has_owner(&self, channel: &str) -> bool {
        self.of_channel(channel).next().is_some()
    }

    fn of_channel<'a>(&'a self, channel: &'a str) -> impl Iterator<Item = &'a str> {
        let split = self.owners.iter().filter_map(|owner| owner.split_once(':'));
        split.filter(move |(of, _)| *of == channel).map(|(_, id)| id.trim())
    }

    /// The channel and the id of the chat in which questions of other people's sessions are asked too.
    pub fn chat(&self) -> Option<(&str, &str)> {
        self.send_to.as_deref()?.split_once(':').map(|(channel, chat)| (channel, chat.trim()))
    }
}
