//! Where messages are said, and the bot's own role there.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::api::ApiError;
use super::event::{Message, Place, Role};
use super::{Discord, Me};
use crate::{Chat, ChatKind};

/// Most channels that are remembered.
const MOST_PLACES: usize = 10_000;

impl Discord {
    /// The role that Discord made for the bot in a server. Apps offer it next to the bot's name, so it stands for the bot.
    pub(super) async fn own_role(
        &self,
        message: &Message,
        me: &Me,
    ) -> Result<Option<String>, ApiError> {
        let Some(guild) = message.guild_id.as_ref().filter(|_| !message.mention_roles.is_empty())
        else {
            return Ok(None);
        };
        if let Some(known) = self.memory.lock().roles.get(guild).cloned() {
            return Ok(known);
        }
        let roles: Vec<Role> = self.visible(&format!("/guilds/{guild}/roles")).await?;
        let is_own = |role: &Role| role.tags.bot_id.as_deref() == Some(me.id.as_str());
        let own = roles.into_iter().find(is_own).map(|role| role.id);
        remember(&mut self.memory.lock().roles, guild, own.clone());
        Ok(own)
    }

    /// Where a message was said. A thread has an id like a channel; the rules are those of the channel that it is in.
    pub(super) async fn chat(&self, message: &Message) -> Result<Chat, ApiError> {
        let id = &message.channel_id;
        if message.guild_id.is_none() {
            let kind = ChatKind::Direct;
            return Ok(Chat { id: id.clone(), kind, ..Chat::default() });
        }
        let known = self.memory.lock().places.get(id).cloned();
        let place = match known {
            Some(place) => place,
            None => {
                // One that the bot may not see is a channel without a name.
                let place: Place = self.visible(&format!("/channels/{id}")).await?;
                remember(&mut self.memory.lock().places, id, place.clone());
                place
            }
        };
        let (id, thread) = match place.channel_of_thread() {
            Some(channel) => (channel.to_owned(), Some(id.clone())),
            None => (id.clone(), None),
        };
        Ok(Chat { id, other_id: None, kind: ChatKind::Group, thread, title: place.name })
    }

    /// What Discord has at `path`; the default if the bot may not see it.
    async fn visible<T: DeserializeOwned + Default>(&self, path: &str) -> Result<T, ApiError> {
        match self.api.get(path).await {
            Err(ApiError::Refused(refused)) if refused.status != 429 => Ok(T::default()),
            found => found,
        }
    }
}

/// Adds an entry. A map that is full is emptied first.
fn remember<T>(map: &mut HashMap<String, T>, id: &str, value: T) {
    if map.len() >= MOST_PLACES {
        map.clear();
    }
    map.insert(id.to_owned(), value);
}
