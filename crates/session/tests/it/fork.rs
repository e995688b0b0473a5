//! Forks: their content, their cost, and changes of their parents.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use myclaw_session::{
    About, CompactionEntry, Entry, EntryId, FORMAT_VERSION, LockWait, Role, SessionError,
    SessionKey, TailLimit, TranscriptMessage,
};
use proptest::prelude::*;

use crate::children::{Child, wait_for_report};
use crate::{Home, assistant, compaction, entries, texts, user, work};

fn branch(name: &str) -> SessionKey {
    SessionKey::for_cli("main", name)
}

fn result(text: &str, call: &str) -> TranscriptMessage {
    TranscriptMessage {
        tool_call_id: Some(call.to_owned()),
        ..TranscriptMessage::new(Role::Tool, text, 1)
    }
}

/// A parent whose messages are `texts`, by the user and the model in turn.
fn home_with(messages: &[TranscriptMessage]) -> Home {
    let home = Home::new();
    let batch: Vec<Entry> = messages.iter().cloned().map(Entry::from).collect();
    home.open(&work()).append(&batch).unwrap();
    home
}

fn tail_of(home: &Home, key: &SessionKey) -> myclaw_session::Tail {
    home.store().reader(key).unwrap().unwrap().tail(TailLimit::UNLIMITED).unwrap()
}

#[test]
fn a_fork_begins_with_the_parents_messages_and_then_is_independent() {
    let said = [user("one"), assistant("two"), user("three"), assistant("four")];
    let home = home_with(&said);
    let fork = home.store().fork(&work(), Some(said[1].id), &branch("b")).unwrap();
    assert_eq!(fork.origin.session_key, work().to_string());
    assert_eq!(fork.origin.entry_id, Some(said[1].id));

    home.open(&branch("b")).append(&[user("other").into()]).unwrap();
    home.open(&work()).append(&[user("five").into()]).unwrap();
    assert_eq!(texts(&tail_of(&home, &branch("b")).messages), ["one", "two", "other"]);
    assert_eq!(texts(&tail_of(&home, &work()).messages), ["one", "two", "three", "four", "five"]);
    let reader = home.store().reader(&branch("b")).unwrap().unwrap();
    assert_eq!(reader.message_count().unwrap(), 3);
    assert_eq!(texts(&reader.last_messages(2).unwrap()), ["two", "other"]);
    let header = reader.header().unwrap().unwrap();
    assert_eq!(header.version, FORMAT_VERSION);
    assert_eq!(header.forked_from, Some(fork.origin));
}

#[test]
fn a_fork_without_a_place_takes_all_messages() {
    let home = home_with(&[user("one"), assistant("two")]);
    // A writer is at its next line.
    let path = home.store().transcript_path(&work());
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"role\":\"user\",\"cont");
    fs::write(&path, text).unwrap();
    home.store().fork(&work(), None, &branch("b")).unwrap();
    assert_eq!(texts(&tail_of(&home, &branch("b")).messages), ["one", "two"]);
    // The parent's next opening moves the torn line away; the fork does not notice.
    home.open(&work()).append(&[user("three").into()]).unwrap();
    assert_eq!(texts(&tail_of(&home, &branch("b")).messages), ["one", "two"]);
}

#[test]
fn a_fork_takes_no_space_and_can_be_made_while_the_parent_runs() {
    let home = home_with(&[user(&"x".repeat(1_000_000)), assistant("two")]);
    let mut running = home.open(&work());
    let at = running.tail(TailLimit::UNLIMITED).unwrap().messages[1].id;
    home.store().fork(&work(), Some(at), &branch("b")).unwrap();
    running.append(&[user("three").into()]).unwrap();
    let own = fs::metadata(home.store().transcript_path(&branch("b"))).unwrap();
    assert!(own.len() < 1000, "{} bytes", own.len());
    let shared = fs::metadata(home.sessions().join(format!("{}.history-0", branch("b").slug())));
    let parent = fs::metadata(home.store().transcript_path(&work())).unwrap();
    assert_eq!(shared.unwrap().ino(), parent.ino());
    assert_eq!(tail_of(&home, &branch("b")).messages.len(), 2);
}

