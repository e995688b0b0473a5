//! The model of the chaos test: who asks it, for what, and how long tools run.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use myclaw_testkit::{RecordedRequest, Step};
use parking_lot::Mutex;

use super::*;

/// Of so many messages, one leads to a tool.
const PER_TOOL: u64 = 6;
/// How often a tool says that it is there, and the pause between: longer than a lease if a fault waits for it.
const BEATS: (u64, u64) = (6, 200);
const BEAT_MS: u64 = 20;
/// How long an answer takes, in milliseconds, if a fault waits for a call.
const SLOW_MS: u64 = 1_500;

#[derive(Default)]
pub(crate) struct Stage {
    /// Answers and tools take long.
    pub(crate) is_slow: AtomicBool,
    /// Each message leads to a tool.
    pub(crate) wants_tools: AtomicBool,
    /// The node of the last call, and that of the last one that led to a tool.
    pub(crate) asker: Mutex<Option<usize>>,
    pub(crate) with_tool: Mutex<Option<usize>>,
    calls: AtomicU64,
}

impl Stage {
    /// A model that repeats what it was asked, after a moment, and uses a tool now and then.
    pub(crate) fn model(self: &Arc<Self>) -> ModelServer {
        let stage = Arc::clone(self);
        ModelServer::spawn_blocking_thread(Script::answer_with(move |request, _| {
            stage.answer(request)
        }))
    }

    fn answer(&self, request: &RecordedRequest) -> Step {
        let node = request.header("x-api-key").and_then(|key| key.strip_prefix("key-"));
        let node = node.unwrap().parse().unwrap();
        *self.asker.lock() = Some(node);
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let is_slow = self.is_slow.load(Ordering::SeqCst);
        let messages = request.messages();
        let since = messages.iter().rposition(|message| {
            message["role"] == "assistant" && message["content"].to_string().contains("re: ")
        });
        let new = json!(&messages[since.map_or(0, |at| at + 1)..]).to_string();
        let words: Vec<&str> = new
            .split('<')
            .filter_map(|rest| Some(rest.split_once('>')?.0))
            .filter(|word| word.starts_with('m') && word[1..].parse::<u64>().is_ok())
            .collect();
        let is_for_tool = |word: &&str| word[1..].parse::<u64>().unwrap().is_multiple_of(PER_TOOL);
        let wants_tool = self.wants_tools.load(Ordering::SeqCst) || words.iter().any(is_for_tool);
        // Those of chats do not say where they are.
        let may_use_tool = new.contains(" in s") && !new.contains("tool_result");
        if wants_tool && may_use_tool {
            *self.with_tool.lock() = Some(node);
            let session = new.split(" in ").nth(1).and_then(|rest| rest.get(..2)).unwrap_or("s0");
            let beats = if is_slow { BEATS.1 } else { BEATS.0 };
            let command = format!(
                "for _ in $(seq {beats}); do date +%s%3N >> beats.{session}.{call}; sleep 0.0{BEAT_MS}; done"
            );
            let call = format!("call_{call}");
            return Reply::anthropic().tool_call(call, "bash", json!({"command": command})).step();
        }
        let mut marks: Vec<String> = words.iter().map(|word| format!("<{word}>")).collect();
        marks.dedup();
        let pause = if is_slow { SLOW_MS } else { call * 7 % 40 };
        let text = format!("re: {}", marks.join(" "));
        Reply::anthropic().text(text).step().delay(std::time::Duration::from_millis(pause))
    }
}

/// The last sign of each tool that this machine ran: the session, and the time in milliseconds since the Unix epoch.
pub(crate) fn last_beats(machine: &Machine) -> Vec<(String, i64)> {
    let mut beats = Vec::new();
    for file in fs::read_dir(machine.home.workspace()).into_iter().flatten() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(rest) = name.strip_prefix("beats.") else { continue };
        let text = fs::read_to_string(&path).unwrap();
        let last = text.lines().rev().find_map(|line| line.parse().ok());
        beats.extend(last.map(|last| (rest[..2].to_owned(), last)));
    }
    beats
}
