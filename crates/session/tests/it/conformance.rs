//! The conformance suite of session stores: each store passes it, through the traits that a run uses.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_session::{
    Entry, EntryId, Keeper, LockWait, MessageSearch, Meta, MetaPatch, QueuedMessage, Reduction,
    ReductionEntry, Role, SessionError, SessionKey, SessionStore, Sessions, TailLimit,
    TranscriptMessage,
};
use serde_json::{Map, Value, json};

use crate::subjects::{Subject, of_each, of_each_in_files, of_each_that_keeps_each_append};
use crate::values::{
    Push as _, assistant, compaction, limit_in_bytes, taking, texts, user, waiting, work,
};

/// A message with everything that a row can hold.
fn tool_result() -> TranscriptMessage {
    let meta = json!({"contentBlocks": [{"type": "text", "text": "é\n\u{1f600}"}], "n": 1.5});
    let Value::Object(meta) = meta else { unreachable!() };
    TranscriptMessage {
        tool_call_id: Some("call-1".to_owned()),
        meta: Some(Meta::from(meta)),
        ..TranscriptMessage::new(Role::Tool, "done", 1_700_000_000_002)
    }
}

#[test]
fn appended_entries_are_read_after_reopening() {
    of_each(|subject| {
        let written = vec![user("q"), assistant("a"), tool_result()];
        let mut log = subject.open();
        assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages, []);
        log.push(&[]).unwrap();
        assert_eq!(
            subject.store.session_id(&work()).unwrap(),
            None,
            "the session has no messages yet"
        );
        for message in &written {
            log.push(&[message.clone().into()]).unwrap();
        }
        assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages, written);
        drop(log);
        for store in [Arc::clone(&subject.store), subject.restarted()] {
            let mut log = store.open(&work(), LockWait::Fail).unwrap();
            let tail = log.tail(TailLimit::UNLIMITED).unwrap();
            assert_eq!((tail.messages, tail.skipped_lines), (written.clone(), 0));
        }
        let mut log = subject.restarted().open(&work(), LockWait::Fail).unwrap();
        log.push(&[user("more").into()]).unwrap();
        drop(log);
        assert_eq!(Subject::texts(&*subject.restarted()), ["q", "a", "done", "more"]);
    });
}

#[test]
fn a_session_without_messages_leaves_no_file() {
    of_each_in_files(|subject| {
        subject.open().sync_handle().sync().unwrap();
        assert_eq!(std::fs::read_dir(subject.directory()).unwrap().count(), 0);
        assert_eq!(subject.store.session_id(&work()).unwrap(), None);
    });
}

#[test]
fn the_tail_is_limited_and_cut_before_a_user_message() {
    of_each(|subject| {
        let mut log = subject.open();
        for turn in 0..5 {
            let turn = [user(&format!("q{turn}")).into(), assistant(&format!("a{turn}")).into()];
            log.push(&turn).unwrap();
        }
        for _ in 0..2 {
            let tail = log.tail(limit_in_bytes(1)).unwrap();
            assert_eq!(texts(&tail.messages), ["q4", "a4"]);
            assert!(tail.older_messages_exist);
            drop(log);
            log = subject.restarted().open(&work(), LockWait::Fail).unwrap();
        }
    });
}

#[test]
fn a_summary_and_a_reduction_change_the_tail() {
    of_each(|subject| {
        let (kept, newer) = (user("kept"), user("newer"));
        let reduction = Reduction { id: kept.id, head: 3, tail: 0 };
        let reduced = ReductionEntry {
            id: EntryId::generate(),
            ts: 1_700_000_000_003,
            reason: "pruning".to_owned(),
            messages: vec![reduction],
        };
        let summary = compaction(kept.id);
        let written: [Entry; 5] = [
            user("old").into(),
            kept.clone().into(),
            summary.clone().into(),
            reduced.into(),
            newer.clone().into(),
        ];
        subject.open().push(&written).unwrap();
        let mut log = subject.restarted().open(&work(), LockWait::Fail).unwrap();
        let tail = log.tail(TailLimit::UNLIMITED).unwrap();
        assert_eq!(tail.compaction, Some(summary));
        assert_eq!(tail.messages, [kept.clone(), newer]);
        assert_eq!(tail.reductions.get(&kept.id), Some(&reduction));
        assert_eq!(tail.behind_last_change, Some(1));
    });
}

