//! `sessions.json` through its public functions.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use myclaw_session::{
    IndexedSession, MetaPatch, PeerKind, PruneScope, SessionError, SessionIndex, SessionKey,
    SessionKeyParts, UpdatedAt,
};
use serde_json::{Value, json};

use crate::children::{Child, Report};
use crate::{Home, user, work};

fn cli(name: &str) -> SessionKey {
    SessionKey::for_cli("main", name)
}

fn at(time: u64) -> MetaPatch {
    MetaPatch { updated_at: UpdatedAt::At(time), ..MetaPatch::default() }
}

fn listed(home: &Home) -> Vec<String> {
    home.store()
        .index()
        .list()
        .unwrap()
        .into_iter()
        .map(|session| session.key.parts().peer_id)
        .collect()
}

fn stored(home: &Home) -> Value {
    serde_json::from_slice(&fs::read(home.store().index().path()).unwrap()).unwrap()
}

#[test]
fn an_entry_is_made_changed_and_written_as_documented() {
    let home = Home::new();
    let index = home.store().index();
    let made = index.upsert(&work(), at(5)).unwrap();
    let id = uuid::Uuid::parse_str(&made.session_id).unwrap();
    assert_eq!(id.get_version_num(), 4);
    let patch = MetaPatch {
        updated_at: UpdatedAt::At(6),
        last_channel: Some("cli".into()),
        last_to: Some("me".into()),
        chat_type: Some(PeerKind::Direct),
        model: Some("anthropic/claude".into()),
        add_tokens: 42,
        add_micro_dollars: 7,
        add_messages: 2,
        in_turn: None,
        extra: json!({"a": 1}).as_object().cloned(),
    };
    let changed = index.upsert(&work(), patch).unwrap();
    assert_eq!(changed.session_id, made.session_id);
    let text = fs::read_to_string(index.path()).unwrap();
    assert_eq!(
        text,
        format!(
            r#"{{
  "agent:main:channel:cli:account:default:peer:direct:work": {{
    "sessionId": "{}",
    "updatedAt": 6,
    "sessionFile": "{}.jsonl",
    "lastChannel": "cli",
    "lastTo": "me",
    "chatType": "direct",
    "model": "anthropic/claude",
    "totalTokens": 42,
    "microDollars": 7,
    "messages": 2,
    "extra": {{
      "a": 1
    }}
  }}
}}
"#,
            made.session_id,
            work().slug()
        )
    );
    // What a patch does not name stays; names in `extra` are added.
    let extra = json!({"b": 2}).as_object().cloned();
    let kept = MetaPatch { updated_at: UpdatedAt::Keep, extra, ..MetaPatch::default() };
    let after = index.upsert(&work(), kept).unwrap();
    assert_eq!(after.extra, json!({"a": 1, "b": 2}).as_object().cloned());
    assert_eq!((after.updated_at, after.total_tokens), (6, Some(42)));
    assert_eq!(index.get(&work()).unwrap(), Some(after));
    assert!(index.upsert(&work(), MetaPatch::default()).unwrap().updated_at > 1_600_000_000_000);
    assert_eq!(home.names(), ["sessions.json"], "no temporary file stays");
}

#[test]
fn without_sessions_the_list_is_empty_and_no_file_is_created() {
    let home = Home::new();
    let index = home.store().index();
    assert_eq!(index.list().unwrap(), []);
    assert_eq!(index.get(&work()).unwrap(), None);
    assert!(!index.remove(&work()).unwrap());
    assert_eq!(index.rebuild().unwrap(), 0);
    assert!(index.prune(Duration::ZERO, PruneScope::WithTranscripts).unwrap().removed.is_empty());
    assert!(!home.sessions().exists());
    fs::create_dir_all(home.sessions()).unwrap();
    assert_eq!(index.list().unwrap(), []);
    assert_eq!(home.names(), Vec::<String>::new());
}

#[test]
fn the_session_that_changed_last_is_listed_first() {
    let home = Home::new();
    let index = home.store().index();
    for (name, time) in [("b", 2), ("c", 1), ("a", 2)] {
        index.upsert(&cli(name), at(time)).unwrap();
    }
    assert_eq!(listed(&home), ["a", "b", "c"]);
    assert!(index.remove(&cli("a")).unwrap());
    assert!(!index.remove(&cli("a")).unwrap());
    assert_eq!(listed(&home), ["b", "c"]);
}

