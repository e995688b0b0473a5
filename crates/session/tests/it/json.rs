//! Sessions as JSON files: the file itself, and finding a session by its id.

use std::fs;
use std::path::PathBuf;

use myclaw_session::{JsonSessions, LockWait, SessionError, Sessions, TailLimit};
use serde_json::{Value, json};

use crate::{Push as _, assistant, texts, user, work};

const ID: &str = "0191f3a4-0000-4000-8000-000000000001";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with_file(content: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        fs::write(place.file(ID), content).unwrap();
        place
    }

    fn file(&self, id: &str) -> PathBuf {
        self.0.path().join(format!("{id}.json"))
    }

    fn json(&self, id: &str) -> Value {
        serde_json::from_slice(&fs::read(self.file(id)).unwrap()).unwrap()
    }

    fn store(&self) -> JsonSessions {
        JsonSessions::new(self.0.path())
    }
}

#[test]
fn a_file_holds_the_id_the_times_and_the_messages_in_readable_form() {
    let place = Place::new();
    let store = place.store();
    let (question, answer) = (user("q"), assistant("a"));
    let mut log = store.open(&work(), LockWait::Fail).unwrap();
    log.push(&[question.clone().into(), answer.clone().into()]).unwrap();
    drop(log);
    let id = store.session_id(&work()).unwrap().unwrap();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 4);
    let file = place.json(&id);
    assert_eq!((&file["id"], &file["createdAt"]), (&json!(id), &json!(question.ts)));
    assert!(file["updatedAt"].as_u64() > file["createdAt"].as_u64());
    assert_eq!(file["messages"], json!([question, answer]));
    assert!(fs::read_to_string(place.file(&id)).unwrap().contains("\n  \"messages\": [\n"));
}

#[test]
fn a_session_continues_by_its_id_and_keeps_unknown_fields() {
    let rows = json!([
        {"role": "user", "content": "q", "name": "kept"},
        {"role": "assistant", "content": null, "tool_calls": []},
        {"role": "assistant", "content": "a"},
    ]);
    let place = Place::with_file(json!({"messages": rows, "theirs": {"x": 1}}).to_string());
    let store = place.store();
    assert_eq!(store.resume(&work(), ID), ID);
    let mut log = store.open(&work(), LockWait::Fail).unwrap();
    let tail = log.tail(TailLimit::UNLIMITED).unwrap();
    assert_eq!((texts(&tail.messages), tail.skipped_lines), (vec!["q", "", "a"], 0));
    assert!(tail.messages.iter().all(|message| message.ts > 0));
    log.push(&[user("more").into()]).unwrap();
    let ids: Vec<_> =
        log.tail(TailLimit::UNLIMITED).unwrap().messages.into_iter().map(|m| m.id).collect();
    drop(log);
    let file = place.json(ID);
    assert_eq!((&file["id"], &file["theirs"]), (&json!(ID), &json!({"x": 1})));
    let messages = file["messages"].as_array().unwrap();
    assert_eq!((&messages[..3], messages.len()), (&rows.as_array().unwrap()[..], 4));
    let again = place.store();
    again.resume(&work(), ID);
    let mut log = again.open(&work(), LockWait::Fail).unwrap();
    let tail = log.tail(TailLimit::UNLIMITED).unwrap();
    assert!(tail.messages.iter().map(|message| message.id).eq(ids), "the ids stay the same");
}

#[test]
fn half_an_emoji_does_not_make_the_session_unreadable() {
    let place = Place::with_file(r#"{"messages": [{"role": "user", "content": "cut \ud83d"}]}"#);
    let store = place.store();
    assert_eq!(store.resume(&work(), ID), ID);
}

#[test]
fn an_id_that_is_unknown_or_cannot_be_read_gets_a_new_session() {
    for content in ["", "{\"messages\": [", "[]", "{}", "{\"messages\": 3}"] {
        let place = Place::with_file(content);
        let store = place.store();
        let id = store.resume(&work(), ID);
        assert_ne!(id, ID, "{content}");
        store.open(&work(), LockWait::Fail).unwrap().push(&[user("q").into()]).unwrap();
        assert_eq!(store.session_id(&work()).unwrap(), Some(id.clone()));
        assert!(place.file(&id).is_file());
        assert_eq!(fs::read_to_string(place.file(ID)).unwrap(), content, "it stays as it is");
    }
    let place = Place::new();
    fs::write(place.0.path().join("secret.json"), "{\"messages\": []}").unwrap();
    let unhyphenated = ID.replace('-', "");
    for id in [ID, "secret", "../secret", "", unhyphenated.as_str()] {
        assert_ne!(place.store().resume(&work(), id), id);
    }
}

#[test]
fn a_file_that_cannot_be_replaced_is_reported_and_written_later() {
    let place = Place::new();
    let store = place.store();
    let mut log = store.open(&work(), LockWait::Fail).unwrap();
    log.push(&[user("q").into()]).unwrap();
    let path = std::path::PathBuf::from(store.describe(&work()));
    fs::create_dir(&path).unwrap();
    let error = log.sync_handle().sync().unwrap_err();
    assert!(error.to_string().contains("session file"), "{error}");
    fs::remove_dir(&path).unwrap();
    log.sync_handle().sync().unwrap();
    assert!(path.is_file());
}

#[test]
fn an_owner_that_lost_its_session_saves_nothing_over_the_next_one() {
    let place = Place::with_file(json!({"messages": []}).to_string());
    let open = || {
        let store = place.store();
        assert_eq!(store.resume(&work(), ID), ID);
        store.open(&work(), LockWait::Fail).unwrap()
    };
    let mut first = open();
    // Not on disk yet.
    first.push(&[user("late").into()]).unwrap();
    fs::remove_file(place.0.path().join(format!("{ID}.lock"))).unwrap();
    let mut next = open();
    next.push(&[user("next").into()]).unwrap();
    next.sync_handle().sync().unwrap();
    let error = first.sync_handle().sync().unwrap_err();
    assert!(matches!(error, SessionError::Fenced { .. }), "{error}");
    drop(first);
    assert_eq!(place.json(ID)["messages"][0]["content"], "next");
    assert_eq!(place.json(ID)["messages"].as_array().map(Vec::len), Some(1));
}
