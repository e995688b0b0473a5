//! Reading the end of a log.

use std::fs;

use myclaw_session::{CompactionEntry, Entry, EntryId, Role, TailLimit, TranscriptMessage};
use proptest::prelude::*;
use serde_json::json;

use crate::children::Child;
use crate::{Home, assistant, compaction, limit_in_bytes, user, work};

fn tail_of(written: &[Entry], max_bytes: u64) -> (Option<CompactionEntry>, Vec<String>, bool) {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(written).unwrap();
    let tail = log.tail(limit_in_bytes(max_bytes)).unwrap();
    assert_eq!((tail.skipped_lines, tail.repaired_torn_tail), (0, false));
    let messages = tail.messages.iter().map(|message| message.content.clone()).collect();
    (tail.compaction, messages, tail.older_messages_exist)
}

/// Five turns of a question and an answer.
fn turns() -> Vec<TranscriptMessage> {
    (0..5).flat_map(|turn| [user(&format!("q{turn}")), assistant(&format!("a{turn}"))]).collect()
}

fn as_entries(messages: &[TranscriptMessage]) -> Vec<Entry> {
    messages.iter().cloned().map(Entry::from).collect()
}

#[test]
fn without_a_compaction_it_is_the_whole_log() {
    let (none, messages, older) = tail_of(&as_entries(&turns()), u64::MAX);
    assert_eq!((none, older), (None, false));
    assert_eq!(messages, ["q0", "a0", "q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]);
}

#[test]
fn it_begins_with_the_first_kept_message_of_the_last_compaction() {
    let messages = turns();
    let mut written = as_entries(&messages);
    let latest = compaction(messages[6].id);
    written.insert(4, compaction(messages[0].id).into());
    written.push(latest.clone().into());
    written.push(user("q5").into());
    let (found, texts, older) = tail_of(&written, u64::MAX);
    assert_eq!((found, older), (Some(latest.clone()), false));
    assert_eq!(texts, ["q3", "a3", "q4", "a4", "q5"]);
    let home = Home::new();
    home.open(&work()).append(&written[..4]).unwrap();
    let reader = || home.store().reader(&work()).unwrap().unwrap();
    assert_eq!(reader().last_compaction().unwrap(), None);
    home.open(&work()).append(&written[4..]).unwrap();
    assert_eq!(reader().last_compaction().unwrap(), Some(latest));
}

#[test]
fn a_compaction_may_keep_nothing() {
    let mut itself = compaction(EntryId::generate());
    itself.first_kept_id = itself.id;
    let next = user("next");
    for latest in [itself, compaction(next.id)] {
        let mut written = as_entries(&turns());
        written.extend([latest.clone().into(), next.clone().into()]);
        assert_eq!(tail_of(&written, u64::MAX), (Some(latest), vec!["next".to_owned()], false));
    }
}

#[test]
fn if_the_first_kept_message_is_missing_no_message_is_left_out() {
    let mut written = as_entries(&turns());
    written.push(compaction(EntryId::from_text("gone")).into());
    let (found, messages, _) = tail_of(&written, u64::MAX);
    assert!(found.is_some());
    assert_eq!(messages.len(), 10);
}

#[test]
fn a_limit_cuts_before_a_user_message() {
    let written = as_entries(&turns());
    let length = |index: usize| serde_json::to_string(&written[index]).unwrap().len() as u64;
    let last_turn = length(8) + length(9);
    // Exactly the last turn fits; one byte less does not, but the last turn is whole all the same.
    for max_bytes in [last_turn, last_turn - 1, 1, 0, last_turn + length(7)] {
        assert_eq!(
            tail_of(&written, max_bytes),
            (None, vec!["q4".into(), "a4".into()], true),
            "{max_bytes}"
        );
    }
    let two_turns = last_turn + length(6) + length(7);
    assert_eq!(tail_of(&written, two_turns).1, ["q3", "a3", "q4", "a4"]);
}

#[test]
fn a_limit_above_the_cost_of_all_messages_leaves_none_out() {
    let written = as_entries(&turns());
    let total: u64 =
        written.iter().map(|entry| serde_json::to_string(entry).unwrap().len() as u64).sum();
    assert!(!tail_of(&written, total).2);
    assert!(tail_of(&written, total - 1).2);
    // One turn, larger than the limit: there is nothing before it.
    assert_eq!(tail_of(&written[..2], 1), (None, vec!["q0".into(), "a0".into()], false));
    // No user at all: nowhere to cut.
    assert_eq!(tail_of(&as_entries(&[assistant("a"), assistant("b")]), 1).1, ["a", "b"]);
}

#[test]
fn a_limit_may_end_before_the_first_kept_message() {
    let messages = turns();
    let mut written = as_entries(&messages);
    let latest = compaction(messages[2].id);
    written.push(latest.clone().into());
    assert_eq!(tail_of(&written, 1), (Some(latest), vec!["q4".into(), "a4".into()], true));
}

#[test]
fn a_reader_without_the_lock_gets_the_same_tail() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&as_entries(&turns())).unwrap();
    let reader = home.store().reader(&work()).unwrap().unwrap();
    assert_eq!(reader.tail(TailLimit::UNLIMITED).unwrap(), log.tail(TailLimit::UNLIMITED).unwrap());
}

