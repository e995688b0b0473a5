//! Session files of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.
//!
//! A line has a type and a payload. What the model read and wrote are the response items: texts, calls and results, one
//! a line. Older files hold the items themselves, without payloads.

use std::fs::File;
use std::path::Path;

use myclaw_files::portable::FileExt;
use myclaw_session::{CompactionEntry, Entry, EntryId};
use serde_json::{Map, Value, json};

use super::Import;
use super::lines::Lines;
use super::message::time;
use super::pairing::Pairing;
use myclaw_front::exit::CliError;

/// What Codex puts before a session as if the user had said it.
const CONTEXT: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<turn_aborted>",
];

/// A line that becomes a part of the session.
struct Piece {
    offset: u64,
    length: usize,
    /// Whether the user said it.
    is_said: bool,
}

/// Takes over the items, without the turns that were rolled back.
pub(super) fn import(file: &File, path: &Path, import: &mut Import) -> Result<(), CliError> {
    let pieces = read_pieces(file, path, import)?;
    let mut taker = Taker {
        pairing: Pairing::new(),
        answer: Answer::default(),
        model: String::new(),
        provider: "openai".to_owned(),
    };
    let mut line = Vec::new();
    for piece in pieces {
        line.resize(piece.length, 0);
        file.read_exact_at(&mut line, piece.offset)
            .map_err(|error| super::cannot_read(path, &error))?;
        if let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(&line) {
            taker.take(&fields, import)?;
        }
    }
    taker.flush(import)?;
    taker.pairing.close(import)?;
    import.last_ts = Some(taker.pairing.time());
    Ok(())
}

/// The type and the content of a line; those of an older file are one.
fn parts(fields: &Map<String, Value>) -> (&str, Option<&Map<String, Value>>) {
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    match fields.get("payload").and_then(Value::as_object) {
        Some(payload) => (kind, Some(payload)),
        None if kind.is_empty() => ("session_meta", None),
        None => ("response_item", Some(fields)),
    }
}

fn read_pieces(file: &File, path: &Path, import: &mut Import) -> Result<Vec<Piece>, CliError> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut lines = Lines::new(file, path);
    while let Some(line) = lines.next()? {
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(line.bytes) else {
            let kind = if line.is_terminated { "damaged line" } else { "half a last line" };
            import.left_out.add(kind);
            continue;
        };
        let (kind, payload) = parts(&fields);
        let empty = Map::new();
        let payload = payload.unwrap_or(&empty);
        let inner = payload.get("type").and_then(Value::as_str).unwrap_or_default();
        match (kind, inner) {
            ("event_msg", "thread_rolled_back") => {
                let turns = payload.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
                roll_back(&mut pieces, turns, import);
            }
            ("event_msg", "token_count") => {
                let total = payload.get("info").and_then(|info| info.get("total_token_usage"));
                let total = total.and_then(|total| total.get("total_tokens")?.as_u64());
                import.tokens = total.unwrap_or(0).max(import.tokens);
            }
            // The same as the items, for display.
            ("event_msg" | "session_meta", _) => {}
            ("response_item", _) | ("turn_context" | "compacted", _) => {
                let is_said = inner == "message"
                    && payload.get("role").and_then(Value::as_str) == Some("user")
                    && !is_context(&said(payload));
                pieces.push(Piece { offset: line.offset, length: line.bytes.len(), is_said });
            }
            (kind, _) => import.left_out.add_named("line of the type", kind),
        }
    }
    Ok(pieces)
}

/// Removes the last turns.
fn roll_back(pieces: &mut Vec<Piece>, turns: u64, import: &mut Import) {
    for _ in 0..turns {
        let Some(at) = pieces.iter().rposition(|piece| piece.is_said) else { break };
        import.left_out.add_many("line that was rolled back", (pieces.len() - at) as u64);
        pieces.truncate(at);
    }
}

