//! Messages that are put into a session exactly once, by a program that does not know whether it did so before it was killed.

use std::ops::ControlFlow;

use myclaw_engine::AnswerSearch;
use myclaw_files::now_ms;
use myclaw_session::{
    EntryId, Keeper, MessageSearch, QueuedKind, QueuedMessage, Role, SessionError, SessionKey,
    Sessions, TranscriptMessage,
};

/// By how much a clock may have been set back since the message was due, or be behind that of the machine that took it in.
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

/// The rows of a log, read from its end, that can name a message which is no older than a given time.
pub(crate) struct RowsSince(u64);

impl RowsSince {
    pub(crate) fn new(since: u64) -> Self {
        Self(since.saturating_sub(CLOCK_MARGIN_MS))
    }

    /// Whether neither this row does nor one before it. A message has the time at which it was sent, and may have waited for
    /// days since then; rows of other programs may have none.
    pub(crate) fn end_before(&self, row: &TranscriptMessage) -> bool {
        row.role != Role::User && row.ts != 0 && row.ts < self.0
    }
}

/// The search for a message that is no older than a given time.
pub(crate) struct SearchOfOne {
    id: EntryId,
    rows: RowsSince,
    waits: bool,
    pub(crate) answers: AnswerSearch,
}

impl SearchOfOne {
    pub(crate) fn new(id: EntryId, since: u64) -> Self {
        let rows = RowsSince::new(since);
        Self { id, rows, waits: false, answers: AnswerSearch::new([id]) }
    }

    fn is_there(&self) -> bool {
        self.waits || self.answers.has_found(self.id)
    }
}

impl MessageSearch for SearchOfOne {
    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()> {
        self.waits = pending
            .iter()
            .any(|message| message.id == self.id || message.id == self.id.of_remains());
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        let is_over = self.rows.end_before(&row);
        self.answers.row(row);
        match self.answers.is_complete() || is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn has_found(&self, id: EntryId) -> bool {
        self.answers.has_found(id)
    }
}