#[test]
fn a_session_in_a_turn_is_listed_by_the_time_of_its_log() {
    let home = Home::new();
    let (store, index) = (home.store(), home.store().index());
    let year = 365 * 86_400_000;
    for (name, time) in [("asleep", 3 * year), ("killed", year), ("renamed", 2 * year)] {
        index.record(&cli(name), at(time)).unwrap();
        fs::write(store.transcript_path(&cli(name)), "").unwrap();
    }
    assert_eq!(listed(&home), ["asleep", "renamed", "killed"], "what a log says later is no turn");
    let set = |name: &str, days: u64| {
        let log = fs::File::options().write(true).open(store.transcript_path(&cli(name))).unwrap();
        log.set_modified(UNIX_EPOCH + Duration::from_secs(days * 86_400)).unwrap();
    };
    let turn = |time, in_turn| MetaPatch { in_turn: Some(in_turn), ..at(time) };
    index.record(&cli("killed"), turn(year, true)).unwrap();
    set("killed", 4 * 365);
    assert_eq!(listed(&home), ["killed", "asleep", "renamed"]);
    let entry = index.get(&cli("killed")).unwrap().unwrap();
    assert_eq!((entry.updated_at, entry.in_turn), (4 * year, true));
    assert_eq!(index.latest(1).unwrap().0[0].entry, entry);
    // The log was written before the index was.
    set("killed", 1);
    assert_eq!(index.get(&cli("killed")).unwrap().unwrap().updated_at, year);
    set("killed", 4 * 365);
    index.record(&cli("killed"), turn(year, false)).unwrap();
    assert_eq!(listed(&home), ["asleep", "renamed", "killed"], "the turn has ended");
    assert!(!fs::read_to_string(index.path()).unwrap().contains("inTurn"));
    // The beginning of a turn is a line of the journal; a later change puts it into the file.
    index.begin_turn(&cli("renamed"), MetaPatch::default()).unwrap();
    assert_eq!(listed(&home)[0], "renamed");
    assert!(!fs::read_to_string(index.path()).unwrap().contains("inTurn"));
    index.record(&cli("asleep"), at(3 * year)).unwrap();
    assert!(fs::read_to_string(index.path()).unwrap().contains("\"inTurn\": true"));
    assert_eq!(listed(&home)[0], "renamed");
}

#[test]
fn a_change_by_another_writer_is_seen() {
    let home = Home::new();
    let (one, other) = (home.store().index(), home.store().index());
    one.upsert(&work(), at(5)).unwrap();
    assert_eq!(one.get(&work()).unwrap().unwrap().updated_at, 5);
    other.upsert(&work(), at(6)).unwrap();
    assert_eq!(one.get(&work()).unwrap().unwrap().updated_at, 6);
    // Changing what was returned changes nothing else.
    one.get(&work()).unwrap().unwrap().updated_at = 7;
    assert_eq!(one.get(&work()).unwrap().unwrap().updated_at, 6);
}

#[test]
fn a_corrupt_index_is_copied_and_rebuilt_from_the_logs() {
    let home = Home::new();
    let group = SessionKey::build(&SessionKeyParts {
        channel: "telegram".into(),
        peer_kind: PeerKind::Group,
        ..cli("talk__a:b").parts()
    });
    for key in [work(), group.clone()] {
        home.open(&key).append(&[user("hi").into()]).unwrap();
    }
    let index = home.store().index();
    fs::write(index.path(), "{\"agent:main").unwrap();
    let sessions = index.list().unwrap();
    let mut keys: Vec<_> = sessions.iter().map(|session| session.key.clone()).collect();
    keys.sort();
    assert_eq!(keys, [work(), group.clone()]);
    let entry = index.get(&group).unwrap().unwrap();
    assert_eq!(entry.chat_type, Some(PeerKind::Group));
    assert_eq!(entry.last_channel.as_deref(), Some("telegram"));
    assert_eq!(entry.session_file, format!("{}.jsonl", group.slug()));
    assert!(entry.updated_at > 1_600_000_000_000, "the time of the log's last change");
    let backups: Vec<_> =
        home.names().into_iter().filter(|name| name.starts_with("sessions.json.bak.")).collect();
    assert_eq!(backups.len(), 1);
    assert_eq!(fs::read_to_string(home.sessions().join(&backups[0])).unwrap(), "{\"agent:main");
    assert_eq!(stored(&home).as_object().unwrap().len(), 2, "written once for all");
    assert_eq!(index.get(&group).unwrap(), Some(entry), "the id does not change again");
}

