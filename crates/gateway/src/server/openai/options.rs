//! What a request may ask for beside the question. The agent has its own model and tools, so what would change the answer
//! and cannot be done is refused; what is only a hint is taken note of.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Failure, MODEL};

/// Numbers that mean the usual answer.
const USUAL_NUMBERS: [(&str, f64); 5] = [
    ("temperature", 1.0),
    ("top_p", 1.0),
    ("n", 1.0),
    ("presence_penalty", 0.0),
    ("frequency_penalty", 0.0),
];
/// What would change the answer, and is not done, unless it is empty.
const NOT_DONE: [&str; 10] = [
    "tools",
    "functions",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "stop",
    "prompt",
    "prediction",
    "audio",
    "web_search_options",
];
/// Choices of a tool that mean none of the request's own.
const NO_CHOICE: [&str; 2] = ["auto", "none"];

/// Refuses a request that asks for what the agent cannot do.
pub(super) fn check(model: Option<&str>, asked: &Map<String, Value>) -> Result<(), Box<Failure>> {
    if let Some(other) = model.filter(|model| *model != MODEL) {
        let message = format!(
            "there is no model `{other}` here, only `{MODEL}`, the agent; which model it uses is in its config"
        );
        return refuse(StatusCode::NOT_FOUND, "model_not_found", "model", &message);
    }
    for (name, usual) in USUAL_NUMBERS {
        let is_usual = |value: &Value| value.is_null() || value.as_f64() == Some(usual);
        if asked.get(name).is_some_and(|value| !is_usual(value)) {
            let message = format!(
                "`{name}` is not passed on to the agent's model; leave it out, or set it to {usual}"
            );
            return refuse(StatusCode::BAD_REQUEST, "unsupported_parameter", name, &message);
        }
    }
    if let Some(name) = NOT_DONE.iter().find(|name| asked.get(**name).is_some_and(says_something)) {
        let why = match *name {
            "tools" | "functions" => {
                "the agent has the tools of its config, and calls none of the program that asks"
            }
            _ => "the agent does not do that",
        };
        let message = format!("`{name}` cannot be used here: {why}; leave it out");
        return refuse(StatusCode::BAD_REQUEST, "unsupported_parameter", name, &message);
    }
    let is_chosen = |choice: &Value| {
        says_something(choice) && choice.as_str().is_none_or(|choice| !NO_CHOICE.contains(&choice))
    };
    if let Some(name) = ["tool_choice", "function_call"]
        .iter()
        .find(|name| asked.get(**name).is_some_and(is_chosen))
    {
        let message =
            format!("`{name}` can only be \"auto\" or \"none\": the agent chooses its tools");
        return refuse(StatusCode::BAD_REQUEST, "unsupported_parameter", name, &message);
    }
    for (name, format) in [
        ("response_format", asked.get("response_format")),
        ("text", asked.get("text").and_then(|text| text.get("format"))),
    ] {
        let is_text = |format: &Value| format.is_null() || format["type"] == "text";
        if format.is_some_and(|format| !is_text(format)) {
            let message = format!(
                "`{name}`: the agent answers with text; ask for JSON in the message, or leave it out"
            );
            return refuse(StatusCode::BAD_REQUEST, "unsupported_parameter", name, &message);
        }
    }
    Ok(())
}

/// Whether a value asks for something.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::String(_) => true,
    }
}

fn refuse(status: StatusCode, code: &str, name: &str, message: &str) -> Result<(), Box<Failure>> {
    let kind = "invalid_request_error";
    let error = json!({"message": message, "type": kind, "param": name, "code": code});
    Err(Box::new((status, json!({"error": error}))))
}

#[cfg(test)]
mod tests;
