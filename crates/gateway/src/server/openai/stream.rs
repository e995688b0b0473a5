//! An answer as it arrives, for programs that speak OpenAI's protocols.
//!
//! Pieces come from the events of the session, which may be lost; the whole answer comes from the store, which is not. So
//! the end of a stream sends what the pieces lacked.

use std::sync::Arc;

use futures_util::Stream;
use myclaw_delivery::rows::MessageId;
use myclaw_gateway_client::{Lacking, TakeUp};
use myclaw_llm::ToolCall;
use myclaw_session::SessionKey;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Answer, Failure};
use crate::hub::{Since, Watching};
use crate::server::Server;

/// Pieces that wait for the client. One that reads slowly makes the stream wait, and nobody else.
const MOST_PIECES: usize = 64;
/// Between the texts of two model calls.
const BETWEEN: &str = "\n\n";

/// What is in the events that count.
const WANTED: [&str; 6] =
    ["text_delta", "\"taken\"", "\"run_start\"", "\"llm_start\"", "\"llm_end\"", "\"done\""];

/// A part of a stream.
#[derive(Debug)]
pub(in crate::server) enum Piece {
    /// More text.
    Text(String),
    /// The whole answer and what it used, or the status and the body of an error.
    End(Box<Result<Whole, Failure>>),
}

/// The end of an answer.
#[derive(Debug, Clone)]
pub(in crate::server) struct Whole {
    /// What the program gets if it asks again.
    pub(in crate::server) text: String,
    /// The calls of the program's tools with which it ends.
    pub(in crate::server) calls: Vec<ToolCall>,
    /// Whether it was cut at a limit.
    pub(in crate::server) is_cut: bool,
    /// Tokens, if this process saw the run.
    pub(in crate::server) usage: Option<Used>,
}

/// Tokens of a run.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Used {
    pub(in crate::server) input: u64,
    pub(in crate::server) output: u64,
    pub(in crate::server) cached: u64,
    pub(in crate::server) reasoning: u64,
}

/// Collects the text of the run that answers one message.
struct Collector {
    message: MessageId,
    /// Whether the run has taken the message.
    is_taken: bool,
    /// The text of the current model call that was sent.
    step: TakeUp,
    /// Whether text of it was missed.
    has_gap: bool,
    /// Whether the call has ended.
    is_over: bool,
    has_sent: bool,
    /// Whether the text is sent only when it is whole: JSON has nothing before it.
    is_withheld: bool,
    usage: Option<Used>,
}

impl Collector {
    /// The text that an event adds.
    fn heed(&mut self, event: &str) -> Option<String> {
        // Most events are deltas of other kinds; they are not parsed.
        let is_wanted = WANTED.iter().any(|name| event.contains(name));
        if !is_wanted {
            return None;
        }
        let event: Value = serde_json::from_str(event).ok()?;
        match event["type"].as_str()? {
            "taken" => {
                let ids = event["ids"].as_array()?;
                self.is_taken |= ids.iter().any(|id| id.as_str() == Some(self.message.as_str()));
                None
            }
            "run_start" => {
                self.step.run_begins();
                None
            }
            "llm_start" => {
                // That of a call that broke off is said again.
                if self.is_over {
                    self.step.is_whole();
                }
                self.step.call_begins();
                (self.has_gap, self.is_over) = (false, false);
                None
            }
            "llm_end" => {
                self.is_over = true;
                None
            }
            "llm_stream"
                if self.is_taken
                    && !self.is_withheld
                    && !self.has_gap
                    && event["event"]["type"] == "text_delta" =>
            {
                let is_first = self.step.shown().is_empty();
                let between = if is_first && self.has_sent { BETWEEN } else { "" };
                self.has_sent = true;
                match self.step.arrives(event["event"]["delta"].as_str()?) {
                    Lacking::Nothing => None,
                    Lacking::More(more) => Some(format!("{between}{more}")),
                    Lacking::Anew(all) => Some(format!("{BETWEEN}{all}")),
                }
            }
            "done" if self.is_taken => {
                let usage = &event["result"]["usage"];
                let count = |name: &str| usage[name].as_u64().unwrap_or(0);
                let cached = count("cacheRead");
                self.usage = Some(Used {
                    input: count("input") + cached + count("cacheWrite"),
                    output: count("output"),
                    cached,
                    reasoning: count("reasoning"),
                });
                None
            }
            _ => None,
        }
    }

    /// What is missing of the answer.
    fn rest(&self, answer: &str) -> Option<String> {
        if answer.is_empty() {
            return None;
        }
        // Parts of an answer are trimmed.
        let sent = self.step.shown().trim_end();
        match answer.strip_prefix(sent).or_else(|| answer.strip_prefix(sent.trim_start())) {
            Some("") => None,
            Some(rest) if self.has_sent && !sent.is_empty() => Some(rest.to_owned()),
            _ if self.has_sent => Some(format!("{BETWEEN}{answer}")),
            _ => Some(answer.to_owned()),
        }
    }
}

/// The pieces of the answer to a message. `watching` began before the message was accepted.
pub(in crate::server) fn pieces(
    server: Arc<Server>,
    key: SessionKey,
    watching: Watching,
    message: MessageId,
    is_withheld: bool,
) -> impl Stream<Item = Piece> {
    let (sender, receiver) = mpsc::channel(MOST_PIECES);
    tokio::spawn(async move {
        let Watching { newest: mut sent, mut news, .. } = watching;
        let id = message.clone();
        let mut collector = Collector {
            message,
            is_taken: false,
            step: TakeUp::default(),
            has_gap: false,
            is_over: false,
            has_sent: false,
            is_withheld,
            usage: None,
        };
        let answer = server.reply(&id);
        tokio::pin!(answer);
        let answer = loop {
            let answer = tokio::select! {
                answer = &mut answer => Some(answer),
                changed = news.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    None
                }
                // The message is answered all the same, and the answer stays in the store.
                () = sender.closed() => return,
            };
            // What was said before the answer was stored is in the events by now.
            match server.hub.since(key.as_str(), sent) {
                Since::Events(events) => {
                    sent = events.last().map_or(sent, |newest| *newest.numbers.end());
                    for text in events.iter().filter_map(|event| collector.heed(&event.text)) {
                        if sender.send(Piece::Text(text)).await.is_err() {
                            return;
                        }
                    }
                }
                Since::Gap(now) => (sent, collector.has_gap) = (now, true),
            }
            if let Some(answer) = answer {
                break answer;
            }
        };
        if let Ok(answer) = &answer
            && let Some(rest) = collector.rest(&answer.text)
            && sender.send(Piece::Text(rest)).await.is_err()
        {
            return;
        }
        let whole = answer.map(|Answer { text, calls, is_cut }| Whole {
            text,
            calls,
            is_cut,
            usage: collector.usage,
        });
        // The client may be gone.
        let _ = sender.send(Piece::End(Box::new(whole))).await;
    });
    futures_util::stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    })
}
