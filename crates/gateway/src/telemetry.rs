//! Traces for OpenTelemetry: a span for each run, model call and tool call, with the GenAI attribute names.
//!
//! The names are those of version 1.41 of the semantic conventions (`docs/gen-ai` there), which call all of them "in
//! development". The trace id of a run is the run's id, so a trace is found by what logs and events say. Texts of messages,
//! arguments and results are never sent.

mod export;

use std::collections::HashMap;

use myclaw_config::Config;
use myclaw_engine::{AgentRunEvent, RunEvent, RunId, RunOutcome, RunWork};
use myclaw_llm::StopReason;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) use export::Exporter;

use crate::usage::Used;

/// Most tool calls of a run that are followed at the same time.
const MOST_OPEN_TOOLS: usize = 64;

/// The kinds of span that occur here, with the numbers of OTLP.
#[derive(Debug, Clone, Copy)]
enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// A span that has not ended.
#[derive(Debug)]
struct Span {
    id: String,
    parent: Option<String>,
    name: String,
    kind: SpanKind,
    start_ns: u64,
    attributes: Vec<Value>,
    /// The class and the text of the failure.
    failure: Option<(String, String)>,
}

/// State of an active run.
struct OpenRun {
    span: Span,
    call: Option<Call>,
    tools: HashMap<String, Span>,
    used: Used,
}

/// A model call, and when it ended.
struct Call {
    span: Span,
    end_ns: Option<u64>,
    has_usage: bool,
}

/// Makes spans of events.
pub(crate) struct Telemetry {
    runs: Mutex<HashMap<RunId, OpenRun>>,
    pub(crate) exporter: Exporter,
}

impl Telemetry {
    pub(crate) fn new(config: &Config) -> Self {
        Self { runs: Mutex::default(), exporter: Exporter::new(config) }
    }

    /// Takes note of an event of a run of `agent`. Costs next to nothing without `gateway.telemetry`.
    pub(crate) fn heed(&self, event: &RunEvent, agent: &str) {
        let Some(id) = event.run else { return };
        if !self.exporter.is_on() {
            // A reload may have switched it off since the run began.
            if matches!(event.kind, AgentRunEvent::RunEnd { .. }) {
                self.runs.lock().remove(&id);
            }
            return;
        }
        let now = export::now_ns();
        let mut runs = self.runs.lock();
        if let AgentRunEvent::RunStart { work } = event.kind {
            runs.insert(id, OpenRun::new(agent, event.session.as_str(), work, now));
            return;
        }
        let Some(run) = runs.get_mut(&id) else { return };
        let mut ended = Vec::new();
        run.heed(&event.kind, now, &mut ended);
        if let AgentRunEvent::RunEnd { outcome } = &event.kind
            && let Some(run) = runs.remove(&id)
        {
            run.end(outcome, now, &mut ended);
        }
        drop(runs);
        let trace = id.to_string().replace('-', "");
        self.exporter.push(ended.into_iter().map(|(span, end)| span.ended(&trace, end)));
    }
}

impl OpenRun {
    fn new(agent: &str, session: &str, work: RunWork, now: u64) -> Self {
        let operation = match work {
            RunWork::Compaction => "compact",
            _ => "invoke_agent",
        };
        let mut span = Span::new(operation, agent, SpanKind::Internal, None, now);
        span.put("gen_ai.agent.name", agent);
        span.put("gen_ai.conversation.id", session);
        Self { span, call: None, tools: HashMap::new(), used: Used::default() }
    }

    /// Takes note of an event; `ended` gets the spans that end with it.
    fn heed(&mut self, event: &AgentRunEvent, now: u64, ended: &mut Vec<(Span, u64)>) {
        match event {
            AgentRunEvent::LlmStart { provider, model, .. } => {
                self.end_call(now, ended);
                let mut span = self.child("chat", model, SpanKind::Client, now);
                span.put("gen_ai.provider.name", provider);
                span.put("gen_ai.request.model", model);
                self.call = Some(Call { span, end_ns: None, has_usage: false });
            }
            AgentRunEvent::LlmUsage { usage, .. } => {
                let mut used = Used::default();
                used.add_call(usage);
                self.used.add(&used);
                // Summaries have no event for their begin; what they use counts for the run.
                if let Some(call) = self.call.as_mut().filter(|call| !call.has_usage) {
                    call.end_ns.get_or_insert(now);
                    call.has_usage = true;
                    call.span.put_usage(&used);
                }
            }
            AgentRunEvent::LlmEnd { message } => {
                if let Some(call) = &mut self.call {
                    call.end_ns.get_or_insert(now);
                    let reason = finish_reason(message.stop_reason);
                    call.span.put_value(
                        "gen_ai.response.finish_reasons",
                        &json!({"arrayValue": {"values": [{"stringValue": reason}]}}),
                    );
                }
            }
            AgentRunEvent::Retry { reason, message, .. }
            | AgentRunEvent::Fallback { reason, message, .. } => {
                self.fail_call(reason, message);
                self.end_call(now, ended);
            }
            AgentRunEvent::ToolStart { tool_name, tool_call_id, .. }
                if self.tools.len() < MOST_OPEN_TOOLS =>
            {
                let mut span = self.child("execute_tool", tool_name, SpanKind::Internal, now);
                span.put("gen_ai.tool.name", tool_name);
                span.put("gen_ai.tool.call.id", tool_call_id);
                self.tools.insert(tool_call_id.clone(), span);
            }
            AgentRunEvent::ToolEnd { tool_call_id, is_error, .. } => {
                if let Some(mut span) = self.tools.remove(tool_call_id) {
                    if *is_error {
                        // The text may say what was read, so only the fact is sent.
                        span.failure = Some(("tool_error".to_owned(), String::new()));
                    }
                    ended.push((span, now));
                }
            }
            _ => {}
        }
    }