#[test]
fn the_oldest_messages_are_read_without_the_lock() {
    of_each(|subject| {
        let read = |store: &dyn Sessions, most: usize| {
            let mut found = Vec::new();
            let mut visit = |message: TranscriptMessage| {
                found.push(message.content);
                if found.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            store.visit_oldest(&work(), &mut visit).unwrap();
            found
        };
        assert!(read(&*subject.store, 9).is_empty(), "there is no session yet");
        let mut log = subject.open();
        let rows =
            [user("q").into(), compaction(EntryId::generate()).into(), assistant("a").into()];
        log.push(&rows).unwrap();
        assert_eq!(read(&*subject.store, 9), ["q", "a"], "while it is open");
        drop(log);
        assert_eq!(read(&*subject.restarted(), 1), ["q"]);
    });
}

#[test]
fn a_crash_keeps_entries_that_were_made_durable() {
    of_each_in_files(|subject| {
        let mut log = subject.open();
        log.push(&[user("durable").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        log.push(&[assistant("perhaps").into()]).unwrap();
        // A killed process leaves the content that the disk holds at this moment.
        let after = tempfile::tempdir().unwrap();
        let path = PathBuf::from(subject.store.describe(&work()));
        std::fs::copy(&path, after.path().join(path.file_name().unwrap())).unwrap();
        let store = subject.reopened(after.path());
        let found = Subject::texts(&*store);
        assert!(["durable", "perhaps"].starts_with(&texts_of(&found)), "{found:?}");
        assert!(!found.is_empty());
        let mut log = store.open(&work(), LockWait::Fail).unwrap();
        log.push(&[user("on").into()]).unwrap();
        drop(log);
        assert_eq!(Subject::texts(&*store).last().unwrap(), "on");
    });
}

fn texts_of(found: &[String]) -> Vec<&str> {
    found.iter().map(String::as_str).collect()
}

#[test]
fn one_writer_has_a_session_at_a_time() {
    of_each(|subject| {
        assert!(!subject.store.is_in_use(&work()).unwrap());
        let mut log = subject.open();
        log.push(&[user("q").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        for store in [Arc::clone(&subject.store), subject.restarted()] {
            assert!(store.is_in_use(&work()).unwrap());
            let error = store.open(&work(), LockWait::Fail).unwrap_err();
            assert!(matches!(error, SessionError::Locked { .. }), "{error}");
        }
        let other = SessionKey::for_cli("main", "other");
        subject.store.open(&other, LockWait::Fail).unwrap();
        drop(log);
        assert!(!subject.store.is_in_use(&work()).unwrap());
        subject.restarted().open(&work(), LockWait::Fail).unwrap();
    });
}

#[test]
fn a_handle_outlives_its_session() {
    of_each(|subject| {
        let mut log = subject.open();
        let handle = log.sync_handle();
        log.push(&[user("q").into()]).unwrap();
        drop(log);
        handle.sync().unwrap();
        assert_eq!(Subject::texts(&*subject.restarted()), ["q"]);
    });
}

#[test]
fn messages_wait_in_the_inbox() {
    of_each(|subject| {
        let mut log = subject.open();
        log.push(&[user("q").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        let waiting = waiting("wait", Keeper::Inbox);
        subject.restarted().inbox(&work()).push(&waiting).unwrap();
        let inbox = subject.store.inbox(&work());
        assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&waiting));
        assert!(inbox.remove(waiting.id).unwrap());
        assert!(!inbox.may_hold_messages());
    });
}

#[test]
fn the_index_entry_is_recorded_open_or_not_and_keeps_the_id() {
    of_each(|subject| {
        let extra = Map::from_iter([("lastRunTokens".to_owned(), json!(7))]);
        let patch = MetaPatch { add_tokens: 7, extra: Some(extra), ..MetaPatch::default() };
        let mut log = subject.open();
        log.push(&[user("q").into()]).unwrap();
        let update = subject.store.record(&work(), patch.clone());
        update.outcome.unwrap();
        assert_eq!(update.repairs, []);
        let id = subject.store.session_id(&work()).unwrap().unwrap();
        drop(log);
        let restarted = subject.restarted();
        restarted.record(&work(), patch).outcome.unwrap();
        assert_eq!(restarted.session_id(&work()).unwrap(), Some(id));
        assert_eq!(Subject::texts(&*restarted), ["q"], "the entry is beside the messages");
        if subject.directory().is_dir() {
            assert_eq!(total_tokens(subject), 14);
        }
    });
}

/// The tokens in the index entry, wherever the store keeps that.
fn total_tokens(subject: &Subject) -> u64 {
    let path = PathBuf::from(subject.store.describe(&work()));
    if path.extension().unwrap() == "jsonl" {
        let index = SessionStore::new(subject.directory()).index();
        return index.get(&work()).unwrap().unwrap().total_tokens.unwrap();
    }
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    file["index"]["totalTokens"].as_u64().unwrap()
}

#[test]
fn files_beside_a_session_have_names_of_their_own() {
    of_each(|subject| {
        let other = SessionKey::for_cli("main", "other");
        let paths = |key: &SessionKey| {
            let store = &subject.store;
            [PathBuf::from(store.describe(key)), subject.side_files.artifact_directory(key)]
        };
        assert_eq!(paths(&work()), paths(&work()));
        let all: HashSet<_> = [paths(&work()), paths(&other)].into_iter().flatten().collect();
        assert_eq!(all.len(), 4);
    });
}

#[test]
fn a_held_inbox_is_read_and_changed_by_its_holder_alone() {
    of_each(|subject| {
        let mut log = subject.open();
        log.push(&[user("q").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        let inbox = subject.store.inbox(&work());
        let [first, second] = ["one", "two"].map(|text| waiting(text, Keeper::Inbox));
        assert!(inbox.push_once(&first).unwrap());
        assert!(!inbox.push_once(&first).unwrap(), "it waits already");
        let mut held = inbox.hold().unwrap().unwrap();
        let others = subject.restarted().inbox(&work());
        assert!(matches!(others.try_hold(), Err(SessionError::Locked { .. })));
        assert!(matches!(others.try_pending(), Err(SessionError::Locked { .. })));
        held.change(std::slice::from_ref(&second), &[first.id]).unwrap();
        assert_eq!(held.pending().unwrap(), std::slice::from_ref(&second));
        drop(held);
        assert_eq!(others.pending().unwrap(), std::slice::from_ref(&second));
        assert!(!inbox.remove(first.id).unwrap());
        inbox
            .hold()
            .unwrap()
            .unwrap()
            .settle_taken(std::slice::from_ref(&second), &[second.id])
            .unwrap();
        assert_eq!(others.bytes(), 0);
    });
}

#[test]
fn an_inbox_takes_no_more_than_its_limit_and_can_always_be_emptied() {
    of_each(|subject| {
        let inbox = subject.store.inbox(&work());
        let large = "x".repeat(9 << 20);
        let first = waiting(&large, Keeper::Sender);
        inbox.push(&first).unwrap();
        let refused = inbox.push(&waiting(&large, Keeper::Sender)).unwrap_err();
        assert!(matches!(refused, SessionError::InboxFull { .. }), "{refused}");
        assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&first), "nothing has changed");
        assert!(inbox.remove(first.id).unwrap());
        inbox.push(&waiting(&large, Keeper::Sender)).unwrap();
    });
}

#[test]
fn a_watch_hears_of_messages_until_it_ends_and_finds_the_inbox_free() {
    of_each(|subject| {
        let inbox = subject.store.inbox(&work());
        let (sender, heard) = std::sync::mpsc::channel();
        let read = Arc::clone(&inbox);
        let notify = move || sender.send(read.try_pending().unwrap().len()).unwrap();
        let watch = inbox.watch(Arc::new(notify));
        let sent = waiting("one", Keeper::Inbox);
        inbox.push(&sent).unwrap();
        assert_eq!(heard.recv_timeout(Duration::from_secs(30)).unwrap(), 1);
        assert!(inbox.remove(sent.id).unwrap());
        drop(watch);
        inbox.push(&sent).unwrap();
        assert!(heard.try_recv().is_err(), "settled messages and ended watches notify nobody");
    });
}

/// Finds rows by their ids, and remembers what it was shown.
struct Wanted(EntryId, Vec<EntryId>, Vec<String>);

impl MessageSearch for Wanted {
    fn ids(&self) -> &[EntryId] {
        std::slice::from_ref(&self.0)
    }

    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()> {
        self.1 = pending.iter().map(|message| message.id).collect();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        let is_wanted = row.id == self.0;
        self.2.push(row.content);
        if is_wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn has_found(&self, id: EntryId) -> bool {
        id == self.0 && self.2.last().is_some_and(|last| last == "wanted")
    }
}

#[test]
fn whereabouts_reads_inbox_and_log_and_settles_what_both_have() {
    of_each(|subject| {
        let [taken, other] = ["wanted", "other"].map(|text| waiting(text, Keeper::Inbox));
        let mut log = subject.open();
        log.push(&[user("old").into(), taking(&taken).into(), assistant("new").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        // A run was killed after it had written the row.
        let inbox = subject.store.inbox(&work());
        inbox.push(&taken).unwrap();
        inbox.push(&other).unwrap();
        let mut search = Wanted(taken.id, Vec::new(), Vec::new());
        subject.restarted().whereabouts(&work(), &mut search).unwrap();
        // A store in which the log takes a message in one step refuses to keep it afterwards.
        assert!(search.1.ends_with(&[other.id]) && search.1.len() <= 2, "{:?}", search.1);
        assert_eq!(search.2, ["new", "wanted"], "the newest first, and no more than needed");
        assert_eq!(inbox.pending().unwrap(), std::slice::from_ref(&other));
        let mut search = Wanted(other.id, Vec::new(), Vec::new());
        subject.restarted().whereabouts(&work(), &mut search).unwrap();
        // A store that knows that the log does not have it shows none of it.
        assert_eq!(search.1, [other.id]);
        assert!([0, 3].contains(&search.2.len()), "{:?}", search.2);
        assert_eq!(inbox.pending().unwrap(), [other]);
        subject.restarted().sync(&work()).unwrap();
    });
}

/// Searches for one message, and does something else at each row.
struct Meanwhile<F>(EntryId, bool, F);

impl<F: FnMut()> MessageSearch for Meanwhile<F> {
    fn ids(&self) -> &[EntryId] {
        std::slice::from_ref(&self.0)
    }

    fn waiting(&mut self, pending: &[QueuedMessage]) -> ControlFlow<()> {
        self.1 |= pending.iter().any(|message| message.id == self.0);
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        self.1 |= row.id == self.0;
        (self.2)();
        ControlFlow::Continue(())
    }

    fn has_found(&self, _: EntryId) -> bool {
        false
    }
}

#[test]
fn nobody_waits_for_a_search_for_a_message() {
    of_each(|subject| {
        let taken = waiting("q", Keeper::Inbox);
        let mut log = subject.open();
        log.push(&[taking(&taken).into(), assistant("a").into()]).unwrap();
        log.sync_handle().sync().unwrap();
        let inbox = subject.store.inbox(&work());
        inbox.push(&waiting("first", Keeper::Inbox)).unwrap();
        let others = subject.restarted().inbox(&work());
        let push = || others.push(&waiting("meanwhile", Keeper::Inbox)).unwrap();
        let mut search = Meanwhile(taken.id, false, || {
            assert!(others.try_hold().is_ok(), "the search holds the inbox");
            push();
        });
        subject.restarted().whereabouts(&work(), &mut search).unwrap();
        assert!(search.1);
        assert_eq!(inbox.pending().unwrap().len(), 3);
    });
}

#[test]
fn a_message_that_is_taken_during_a_search_is_found() {
    of_each_that_keeps_each_append(|subject| {
        let mut log = subject.open();
        log.push(&[user("q").into()]).unwrap();
        let inbox = subject.store.inbox(&work());
        for number in 0..200 {
            let message = waiting(&number.to_string(), Keeper::Inbox);
            inbox.push(&message).unwrap();
            let row = taking(&message);
            std::thread::scope(|scope| {
                let taking = scope.spawn(|| {
                    let mut held = inbox.hold().unwrap().unwrap();
                    log.push(&[row.into()]).unwrap();
                    held.settle_taken(std::slice::from_ref(&message), &[message.id]).unwrap();
                });
                while !taking.is_finished() {
                    let mut search = Meanwhile(message.id, false, || {});
                    subject.restarted().whereabouts(&work(), &mut search).unwrap();
                    assert!(search.1, "message {number} is nowhere");
                }
            });
        }
        assert_eq!(inbox.pending().unwrap(), []);
    });
}

#[test]
fn a_search_finds_what_was_taken_long_ago_and_what_a_full_queue_dropped() {
    of_each(|subject| {
        let [old, dropped, never] = ["1", "2", "3"].map(|text| waiting(text, Keeper::Inbox));
        let remains = QueuedMessage::remains_of(&dropped, "2".to_owned());
        let mut log = subject.open();
        log.push(&[taking(&old).into(), taking(&remains).into()]).unwrap();
        log.push(&(0..50).map(|_| assistant("a").into()).collect::<Vec<Entry>>()).unwrap();
        log.sync_handle().sync().unwrap();
        for (sought, is_found) in [(old.id, true), (remains.id, true), (never.id, false)] {
            let mut search = Meanwhile(sought, false, || {});
            subject.restarted().whereabouts(&work(), &mut search).unwrap();
            assert_eq!(search.1, is_found);
        }
        // The rows are shown to a search for what was dropped, too, which knows what its remains are called.
        let mut rows = 0;
        let mut search = Meanwhile(dropped.id, false, || rows += 1);
        subject.restarted().whereabouts(&work(), &mut search).unwrap();
        assert_eq!(rows, 52);
    });
}

#[test]
fn an_owner_that_lost_its_session_cannot_append() {
    of_each(|subject| {
        let mut first = subject.open();
        first.push(&[user("first").into()]).unwrap();
        first.sync_handle().sync().unwrap();
        subject.lose();
        // Nobody else has it yet.
        first.push(&[user("still").into()]).unwrap();
        first.sync_handle().sync().unwrap();
        let mut next = subject.restarted().open(&work(), LockWait::Fail).unwrap();
        assert!(next.end().epoch > first.end().epoch, "a later opening has a higher number");
        let end = first.end();
        for after in [end, end.behind(1), next.end()] {
            let error = first.append(after, &[user("late").into()]).unwrap_err();
            assert!(matches!(error, SessionError::Fenced { .. }), "{error}");
        }
        assert_eq!(first.end(), end, "a refused append moves nothing");
        next.push(&[user("next").into()]).unwrap();
        next.sync_handle().sync().unwrap();
        assert!(first.push(&[user("late").into()]).is_err());
        drop(first.sync_handle().sync());
        drop(first);
        // That the first owner goes takes nothing from the next one.
        next.push(&[user("last").into()]).unwrap();
        assert!(subject.store.is_in_use(&work()).unwrap());
        let again = subject.restarted().open(&work(), LockWait::Fail).unwrap_err();
        assert!(matches!(again, SessionError::Locked { .. }), "{again}");
        drop(next);
        assert_eq!(Subject::texts(&*subject.restarted()), ["first", "still", "next", "last"]);
    });
}

#[test]
fn entries_go_to_the_end_that_the_owner_knows_or_nowhere() {
    of_each(|subject| {
        let mut log = subject.open();
        let begin = log.end();
        let end = log.append(begin, &[user("q").into(), assistant("a").into()]).unwrap();
        assert_eq!((end, end.entries), (log.end(), begin.entries + 2));
        // A repeated append, of which the owner does not know that it succeeded, is not there twice.
        let repeated = log.append(begin, &[user("q").into()]).unwrap_err();
        assert!(matches!(repeated, SessionError::Fenced { .. }), "{repeated}");
        assert!(log.append(end.behind(1), &[user("too far").into()]).is_err());
        assert_eq!(log.append(end, &[]).unwrap(), end);
        let end = log.append(end, &[user("more").into()]).unwrap();
        assert_eq!(end, log.end());
        drop(log);
        assert_eq!(Subject::texts(&*subject.restarted()), ["q", "a", "more"]);
        let again = subject.open();
        assert!(again.end().epoch > end.epoch);
    });
}