#[test]
fn a_corrupt_index_without_logs_is_replaced_once() {
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let index = home.store().index();
    fs::write(index.path(), "\0\0\0").unwrap();
    for _ in 0..3 {
        assert_eq!(index.list().unwrap(), []);
        assert!(!index.remove(&work()).unwrap());
    }
    assert_eq!(stored(&home), json!({}));
    assert_eq!(home.names().len(), 2, "one copy of the corrupt file: {:?}", home.names());
}

#[test]
fn one_damaged_entry_does_not_affect_the_others() {
    let home = Home::new();
    let index = home.store().index();
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    let good = index.upsert(&cli("good"), at(5)).unwrap();
    let mut value = stored(&home);
    value[work().as_str()] = json!({"sessionId": 3});
    fs::write(index.path(), value.to_string()).unwrap();
    assert_eq!(index.get(&cli("good")).unwrap(), Some(good));
    assert!(index.get(&work()).unwrap().is_some());
    assert_eq!(home.names().iter().filter(|name| name.contains(".bak.")).count(), 1);
}

#[test]
fn fields_of_a_later_version_survive_a_change() {
    let home = Home::new();
    let index = home.store().index();
    index.upsert(&work(), at(5)).unwrap();
    let mut value = stored(&home);
    value[work().as_str()]["label"] = json!({"color": "blue"});
    fs::write(index.path(), value.to_string()).unwrap();
    index.upsert(&work(), at(6)).unwrap();
    assert_eq!(stored(&home)[work().as_str()]["label"], json!({"color": "blue"}));
}

#[test]
fn rebuilding_adds_missing_entries_and_keeps_existing_ones() {
    let home = Home::new();
    let index = home.store().index();
    let known = index.upsert(&work(), at(5)).unwrap();
    for name in ["work", "new"] {
        home.open(&cli(name)).append(&[user("hi").into()]).unwrap();
    }
    // Not logs, or not where one would look for them.
    fs::write(
        home.sessions().join("copy of work.jsonl"),
        "{\"role\":\"user\",\"content\":\"x\"}\n",
    )
    .unwrap();
    fs::write(home.sessions().join("notes.txt"), "x").unwrap();
    fs::write(home.store().transcript_path(&cli("empty")), "").unwrap();
    // A log that lost its header still has its name.
    fs::write(
        home.store().transcript_path(&cli("head_less")),
        "{\"role\":\"user\",\"content\":\"x\"}\n",
    )
    .unwrap();
    assert_eq!(index.rebuild().unwrap(), 2);
    assert_eq!(index.rebuild().unwrap(), 0);
    assert_eq!(index.get(&work()).unwrap(), Some(known));
    let mut names = listed(&home);
    names.sort();
    assert_eq!(names, ["head_less", "new", "work"]);
}

#[test]
fn pruning_forgets_old_sessions_or_deletes_them() {
    let home = Home::new();
    let index = home.store().index();
    for name in ["old", "busy", "new"] {
        home.open(&cli(name)).append(&[user("hi").into()]).unwrap();
        index
            .upsert(&cli(name), if name == "new" { MetaPatch::default() } else { at(1_000) })
            .unwrap();
    }
    let hour = Duration::from_secs(3600);
    let forgotten = index.prune(hour, PruneScope::IndexOnly).unwrap();
    assert_eq!(forgotten.removed, [cli("busy"), cli("old")]);
    assert_eq!(listed(&home), ["new"]);
    assert!(home.store().exists(&cli("old")), "the log stays");

    for name in ["old", "busy"] {
        index.upsert(&cli(name), at(1_000)).unwrap();
    }
    let _busy = home.open(&cli("busy"));
    let deleted = index.prune(hour, PruneScope::WithTranscripts).unwrap();
    assert_eq!(deleted.removed, [cli("old")]);
    let kept: Vec<_> = deleted
        .kept
        .iter()
        .map(|(key, error)| (key, matches!(error, SessionError::Locked { .. })))
        .collect();
    assert_eq!(kept, [(&cli("busy"), true)]);
    assert!(!home.store().exists(&cli("old")) && home.store().exists(&cli("busy")));
    assert_eq!(listed(&home), ["new", "busy"]);
    let all = index.prune(Duration::MAX, PruneScope::IndexOnly).unwrap();
    assert!(all.removed.is_empty());
    // Without a change nothing is written.
    let file = || fs::metadata(index.path()).unwrap().ino();
    let before = file();
    index.prune(Duration::MAX, PruneScope::IndexOnly).unwrap();
    assert_eq!(file(), before);
}

