//! Messages that are put into a session exactly once, by a program that does not know whether it did so before it was killed.

use std::ops::ControlFlow;

use myclaw_engine::AnswerSearch;
use myclaw_files::now_ms;
use myclaw_session::{
    EntryId, Keeper, MessageSearch, QueuedKind, QueuedMessage, SessionError, SessionKey, Sessions,
    TranscriptMessage,
};

/// By how much a clock may have been set back since the message was due.
const CLOCK_MARGIN_MS: u64 = 24 * 3_600 * 1_000;

/// A message that is read when the turn would end.
pub(crate) fn message(id: EntryId, content: String) -> QueuedMessage {
    QueuedMessage {
        id,
        kind: QueuedKind::FollowUp,
        content,
        ts: now_ms(),
        meta: None,
        keeper: Keeper::Inbox,
    }
}

/// Puts a message that is no older than `since` into an inbox, unless it is there, or in the log. Blocks.
pub(crate) fn put_once(
    sessions: &dyn Sessions,
    session: &SessionKey,
    message: &QueuedMessage,
    since: u64,
) -> Result<(), SessionError> {
    let mut search = SearchOfOne::new(message.id, since);
    sessions.whereabouts(session, &mut search)?;
    match search.is_there() {
        true => Ok(()),
        false => sessions.inbox(session).push(message),
    }
}

/// The search for a message that is no older than a given time.
pub(crate) struct SearchOfOne {
    id: EntryId,
    since: u64,
    waits: bool,
    pub(crate) answers: AnswerSearch,
}

impl SearchOfOne {
    pub(crate) fn new(id: EntryId, since: u64) -> Self {
        let since = since.saturating_sub(CLOCK_MARGIN_MS);
        Self { id, since, waits: false, answers: AnswerSearch::new([id]) }
    }

    fn is_there(&self) -> bool {
        self.waits || self.answers.has_found(self.id)
    }
}

impl MessageSearch for SearchOfOne {
    fn ids(&self) -> &[EntryId] {
        std::slice::from_ref(&self.id)
    }

    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()> {
        self.waits = pending
            .iter()
            .any(|message| message.id == self.id || message.id == self.id.of_remains());
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        let ts = row.ts;
        self.answers.row(row);
        match self.answers.is_complete() || (ts != 0 && ts < self.since) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn has_found(&self, id: EntryId) -> bool {
        self.answers.has_found(id)
    }
}
