//! `reasoning_details`: the reasoning of the model behind a gateway, with signatures and encrypted parts, which must be
//! sent back unchanged. Its pieces arrive one by one and are joined here.

use serde_json::{Map, Value};

/// Fields that arrive in pieces; all others are repeated with every piece, or come with the last.
const PIECEWISE: [&str; 3] = ["text", "summary", "data"];

/// The details that have arrived and are not stored yet.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails(Vec<Map<String, Value>>);

impl ReasoningDetails {
    /// Takes the details of one delta.
    pub(super) fn add(&mut self, details: Vec<Map<String, Value>>) {
        for detail in details {
            match self.0.last_mut().filter(|last| continues(last, &detail)) {
                Some(last) => append(last, detail),
                None => self.0.push(detail),
            }
        }
    }

    /// What has arrived since the last call, as JSON; `None` if nothing has.
    pub(super) fn take(&mut self) -> Option<String> {
        let details = std::mem::take(&mut self.0);
        (!details.is_empty()).then(|| serde_json::to_string(&details).ok())?
    }
}

/// Whether `next` is a further piece of `last`. Encrypted parts come whole.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |field: &str| last.get(field) == next.get(field);
    let is_new_id = next.get("id").is_some_and(|id| !id.is_null()) && !same("id");
    same("type")
        && same("index")
        && !is_new_id
        && next.get("type").and_then(Value::as_str) != Some("reasoning.encrypted")
}

fn append(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (field, value) in next {
        match (last.get_mut(&field), value) {
            (Some(Value::String(text)), Value::String(more))
                if PIECEWISE.contains(&field.as_str()) =>
            {
                text.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(field, value);
            }
        }
    }
}

/// The details in the opaque state of a thinking block.
pub(super) fn parse(signature: &str) -> Option<Vec<Value>> {
    serde_json::from_str(signature).ok()
}