/// Writes a log of `count` messages with the last turn after a compaction, as in a long-lived session.
fn long_log(home: &Home, count: usize) -> u64 {
    let mut lines =
        String::from("{\"type\":\"session\",\"version\":1,\"sessionKey\":\"k\",\"createdAt\":1}\n");
    let filler = "x".repeat(150);
    for number in 0..count {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let line =
            json!({"id": format!("m{number}"), "role": role, "content": filler, "ts": number});
        lines.push_str(&format!("{line}\n"));
    }
    let latest = CompactionEntry {
        first_kept_id: EntryId::from_text(&format!("m{}", count - 4)),
        ..compaction(EntryId::generate())
    };
    lines.push_str(&format!("{}\n", serde_json::to_string(&latest).unwrap()));
    home.write_log(&work(), &lines);
    lines.len() as u64
}

#[test]
fn a_turn_in_a_long_session_reads_only_its_end_and_writes_once() {
    let home = Home::new();
    let length = long_log(&home, 100_000);
    assert!(length > 20_000_000);
    // In a process of its own, so that no other test's reading is counted.
    let output = Child::new("one_turn").directory(home.sessions()).run();
    let Some(read) = output.value("read") else {
        myclaw_testkit::skip_here("this system does not count the bytes that a process reads");
        return;
    };
    let read: u64 = read.parse().unwrap();
    assert_eq!(output.value("messages").as_deref(), Some("4"));
    assert!(read < 200_000, "one more turn read {read} bytes of {length}");
    assert_eq!(output.value("writes").as_deref(), Some("1"), "a batch is one write, however large");
    assert_eq!(crate::entries(&home, &work()).len(), 100_003);
}

/// A line of a log, good or bad. Small ids and few of them, so that compactions find what they keep.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let id = 0..30_u32;
    let text = prop_oneof![6 => Just("hi".to_owned()), 3 => any::<String>(), 1 => Just("y".repeat(70_000))];
    let role = prop::sample::select(vec!["user", "assistant", "tool", "system", "critic"]);
    let message = (id.clone(), role, text, any::<bool>()).prop_map(|(id, role, text, has_id)| {
        let mut row = json!({"role": role, "content": text, "ts": 5});
        if has_id {
            row["id"] = json!(format!("m{id}"));
        }
        row.to_string().into_bytes()
    });
    let compaction = (id.clone(), id).prop_map(|(id, kept)| {
        json!({"type": "compaction", "id": format!("c{id}"), "summary": "s", "firstKeptId": format!("m{kept}")})
            .to_string()
            .into_bytes()
    });
    let other = prop::sample::select(vec![
        "{\"type\":\"session\",\"sessionKey\":\"k\",\"createdAt\":1}",
        "{\"type\":\"label\",\"id\":\"m3\"}",
        "{\"role\":\"user\",\"content\":",
        "nonsense",
        "",
        "  ",
        "\0\0\0",
        "{\"role\":\"user\",\"content\":3}",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..40)
        .prop_map(|bytes| bytes.into_iter().filter(|byte| *byte != b'\n').collect());
    prop_oneof![8 => message, 1 => compaction, 3 => other.prop_map(|text| text.as_bytes().to_vec()), 1 => bytes]
}

