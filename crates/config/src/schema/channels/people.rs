//! People who write through several channels.

use serde::{Deserialize, Serialize};

use super::ChannelsConfig;
use crate::schema::values;

/// A person on a channel, as `channel:id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PersonId(#[serde(deserialize_with = "values::non_blank")] pub String);

impl PersonId {
    /// The channel and the id, without blanks around them.
    pub fn parts(&self) -> Option<(&str, &str)> {
        let (channel, id) = self.0.split_once(':')?;
        Some((channel.trim(), id.trim()))
            .filter(|(channel, id)| !channel.is_empty() && !id.is_empty())
    }

    /// Whether it is the person with this id on this channel. Ids are compared without regard to case.
    pub fn is(&self, channel: &str, id: &str) -> bool {
        self.parts().is_some_and(|(own_channel, own_id)| {
            own_channel == channel && own_id.to_lowercase() == id.to_lowercase()
        })
    }
}

impl ChannelsConfig {
    /// The name of the person with this id on this channel, if `identityLinks` has one.
    pub fn linked_person(&self, channel: &str, id: &str) -> Option<&str> {
        let is_it = |ids: &Vec<PersonId>| ids.iter().any(|one| one.is(channel, id));
        self.identity_links.iter().find(|(_, ids)| is_it(ids)).map(|(name, _)| name.as_str())
    }
}
