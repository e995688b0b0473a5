//! The events of a streamed response.

use axum::response::sse::Event;
use myclaw_delivery::ledger::now_ms;
use serde_json::{Value, json};

use super::super::stream::{Piece, Whole};
use super::form::{Form, part};

/// The events of a streamed response, which are numbered.
pub(super) struct Events {
    pub(super) form: Form,
    pub(super) number: u64,
    /// The text so far, once there is any.
    pub(super) text: Option<String>,
}

impl Events {
    fn event(&mut self, kind: &str, mut fields: Value) -> Event {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.number);
        self.number += 1;
        Event::default().event(kind).data(fields.to_string())
    }

    pub(super) fn begin(&mut self) -> Vec<Event> {
        let response = self.form.object("in_progress", &json!([]));
        vec![
            self.event("response.created", json!({"response": response})),
            self.event("response.in_progress", json!({"response": response})),
        ]
    }

    pub(super) fn of(&mut self, piece: Piece) -> Vec<Event> {
        let end = match piece {
            Piece::Text(text) => return self.more(&text),
            Piece::End(end) => *end,
        };
        let whole = match end {
            Ok(whole) => whole,
            Err((_, body)) => {
                let error = &body["error"];
                let class = error["code"].as_str().unwrap_or("failed");
                let message = error["message"].as_str().unwrap_or_default();
                let response = self.form.failed(class, message);
                return vec![self.event("response.failed", json!({"response": response}))];
            }
        };
        let mut events = Vec::new();
        if self.text.is_none() && whole.calls.is_empty() {
            events.extend(self.more(""));
        }
        // What was streamed: also the texts before tool calls, which are not in the stored response.
        let text = self.text.take();
        let first_call = usize::from(text.is_some());
        let whole = Whole { text: text.unwrap_or_default(), ..whole };
        if first_call == 1 {
            events.extend(self.end_of_text(&whole));
        }
        for (at, item) in self.form.calls(&whole).into_iter().enumerate() {
            events.extend(self.call(first_call + at, &item));
        }
        let response = self.form.completed(&whole, now_ms() / 1_000);
        let kind = if whole.is_cut { "response.incomplete" } else { "response.completed" };
        events.push(self.event(kind, json!({"response": response})));
        events
    }

    /// More text, after the beginning of its item.
    fn more(&mut self, text: &str) -> Vec<Event> {
        let (mut events, place) = (Vec::new(), self.place());
        if self.text.is_none() {
            let item = self.form.item("in_progress", &json!([]));
            let added = json!({"output_index": 0, "item": item});
            events.push(self.event("response.output_item.added", added));
            let added = with(&place, "part", part(""));
            events.push(self.event("response.content_part.added", added));
        }
        self.text.get_or_insert_default().push_str(text);
        if !text.is_empty() {
            let mut fields = with(&place, "delta", json!(text));
            fields["logprobs"] = json!([]);
            events.push(self.event("response.output_text.delta", fields));
        }
        events
    }

    fn end_of_text(&mut self, whole: &Whole) -> [Event; 3] {
        let place = self.place();
        let mut done = with(&place, "text", json!(whole.text));
        done["logprobs"] = json!([]);
        let status = if whole.is_cut { "incomplete" } else { "completed" };
        let item = self.form.item(status, &json!([part(&whole.text)]));
        [
            self.event("response.output_text.done", done),
            self.event("response.content_part.done", with(&place, "part", part(&whole.text))),
            self.event("response.output_item.done", json!({"output_index": 0, "item": item})),
        ]
    }

    /// A call of a function of the program.
    fn call(&mut self, index: usize, item: &Value) -> [Event; 4] {
        let mut begun = item.clone();
        (begun["status"], begun["arguments"]) = (json!("in_progress"), json!(""));
        let place = json!({"item_id": item["id"], "output_index": index});
        let delta = with(&place, "delta", item["arguments"].clone());
        let mut done = with(&place, "arguments", item["arguments"].clone());
        done["name"] = item["name"].clone();
        [
            self.event("response.output_item.added", json!({"output_index": index, "item": begun})),
            self.event("response.function_call_arguments.delta", delta),
            self.event("response.function_call_arguments.done", done),
            self.event("response.output_item.done", json!({"output_index": index, "item": item})),
        ]
    }

    fn place(&self) -> Value {
        json!({"item_id": format!("msg_{}", self.form.id), "output_index": 0, "content_index": 0})
    }
}

fn with(place: &Value, name: &str, value: Value) -> Value {
    let mut fields = place.clone();
    fields[name] = value;
    fields
}
