//! Session files of Claude Code: `~/.claude/projects/<directory>/<session id>.jsonl`.
//!
//! Each line names its parent; the session is the path that ends with the last message. An answer has one line for each
//! of its blocks, all with the id of the answer. Results of calls that ran side by side may branch off that path.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;

use myclaw_files::portable::FileExt;
use myclaw_session::{CompactionEntry, Entry, EntryId};
use serde_json::{Map, Value, json};

use super::Import;
use super::lines::Lines;
use super::message::time;
use super::pairing::Pairing;
use super::pi::as_title;
use myclaw_front::exit::CliError;

/// The model of messages that Claude Code has written itself.
const SYNTHETIC: &str = "<synthetic>";

/// A line that is a message, or the place of a compaction.
struct Node {
    offset: u64,
    length: usize,
    parent: Option<usize>,
    /// The id of the answer that it is a part of.
    answer: Option<String>,
    /// Whether it holds results of calls.
    has_results: bool,
}

/// The titles of a file; the best one counts.
#[derive(Default)]
struct Titles {
    custom: Option<String>,
    made: Option<String>,
    summary: Option<String>,
}

/// Takes over the path that ends with the last message.
pub(super) fn import(file: &File, path: &Path, import: &mut Import) -> Result<(), CliError> {
    let mut titles = Titles::default();
    let nodes = read_nodes(file, path, &mut titles, import)?;
    let title = titles.custom.or(titles.made).or(titles.summary);
    import.about.title = title.as_deref().and_then(as_title);
    let wanted = wanted(&nodes);
    import.left_out.add_many("message of other branches", (nodes.len() - wanted.len()) as u64);
    let mut taker = Taker { pairing: Pairing::new(), answer: None, results: Vec::new() };
    let mut line = Vec::new();
    for node in wanted.into_iter().filter_map(|at| nodes.get(at)) {
        line.resize(node.length, 0);
        file.read_exact_at(&mut line, node.offset)
            .map_err(|error| super::cannot_read(path, &error))?;
        // The same line was parsed as an object before.
        if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(&line) {
            taker.take(&fields, import)?;
        }
    }
    taker.flush(import)?;
    taker.pairing.close(import)?;
    import.last_ts = Some(taker.pairing.time());
    Ok(())
}

fn read_nodes(
    file: &File,
    path: &Path,
    titles: &mut Titles,
    import: &mut Import,
) -> Result<Vec<Node>, CliError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut lines = Lines::new(file, path);
    while let Some(line) = lines.next()? {
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(line.bytes) else {
            let kind = if line.is_terminated { "damaged line" } else { "half a last line" };
            import.left_out.add(kind);
            continue;
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let is = |name: &str| fields.get(name) == Some(&Value::Bool(true));
        let kind = text("type").unwrap_or_default();
        let parent = text("parentUuid").or_else(|| text("logicalParentUuid"));
        let parent = parent.and_then(|parent| by_id.get(parent).copied());
        match kind {
            "custom-title" => titles.custom = text("customTitle").map(str::to_owned),
            "ai-title" => titles.made = text("aiTitle").map(str::to_owned),
            "summary" => titles.summary = text("summary").map(str::to_owned),
            "user" | "assistant" if is("isSidechain") => {
                import.left_out.add("message of a sub-agent")
            }
            "user" if is("isMeta") => import.left_out.add("note of the program"),
            "assistant" if is("isApiErrorMessage") => {
                import.left_out.add("failure of the provider")
            }
            "user" | "assistant" => {
                let message = fields.get("message");
                let field = |name: &str| message.and_then(|message| message.get(name));
                let id = field("id").and_then(Value::as_str).filter(|_| kind == "assistant");
                by_id.extend(text("uuid").map(|uuid| (uuid.to_owned(), nodes.len())));
                nodes.push(Node {
                    offset: line.offset,
                    length: line.bytes.len(),
                    parent,
                    answer: id.map(str::to_owned),
                    has_results: kind == "user" && results(field("content")).next().is_some(),
                });
                continue;
            }
            kind => import.left_out.add_named("line of the type", kind),
        }
        // What is left out still leads from one message to the next.
        if let (Some(uuid), Some(parent)) = (text("uuid"), parent) {
            by_id.insert(uuid.to_owned(), parent);
        }
    }
    Ok(nodes)
}

/// The nodes from the root to the last one, with the other parts of their answers and the results of their calls, in the
/// order of the file.
fn wanted(nodes: &[Node]) -> Vec<usize> {
    let mut path: HashSet<usize> = HashSet::new();
    let mut next = nodes.len().checked_sub(1);
    while let Some(at) = next {
        path.insert(at);
        next = nodes.get(at).and_then(|node| node.parent).filter(|parent| *parent < at);
    }
    let answers: HashSet<&str> =
        path.iter().filter_map(|at| nodes.get(*at)?.answer.as_deref()).collect();
    let mut found: HashSet<usize> = path.clone();
    for (at, node) in nodes.iter().enumerate() {
        let is_part = node.answer.as_deref().is_some_and(|answer| answers.contains(answer));
        let is_result = node.has_results && node.parent.is_some_and(|at| found.contains(&at));
        if is_part || is_result {
            found.insert(at);
        }
    }
    let mut wanted: Vec<usize> = found.into_iter().collect();
    wanted.sort_unstable();
    wanted
}