fn any_log() -> impl Strategy<Value = Vec<u8>> {
    let ending = prop::sample::select(vec!["\n", "\n", "\n", "\r\n"]);
    (prop::collection::vec((any_line(), ending), 0..40), 0..20_usize).prop_map(|(lines, cut)| {
        let mut bytes: Vec<u8> = lines
            .into_iter()
            .flat_map(|(line, ending)| [&line, ending.as_bytes()].concat())
            .collect();
        // Mostly whole, sometimes torn.
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(10)));
        bytes
    })
}

/// The expected tail, derived from the whole log read forward.
fn expected_tail(all: &[Entry]) -> (Option<CompactionEntry>, Vec<TranscriptMessage>) {
    let latest = all.iter().rposition(|entry| matches!(entry, Entry::Compaction(_)));
    let messages = |entries: &[Entry]| -> Vec<TranscriptMessage> {
        let only_messages = entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(message.clone()),
            _ => None,
        });
        only_messages.collect()
    };
    let Some(Entry::Compaction(compaction)) = latest.map(|index| &all[index]) else {
        return (None, messages(all));
    };
    let (before, behind) = all.split_at(latest.unwrap());
    let behind = messages(behind);
    let first_kept = compaction.first_kept_id;
    let kept_from =
        if first_kept == compaction.id || behind.iter().any(|message| message.id == first_kept) {
            before.len()
        } else {
            before.iter().rposition(|entry| entry.id() == Some(first_kept)).unwrap_or(0)
        };
    (Some(compaction.clone()), [messages(&before[kept_from..]), behind].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_tail_is_what_a_forward_reader_finds(bytes in any_log()) {
        let home = Home::new();
        let path = home.write_log(&work(), &bytes);
        let reader = home.store().reader(&work()).unwrap().unwrap();
        let mut forward = reader.entries();
        let all: Vec<Entry> = forward.by_ref().map(Result::unwrap).collect();
        let (expected_compaction, expected_messages) = expected_tail(&all);

        let unlocked = reader.tail(TailLimit::UNLIMITED).unwrap();
        prop_assert_eq!(&unlocked.compaction, &expected_compaction);
        prop_assert_eq!(&unlocked.messages, &expected_messages);
        if expected_compaction.is_none() {
            prop_assert_eq!(unlocked.skipped_lines, forward.skipped_lines());
        }

        // Under the lock a torn end is repaired, which changes nothing of what is read, and nothing is lost.
        let mut log = home.open(&work());
        let locked = log.tail(TailLimit::UNLIMITED).unwrap();
        prop_assert_eq!(&locked.compaction, &expected_compaction);
        prop_assert_eq!(&locked.messages, &expected_messages);
        prop_assert_eq!(locked.repaired_torn_tail, !bytes.is_empty() && !bytes.ends_with(b"\n"));
        let mut stored = fs::read(&path).unwrap();
        for name in home.names().iter().filter(|name| name.contains(".torn-")) {
            stored.extend(fs::read(home.sessions().join(name)).unwrap());
        }
        prop_assert!(stored == bytes || stored == [&bytes[..], b"\n"].concat());

        // And the next append is on a line of its own.
        let next = TranscriptMessage::new(Role::User, "next", 1);
        log.append(&[Entry::from(next.clone())]).unwrap();
        let messages = log.tail(TailLimit::UNLIMITED).unwrap().messages;
        prop_assert_eq!(messages, [expected_messages, vec![next]].concat());
    }

    #[test]
    fn a_limited_tail_is_the_end_of_the_whole_one(bytes in any_log(), max_bytes in 0..100_000_u64) {
        let home = Home::new();
        home.write_log(&work(), &bytes);
        let reader = home.store().reader(&work()).unwrap().unwrap();
        let whole = reader.tail(TailLimit::UNLIMITED).unwrap();
        let limited = reader.tail(limit_in_bytes(max_bytes)).unwrap();
        prop_assert!(whole.messages.ends_with(&limited.messages));
        if limited.older_messages_exist {
            prop_assert_eq!(limited.messages[0].role, Role::User);
        } else {
            prop_assert_eq!(limited.messages.len(), whole.messages.len());
        }
    }
}
