use std::sync::Arc;

use myclaw_session::{Entry, EntryId, MetaPatch, Role, SessionStore, TranscriptMessage};

use super::*;

/// A store in `directory` with sessions of one question and answer each.
struct Sessions {
    store: Arc<SessionStore>,
    search: SessionSearch,
    now: u64,
}

impl Sessions {
    fn new(directory: &Path) -> Self {
        let store = Arc::new(SessionStore::new(directory.join("sessions")));
        let catalog = Arc::clone(&store) as Arc<dyn Catalog>;
        let search = SessionSearch::new(catalog, "main", directory.join("index"));
        Self { store, search, now: 1_000 }
    }

    fn say(&mut self, session: &str, question: &str, answer: &str) -> EntryId {
        let key = SessionKey::for_cli("main", session);
        self.now += 1_000;
        let said = TranscriptMessage::new(Role::User, question, self.now);
        let id = said.id;
        let answer = TranscriptMessage::new(Role::Assistant, answer, self.now);
        let mut log = self.store.open(&key, LockWait::Fail).unwrap();
        log.append(&[Entry::Message(said), Entry::Message(answer)]).unwrap();
        drop(log);
        Catalog::update(&*self.store, &key, MetaPatch::default()).unwrap();
        id
    }

    fn found(&self, query: &str) -> Vec<String> {
        let wanted = Wanted { query, most: 5, may_see: &|_| true, encoder: None };
        let passages = self.search.search(&wanted, &Hidden::new()).unwrap().passages;
        passages.into_iter().map(|passage| passage.text).collect()
    }
}

#[test]
fn sessions_are_found_also_after_they_changed_and_were_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let mut sessions = Sessions::new(directory.path());
    assert_eq!(sessions.found("boiler"), [""; 0]);
    sessions.say("a", "When is the boiler repaired?", "On Tuesday, by Mrs Weber.");
    sessions.say("b", "Plan the trip to Rome", "By train.");
    assert_eq!(
        sessions.found("who repairs boilers"),
        ["user: When is the boiler repaired?\nassistant: On Tuesday, by Mrs Weber."]
    );
    sessions.say("a", "And the chimney?", "On Friday.");
    assert_eq!(sessions.found("chimney").len(), 1);
    assert_eq!(sessions.found("boiler").len(), 1);
    for number in 0..20 {
        sessions.say(&format!("c{number}"), &format!("Note {number}: kumquat"), "Noted.");
        assert_eq!(sessions.found("boiler").len(), 1);
    }
    let segments = sessions.search.manifest().unwrap().segments.len();
    assert!(segments <= MOST_SEGMENTS, "{segments}");
    assert_eq!(sessions.found("kumquat").len(), 5);
    Catalog::delete(&*sessions.store, &SessionKey::for_cli("main", "a")).unwrap();
    assert_eq!(sessions.found("boiler"), [""; 0]);
    let left: Vec<u8> = fs::read_dir(directory.path().join("index"))
        .unwrap()
        .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(!String::from_utf8_lossy(&left).contains("boiler"));
}

#[test]
fn what_is_hidden_or_of_others_is_not_found_and_a_damaged_index_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut sessions = Sessions::new(directory.path());
    let row = sessions.say("a", "The code is ZEBRA-4711", "Noted.");
    sessions.say("b", "Which code?", "None.");
    assert_eq!(sessions.found("zebra 4711").len(), 1);
    let key = SessionKey::for_cli("main", "a");
    let wanted = |may_see| Wanted { query: "code", most: 5, may_see, encoder: None };
    let hidden = Hidden::from([(key.to_string(), HashSet::from([row.to_string()]))]);
    let found = |wanted: Wanted<'_>, hidden: &Hidden| {
        sessions.search.search(&wanted, hidden).unwrap().passages.len()
    };
    assert_eq!(found(wanted(&|_| true), &Hidden::new()), 2);
    assert_eq!(found(wanted(&|_| true), &hidden), 1);
    let others = |shown: &SessionKey| *shown != key;
    assert_eq!(found(wanted(&others), &Hidden::new()), 1);
    let index = directory.path().join("index");
    for name in fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().path()) {
        fs::write(&name, "damaged").unwrap();
    }
    assert_eq!(found(wanted(&|_| true), &Hidden::new()), 2);
}

/// Vectors of three topics.
struct Topics;

impl Encoder for Topics {
    fn identity(&self) -> String {
        "topics".to_owned()
    }

    fn encode(&self, text: &str) -> Result<Box<[f32]>, String> {
        let has = |words: &[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
        let mut vector = vec![0.05_f32; 16];
        vector[0] += f32::from(has(&["boiler", "heating"]));
        vector[5] -= f32::from(has(&["train", "journey"]));
        vector[9] += f32::from(has(&["peanut", "allergy"]));
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        Ok(vector.into_iter().map(|number| number / length).collect())
    }
}

#[test]
fn with_a_model_sessions_are_found_without_a_common_word() {
    let directory = tempfile::tempdir().unwrap();
    let mut sessions = Sessions::new(directory.path());
    sessions.say("a", "The boiler leaks", "Oh.");
    sessions.say("b", "A train to Rome", "At nine.");
    let wanted = |encoder| Wanted { query: "heating", most: 1, may_see: &|_| true, encoder };
    let search = |wanted: Wanted<'_>| {
        let found = sessions.search.search(&wanted, &Hidden::new()).unwrap();
        assert_eq!(found.remark, None);
        found.passages.into_iter().map(|passage| passage.text).collect::<Vec<_>>()
    };
    assert_eq!(search(wanted(None)), [""; 0]);
    for _ in 0..2 {
        assert_eq!(search(wanted(Some(&Topics))), ["user: The boiler leaks\nassistant: Oh."]);
    }
}
