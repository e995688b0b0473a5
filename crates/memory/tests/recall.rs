//! 200 questions over 300 generated sessions: the session with the answer is among the first five passages.
//!
//! Where a model can be made, meanings are compared too. With `--nocapture` the figures are shown.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use myclaw_embed::{Embedder, Weights};
use myclaw_memory::{Encoder, Hidden, SessionSearch, Wanted};
use myclaw_session::{
    Catalog, Entry, LockWait, Meta, MetaPatch, Role, SessionKey, SessionStore, TranscriptMessage,
};
use serde_json::json;

const SESSIONS: usize = 300;
const QUESTIONS: usize = 200;
/// One of so many sessions and questions gets vectors of a model, which take most of the time of this test.
const WITH_MODEL: usize = 3;
/// The share of questions that must be answered within five passages.
const RECALL: f64 = 0.9;
/// The most that the index may take of the logs.
const SHARE: f64 = 0.3;

const PEOPLE: [&str; 25] = [
    "Anna", "Boris", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas",
    "Katya", "Luis", "Mira", "Nadia", "Otto", "Petra", "Quentin", "Rosa", "Stefan", "Tanja",
    "Ulrich", "Vera", "Walter", "Xenia", "Yusuf",
];
const PLACES: [&str; 20] = [
    "Bonn", "Rome", "Lisbon", "Oslo", "Vienna", "Porto", "Ghent", "Malmö", "Krakow", "Dublin",
    "Zürich", "Lyon", "Seville", "Tallinn", "Riga", "Basel", "Turin", "Leeds", "Bergen", "Graz",
];
/// What was talked about: as it was said, as it is asked about, and the answer. `P` is a person, `L` a place, `N` a number.
const TOPICS: [(&str, &str, &str); 12] = [
    (
        "The boiler in P's flat in L leaks, who can fix it?",
        "who repairs P's boiler in L",
        "Mrs Weber comes on day N.",
    ),
    ("Book the train to L for P", "which train does P take to L", "The ICE N leaves at nine."),
    (
        "P is allergic to something, we eat in L",
        "what may P not eat when we are in L",
        "Peanuts; the card is N.",
    ),
    (
        "What did the dentist in L say to P?",
        "result of P's dentist appointment in L",
        "A crown, for N euros.",
    ),
    (
        "Draft the contract with P about the house in L",
        "draft of the contract for the house in L with P",
        "Version N is ready.",
    ),
    (
        "Which present did we buy for P's birthday in L?",
        "what was the birthday present for P in L",
        "A telescope, order N.",
    ),
    (
        "The car of P broke down near L",
        "where did P's car break down, near L",
        "The garage has it under N.",
    ),
    (
        "Compare insurances for P's bakery in L",
        "which insurance for the bakery of P in L",
        "The second, policy N.",
    ),
    (
        "P's visa for the conference in L",
        "when does P's visa for the conference in L run out",
        "In week N.",
    ),
    (
        "Our router in L has a new password, P set it",
        "router password that P set in L",
        "It is on note N.",
    ),
    (
        "Plan the hike with P around L",
        "how long is the hike with P around L",
        "N kilometres, with a hut.",
    ),
    (
        "The invoice of P from L is not paid",
        "unpaid invoice of P from L",
        "Number N, a reminder went out.",
    ),
];
const CHATTER: [(&str, &str); 8] = [
    (
        "What is the weather like?",
        "Cloudy, with some rain in the evening and a light wind from the west.",
    ),
    (
        "Translate this letter please",
        "Here is the translation; two sentences were not clear and are marked.",
    ),
    (
        "Run the tests again",
        "All tests pass now. The failing one compared times; it waits for the event instead.",
    ),
    ("Make a shopping list", "Bread, milk, apples, rice, onions, coffee and washing powder."),
    (
        "Shorten the text to half",
        "Done. I kept the first and the last paragraph and cut the examples in between.",
    ),
    (
        "How do I rotate a picture?",
        "With the image viewer under Edit, or with the command convert and -rotate.",
    ),
    (
        "Remind me what we did yesterday",
        "We sorted the photos of the summer and wrote two letters.",
    ),
    ("Thanks, that is all", "You are welcome. Good night!"),
];

fn filled(text: &str, number: usize) -> String {
    // Each session has another pair of person and place for its topic.
    let (topic, round) = (number % TOPICS.len(), number / TOPICS.len());
    let person = PEOPLE[(round * 7 + topic) % PEOPLE.len()];
    let place = PLACES[(round * 3 + topic * 5) % PLACES.len()];
    let words = text.split_inclusive(|sign: char| !sign.is_alphanumeric());
    words
        .map(|word| {
            let end =
                word.len() - word.trim_end_matches(|sign: char| !sign.is_alphanumeric()).len();
            let (bare, tail) = word.split_at(word.len() - end);
            let bare = match bare {
                "P" => person.to_owned(),
                "L" => place.to_owned(),
                "N" => (number * 37 % 1_000).to_string(),
                other => other.to_owned(),
            };
            bare + tail
        })
        .collect()
}

