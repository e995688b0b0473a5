use serde_json::json;

use super::*;

/// Both ways must show the same: a turn looks alike here and through a gateway.
#[test]
fn events_and_their_json_show_the_same() {
    let stream = |event| AgentRunEvent::LlmStream { event };
    let (tool_name, tool_call_id) = ("bash".to_owned(), "c1".to_owned());
    let arguments = json!({"command": "ls"}).as_object().expect("an object").clone();
    for event in [
        stream(StreamEvent::Start),
        stream(StreamEvent::TextStart { index: 0 }),
        stream(StreamEvent::TextDelta { index: 0, delta: "a".to_owned() }),
        stream(StreamEvent::TextEnd { index: 0 }),
        stream(StreamEvent::ThinkingStart { index: 1 }),
        stream(StreamEvent::ThinkingDelta { index: 1, delta: "a".to_owned() }),
        stream(StreamEvent::ToolCallStart {
            index: 2,
            id: tool_call_id.clone(),
            name: tool_name.clone(),
        }),
        stream(StreamEvent::ToolCallDelta { index: 2, delta: "{".to_owned(), arguments: None }),
        AgentRunEvent::LlmStart { iteration: 0, provider: "p".to_owned(), model: "m".to_owned() },
        AgentRunEvent::ToolStart {
            tool_name: tool_name.clone(),
            tool_call_id: tool_call_id.clone(),
            arguments,
        },
        AgentRunEvent::ToolExecutionUpdate {
            tool_name: tool_name.clone(),
            tool_call_id: tool_call_id.clone(),
            text: "half".to_owned(),
            details: None,
        },
        AgentRunEvent::ToolEnd {
            tool_name,
            tool_call_id: tool_call_id.clone(),
            duration_ms: 1_500,
            is_error: true,
            text: "no such\nfile".to_owned(),
            details: None,
        },
        AgentRunEvent::ApprovalResolved {
            tool_call_id: tool_call_id.clone(),
            approval: myclaw_engine::Approval::Always(myclaw_engine::AlwaysScope::new(
                myclaw_engine::ScopeKind::Call,
                "this",
                "id",
            )),
        },
        AgentRunEvent::ApprovalResolved {
            tool_call_id,
            approval: myclaw_engine::Approval::Denied { reason: "the user said no".to_owned() },
        },
    ] {
        let json = serde_json::to_value(&event).expect("JSON");
        let of_json = Shown::of_json(&json);
        assert_eq!(of_json, Shown::from(event), "{json}");
    }
    assert_eq!(Shown::of_json(&json!({"type": "of a later version"})), Shown::Nothing);
    assert_eq!(Shown::of_json(&json!(null)), Shown::Nothing);
}
