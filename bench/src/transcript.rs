//! Long sessions to continue.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::contestant::SESSION_KEY;
use crate::scenario::History;

/// Messages of one round: a question, a tool call, its result, an answer.
const ROUND: usize = 4;

/// The beginning of the session, in milliseconds since the epoch; any value will do.
const BEGAN: u64 = 1_760_000_000_000;

/// Messages that a summary leaves unchanged.
const KEPT: usize = 200;

/// Writes a transcript of `messages` messages (rounded up to whole rounds), in which every tool call has its
/// result, and returns its length in bytes.
pub(crate) fn write(path: &Path, messages: usize, history: History) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    let header =
        json!({"type": "session", "version": 1, "sessionKey": SESSION_KEY, "createdAt": BEGAN});
    writeln!(out, "{header}")?;
    for round in 0..messages.div_ceil(ROUND) {
        for (place, mut row) in rows(round).into_iter().enumerate() {
            let number = round * ROUND + place;
            row["id"] = json!(format!("m{number}"));
            row["ts"] = json!(BEGAN + number as u64 * 1000);
            writeln!(out, "{row}")?;
        }
    }
    if history == History::Compacted {
        let first_kept = messages.saturating_sub(KEPT) / ROUND * ROUND;
        let entry = json!({
            "type": "compaction", "id": "summary", "ts": BEGAN + messages as u64 * 1000,
            "summary": "The user asked about many files, one after the other.", "firstKeptId": format!("m{first_kept}"),
            "tokensBefore": 150_000, "oldCount": messages, "newCount": KEPT + 1,
        });
        writeln!(out, "{entry}")?;
    }
    let file = out.into_inner()?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn rows(round: usize) -> [Value; ROUND] {
    let call = format!("call_{round}");
    let ask =
        format!("What is in the file number {round}, and does it differ from the one before?");
    let look = "Let me look at it.";
    let found =
        format!("line one of file {round}\nline two of file {round}\nline three of file {round}");
    let answer = format!(
        "The file number {round} has three lines. It differs from the one before in its number only."
    );
    let arguments = json!({"path": format!("notes/file-{round}.txt")});
    let call_block =
        json!({"type": "toolCall", "id": call, "name": "read", "arguments": arguments});
    [
        json!({"role": "user", "content": ask}),
        json!({
            "role": "assistant", "content": look,
            "meta": assistant_meta(&[json!({"type": "text", "text": look}), call_block], "toolUse"),
        }),
        json!({
            "role": "tool", "content": found, "toolCallId": call,
            "meta": {"toolName": "read", "isError": false},
        }),
        json!({
            "role": "assistant", "content": answer,
            "meta": assistant_meta(&[json!({"type": "text", "text": answer})], "stop"),
        }),
    ]
}

fn assistant_meta(blocks: &[Value], stop_reason: &str) -> Value {
    json!({
        "contentBlocks": blocks, "api": "anthropic-messages", "provider": "anthropic",
        "model": "claude-sonnet-4-20250514", "stopReason": stop_reason,
        "usage": {"input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 120},
    })
}