#[test]
fn a_fork_outlives_its_parent_and_leaves_nothing_behind_itself() {
    let home = home_with(&[user("one"), assistant("two")]);
    let store = home.store();
    store.fork(&work(), None, &branch("b")).unwrap();
    assert!(store.delete(&work()).unwrap());
    assert_eq!(texts(&tail_of(&home, &branch("b")).messages), ["one", "two"]);
    home.open(&branch("b")).append(&[user("three").into()]).unwrap();
    // A new session under the parent's name has nothing to do with it.
    home.open(&work()).append(&[user("new").into()]).unwrap();
    assert_eq!(texts(&tail_of(&home, &branch("b")).messages), ["one", "two", "three"]);
    assert!(store.delete(&branch("b")).unwrap());
    store.delete(&work()).unwrap();
    assert_eq!(home.names(), ["sessions.json"]);
}

#[test]
fn a_session_with_a_name_like_the_files_of_another_is_not_deleted_with_it() {
    let home = home_with(&[user("one")]);
    let store = home.store();
    let alike =
        ["work.history-0", "work.jsonl.torn-1", "work.jsonl.new", "work.history-"].map(branch);
    for key in &alike {
        home.open(key).append(&[user("mine").into()]).unwrap();
    }
    store.fork(&work(), None, &branch("b")).unwrap();
    store.delete(&work()).unwrap();
    store.fork(&branch("b"), None, &work()).unwrap();
    store.delete(&work()).unwrap();
    for key in &alike {
        assert_eq!(texts(&tail_of(&home, key).messages), ["mine"], "{key}");
    }
}

#[test]
fn a_log_deleted_under_its_writer_is_noticed_although_a_fork_keeps_the_file() {
    let home = home_with(&[user("one")]);
    let mut log = home.open(&work());
    home.store().fork(&work(), None, &branch("b")).unwrap();
    fs::remove_file(log.path()).unwrap();
    let error = log.append(&[user("two").into()]).unwrap_err();
    assert!(matches!(error, SessionError::Removed { .. }), "{error}");
}

#[test]
fn a_call_and_its_results_stay_together() {
    let said = [
        user("look"),
        assistant("two calls"),
        result("first", "a"),
        result("second", "b"),
        assistant("done"),
    ];
    let home = home_with(&said);
    for (number, at) in said[1..4].iter().enumerate() {
        let key = branch(&format!("b{number}"));
        let fork = home.store().fork(&work(), Some(at.id), &key).unwrap();
        assert_eq!(fork.origin.entry_id, Some(said[3].id), "cut at {}", at.content);
        assert_eq!(texts(&tail_of(&home, &key).messages), ["look", "two calls", "first", "second"]);
    }
}

#[test]
fn summaries_after_the_fork_do_not_apply_and_earlier_ones_do() {
    let said = [user("one"), assistant("two"), user("three"), assistant("four")];
    let home = home_with(&said);
    let early = compaction(said[2].id);
    home.open(&work()).append(&[early.clone().into(), user("five").into()]).unwrap();
    let late = CompactionEntry { summary: "late".into(), ..compaction(early.id) };
    home.open(&work()).append(&[late.into(), user("six").into()]).unwrap();

    home.store().fork(&work(), Some(said[1].id), &branch("before")).unwrap();
    let before = tail_of(&home, &branch("before"));
    assert_eq!((before.compaction, texts(&before.messages)), (None, vec!["one", "two"]));
    home.store().fork(&work(), Some(early.id), &branch("between")).unwrap();
    let between = tail_of(&home, &branch("between"));
    assert_eq!(
        (between.compaction, texts(&between.messages)),
        (Some(early), vec!["three", "four"])
    );
}

#[test]
fn forks_of_forks_reach_back_through_all_of_them() {
    let home = home_with(&[user("0")]);
    home.store()
        .change_about(&work(), LockWait::Fail, |about| about.title = Some("the first".into()))
        .unwrap();
    let mut from = work();
    // More generations than a header names files, so that some have to write their history out.
    for generation in 1..40 {
        let to = branch(&format!("b{generation}"));
        let fork = home.store().fork(&from, None, &to).unwrap();
        assert_eq!(fork.skipped_lines, 0);
        let about = home.store().reader(&to).unwrap().unwrap().about().unwrap();
        assert_eq!(about, About::default(), "the title is the parent's own");
        home.open(&to).append(&[user(&generation.to_string()).into()]).unwrap();
        from = to;
    }
    let expected: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    assert_eq!(texts(&tail_of(&home, &from).messages), expected);
    let most =
        home.names().iter().filter_map(|name| name.rsplit_once(".history-")?.1.parse().ok()).max();
    assert_eq!(most, Some(15_usize));
}

