//! Entries that are made or changed.

use serde_json::Map;

use super::journal::{Change, MadeFrom};
use super::{MetaPatch, SessionEntry};
use crate::store::session_file;
use crate::{ForkOrigin, SessionKey};

impl MetaPatch {
    /// The entry of `key` after this change. `session_id` is used only if there was no entry before.
    pub(crate) fn apply_to(
        self,
        before: Option<SessionEntry>,
        key: &SessionKey,
        session_id: String,
    ) -> Option<SessionEntry> {
        let made = MadeFrom { session_id, directory: None, extra: None };
        Change::new(key, made, self).apply(before)
    }

    /// The metadata of a new fork.
    pub(crate) fn forked_from(key: &SessionKey, origin: &ForkOrigin) -> Self {
        let parts = key.parts();
        Self {
            last_channel: Some(parts.channel),
            chat_type: Some(parts.peer_kind),
            extra: Some(origin.to_extra()),
            ..Self::default()
        }
    }
}

impl SessionEntry {
    /// The entry of a session with nothing known but its key.
    pub(super) fn new(key: &SessionKey, session_id: String, updated_at: u64) -> Self {
        Self {
            session_id,
            updated_at,
            session_file: session_file(key),
            in_turn: false,
            last_channel: None,
            last_to: None,
            chat_type: None,
            model: None,
            total_tokens: None,
            micro_dollars: None,
            messages: None,
            directory: None,
            extra: None,
            unknown: Map::new(),
        }
    }
}
