//! A transcript that is read as it grows, and what must hold in it at any time.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use myclaw_llm::outside::harmless;
use myclaw_session::EntryId;
use serde_json::{Value, json};

/// What a call gets that a killed run left open.
const INTERRUPTED: &str = "[Tool result missing — session was interrupted]";

/// What was read of a transcript so far.
pub(crate) struct Transcript {
    path: PathBuf,
    /// The whole lines that were read.
    read: Vec<u8>,
    /// All texts that a request may contain: those of the rows, and those that a reduction cut.
    texts: HashSet<String>,
    /// The role and the content of each row, by its id.
    rows: HashMap<String, (String, String)>,
    pub(crate) calls: HashSet<String>,
    /// How many results each call has.
    results: HashMap<String, usize>,
    /// How often each waiting message was taken.
    taken: HashMap<String, usize>,
    pub(crate) interrupted: usize,
    pub(crate) compactions: usize,
    pub(crate) reductions: usize,
}

impl Transcript {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: Vec::new(),
            texts: HashSet::new(),
            rows: HashMap::new(),
            calls: HashSet::new(),
            results: HashMap::new(),
            taken: HashMap::new(),
            interrupted: 0,
            compactions: 0,
            reductions: 0,
        }
    }

    /// Reads what has come since the last time. A torn last line is none, and may be gone the next time; whole lines
    /// stay.
    pub(crate) fn read_on(&mut self, context: &str) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let length = file.metadata().unwrap().len();
        let known = self.read.len() as u64;
        assert!(length >= known, "{context}: the transcript is shorter than it was");
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(known)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let row: Value = serde_json::from_slice(line).unwrap_or_else(|error| {
                panic!("{context}: {error}: {}", String::from_utf8_lossy(line))
            });
            self.take(&row, context);
        }
        self.read.extend_from_slice(&bytes[..whole]);
        for (call, count) in &self.results {
            assert_eq!(*count, 1, "{context}: {call} has one result");
            assert!(self.calls.contains(call), "{context}: {call} was never made");
        }
        for (id, count) in &self.taken {
            assert_eq!(*count, 1, "{context}: {id} was taken once");
        }
    }

    fn take(&mut self, row: &Value, context: &str) {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        match row["type"].as_str() {
            Some("compaction") => {
                self.compactions += 1;
                let summary = text("summary");
                self.texts.insert(format!("[Conversation summary]\n{}", harmless(&summary)));
                let (first, own) = (text("firstKeptId"), text("id"));
                let role = self.rows.get(&first).map(|(role, _)| role.as_str());
                let begins_well = first == own || matches!(role, Some("user" | "assistant"));
                assert!(begins_well, "{context}: a summary keeps from {first} ({role:?}) on");
                return;
            }
            Some("reduction") => {
                self.reductions += 1;
                for message in row["messages"].as_array().unwrap() {
                    let id = message["id"].as_str().unwrap();
                    let row = self.rows.get(id);
                    let (_, content) = row.unwrap_or_else(|| panic!("{context}: {id} is reduced"));
                    let characters = |name: &str| message[name].as_u64().unwrap() as usize;
                    self.texts.extend(cut(content, characters("head"), characters("tail")));
                }
                return;
            }
            Some(_) => return,
            None => {}
        }
        self.rows.insert(text("id"), (text("role"), text("content")));
        self.texts.insert(text("content"));
        self.interrupted += usize::from(row["content"] == INTERRUPTED);
        // The calls of a message that was cut off are not made.
        let is_whole = !matches!(row["meta"]["stopReason"].as_str(), Some("aborted" | "error"));
        for block in row["meta"]["contentBlocks"].as_array().into_iter().flatten() {
            self.calls.extend(block["id"].as_str().filter(|_| is_whole).map(str::to_owned));
            self.texts.extend(block["text"].as_str().map(str::to_owned));
        }
        for id in row["meta"]["queuedIds"].as_array().into_iter().flatten() {
            *self.taken.entry(id.as_str().unwrap().to_owned()).or_default() += 1;
        }
        if row["role"] == "tool" {
            *self.results.entry(text("toolCallId")).or_default() += 1;
        }
    }

    /// Each part of a message that the server has received was stored before.
    pub(crate) fn assert_holds(&self, message: &Value, context: &str) {
        for block in message["content"].as_array().into_iter().flatten() {
            let (part, is_stored) = match block["type"].as_str().unwrap() {
                "tool_result" => {
                    let call = block["tool_use_id"].as_str().unwrap();
                    (call, self.results.contains_key(call))
                }
                "tool_use" => {
                    let call = block["id"].as_str().unwrap();
                    (call, self.calls.contains(call))
                }
                "text" => {
                    let text = block["text"].as_str().unwrap();
                    (text, text.starts_with("<sent>") || self.texts.contains(text))
                }
                other => panic!("{context}: a block of type {other}"),
            };
            assert!(is_stored, "{context}: {} {part:?} was sent but is not stored", block["type"]);
        }
    }

    /// What must hold when a run has come to its end: every call has its result, of what was acknowledged everything is
    /// taken, and no line was changed after it was written.
    pub(crate) fn assert_complete(&self, acknowledged: &[EntryId], context: &str) {
        let stored = std::fs::read(&self.path).unwrap();
        assert!(stored == self.read, "{context}: what was written before has changed");
        for call in &self.calls {
            assert!(self.results.contains_key(call), "{context}: {call} has no result");
        }
        for id in acknowledged {
            let id = json!(id).as_str().unwrap().to_owned();
            assert!(self.taken.contains_key(&id), "{context}: {id} was never taken");
        }
    }

    /// How many waiting messages were taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.len()
    }
}

/// What is sent of a long text of which a reduction keeps only the beginning and the end.
fn cut(text: &str, head: usize, tail: usize) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let removed = characters.len().checked_sub(head + tail).filter(|removed| *removed > 0)?;
    let beginning = characters[..head].iter().collect::<String>();
    let end = characters[head + removed..].iter().collect::<String>();
    Some(format!("{beginning}\n[… {removed} chars left out …]\n{end}"))
}
