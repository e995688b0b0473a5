//! Writing a log and reading it back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use myclaw_session::{
    Entry, EntryId, LockWait, Meta, SessionError, SessionKey, SessionStore, Tail, TailLimit,
    TranscriptMessage,
};
use serde_json::{Value, json};

use crate::{Home, assistant, compaction, entries, texts, user, work};

#[test]
fn appended_entries_are_read_back() {
    let home = Home::new();
    let written = vec![
        Entry::from(user("hello")),
        Entry::from(assistant("hi")),
        Entry::Unknown(json!({"type": "label", "text": "later"})),
        Entry::from(compaction(EntryId::generate())),
    ];
    let mut log = home.open(&work());
    log.append(&written[..1]).unwrap();
    log.append(&written[1..]).unwrap();
    assert_eq!(entries(&home, &work()), written, "a reader needs no lock");
    drop(log);
    let reader = home.store().reader(&work()).unwrap().unwrap();
    assert_eq!(reader.message_count().unwrap(), 2);
    assert_eq!(texts(&reader.last_messages(1).unwrap()), ["hi"]);
    assert_eq!(texts(&reader.last_messages(9).unwrap()), ["hello", "hi"]);
    let header = reader.header().unwrap().unwrap();
    assert_eq!(header.session_key, work().to_string());
    assert_eq!((header.version, header.created_at), (1, 1_700_000_000_000));
}

#[test]
fn a_log_is_a_header_and_one_object_a_line() {
    let home = Home::new();
    let id = EntryId::from_text("first");
    home.open(&work()).append(&[Entry::from(TranscriptMessage { id, ..user("a\nb") })]).unwrap();
    let text = fs::read_to_string(home.store().transcript_path(&work())).unwrap();
    let session_id = home.store().session_id(&work()).unwrap().unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"type\":\"session\",\"version\":1,\
             \"sessionKey\":\"agent:main:channel:cli:account:default:peer:direct:work\",\
             \"createdAt\":1700000000000,\"sessionId\":\"{session_id}\"}}\n\
             {{\"id\":\"first\",\"role\":\"user\",\"content\":\"a\\nb\",\"ts\":1700000000000}}\n"
        )
    );
}

#[test]
fn without_an_append_no_file_is_left() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[]).unwrap();
    assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap(), Tail::default());
    log.sync_handle().sync().unwrap();
    assert!(!home.store().exists(&work()));
    drop(log);
    assert_eq!(home.names(), Vec::<String>::new());
    assert!(home.store().reader(&work()).unwrap().is_none());
}

#[test]
fn files_and_directories_are_private() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[user("secret").into()]).unwrap();
    let mode = |path: std::path::PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.sessions()), 0o700);
    assert_eq!(mode(home.sessions().parent().unwrap().into()), 0o700);
    assert_eq!(mode(home.store().transcript_path(&work())), 0o600);
    home.store().index().upsert(&work(), myclaw_session::MetaPatch::default()).unwrap();
    assert_eq!(mode(home.store().index().path()), 0o600);
}

#[test]
fn only_the_log_remains_when_it_is_closed() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[user("hello").into()]).unwrap();
    let sync = log.sync_handle();
    drop(log);
    sync.sync().unwrap();
    assert_eq!(home.names(), [format!("{}.jsonl", work().slug())]);
}

#[test]
fn opening_again_continues_the_log() {
    let home = Home::new();
    home.open(&work()).append(&[user("one").into()]).unwrap();
    home.open(&work()).append(&[assistant("two").into()]).unwrap();
    let mut log = home.open(&work());
    assert_eq!(texts(&log.tail(TailLimit::UNLIMITED).unwrap().messages), ["one", "two"]);
    let text = fs::read_to_string(log.path()).unwrap();
    assert_eq!(text.matches("\"type\":\"session\"").count(), 1, "one header");
}

