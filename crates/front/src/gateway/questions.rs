//! Questions of a gateway, and the answers to them.

use myclaw_agent::approvals::{Question, run_instead};
use myclaw_engine::AlwaysScope;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::approval::ApprovalAnswer;

/// A question of a gateway, which may be of another version: what cannot be read is not shown, and not offered.
pub fn read_question(question: &Value) -> Question {
    fn list<T: DeserializeOwned>(value: &Value) -> Vec<T> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }
    let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
    Question {
        tool_call_id: text("toolCallId"),
        tool_name: text("toolName"),
        reason: text("reason"),
        shown: list(&question["shown"]),
        changes: list(&question["changes"]),
        always: list(&question["always"]),
        wants: serde_json::from_value(question["wants"].clone()).ok(),
        ..Question::default()
    }
}

/// An answer for the gateway; `None` if the question does not offer it, or if it asks to see the question.
pub fn params_of(answer: ApprovalAnswer, question: &Question) -> Option<Value> {
    match answer {
        ApprovalAnswer::Once => Some(json!({"answer": "once"})),
        ApprovalAnswer::Always(scope) if question.offers(scope) => {
            let scope = scope.or_else(|| question.always.first().map(AlwaysScope::kind));
            Some(json!({"answer": "always", "scope": scope}))
        }
        ApprovalAnswer::No(reason) => Some(json!({"answer": "no", "reason": reason})),
        ApprovalAnswer::Instead(steps) if question.is_plan() => {
            Some(json!({"answer": "instead", "words": steps}))
        }
        ApprovalAnswer::Instead(command) => {
            Some(json!({"answer": "no", "reason": run_instead(&command)}))
        }
        ApprovalAnswer::Said(words) => Some(json!({"answer": "words", "words": words})),
        ApprovalAnswer::Cancel => Some(json!({"answer": "cancel"})),
        ApprovalAnswer::Always(_) | ApprovalAnswer::View => None,
    }
}
