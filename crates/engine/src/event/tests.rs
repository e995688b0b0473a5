//! The schema of `myclaw run --json` names every event and every field.

use std::collections::BTreeSet;
use std::path::Path;

use myclaw_llm::Api;
use serde_json::json;

use super::*;
use crate::{AlwaysScope, ScopeKind};

/// An event of the kind that follows that of `event`, with all its fields. A new kind needs an arm here, and a new field a value.
fn after(event: Option<&AgentRunEvent>) -> Option<AgentRunEvent> {
    use AgentRunEvent as E;
    let (text, map) = (String::new, Map::new);
    let call = || (text(), text());
    Some(match event {
        None => E::RunStart { work: RunWork::Turn },
        Some(E::RunStart { .. }) => {
            E::RunEnd { outcome: RunOutcome::Failed { class: "", error: text() } }
        }
        Some(E::RunEnd { .. }) => E::LlmStart { iteration: 0, provider: text(), model: text() },
        Some(E::LlmStart { .. }) => E::LlmStream { event: StreamEvent::Start },
        Some(E::LlmStream { .. }) => E::LlmEnd { message: Box::new(message()) },
        Some(E::LlmEnd { .. }) => {
            E::LlmUsage { provider: text(), model: text(), usage: Usage::default() }
        }
        Some(E::LlmUsage { .. }) => {
            let (tool_name, tool_call_id) = call();
            E::ApprovalRequested { tool_name, tool_call_id, arguments: map(), reason: text() }
        }
        Some(E::ApprovalRequested { .. }) => E::ApprovalResolved {
            tool_call_id: text(),
            approval: Approval::Always(AlwaysScope::new(ScopeKind::Call, "", "")),
        },
        Some(E::ApprovalResolved { .. }) => {
            let (tool_name, tool_call_id) = call();
            E::ToolStart { tool_name, tool_call_id, arguments: map() }
        }
        Some(E::ToolStart { .. }) => {
            let (tool_name, tool_call_id) = call();
            let details = Some(json!({}));
            E::ToolExecutionUpdate { tool_name, tool_call_id, text: text(), details }
        }
        Some(E::ToolExecutionUpdate { .. }) => {
            let (tool_name, tool_call_id) = call();
            let (details, text) = (Some(json!({})), text());
            E::ToolEnd { tool_name, tool_call_id, duration_ms: 0, is_error: false, text, details }
        }
        Some(E::ToolEnd { .. }) => E::Retry {
            attempt: 1,
            reason: "",
            cause: "",
            profile_id: text(),
            delay_ms: 0,
            message: text(),
        },
        Some(E::Retry { .. }) => {
            E::Fallback { from: text(), to: text(), reason: "", cause: "", message: text() }
        }
        Some(E::Fallback { .. }) => {
            E::Compaction { old_count: 0, new_count: 0, change: ContextChange::Summary }
        }
        Some(E::Compaction { .. }) => E::Pruning { results: 0 },
        Some(E::Pruning { .. }) => E::Queued { id: EntryId::generate(), kind: QueuedKind::Steer },
        Some(E::Queued { .. }) => E::Taken { ids: Vec::new(), text: text() },
        Some(E::Taken { .. }) => E::ModeChanged { to: Mode::Auto },
        Some(E::ModeChanged { .. }) => {
            let (tool_name, tool_call_id) = call();
            E::ToolSkipped { tool_name, tool_call_id }
        }
        Some(E::ToolSkipped { .. }) => E::BoundReached { bound: Bound::RunCost, message: text() },
        Some(E::BoundReached { .. }) => E::Notice(Notice::Interrupted {}),
        Some(E::Notice(_)) => E::Done { result: result() },
        Some(E::Done { .. }) => return None,
    })
}

fn message() -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: Api::AnthropicMessages,
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason: myclaw_llm::StopReason::Stop,
        error_message: Some(String::new()),
        timestamp: 0,
    }
}

fn result() -> RunResult {
    RunResult {
        stop_reason: Some(myclaw_llm::StopReason::Stop),
        bound: Some(Bound::RunCost),
        is_handed_over: true,
        ..RunResult::default()
    }
}

fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn the_schema_of_run_json_has_every_event_and_every_field() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/develop/run-events.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let defs = &schema["$defs"];
    let key = Arc::new(SessionKey::for_cli("main", "main"));
    let (mut event, mut types) = (after(None), BTreeSet::new());
    while let Some(kind) = event {
        let (run, mode) = (Some(RunId::generate()), Some(Mode::Auto));
        let line = RunEvent { kind: kind.clone(), session: Arc::clone(&key), run, mode };
        let line = serde_json::to_value(&line).unwrap();
        let name = line["type"].as_str().unwrap().to_owned();
        let known = names(&defs[format!("line_{name}")]["properties"]);
        let missing: Vec<String> = names(&line).difference(&known).cloned().collect();
        assert!(missing.is_empty(), "{name} has no {missing:?} in the schema");
        types.insert(format!("line_{name}"));
        event = after(Some(&kind));
    }
    types.extend(["line_output", "line_error"].map(str::to_owned));
    let known = names(defs).into_iter().filter(|name| name.starts_with("line_"));
    assert_eq!(types, known.collect());
    for (name, value) in [
        ("message", json!(message())),
        ("result", json!(result())),
        ("usage", json!(Usage::default())),
    ] {
        assert_eq!(names(&value), names(&defs[name]["properties"]), "{name}");
    }
}