#[test]
fn a_fork_from_the_part_that_a_fork_shares_needs_only_that_file() {
    let said = [user("one"), assistant("two")];
    let home = home_with(&said);
    home.store().fork(&work(), None, &branch("b")).unwrap();
    home.open(&branch("b")).append(&[user("three").into()]).unwrap();
    home.store().fork(&branch("b"), Some(said[0].id), &branch("c")).unwrap();
    assert_eq!(texts(&tail_of(&home, &branch("c")).messages), ["one"]);
    let names = home.names();
    let of_c: Vec<_> = names.iter().filter(|name| name.starts_with(&branch("c").slug())).collect();
    assert_eq!(of_c.len(), 2, "{names:?}");
}

#[test]
fn lines_without_ids_can_be_forked_at() {
    let home = Home::new();
    let line = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    home.write_log(&work(), line("one") + &line("two") + &line("three"));
    let at = tail_of(&home, &work()).messages[1].id;
    home.store().fork(&work(), Some(at), &branch("b")).unwrap();
    let tail = tail_of(&home, &branch("b"));
    assert_eq!(texts(&tail.messages), ["one", "two"]);
    assert_eq!(tail.messages[1].id, at);
}

#[test]
fn a_failed_fork_leaves_nothing() {
    let home = home_with(&[user("one")]);
    let store = home.store();
    store.fork(&work(), None, &branch("taken")).unwrap();
    let names = home.names();
    let error = store.fork(&branch("nobody"), None, &branch("b")).unwrap_err();
    assert!(matches!(error, SessionError::NoSuchSession { .. }), "{error}");
    let error = store.fork(&work(), Some(EntryId::generate()), &branch("b")).unwrap_err();
    assert!(matches!(error, SessionError::NoSuchEntry { .. }), "{error}");
    for taken in [branch("taken"), work()] {
        let error = store.fork(&work(), None, &taken).unwrap_err();
        assert!(matches!(error, SessionError::SessionExists { .. }), "{error}");
    }
    let held = store.open(&branch("held"), LockWait::Fail).unwrap();
    let error = store.fork(&work(), None, &branch("held")).unwrap_err();
    assert!(matches!(error, SessionError::Locked { .. }), "{error}");
    drop(held);
    assert_eq!(home.names(), names);
}

#[test]
fn a_fork_with_a_damaged_history_gives_an_error() {
    let home = home_with(&[user("one"), assistant("two")]);
    home.store().fork(&work(), None, &branch("b")).unwrap();
    let history = home.sessions().join(format!("{}.history-0", branch("b").slug()));
    let bytes = fs::read(&history).unwrap();
    fs::remove_file(&history).unwrap();
    let refused = || {
        let error = home.store().reader(&branch("b")).unwrap_err();
        assert!(matches!(error, SessionError::BrokenHistory { .. }), "{error}");
        let error = home.store().open(&branch("b"), LockWait::Fail).unwrap_err();
        assert!(matches!(error, SessionError::BrokenHistory { .. }), "{error}");
    };
    refused();
    fs::write(&history, &bytes[..bytes.len() - 5]).unwrap();
    refused();
    let mut without_end = bytes.clone();
    *without_end.last_mut().unwrap() = b' ';
    fs::write(&history, without_end).unwrap();
    refused();
    // A copy, as a backup makes it, is as good as the link.
    fs::write(&history, bytes).unwrap();
    assert_eq!(tail_of(&home, &branch("b")).messages.len(), 2);
}

#[test]
fn a_history_that_cannot_be_opened_is_not_reported_as_damaged() {
    let home = home_with(&[user("one"), assistant("two")]);
    home.store().fork(&work(), None, &branch("b")).unwrap();
    let history = home.sessions().join(format!("{}.history-0", branch("b").slug()));
    fs::remove_file(&history).unwrap();
    std::os::unix::fs::symlink(&history, &history).unwrap();
    let error = home.store().reader(&branch("b")).unwrap_err();
    assert!(!matches!(error, SessionError::BrokenHistory { .. }), "{error}");
    assert!(error.to_string().contains("open the history of the fork"), "{error}");
}

#[test]
fn a_rebuilt_index_knows_the_parents_of_forks() {
    let home = home_with(&[user("one")]);
    home.store().fork(&work(), None, &branch("b")).unwrap();
    let origin = || {
        let entry = home.store().index().get(&branch("b")).unwrap().unwrap();
        entry.extra.unwrap()["forkedFrom"].clone()
    };
    assert_eq!(origin(), work().to_string());
    let channel = home.store().index().get(&branch("b")).unwrap().unwrap().last_channel;
    assert_eq!(channel.as_deref(), Some("cli"));
    fs::remove_file(home.store().index().path()).unwrap();
    assert_eq!(origin(), work().to_string());
    assert_eq!(home.store().index().list().unwrap().len(), 2);
}

