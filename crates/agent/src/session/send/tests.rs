//! How far a search reads.

use myclaw_session::{Role, TAKEN_IDS};
use serde_json::{Map, Value, json};

use super::*;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

fn row(role: Role, ts: u64, taken: &[&str]) -> TranscriptMessage {
    let meta: Map<String, Value> = [(TAKEN_IDS.to_owned(), json!(taken))].into_iter().collect();
    TranscriptMessage { meta: Some(meta.into()), ..TranscriptMessage::new(role, "text", ts) }
}

/// Whether the search asks for more behind this row, which comes first.
fn continues(since: u64, row: TranscriptMessage) -> bool {
    let mut search = Search::new(vec![EntryId::from_text("sought")], since);
    search.row(row).is_continue()
}

#[test]
fn a_search_ends_where_the_log_is_older_than_what_is_sought() {
    let since = 10 * DAY_MS;
    assert!(continues(since, row(Role::Assistant, since, &[])));
    assert!(continues(since, row(Role::Assistant, 9 * DAY_MS, &[])), "a clock may be behind");
    assert!(!continues(since, row(Role::Assistant, 9 * DAY_MS - 1, &[])));
    assert!(!continues(since, row(Role::Tool, 1, &[])));
    assert!(continues(since, row(Role::User, 1, &["other"])), "a message may have waited for days");
    assert!(continues(since, row(Role::Assistant, 0, &[])), "the time is unknown");
    assert!(continues(0, row(Role::Assistant, 1, &[])));
}

#[test]
fn an_old_message_that_was_taken_in_late_is_found() {
    let id = EntryId::from_text("sought");
    let mut search = Search::new(vec![id], 10 * DAY_MS);
    assert!(search.row(row(Role::User, 1, &["other"])).is_continue());
    let _ = search.row(row(Role::User, 1, &["sought"]));
    assert!(search.has_found(id));
}
