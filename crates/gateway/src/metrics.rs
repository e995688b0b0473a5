//! What the gateway counts, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use myclaw_delivery::rows::{PartKind, PartState};
use myclaw_engine::{AgentRunEvent, RunOutcome};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::usage::Used;

/// Most models and tools that are counted by name; further ones are counted as `other`.
const MOST_NAMES: usize = 200;
/// The name of what is beyond that.
const OTHER: &str = "other";

/// The names of the states of channels.
const CHANNEL_STATES: [&str; 4] = ["starting", "working", "waiting", "stopped"];

/// Counters since the start of the process.
#[derive(Default)]
pub(crate) struct Metrics {
    accepted: AtomicU64,
    answered: AtomicU64,
    reported: AtomicU64,
    runs: Mutex<BTreeMap<&'static str, u64>>,
    models: Mutex<BTreeMap<String, Used>>,
    tools: Mutex<BTreeMap<String, Calls>>,
    /// Requests of vendors with a wrong signature or token, by channel.
    refused: Mutex<BTreeMap<String, u64>>,
    /// Parts that are over, by channel.
    deliveries: Mutex<BTreeMap<String, Deliveries>>,
    /// Times from the acceptance of a message to its answer or report.
    turns: Mutex<Times>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Deliveries {
    sent: u64,
    failed: u64,
    uncertain: u64,
}

/// Upper ends of the ranges in which times are counted, in seconds: from an answer of the program itself to long work.
const RANGES: [f64; 12] =
    [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0];

#[derive(Debug, Default)]
struct Times {
    /// By the range in which each falls.
    ranges: [u64; RANGES.len()],
    count: u64,
    seconds: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    done: u64,
    failed: u64,
}

/// A value that only the server knows.
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) value: u64,
}

impl Metrics {
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts messages that got an answer or a report. Each has the time in milliseconds that this took.
    pub(crate) fn ended(&self, messages: &[u64], kind: PartKind) {
        let counter = match kind {
            PartKind::Reply => &self.answered,
            PartKind::Report => &self.reported,
        };
        counter.fetch_add(messages.len() as u64, Ordering::Relaxed);
        let mut turns = self.turns.lock();
        for milliseconds in messages {
            let seconds = *milliseconds as f64 / 1_000.0;
            turns.count += 1;
            turns.seconds += seconds;
            if let Some(range) = RANGES.iter().position(|end| seconds <= *end) {
                turns.ranges[range] += 1;
            }
        }
    }

    /// Counts a part that is over.
    pub(crate) fn delivered(&self, channel: &str, state: &PartState) {
        count(&self.deliveries, channel.to_owned(), |of_channel| match state {
            PartState::Sent { .. } => of_channel.sent += 1,
            PartState::Failed { .. } => of_channel.failed += 1,
            PartState::Uncertain => of_channel.uncertain += 1,
            PartState::Queued | PartState::Sending { .. } => {}
        });
    }

    pub(crate) fn refused(&self, channel: &str) {
        count(&self.refused, channel.to_owned(), |number| *number += 1);
    }

