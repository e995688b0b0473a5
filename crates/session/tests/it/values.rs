//! Entries for the tests of all stores.

use myclaw_session::{
    CompactionEntry, Entry, EntryId, Keeper, OpenSession, QueuedKind, QueuedMessage, Role,
    SessionError, SessionKey, TailLimit, TranscriptMessage,
};

/// Appends at the end, wherever that is.
pub(crate) trait Push {
    fn push(&mut self, entries: &[Entry]) -> Result<(), SessionError>;
}

impl Push for Box<dyn OpenSession> {
    fn push(&mut self, entries: &[Entry]) -> Result<(), SessionError> {
        let end = self.end();
        self.append(end, entries).map(drop)
    }
}

/// A limit in bytes of the messages' lines.
pub(crate) fn limit_in_bytes(max_cost: u64) -> TailLimit {
    TailLimit {
        max_cost,
        cost: |message, _reduction| serde_json::to_string(message).unwrap().len() as u64,
        ..TailLimit::UNLIMITED
    }
}

pub(crate) fn work() -> SessionKey {
    SessionKey::for_cli("main", "work")
}

pub(crate) fn user(text: &str) -> TranscriptMessage {
    TranscriptMessage::new(Role::User, text, 1_700_000_000_000)
}

pub(crate) fn waiting(content: &str, keeper: Keeper) -> QueuedMessage {
    let kind = QueuedKind::Steer;
    QueuedMessage {
        id: EntryId::generate(),
        kind,
        content: content.to_owned(),
        ts: 1,
        meta: None,
        keeper,
    }
}

/// The row that takes a message in.
pub(crate) fn taking(message: &QueuedMessage) -> TranscriptMessage {
    let meta = serde_json::json!({"queuedIds": [message.id]}).as_object().unwrap().clone();
    TranscriptMessage { meta: Some(meta.into()), id: message.id, ..user(&message.content) }
}

pub(crate) fn assistant(text: &str) -> TranscriptMessage {
    TranscriptMessage::new(Role::Assistant, text, 1_700_000_000_001)
}

pub(crate) fn compaction(first_kept_id: EntryId) -> CompactionEntry {
    CompactionEntry {
        id: EntryId::generate(),
        ts: 1_700_000_000_002,
        summary: "what was said".into(),
        first_kept_id,
        tokens_before: 1000,
        old_count: 12,
        new_count: 3,
    }
}

pub(crate) fn texts(messages: &[TranscriptMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.content.as_str()).collect()
}
