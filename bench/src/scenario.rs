//! What happens in a measured turn.

use myclaw_testkit::{Reply, Script};
use serde_json::json;

/// Tool calls of a turn with tools: enough for a median of the gaps.
const TOOL_CALLS: usize = 9;

/// Bytes of the file of a turn with reads.
const LARGE_FILE: usize = 2_000_000;
/// The name of that file, in the workspace.
pub(crate) const LARGE_FILE_NAME: &str = "large.txt";
/// Lines that each of the reads shows.
const LINES_READ: usize = 200;

/// A turn and the session that it continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A short answer to the first message.
    Plain,
    /// Calls of `bash` with `true` and a number, one after the other, then a short answer.
    Tools,
    /// Calls of `read` for some lines of a file of 2 MB, one after the other, then a short answer.
    Reads,
    /// An answer of so many deltas.
    Stream { deltas: usize, arrival: Arrival },
    /// A short answer in a session with this many messages.
    Session {
        messages: usize,
        history: History,
        /// Bytes of the transcript before the turn.
        transcript: u64,
    },
}

/// How the deltas of a stream arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Each in a write of its own, as a model produces them.
    OneByOne,
    /// Many in one write, as a proxy or a fast model sends them.
    InBursts,
}

/// The state of a long session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// Every message is there as it was said.
    Whole,
    /// A summary replaces all but the last messages.
    Compacted,
}

impl Scenario {
    /// What the server answers. Bodies are not checked: with megabytes of messages that would take the machine's time.
    pub(crate) fn script(self) -> Script {
        let last = Reply::anthropic().text("All is well.");
        let script = match self {
            Self::Plain => Script::from(last),
            Self::Session { .. } => Script::repeat(last),
            Self::Stream { deltas, arrival } => {
                let answer = Reply::anthropic().repeated_text(" word", deltas).step();
                Script::from(match arrival {
                    Arrival::OneByOne => answer.event_by_event(),
                    Arrival::InBursts => answer,
                })
            }
            Self::Tools => (0..TOOL_CALLS)
                .map(|number| {
                    Reply::anthropic().tool_call(
                        format!("call_{number}"),
                        "bash",
                        // Calls that differ: a model that repeats itself is stopped.
                        json!({"command": format!("true {number}")}),
                    )
                })
                .chain([last])
                .collect(),
            Self::Reads => (0..TOOL_CALLS)
                .map(|number| {
                    let first = number * LINES_READ + 1;
                    Reply::anthropic().tool_call(
                        format!("call_{number}"),
                        "read",
                        json!({"path": LARGE_FILE_NAME, "startLine": first, "endLine": first + LINES_READ - 1}),
                    )
                })
                .chain([last])
                .collect(),
        };
        script.accept_invalid_requests()
    }

    /// Whether a turn of so many model calls is one.
    pub(crate) fn may_call(self, calls: usize) -> bool {
        match self {
            Self::Plain | Self::Stream { .. } => calls == 1,
            Self::Tools | Self::Reads => calls == TOOL_CALLS + 1,
            // What is longer than the model's window may be summarised first.
            Self::Session { .. } => calls >= 1,
        }
    }

    /// For messages about a failed run.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Plain => "a plain turn".to_owned(),
            Self::Tools => "a turn with tools".to_owned(),
            Self::Reads => "a turn that reads a file of 2 MB".to_owned(),
            Self::Stream { deltas, arrival: Arrival::OneByOne } => {
                format!("a stream of {deltas} deltas, one by one")
            }
            Self::Stream { deltas, arrival: Arrival::InBursts } => {
                format!("a stream of {deltas} deltas, in bursts")
            }
            Self::Session { messages, history: History::Whole, .. } => {
                format!("a session of {messages} messages")
            }
            Self::Session { messages, history: History::Compacted, .. } => {
                format!("a session of {messages} messages, compacted")
            }
        }
    }
}

/// The content of the file that is read.
pub(crate) fn large_file() -> String {
    let mut text = String::with_capacity(LARGE_FILE + 100);
    for number in 0.. {
        if text.len() >= LARGE_FILE {
            break;
        }
        text.push_str(&format!("line {number} of a file that somebody wrote a long time ago\n"));
    }
    text
}
