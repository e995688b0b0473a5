//! The calls of a running script.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{InnerCalls, ToolOutput};
use myclaw_exec::{OwnedReadHalf, UnixListener, UnixStream};
use myclaw_files::shortened;
use myclaw_llm::outside::unmarked;
use myclaw_llm::{ContentBlock, ToolCall, joined_text};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client::ScriptAnswer;
use crate::definition::{FINDER, SEPARATOR};

/// Most calls of one script.
const MAX_CALLS: usize = 100;
/// Longest line with a call, in bytes.
const MAX_LINE: u64 = 1 << 20;
/// How long a line may take to be read or written; everybody is on this machine.
const LINE_LIMIT: Duration = Duration::from_secs(10);
/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(200);
/// Most bytes of the arguments of a call in the log.
const MAX_NOTED: usize = 1_000;

/// A call as a script writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

type Reading = BufReader<Take<OwnedReadHalf>>;

/// The calls of one script, one after the other.
pub(super) struct Calls<'a> {
    engine: &'a dyn InnerCalls,
    /// The id of the script's own call.
    outer: &'a str,
    /// Fires when the script has ended.
    ended: &'a CancellationToken,
    is_calling: AtomicBool,
    made: Mutex<Vec<Value>>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        engine: &'a dyn InnerCalls,
        outer: &'a str,
        ended: &'a CancellationToken,
    ) -> Self {
        let (is_calling, made) = (AtomicBool::new(false), Mutex::default());
        Self { engine, outer, ended, is_calling, made }
    }

    /// The calls so far, for the log.
    pub(super) fn made(&self) -> Vec<Value> {
        self.made.lock().clone()
    }

    /// Returns when the script has used up its own time. That of its calls does not count.
    pub(super) async fn own_time_is_over(&self, limit: Duration) {
        let mut used = Duration::ZERO;
        while used < limit {
            sleep(TICK).await;
            if !self.is_calling.load(Ordering::Relaxed) {
                used += TICK;
            }
        }
    }

    /// Answers until the script has ended.
    pub(super) async fn answer_all(&self, listener: UnixListener) {
        loop {
            tokio::select! {
                biased;
                () = self.ended.cancelled() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.answer(stream).await,
                    Err(_) => sleep(TICK).await,
                },
            }
        }
    }

    async fn answer(&self, stream: UnixStream) {
        let (reading, mut writing) = stream.into_split();
        let mut reading = BufReader::new(reading.take(MAX_LINE));
        let mut line = Vec::new();
        let read = tokio::select! {
            () = self.ended.cancelled() => return,
            read = timeout(LINE_LIMIT, reading.read_until(b'\n', &mut line)) => read,
        };
        if !matches!(read, Ok(Ok(1..))) {
            return;
        }
        let answer = match serde_json::from_slice::<Wanted>(&line) {
            Ok(wanted) => self.call(wanted, &mut reading).await,
            Err(error) => ScriptAnswer::failed(format!(
                "a call is one line of JSON of at most {} KB, with `server`, `tool` and `arguments`: {error}",
                MAX_LINE >> 10
            )),
        };
        let mut bytes = serde_json::to_vec(&answer).unwrap_or_default();
        bytes.push(b'\n');
        tokio::select! {
            () = self.ended.cancelled() => {}
            // A script that does not read its answer does without it.
            _ = timeout(LINE_LIMIT, writing.write_all(&bytes)) => {}
        }
    }

    async fn call(&self, wanted: Wanted, reading: &mut Reading) -> ScriptAnswer {
        let number = self.made.lock().len() + 1;
        if number > MAX_CALLS {
            return ScriptAnswer::failed(format!("a script makes at most {MAX_CALLS} calls"));
        }
        let name = format!("{}{SEPARATOR}{}", wanted.server, wanted.tool);
        let mut shown = json!({"tool": name, "arguments": noted(&wanted.arguments)});
        let arguments = Map::from_iter([
            ("call".to_owned(), json!(name)),
            ("arguments".to_owned(), Value::Object(wanted.arguments)),
        ]);
        let call = ToolCall {
            id: format!("{}.{number}", self.outer),
            name: FINDER.to_owned(),
            arguments,
            invalid_arguments: None,
            thought_signature: None,
        };
        let started = Instant::now();
        self.is_calling.store(true, Ordering::Relaxed);
        let given_up = self.ended.child_token();
        let mut making: BoxFuture<'_, ToolOutput> = self.engine.make(call, &given_up);
        let output = tokio::select! {
            output = &mut making => output,
            () = is_gone(reading) => {
                given_up.cancel();
                making.await
            }
        };
        self.is_calling.store(false, Ordering::Relaxed);
        shown["isError"] = json!(output.is_error);
        shown["durationMs"] = json!(started.elapsed().as_millis() as u64);
        self.made.lock().push(shown);
        answer_of(&output)
    }
}

/// Returns when nobody waits for the answer any more.
async fn is_gone(reading: &mut Reading) {
    let mut rest = [0; 64];
    reading.get_mut().set_limit(MAX_LINE);
    while matches!(reading.read(&mut rest).await, Ok(1..)) {}
}

/// The arguments of a call for the log.
fn noted(arguments: &Map<String, Value>) -> Value {
    let text = Value::Object(arguments.clone()).to_string();
    match shortened(&text, MAX_NOTED) {
        Cow::Owned(cut) => json!(cut),
        Cow::Borrowed(_) => Value::Object(arguments.clone()),
    }
}

/// A result as a script gets it: without the marks that a model needs.
fn answer_of(output: &ToolOutput) -> ScriptAnswer {
    let whole = joined_text(&output.content, "\n");
    let (text, mut note) = match unmarked(&whole) {
        Some((inside, behind)) if !output.is_error => (inside.to_owned(), behind.trim().to_owned()),
        _ => (whole, String::new()),
    };
    if output.content.iter().any(|block| matches!(block, ContentBlock::Image(_))) {
        note.push_str("\npictures are left out: call the tool outside of a script to see them");
    }
    ScriptAnswer { text, note: note.trim().to_owned(), is_error: output.is_error }
}