/// The results of calls in the content of a user's message.
fn results(content: Option<&Value>) -> impl Iterator<Item = &Value> {
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_result"))
}

/// Puts the parts of an answer together.
struct Taker {
    pairing: Pairing,
    /// The answer so far, with its id.
    answer: Option<(String, Value)>,
    /// Results that came before the answer was complete.
    results: Vec<Value>,
}

impl Taker {
    fn take(&mut self, fields: &Map<String, Value>, import: &mut Import) -> Result<(), CliError> {
        let ts = fields.get("timestamp").and_then(time);
        let null = Value::Null;
        let message = fields.get("message").unwrap_or(&null);
        let content = message.get("content").unwrap_or(&null);
        let is_user = fields.get("type").and_then(Value::as_str) == Some("user");
        if !is_user {
            return self.part(ts, message, content, import);
        }
        let of_calls: Vec<Value> = results(Some(content)).cloned().collect();
        if !of_calls.is_empty() {
            self.results.extend(of_calls);
        }
        let said = match content {
            Value::Array(blocks) => {
                let is_said = |block: &&Value| {
                    block.get("type").and_then(Value::as_str) != Some("tool_result")
                };
                Value::Array(blocks.iter().filter(is_said).cloned().collect())
            }
            other => other.clone(),
        };
        let is_empty = match &said {
            Value::Array(blocks) => blocks.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => true,
        };
        if is_empty {
            return Ok(());
        }
        self.flush(import)?;
        self.pairing.set_time(ts);
        if fields.get("isCompactSummary") == Some(&Value::Bool(true)) {
            self.pairing.close(import)?;
            return import.entry(compaction(&said, self.pairing.time()));
        }
        self.pairing.message(&json!({"role": "user", "content": said}), [], import)
    }

    /// A line of an answer.
    fn part(
        &mut self,
        ts: Option<u64>,
        message: &Value,
        content: &Value,
        import: &mut Import,
    ) -> Result<(), CliError> {
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("model") == SYNTHETIC {
            import.left_out.add("note of the program");
            return Ok(());
        }
        let id = text("id").to_owned();
        let blocks = content.as_array().cloned().unwrap_or_default();
        match &mut self.answer {
            Some((open, answer)) if *open == id && !id.is_empty() => {
                if let Some(content) = answer.get_mut("content").and_then(Value::as_array_mut) {
                    content.extend(blocks);
                }
                if let (Some(fields), Some(usage)) = (answer.as_object_mut(), message.get("usage"))
                {
                    fields.insert("usage".to_owned(), usage.clone());
                }
                return Ok(());
            }
            _ => self.flush(import)?,
        }
        self.pairing.set_time(ts);
        let answer = json!({
            "role": "assistant", "api": "anthropic-messages", "provider": "anthropic",
            "model": text("model"), "content": blocks, "usage": message.get("usage"),
            "stop_reason": message.get("stop_reason"), "timestamp": self.pairing.time(),
        });
        self.answer = Some((id, answer));
        Ok(())
    }

    /// Adds the answer and the results.
    fn flush(&mut self, import: &mut Import) -> Result<(), CliError> {
        if let Some((_, answer)) = self.answer.take() {
            let blocks = answer.get("content").and_then(Value::as_array).into_iter().flatten();
            let calls: Vec<(String, String)> = blocks
                .filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_use"))
                .filter_map(|call| {
                    let text = |name: &str| Some(call.get(name)?.as_str()?.to_owned());
                    Some((text("id")?, text("name")?))
                })
                .collect();
            self.pairing.message(&answer, calls, import)?;
        }
        for result in std::mem::take(&mut self.results) {
            let id = result.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            let is_error = result.get("is_error") == Some(&Value::Bool(true));
            let content = result.get("content").unwrap_or(&Value::Null);
            self.pairing.result(id, content, is_error, import)?;
        }
        Ok(())
    }
}

/// A summary that replaces everything before it.
fn compaction(said: &Value, ts: u64) -> Entry {
    let text = match said {
        Value::String(text) => text.clone(),
        blocks => {
            let blocks = blocks.as_array().into_iter().flatten();
            let texts = blocks.filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let id = EntryId::generate();
    Entry::Compaction(CompactionEntry {
        id,
        ts,
        summary: text,
        first_kept_id: id,
        tokens_before: 0,
        old_count: 0,
        new_count: 0,
    })
}