/// An answer as a run writes it: the text is in the blocks too.
fn answer(text: &str, ts: u64) -> Entry {
    let meta = json!({
        "contentBlocks": [{"type": "text", "text": text}],
        "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-20250514",
        "usage": {"input": 2100, "output": 41, "cacheRead": 1900, "cacheWrite": 120, "totalTokens": 4161,
                  "cost": {"input": 0.0063, "output": 0.0006, "cacheRead": 0.0005, "cacheWrite": 0.0004, "total": 0.0078}},
        "stopReason": "stop",
    });
    let meta = meta.as_object().cloned().map(Meta::from);
    Entry::Message(TranscriptMessage { meta, ..TranscriptMessage::new(Role::Assistant, text, ts) })
}

fn key(number: usize) -> SessionKey {
    SessionKey::for_cli("main", &format!("session-{number}"))
}

fn write_sessions(store: &SessionStore, count: usize) {
    for number in 0..count {
        let (said, _, answered) = TOPICS[number % TOPICS.len()];
        let mut entries = Vec::new();
        for turn in 0..4 {
            let ts = 1_700_000_000_000 + (number * 10 + turn) as u64 * 60_000;
            let (question, reply) = match turn == number % 4 {
                true => (filled(said, number), filled(answered, number)),
                false => {
                    let (question, reply) = CHATTER[(number + turn * 3) % CHATTER.len()];
                    (question.to_owned(), reply.to_owned())
                }
            };
            entries.push(Entry::Message(TranscriptMessage::new(Role::User, question, ts)));
            entries.push(answer(&reply, ts));
        }
        store.open(&key(number), LockWait::Fail).unwrap().append(&entries).unwrap();
        Catalog::update(store, &key(number), MetaPatch::default()).unwrap();
    }
}

/// The share of so many questions whose session is among the first five passages.
fn recall(search: &SessionSearch, questions: usize, encoder: Option<&dyn Encoder>) -> f64 {
    let found = (0..questions).filter(|question| {
        let number = question * 3 / 2;
        let query = filled(TOPICS[number % TOPICS.len()].1, number);
        let wanted = Wanted { query: &query, most: 5, may_see: &|_| true, encoder };
        let passages = search.search(&wanted, &Hidden::new()).unwrap().passages;
        passages.iter().any(|passage| passage.session == key(number).as_str())
    });
    found.count() as f64 / questions as f64
}

fn bytes_of(directory: &Path, ending: &str) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let wanted = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(ending));
    wanted.map(|entry| entry.metadata().unwrap().len()).sum()
}

struct Model(Embedder);

impl Encoder for Model {
    fn identity(&self) -> String {
        self.0.identity()
    }

    fn encode(&self, text: &str) -> Result<Box<[f32]>, String> {
        self.0.embed(text).map_err(|error| error.to_string())
    }
}

#[test]
fn questions_find_their_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let (logs, index) = (directory.path().join("sessions"), directory.path().join("index"));
    let store = Arc::new(SessionStore::new(&logs));
    write_sessions(&store, SESSIONS);
    let search = SessionSearch::new(store, "main", index.clone());
    let by_words = recall(&search, QUESTIONS, None);
    let share = bytes_of(&index, "") as f64 / bytes_of(&logs, ".jsonl") as f64;
    println!("by words: recall {by_words:.3}; the index has {share:.3} of the logs' size");
    assert!(by_words >= RECALL, "{by_words}");
    assert!(share < SHARE, "{share}");
    let Some(python) = std::env::var_os("MYCLAW_MINILM_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_MINILM_PYTHON is not set; scripts/test sets it");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/minilm.py");
    let weights = directory.path().join("weights");
    let made = Command::new(&python).arg(&script).args(["model", "int8"]).arg(&weights).status();
    assert!(made.unwrap().success());
    let model = Model(Weights { directory: weights, source: None }.load(&|_| {}).unwrap());
    let (logs, index) = (directory.path().join("fewer"), directory.path().join("vectors"));
    let store = Arc::new(SessionStore::new(&logs));
    write_sessions(&store, SESSIONS / WITH_MODEL);
    let search = SessionSearch::new(store, "main", index.clone());
    // Each search looks at new passages for a bounded time.
    let wanted =
        Wanted { query: "x", most: 1, may_see: &|_| true, encoder: Some(&model as &dyn Encoder) };
    while search.search(&wanted, &Hidden::new()).unwrap().remark.is_some() {}
    let by_both = recall(&search, QUESTIONS / WITH_MODEL, Some(&model));
    let share = bytes_of(&index, "") as f64 / bytes_of(&logs, ".jsonl") as f64;
    println!(
        "by words and meaning: recall {by_both:.3}; the index has {share:.3} of the logs' size"
    );
    assert!(by_both >= RECALL && share < SHARE, "{by_both} {share}");
}
