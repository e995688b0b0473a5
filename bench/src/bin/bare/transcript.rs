//! One line a message, in the rows of MyClaw's own transcripts.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Fallible;
use crate::stream::{Answer, Call};

/// A message row. Other lines (the header) have no role.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row<'a> {
    #[serde(borrow, default)]
    pub(crate) role: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) content: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) tool_call_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) meta: Meta<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta<'a> {
    #[serde(borrow, default)]
    pub(crate) content_blocks: Vec<Block<'a>>,
}

/// A block of an assistant's row: text, or a tool call.
#[derive(Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) text: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
}

/// The file, open for appending.
pub(crate) struct Transcript {
    file: File,
    next_id: u64,
}

impl Transcript {
    /// Opens the file or makes it, and hands each row to `add`.
    pub(crate) fn open(path: &Path, mut add: impl FnMut(&Row<'_>)) -> Fallible<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut reader = BufReader::with_capacity(256 * 1024, &file);
        let mut line = Vec::new();
        let mut rows = 0;
        while reader.read_until(b'\n', &mut line)? > 0 {
            add(&serde_json::from_slice(&line)?);
            rows += 1;
            line.clear();
        }
        let mut transcript = Self { file, next_id: rows };
        if rows == 0 {
            transcript.write(
                json!({"type": "session", "version": 1, "sessionKey": "bare", "createdAt": now()}),
            )?;
        }
        Ok(transcript)
    }

    pub(crate) fn user(&mut self, text: &str) -> Fallible<()> {
        self.write(json!({"role": "user", "content": text}))
    }

    pub(crate) fn assistant(&mut self, answer: &Answer) -> Fallible<()> {
        let mut blocks = Vec::new();
        if !answer.text.is_empty() {
            blocks.push(json!({"type": "text", "text": answer.text}));
        }
        for Call { id, name, arguments } in &answer.calls {
            let arguments: Value = serde_json::from_str(arguments)?;
            blocks
                .push(json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments}));
        }
        self.write(
            json!({"role": "assistant", "content": answer.text, "meta": {"contentBlocks": blocks}}),
        )
    }

    pub(crate) fn result(&mut self, call: &Call, text: &str) -> Fallible<()> {
        let meta = json!({"toolName": call.name, "isError": false});
        self.write(json!({"role": "tool", "content": text, "toolCallId": call.id, "meta": meta}))
    }

    fn write(&mut self, mut row: Value) -> Fallible<()> {
        row["id"] = json!(self.next_id.to_string());
        row["ts"] = json!(now());
        self.next_id += 1;
        let mut line = row.to_string();
        line.push('\n');
        Ok(self.file.write_all(line.as_bytes())?)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