#[test]
fn processes_that_change_it_together_lose_nothing() {
    let home = Home::new();
    let start = || Child::new("upsert_often").directory(home.sessions()).command().spawn().unwrap();
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    for child in children {
        let report = Report::of(child);
        assert!(report.succeeded, "{}", report.printed);
    }
    let index = home.store().index();
    assert_eq!(index.list().unwrap().len(), 151);
    assert_eq!(index.get(&work()).unwrap().unwrap().extra.unwrap().len(), 150);
    // Two that end together may leave the journal to whoever writes next.
    index.upsert(&work(), MetaPatch::default()).unwrap();
    assert_eq!(home.names(), ["sessions.json"]);
}

#[test]
fn leftovers_of_a_killed_writer_are_replaced_and_stay_private() {
    let home = Home::new();
    let index = home.store().index();
    index.upsert(&work(), at(5)).unwrap();
    let left = home.sessions().join("sessions.json.new");
    fs::write(&left, "half of an in").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o644)).unwrap();

    index.upsert(&cli("other"), at(6)).unwrap();

    assert_eq!(listed(&home).len(), 2);
    assert_eq!(home.names(), ["sessions.json"]);
    assert_eq!(fs::metadata(index.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

/// An index of so many sessions, as this program writes it.
fn large_index(home: &Home, count: usize) -> Vec<u8> {
    fs::create_dir_all(home.sessions()).unwrap();
    let entries: serde_json::Map<String, Value> = (0..count)
        .map(|number| {
            let key = cli(&format!("s{number}"));
            let entry = json!({
                "sessionId": uuid::Uuid::new_v4().to_string(),
                "updatedAt": 1_000 + number,
                "sessionFile": format!("{}.jsonl", key.slug()),
                "totalTokens": 7,
                "extra": {"note": "with \"quotes\"\n  and lines", "nested": {"updatedAt": 1}},
            });
            (key.to_string(), entry)
        })
        .collect();
    let mut text = serde_json::to_vec_pretty(&entries).unwrap();
    text.push(b'\n');
    fs::write(home.store().index().path(), &text).unwrap();
    text
}

/// Bytes that this thread has read and written, where the system counts them.
fn bytes_moved() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let of = |name: &str| -> Option<u64> {
        counters.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
    };
    Some(of("rchar")? + of("wchar")?)
}

fn journal(home: &Home) -> std::path::PathBuf {
    home.sessions().join("sessions.journal")
}

fn tokens(add_tokens: u64) -> MetaPatch {
    MetaPatch { add_tokens, ..MetaPatch::default() }
}

#[test]
fn a_change_reads_and_writes_little_however_many_sessions_there_are() {
    let home = Home::new();
    let before = large_index(&home, 5_000);
    assert!(before.len() > 1_000_000);
    let index = home.store().index();
    let moved = bytes_moved();
    index.record(&cli("s7"), tokens(5)).unwrap();
    index.record(&cli("new"), tokens(3)).unwrap();
    if let (Some(before), Some(after)) = (moved, bytes_moved()) {
        assert!(after - before < 16_000, "{} bytes moved", after - before);
    }
    assert_eq!(fs::read(index.path()).unwrap(), before, "the file is as it was");

    let sessions = index.list().unwrap();
    assert_eq!(sessions.len(), 5_001);
    let newest: Vec<_> = sessions[..3].iter().map(|found| found.key.parts().peer_id).collect();
    assert_eq!(newest[2], "s4999");
    assert!(newest[..2].contains(&"new".to_owned()) && newest[..2].contains(&"s7".to_owned()));
    assert_eq!(index.get(&cli("s7")).unwrap().unwrap().total_tokens, Some(12));
    assert_eq!(index.get(&cli("s8")).unwrap().unwrap().total_tokens, Some(7));
    let id = index.get(&cli("new")).unwrap().unwrap().session_id;
    assert_eq!(home.store().index().get(&cli("new")).unwrap().unwrap().session_id, id);
    let (latest, count) = index.latest(2).unwrap();
    assert_eq!((latest.len(), count), (2, 5_001));
    assert_eq!(index.latest_keys(usize::MAX, |_| true).unwrap().len(), 5_001);
    // The journal's entries are among those that are looked through, and the latest come first.
    let with_7 = |key: &str| key.ends_with('7');
    let found = index.latest_keys(3, with_7).unwrap();
    assert_eq!(found, [cli("s7"), cli("s4997"), cli("s4987")]);
    assert_eq!(each_of(&index, 3), [sessions[0].clone(), sessions[1].clone(), sessions[2].clone()]);
    assert_eq!(each_of(&index, usize::MAX), sessions);
    assert!(index.remove(&cli("new")).unwrap() && !index.remove(&cli("new")).unwrap());
    assert_eq!(index.latest_keys(usize::MAX, |_| true).unwrap().len(), 5_000);
}

#[test]
fn a_list_that_was_read_reads_only_what_has_changed_since() {
    let home = Home::new();
    large_index(&home, 5_000);
    let (index, other) = (home.store().index(), home.store().index());
    assert_eq!(index.latest(1).unwrap().1, 5_000);
    other.record(&cli("s7"), tokens(5)).unwrap();
    other.record(&cli("new"), tokens(3)).unwrap();
    let moved = bytes_moved();
    let (latest, count) = index.latest(2).unwrap();
    if let (Some(before), Some(after)) = (moved, bytes_moved()) {
        assert!(after - before < 16_000, "{} bytes moved", after - before);
    }
    assert_eq!((latest.len(), count), (2, 5_001));
    assert_eq!(index.list().unwrap(), home.store().index().list().unwrap());
    other.remove(&cli("new")).unwrap();
    // Another file in its place, one that is damaged, and none.
    large_index(&home, 3);
    assert_eq!(index.list().unwrap(), home.store().index().list().unwrap());
    fs::write(index.path(), "{").unwrap();
    other.record(&cli("s1"), tokens(1)).unwrap();
    assert_eq!(index.list().unwrap(), home.store().index().list().unwrap());
    fs::remove_file(index.path()).unwrap();
    other.record(&cli("s2"), tokens(1)).unwrap();
    assert_eq!(index.list().unwrap(), home.store().index().list().unwrap());
}

#[test]
fn sessions_are_found_by_labels_in_the_file_and_in_the_journal() {
    let home = Home::new();
    large_index(&home, 1_000);
    let mut entries = stored(&home);
    for (name, labels) in [
        ("s3", json!(["pinned"])),
        ("s5", json!(["\"labels\": [\n", "archived"])),
        ("s7", json!([])),
        ("s8", json!(["pinned", "archived"])),
    ] {
        entries[cli(name).as_str()]["extra"]["labels"] = labels;
    }
    let index = home.store().index();
    fs::write(index.path(), serde_json::to_string_pretty(&entries).unwrap() + "\n").unwrap();
    let labelled = |limit: usize, with: &[&str], without: &[&str]| {
        let (found, count) = index.latest_labelled(limit, with, without).unwrap();
        let names = found.into_iter().map(|session| session.key.parts().peer_id);
        (names.collect::<Vec<_>>().join(" "), count)
    };
    assert_eq!(labelled(9, &["pinned"], &[]), ("s8 s3".to_owned(), 2));
    assert_eq!(labelled(9, &["pinned", "archived"], &[]), ("s8".to_owned(), 1));
    assert_eq!(labelled(9, &["archived"], &["pinned"]), ("s5".to_owned(), 1));
    assert_eq!(labelled(3, &[], &["pinned", "archived"]), ("s999 s998 s997".to_owned(), 997));
    let label = |name: &str, labels: Value| {
        let extra = json!({"labels": labels}).as_object().cloned();
        let patch = MetaPatch { extra, updated_at: UpdatedAt::Keep, ..MetaPatch::default() };
        index.record(&cli(name), patch).unwrap();
    };
    label("s3", json!([]));
    label("s1", json!(["pinned"]));
    assert!(journal(&home).exists(), "these are in the journal");
    assert_eq!(labelled(9, &["pinned"], &[]), ("s8 s1".to_owned(), 2));
    assert_eq!(labelled(9, &[], &["pinned", "archived"]).1, 997);
}

/// The first `most` sessions that [`SessionIndex::each`] passes on.
fn each_of(index: &SessionIndex, most: usize) -> Vec<IndexedSession> {
    let mut sessions = Vec::new();
    let outcome: Result<(), SessionError> = index.each(|session| {
        sessions.push(session);
        let is_enough = sessions.len() == most;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    outcome.unwrap();
    sessions
}

#[test]
fn a_long_journal_is_folded_and_adds_nothing_twice() {
    let home = Home::new();
    large_index(&home, 1_000);
    let index = home.store().index();
    index.record(&cli("s7"), tokens(5)).unwrap();
    // Keeps what a program would leave that is killed between the two steps of folding.
    let kept = home.sessions().join("kept");
    fs::hard_link(journal(&home), &kept).unwrap();
    let long = json!({"long": "x".repeat(100_000)}).as_object().cloned();
    for number in 0..11 {
        let patch = MetaPatch { extra: long.clone(), ..tokens(1) };
        index.record(&cli(&format!("n{number}")), patch).unwrap();
    }
    assert!(!journal(&home).exists(), "it was folded");
    let stored = stored(&home);
    assert_eq!(stored.as_object().unwrap().len(), 1_011);
    assert_eq!(stored[cli("s7").as_str()]["totalTokens"], 12);
    assert_eq!(stored[cli("s8").as_str()]["extra"]["note"], "with \"quotes\"\n  and lines");
    fs::rename(&kept, journal(&home)).unwrap();
    assert_eq!(index.get(&cli("s7")).unwrap().unwrap().total_tokens, Some(12));
    index.record(&cli("s7"), tokens(1)).unwrap();
    assert_eq!(index.get(&cli("s7")).unwrap().unwrap().total_tokens, Some(13));
    assert!(index.take_repairs().is_empty());
}

#[test]
fn a_damaged_line_of_the_journal_does_not_affect_others_and_is_reported() {
    use std::io::Write;
    let home = Home::new();
    large_index(&home, 1_000);
    let index = home.store().index();
    index.record(&cli("s7"), tokens(5)).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(journal(&home)).unwrap();
    file.write_all(b"\n{\"set\":{\"key\":\"agent:ma").unwrap();
    index.record(&cli("s7"), tokens(2)).unwrap();
    assert_eq!(index.list().unwrap().len(), 1_000);
    let repairs = index.take_repairs();
    assert_eq!(repairs.len(), 1);
    assert_eq!(repairs[0].path, journal(&home));
    assert!(fs::read_to_string(&repairs[0].backup).unwrap().contains("agent:ma"));
    assert_eq!(index.get(&cli("s7")).unwrap().unwrap().total_tokens, Some(14));
    assert!(!journal(&home).exists(), "folded, so that it is reported once");
    assert!(index.list().is_ok() && index.take_repairs().is_empty());
}

#[test]
fn a_corrupt_index_is_reported() {
    let home = Home::new();
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    let index = home.store().index();
    fs::write(index.path(), "{\"agent:main").unwrap();
    assert_eq!(index.list().unwrap().len(), 1);
    let [repair] = &index.take_repairs()[..] else { panic!("one repair") };
    assert_eq!(repair.path, index.path());
    assert_eq!(fs::read_to_string(&repair.backup).unwrap(), "{\"agent:main");
}

#[test]
fn a_session_keeps_its_id_when_the_index_is_lost() {
    let home = Home::new();
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    let id = home.store().session_id(&work()).unwrap().unwrap();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 4);
    let index = home.store().index();
    assert_eq!(index.upsert(&work(), MetaPatch::default()).unwrap().session_id, id);
    fs::remove_file(index.path()).unwrap();
    assert_eq!(home.store().index().get(&work()).unwrap().unwrap().session_id, id);
    // A log from before headers had one.
    home.write_log(&cli("old"), "{\"role\":\"user\",\"content\":\"x\"}\n");
    let old = home.store().index().upsert(&cli("old"), MetaPatch::default()).unwrap();
    assert_eq!(home.store().session_id(&cli("old")).unwrap(), Some(old.session_id));
    assert_eq!(home.store().session_id(&cli("nobody")).unwrap(), None);
}