#[test]
fn messages_without_an_id_have_the_same_one_each_time() {
    let home = Home::new();
    let rows = "{\"role\":\"user\",\"content\":\"same\"}\n".repeat(3);
    home.write_log(&work(), rows);
    let ids =
        |entries: &[Entry]| entries.iter().map(|entry| entry.id().unwrap()).collect::<Vec<_>>();
    let first = entries(&home, &work());
    let mut log = home.open(&work());
    let tail: Vec<_> =
        log.tail(TailLimit::UNLIMITED).unwrap().messages.into_iter().map(Entry::from).collect();
    log.append(&[Entry::from(compaction(ids(&first)[1]))]).unwrap();
    assert_eq!(tail, first);
    assert!(ids(&first)[0] < ids(&first)[1] && ids(&first)[1] < ids(&first)[2]);
    assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages.len(), 2, "kept by a derived id");
}

#[test]
fn logs_of_other_versions() {
    let home = Home::new();
    let row = "{\"role\":\"user\",\"content\":\"hi\"}\n";
    let open = |header: &str| {
        home.write_log(&work(), format!("{header}\n{row}"));
        home.store()
            .open(&work(), LockWait::Fail)
            .map(|mut log| log.tail(TailLimit::UNLIMITED).unwrap().messages)
    };
    assert_eq!(open(r#"{"type":"session","sessionKey":"k","createdAt":1}"#).unwrap().len(), 1);
    assert_eq!(
        open(r#"{"type":"session","version":1,"sessionKey":"k","more":true}"#).unwrap().len(),
        1
    );
    let error = open(r#"{"type":"session","version":3,"sessionKey":"k"}"#).unwrap_err();
    assert!(matches!(error, SessionError::NewerVersion { found: 3, supported: 2, .. }), "{error}");
    assert!(error.to_string().contains("Install the newer version"), "{error}");
    assert!(matches!(home.store().reader(&work()), Err(SessionError::NewerVersion { .. })));
}

#[test]
fn a_deleted_log_is_noticed() {
    let home = Home::new();
    let mut log = home.open(&work());
    log.append(&[user("one").into()]).unwrap();
    fs::remove_file(log.path()).unwrap();
    let error = log.append(&[user("two").into()]).unwrap_err();
    assert!(matches!(error, SessionError::Removed { .. }), "{error}");
}

#[test]
fn a_path_that_cannot_be_a_log_gives_a_clear_error() {
    let home = Home::new();
    fs::create_dir_all(home.store().transcript_path(&work())).unwrap();
    let error = home.store().open(&work(), LockWait::Fail).unwrap_err().to_string();
    assert!(error.starts_with("failed to open the session log "), "{error}");
    let blocked = home.sessions().join("file");
    fs::write(&blocked, "").unwrap();
    let error =
        SessionStore::new(blocked.join("sessions")).open(&work(), LockWait::Fail).unwrap_err();
    assert!(error.to_string().starts_with("failed to create the sessions directory "), "{error}");
}

#[test]
fn deleting_removes_all_files_of_the_session() {
    let home = Home::new();
    let store = home.store();
    assert!(!store.delete(&work()).unwrap(), "there is not even a directory");
    let other = SessionKey::for_cli("main", "work2");
    home.open(&other).append(&[user("stays").into()]).unwrap();
    let path = home.write_log(&work(), "{\"role\":\"user\",\"content\":\"hi\"}\n{\"torn");
    home.open(&work()).append(&[user("goes").into()]).unwrap();
    fs::create_dir(store.artifact_directory(&work())).unwrap();
    fs::write(store.artifact_directory(&work()).join("output.txt"), "big").unwrap();
    fs::create_dir(store.job_directory(&work())).unwrap();
    fs::write(store.job_directory(&work()).join("j1.json"), "{}").unwrap();
    assert!(path.exists() && home.names().len() == 5, "{:?}", home.names());
    assert!(store.delete(&work()).unwrap());
    assert!(!store.delete(&work()).unwrap());
    assert_eq!(home.names(), [format!("{}.jsonl", other.slug())]);
}

#[test]
fn keys_too_long_for_a_file_name_work() {
    let home = Home::new();
    let key = SessionKey::for_cli(&"a".repeat(128), &"é".repeat(128));
    home.open(&key).append(&[user("hello").into()]).unwrap();
    assert_eq!(entries(&home, &key).len(), 1);
    let listed = home.store().index().list().unwrap();
    assert_eq!(listed.iter().map(|session| &session.key).collect::<Vec<_>>(), [&key]);
    // Another key that (against all odds) has the same shortened name.
    let path = home.store().transcript_path(&key);
    fs::write(&path, "{\"type\":\"session\",\"version\":1,\"sessionKey\":\"agent:other\"}\n")
        .unwrap();
    for error in [
        home.store().open(&key, LockWait::Fail).unwrap_err(),
        home.store().reader(&key).unwrap_err(),
        home.store().delete(&key).unwrap_err(),
    ] {
        assert!(matches!(error, SessionError::ForeignTranscript { .. }), "{error}");
    }
}

#[test]
fn a_batch_is_one_line_per_entry_whatever_it_holds() {
    let home = Home::new();
    let mut odd = user("\u{0}\r\n\u{2028}\"\\");
    odd.meta = json!({"nested": {"deep": [null, true, "\n"]}}).as_object().cloned().map(Meta::from);
    let written: Vec<Entry> = vec![odd.into(), user(&"x".repeat(3_000_000)).into()];
    home.open(&work()).append(&written).unwrap();
    assert_eq!(entries(&home, &work()), written);
    let bytes = fs::read(home.store().transcript_path(&work())).unwrap();
    let lines: Vec<Value> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
}

#[test]
fn messages_without_a_time_get_that_of_the_message_before_or_of_the_log() {
    let home = Home::new();
    let row = |ts: &str| format!("{{\"role\":\"user\",\"content\":\"x\"{ts}}}\n");
    let header = "{\"type\":\"session\",\"sessionKey\":\"k\",\"createdAt\":5}\n";
    let rows = [row(""), row(",\"ts\":0"), row(",\"ts\":9"), row("")].concat();
    home.write_log(&work(), format!("{header}{rows}"));
    let times = |messages: &[TranscriptMessage]| -> Vec<u64> {
        messages.iter().map(|message| message.ts).collect()
    };
    let reader = home.store().reader(&work()).unwrap().unwrap();
    let forward: Vec<_> = entries(&home, &work()).iter().filter_map(Entry::ts).collect();
    assert_eq!(forward, [5, 5, 9, 9]);
    assert_eq!(times(&reader.tail(TailLimit::UNLIMITED).unwrap().messages), [5, 5, 9, 9]);
    assert_eq!(times(&reader.last_messages(1).unwrap()).len(), 1);
    // Without a header: when the file was made, which stays the same.
    home.write_log(&work(), row("").repeat(2));
    let mut log = home.open(&work());
    let before = times(&log.tail(TailLimit::UNLIMITED).unwrap().messages);
    assert!(before[0] > 1_600_000_000_000);
    log.append(&[user("next").into()]).unwrap();
    assert_eq!(times(&log.tail(TailLimit::UNLIMITED).unwrap().messages)[..2], before[..2]);
}

#[test]
fn a_transcript_that_was_copied_to_another_name_is_refused() {
    let home = Home::new();
    home.open(&work()).append(&[user("mine").into()]).unwrap();
    let copy = SessionKey::for_cli("main", "copy");
    fs::copy(home.store().transcript_path(&work()), home.store().transcript_path(&copy)).unwrap();
    let error = home.store().open(&copy, LockWait::Fail).unwrap_err();
    assert!(
        matches!(&error, SessionError::ForeignTranscript { found, .. } if found == work().as_str())
    );
    assert!(error.to_string().contains("myclaw sessions import"), "{error}");
    assert!(home.store().reader(&copy).is_err());
    home.open(&work()).append(&[user("still mine").into()]).unwrap();
}