    /// Counts an event of a run.
    pub(crate) fn heed(&self, event: &AgentRunEvent) {
        match event {
            AgentRunEvent::LlmUsage { provider, model, usage } => {
                count(&self.models, format!("{provider}/{model}"), |used| used.add_call(usage));
            }
            AgentRunEvent::ToolEnd { tool_name, is_error, .. } => {
                count(&self.tools, tool_name.clone(), |calls| match is_error {
                    true => calls.failed += 1,
                    false => calls.done += 1,
                });
            }
            AgentRunEvent::RunEnd { outcome } => {
                let outcome = match outcome {
                    RunOutcome::Failed { .. } => "failed",
                    RunOutcome::Aborted => "aborted",
                    _ => "done",
                };
                *self.runs.lock().entry(outcome).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Usage by model since the start, for clients.
    pub(crate) fn usage(&self) -> Value {
        let models = self.models.lock();
        let rows = models.iter().map(|(model, used)| {
            json!({
                "model": model,
                "calls": used.calls,
                "input": used.input,
                "output": used.output,
                "cacheRead": used.cache_read,
                "cacheWrite": used.cache_write,
                "cost": used.cost,
            })
        });
        rows.collect()
    }

    /// Everything, as Prometheus reads it. `channels` are accounts of channels with the names of their states.
    pub(crate) fn text(
        &self,
        gauges: &[Gauge],
        channels: &[(String, String, &'static str)],
    ) -> String {
        let mut out = Page::default();
        out.head("myclaw_build_info", "gauge", "The version of the gateway.");
        out.sample("myclaw_build_info", &[("version", env!("CARGO_PKG_VERSION"))], &1);
        for Gauge { name, help, value } in gauges {
            out.head(name, "gauge", help);
            out.sample(name, &[], value);
        }
        let name = "myclaw_messages_accepted_total";
        out.head(name, "counter", "Messages that were stored and acknowledged.");
        out.sample(name, &[], &self.accepted.load(Ordering::Relaxed));
        let name = "myclaw_messages_ended_total";
        out.head(name, "counter", "Messages that were answered or reported.");
        out.sample(name, &[("outcome", "answered")], &self.answered.load(Ordering::Relaxed));
        out.sample(name, &[("outcome", "reported")], &self.reported.load(Ordering::Relaxed));
        self.of_turns(&mut out);
        self.of_deliveries(&mut out);
        let name = "myclaw_channel_state";
        if !channels.is_empty() {
            out.head(name, "gauge", "1 for the state in which an account of a channel is.");
        }
        for (channel, account, state) in channels {
            for other in CHANNEL_STATES {
                let labels = [("channel", &**channel), ("account", account), ("state", other)];
                out.sample(name, &labels, &u8::from(*state == other));
            }
        }
        let name = "myclaw_hooks_refused_total";
        out.head(name, "counter", "Requests of vendors that were not theirs, by channel.");
        for (channel, number) in &*self.refused.lock() {
            out.sample(name, &[("channel", channel)], number);
        }
        let name = "myclaw_runs_total";
        out.head(name, "counter", "Runs that have ended.");
        for (outcome, number) in &*self.runs.lock() {
            out.sample(name, &[("outcome", outcome)], number);
        }
        self.of_models(&mut out);
        let name = "myclaw_tool_calls_total";
        out.head(name, "counter", "Tool calls that have ended.");
        for (tool, calls) in &*self.tools.lock() {
            out.sample(name, &[("tool", tool), ("outcome", "done")], &calls.done);
            out.sample(name, &[("tool", tool), ("outcome", "failed")], &calls.failed);
        }
        out.text
    }

    fn of_turns(&self, out: &mut Page) {
        let turns = self.turns.lock();
        let name = "myclaw_turn_seconds_bucket";
        let help = "Answers and reports that came in at most so many seconds after their message.";
        out.head(name, "counter", help);
        let mut below = 0;
        for (end, number) in RANGES.iter().zip(turns.ranges) {
            below += number;
            out.sample(name, &[("le", &end.to_string())], &below);
        }
        out.sample(name, &[("le", "+Inf")], &turns.count);
        let name = "myclaw_turn_seconds_sum";
        out.head(name, "counter", "Seconds from messages to their answers or reports.");
        out.sample(name, &[], &turns.seconds);
        let name = "myclaw_turn_seconds_count";
        out.head(name, "counter", "Answers and reports of which the time is known.");
        out.sample(name, &[], &turns.count);
    }

    fn of_deliveries(&self, out: &mut Page) {
        let name = "myclaw_deliveries_total";
        out.head(name, "counter", "Parts of answers and reports that are over, by channel.");
        for (channel, parts) in &*self.deliveries.lock() {
            let Deliveries { sent, failed, uncertain } = parts;
            for (outcome, number) in [("sent", sent), ("failed", failed), ("uncertain", uncertain)]
            {
                out.sample(name, &[("channel", channel), ("outcome", outcome)], number);
            }
        }
    }

    fn of_models(&self, out: &mut Page) {
        let models = self.models.lock();
        let name = "myclaw_model_calls_total";
        out.head(name, "counter", "Model calls that gave a message.");
        for (model, used) in &*models {
            out.sample(name, &[("model", model)], &used.calls);
        }
        let name = "myclaw_model_tokens_total";
        out.head(name, "counter", "Tokens by model and kind.");
        for (model, used) in &*models {
            for (kind, number) in [
                ("input", used.input),
                ("output", used.output),
                ("cache_read", used.cache_read),
                ("cache_write", used.cache_write),
            ] {
                out.sample(name, &[("model", model), ("kind", kind)], &number);
            }
        }
        let name = "myclaw_model_cost_dollars_total";
        out.head(name, "counter", "Cost by model, from the catalog's prices.");
        for (model, used) in &*models {
            out.sample(name, &[("model", model)], &used.cost);
        }
    }
}

fn count<T: Default>(map: &Mutex<BTreeMap<String, T>>, name: String, change: impl FnOnce(&mut T)) {
    let mut map = map.lock();
    let is_known = map.len() < MOST_NAMES || map.contains_key(&name);
    change(map.entry(if is_known { name } else { OTHER.to_owned() }).or_default());
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