/// The text of a message.
fn said(item: &Map<String, Value>) -> String {
    match item.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks
            .iter()
            .filter_map(|block| block.get("text")?.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

fn is_context(text: &str) -> bool {
    CONTEXT.iter().any(|mark| text.trim_start().starts_with(mark))
}

/// The parts of an answer that follow each other.
#[derive(Default)]
struct Answer {
    content: Vec<Value>,
    thinking: Vec<String>,
    calls: Vec<(String, String, String)>,
}

struct Taker {
    pairing: Pairing,
    answer: Answer,
    model: String,
    provider: String,
}

impl Taker {
    fn take(&mut self, fields: &Map<String, Value>, import: &mut Import) -> Result<(), CliError> {
        let ts = fields.get("timestamp").and_then(time);
        let (kind, Some(payload)) = parts(fields) else { return Ok(()) };
        let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "turn_context" => {
                self.flush(import)?;
                text("model").clone_into(&mut self.model);
                return Ok(());
            }
            "compacted" => {
                self.flush(import)?;
                self.pairing.set_time(ts);
                self.pairing.close(import)?;
                return self.compaction(text("message"), import);
            }
            _ => {}
        }
        match text("type") {
            "message" => self.message(ts, payload, import),
            "reasoning" => {
                let summary =
                    payload.get("summary").and_then(Value::as_array).into_iter().flatten();
                let texts = summary.filter_map(|part| part.get("text")?.as_str());
                self.answer.thinking.extend(texts.map(str::to_owned));
                let is_hidden = payload.get("encrypted_content").is_some_and(Value::is_string);
                import.left_out.add_many("encrypted reasoning", u64::from(is_hidden));
                Ok(())
            }
            "function_call" => self.call(ts, text("call_id"), text("name"), text("arguments")),
            "custom_tool_call" => {
                let arguments = json!({"input": text("input")}).to_string();
                self.call(ts, text("call_id"), text("name"), &arguments)
            }
            "local_shell_call" => {
                let arguments = payload.get("action").cloned().unwrap_or_else(|| json!({}));
                let id = Some(text("call_id")).filter(|id| !id.is_empty()).unwrap_or(text("id"));
                self.call(ts, id, "shell", &arguments.to_string())
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.flush(import)?;
                self.pairing.set_time(ts);
                let (content, is_error) = output(payload.get("output"));
                self.pairing.result(text("call_id"), &content, is_error, import)
            }
            kind => {
                import.left_out.add_named("item of the type", kind);
                Ok(())
            }
        }
    }

    fn message(
        &mut self,
        ts: Option<u64>,
        item: &Map<String, Value>,
        import: &mut Import,
    ) -> Result<(), CliError> {
        let blocks = blocks(item.get("content"));
        match item.get("role").and_then(Value::as_str) {
            Some("assistant") => {
                self.begin(ts);
                self.answer.content.extend(blocks);
                Ok(())
            }
            Some("user") if !is_context(&said(item)) => {
                self.flush(import)?;
                self.pairing.set_time(ts);
                self.pairing.message(&json!({"role": "user", "content": blocks}), [], import)
            }
            _ => {
                import.left_out.add("context of the program");
                Ok(())
            }
        }
    }

    /// The time of an answer is that of its first part.
    fn begin(&mut self, ts: Option<u64>) {
        if self.answer.content.is_empty() && self.answer.calls.is_empty() {
            self.pairing.set_time(ts);
        }
    }

    fn call(
        &mut self,
        ts: Option<u64>,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), CliError> {
        self.begin(ts);
        self.answer.calls.push((id.to_owned(), name.to_owned(), arguments.to_owned()));
        Ok(())
    }

    /// Adds the answer.
    fn flush(&mut self, import: &mut Import) -> Result<(), CliError> {
        let Answer { content, thinking, calls } = std::mem::take(&mut self.answer);
        if content.is_empty() && calls.is_empty() {
            // Reasoning belongs to what follows it.
            self.answer.thinking = thinking;
            return Ok(());
        }
        let named = calls.iter().map(|(id, name, _)| (id.clone(), name.clone()));
        let named: Vec<(String, String)> = named.collect();
        let calls: Vec<Value> = calls
            .into_iter()
            .map(|(id, name, arguments)| {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        let answer = json!({
            "role": "assistant", "provider": self.provider, "model": self.model, "content": content,
            "reasoning": thinking.join("\n\n"), "tool_calls": calls, "timestamp": self.pairing.time(),
        });
        self.pairing.message(&answer, named, import)
    }

    /// A summary that replaces everything before it; one that only Codex can read is left out.
    fn compaction(&mut self, summary: &str, import: &mut Import) -> Result<(), CliError> {
        if summary.trim().is_empty() {
            import.left_out.add("summary without a text");
            return Ok(());
        }
        let id = EntryId::generate();
        import.entry(Entry::Compaction(CompactionEntry {
            id,
            ts: self.pairing.time(),
            summary: summary.to_owned(),
            first_kept_id: id,
            tokens_before: 0,
            old_count: 0,
            new_count: 0,
        }))
    }
}

/// The blocks of a message in the form of OpenAI's chat interface.
fn blocks(content: Option<&Value>) -> Vec<Value> {
    let Some(Value::Array(blocks)) = content else {
        let text = content.and_then(Value::as_str).unwrap_or_default();
        return vec![json!({"type": "text", "text": text})];
    };
    let block = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("input_text" | "output_text") => json!({"type": "text", "text": block.get("text")}),
        Some("input_image") => {
            json!({"type": "image_url", "image_url": {"url": block.get("image_url")}})
        }
        _ => block.clone(),
    };
    blocks.iter().map(block).collect()
}

/// The result of a call, and whether it is a failure.
fn output(output: Option<&Value>) -> (Value, bool) {
    let Some(output) = output else { return (Value::from(""), false) };
    match output {
        Value::String(text) => {
            // Older versions wrapped the text.
            let Ok(Value::Object(wrapped)) = serde_json::from_str::<Value>(text) else {
                return (output.clone(), false);
            };
            let code =
                wrapped.get("metadata").and_then(|metadata| metadata.get("exit_code")?.as_i64());
            match wrapped.get("output") {
                Some(Value::String(inner)) => {
                    (inner.as_str().into(), code.is_some_and(|code| code != 0))
                }
                _ => (output.clone(), false),
            }
        }
        Value::Object(fields) => {
            let is_error = fields.get("success") == Some(&Value::Bool(false));
            (fields.get("content").cloned().unwrap_or_default(), is_error)
        }
        blocks => (Value::Array(self::blocks(Some(blocks))), false),
    }
}