    fn end(mut self, outcome: &RunOutcome, now: u64, ended: &mut Vec<(Span, u64)>) {
        let failure = match outcome {
            RunOutcome::Failed { class, error } => Some(((*class).to_owned(), error.clone())),
            RunOutcome::Aborted => Some(("aborted".to_owned(), "the run was aborted".to_owned())),
            _ => None,
        };
        if let (Some((class, text)), Some(Call { end_ns: None, .. })) = (&failure, &self.call) {
            self.fail_call(class, text);
        }
        self.end_call(now, ended);
        ended.extend(self.tools.drain().map(|(_, span)| (span, now)));
        self.span.failure = failure;
        self.span.put_usage(&self.used);
        ended.push((self.span, now));
    }

    fn child(&self, operation: &str, of: &str, kind: SpanKind, now: u64) -> Span {
        Span::new(operation, of, kind, Some(self.span.id.clone()), now)
    }

    fn fail_call(&mut self, class: &str, text: &str) {
        if let Some(call) = &mut self.call {
            call.span.failure = Some((class.to_owned(), text.to_owned()));
        }
    }

    fn end_call(&mut self, now: u64, ended: &mut Vec<(Span, u64)>) {
        if let Some(Call { span, end_ns, .. }) = self.call.take() {
            ended.push((span, end_ns.unwrap_or(now)));
        }
    }
}

impl Span {
    fn new(
        operation: &str,
        of: &str,
        kind: SpanKind,
        parent: Option<String>,
        start_ns: u64,
    ) -> Self {
        // A random UUID has its version in the second half of its first eight bytes, so never only zeros.
        let id = uuid::Uuid::new_v4().simple().to_string()[..16].to_owned();
        let name = format!("{operation} {of}");
        let attributes = vec![attribute("gen_ai.operation.name", &text(operation))];
        Self { id, parent, name, kind, start_ns, attributes, failure: None }
    }

    fn put(&mut self, key: &str, value: &str) {
        self.put_value(key, &text(value));
    }

    fn put_value(&mut self, key: &str, value: &Value) {
        self.attributes.push(attribute(key, value));
    }

    /// The conventions count what came from the cache, or went into it, among the input tokens.
    fn put_usage(&mut self, used: &Used) {
        let input = used.input + used.cache_read + used.cache_write;
        for (key, tokens) in [
            ("gen_ai.usage.input_tokens", input),
            ("gen_ai.usage.output_tokens", used.output),
            ("gen_ai.usage.cache_read.input_tokens", used.cache_read),
            ("gen_ai.usage.cache_creation.input_tokens", used.cache_write),
        ] {
            self.put_value(key, &json!({"intValue": tokens.to_string()}));
        }
        self.put_value("myclaw.usage.cost_usd", &json!({"doubleValue": used.cost}));
    }

    /// The span as OTLP's JSON has it: ids in hexadecimal, 64-bit numbers as text.
    fn ended(mut self, trace: &str, end_ns: u64) -> Value {
        let mut status = json!({});
        if let Some((class, message)) = self.failure.take() {
            self.put("error.type", &class);
            status = json!({"code": 2, "message": message});
        }
        json!({
            "traceId": trace,
            "spanId": self.id,
            "parentSpanId": self.parent.unwrap_or_default(),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": self.start_ns.to_string(),
            "endTimeUnixNano": end_ns.max(self.start_ns).to_string(),
            "attributes": self.attributes,
            "status": status,
        })
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({"key": key, "value": value})
}

fn text(value: &str) -> Value {
    json!({"stringValue": value})
}

fn finish_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::ToolUse => "tool_calls",
        StopReason::Length => "length",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Refusal => "content_filter",
        StopReason::Stop => "stop",
    }
}