/// Killing a program while it forks leaves no session or a whole one, and the name can be used again.
#[test]
fn a_killed_fork_leaves_no_session_or_a_whole_one() {
    let said = [user("one"), assistant("two")];
    let home = home_with(&said);
    let mut half_made = 0;
    for kill in 0..30_u32 {
        let mut child =
            Child::new("fork_forever").directory(home.sessions()).command().spawn().unwrap();
        let acknowledged = wait_for_report(&mut child);
        std::thread::sleep(Duration::from_micros(u64::from(kill * 157 % 5000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let names = home.names();
        half_made += usize::from(names.iter().any(|name| name.ends_with(".jsonl.new")));
        let forks: Vec<SessionKey> = (0..)
            .map(|number| branch(&format!("fork-{number}")))
            .take_while(|key| home.store().exists(key))
            .collect();
        assert!(!forks.is_empty(), "{acknowledged}");
        for key in &forks {
            assert_eq!(texts(&tail_of(&home, key).messages), ["one", "two"]);
        }
        // Leftovers under the next name do not prevent a fork of that name.
        let next = branch(&format!("fork-{}", forks.len()));
        home.store().fork(&work(), None, &next).unwrap();
        assert_eq!(entries(&home, &next).len(), 2);
        assert!(!home.names().iter().any(|name| name.ends_with(".jsonl.new")));
    }
    println!("{half_made} of 30 kills met a fork half made");
}

/// What a random log may do next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Ask,
    Answer,
    /// Calls with this many results.
    Call(usize),
    /// A summary that keeps the messages from this share of the log on.
    Summarise(prop::sample::Index),
    /// The session is forked here, and the fork continues.
    Branch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Ask),
        3 => Just(Step::Answer),
        2 => (0..4_usize).prop_map(Step::Call),
        1 => any::<prop::sample::Index>().prop_map(Step::Summarise),
        1 => Just(Step::Branch),
    ];
    prop::collection::vec(step, 1..40)
}

/// Carries the steps out. Returns the last branch and its entries, from the first on.
fn grow(home: &Home, steps: &[Step]) -> (SessionKey, Vec<Entry>) {
    let mut key = work();
    let mut all: Vec<Entry> = vec![user("begin").into()];
    home.open(&key).append(&all).unwrap();
    for (number, step) in steps.iter().enumerate() {
        let new: Vec<Entry> = match step {
            Step::Ask => vec![user(&format!("ask {number}")).into()],
            Step::Answer => vec![assistant(&format!("answer {number}")).into()],
            Step::Call(results) => std::iter::once(assistant(&format!("call {number}")).into())
                .chain((0..*results).map(|_| result(&format!("result {number}"), "c").into()))
                .collect(),
            Step::Summarise(share) => {
                let kept = all[share.index(all.len())].id().unwrap();
                vec![compaction(kept).into()]
            }
            Step::Branch => {
                let next = branch(&format!("g{number}"));
                home.store().fork(&key, None, &next).unwrap();
                key = next;
                continue;
            }
        };
        home.open(&key).append(&new).unwrap();
        all.extend(new);
    }
    (key, all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// At whatever entry a log is forked: the fork holds the parent's entries up to there, and a next turn of it
    /// starts from what a turn of the parent would have started from at that time.
    #[test]
    fn a_fork_equals_the_prefix_of_its_parent(steps in steps(), at in any::<prop::sample::Index>()) {
        let home = Home::new();
        let (parent, all) = grow(&home, &steps);
        let at = at.index(all.len());
        let is_result = |entry: &Entry| matches!(entry, Entry::Message(message) if message.role == Role::Tool);
        let behind = all[at + 1..].iter().take_while(|entry| is_result(entry)).count();
        let prefix = &all[..=at + behind];
        let id = all[at].id().unwrap();
        home.store().fork(&parent, Some(id), &branch("fork")).unwrap();
        prop_assert_eq!(entries(&home, &branch("fork")), prefix);

        let alone = branch("alone");
        home.open(&alone).append(prefix).unwrap();
        prop_assert_eq!(tail_of(&home, &branch("fork")), tail_of(&home, &alone));

        // Whatever the parent and the branches before it do later changes nothing.
        home.open(&parent).append(&[user("later").into()]).unwrap();
        home.store().delete(&work()).unwrap();
        prop_assert_eq!(entries(&home, &branch("fork")), prefix);
    }
}
