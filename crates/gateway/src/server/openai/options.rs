//! What a request may ask for besides the question: tools of the program, options of the answer, another model. What cannot
//! be done is refused by name; what is only a hint is taken note of.

use axum::http::StatusCode;
use myclaw_engine::ProgramRequest;
use myclaw_llm::{AnswerFormat, AnswerOptions, ForcedCall, ToolSchema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Failure, MODEL};

/// What would change the answer, and is not done, unless it is empty.
const NOT_DONE: [&str; 12] = [
    "functions",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "prompt",
    "prediction",
    "audio",
    "web_search_options",
    "conversation",
    "max_tool_calls",
    "moderation",
    "context_management",
];
/// Most tools of a request: as many as OpenAI takes.
const MOST_TOOLS: usize = 128;
/// Most bytes of them: as many as of a message.
const MOST_TOOL_BYTES: usize = 256 * 1024;
/// Longest name of a tool.
const MOST_NAME: usize = 64;
/// Most texts at which an answer ends: as many as OpenAI takes.
const MOST_STOPS: usize = 4;

/// A tool of a request: chat completions have the function in an object, responses in the tool itself.
#[derive(Deserialize)]
struct WireTool {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    function: Option<WireFunction>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

type Read<T> = Result<T, Box<Failure>>;

/// What a request asks; `None` if nothing but an answer.
pub(super) fn read(
    model: Option<&str>,
    asked: &Map<String, Value>,
) -> Read<Option<Box<ProgramRequest>>> {
    if let Some(name) = NOT_DONE.iter().find(|name| asked.get(**name).is_some_and(says_something)) {
        let instead = if *name == "functions" { "; send `tools`" } else { "; leave it out" };
        return refuse(
            name,
            &format!("`{name}` cannot be used here: the agent does not do that{instead}"),
        );
    }
    let more_than_text = |value: &Value| says_something(value) && *value != json!(["text"]);
    if asked.get("modalities").is_some_and(more_than_text) {
        return refuse(
            "modalities",
            "`modalities` can only be [\"text\"]: the agent answers with text",
        );
    }
    number(asked, "n", 1.0)?.map_or(Ok(()), |_| {
        refuse("n", "`n` cannot be used here: there is one answer to a message; leave it out")
    })?;
    let mut request = ProgramRequest {
        options: AnswerOptions {
            temperature: number(asked, "temperature", 1.0)?,
            top_p: number(asked, "top_p", 1.0)?,
            presence_penalty: number(asked, "presence_penalty", 0.0)?,
            frequency_penalty: number(asked, "frequency_penalty", 0.0)?,
            seed: seed(asked)?,
            stop: stops(asked)?,
            max_output: most_tokens(asked)?,
            format: format(asked)?,
            forced_call: None,
            single_calls: asked.get("parallel_tool_calls") == Some(&Value::Bool(false)),
        },
        tools: tools(asked)?,
        has_only_these: false,
        model: model.filter(|model| *model != MODEL).map(str::to_owned),
    };
    if request.tools.is_empty() {
        request.options.single_calls = false;
    }
    choose(asked, &mut request)?;
    Ok((request != ProgramRequest::default()).then(|| Box::new(request)))
}

/// The refusal of an option that the protocol of the agent's model has not.
pub(super) fn not_carried(option: &str, model: &str, asked: &Map<String, Value>) -> Box<Failure> {
    // The name that the request has for it.
    let names = match option {
        "response_format" => ["response_format", "text", ""],
        "max_tokens" => ["max_tokens", "max_completion_tokens", "max_output_tokens"],
        other => [other, "", ""],
    };
    let name = names.into_iter().find(|name| asked.contains_key(*name)).unwrap_or(option);
    let message = format!(
        "`{name}` cannot be passed on: the protocol of the agent's model {model} has nothing for this value; leave it out"
    );
    Box::new(failure(StatusCode::BAD_REQUEST, "unsupported_parameter", name, &message))
}

/// The refusal of a model that there is not.
pub(super) fn no_model(name: &str, why: &str) -> Box<Failure> {
    let message = format!(
        "the model `{name}` cannot be used: {why}. `{MODEL}` is the agent with the model of its config"
    );
    Box::new(failure(StatusCode::NOT_FOUND, "model_not_found", "model", &message))
}

/// A number, unless it is the usual one, which asks for nothing.
fn number(asked: &Map<String, Value>, name: &'static str, usual: f64) -> Read<Option<f64>> {
    match asked.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) => Ok(Some(number).filter(|number| *number != usual)),
            None => refuse(name, &format!("`{name}` has to be a number")),
        },
    }
}

fn seed(asked: &Map<String, Value>) -> Read<Option<i64>> {
    match asked.get("seed") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(seed) => Ok(Some(seed)),
            None => refuse("seed", "`seed` has to be a whole number"),
        },
    }
}

fn stops(asked: &Map<String, Value>) -> Read<Vec<String>> {
    let texts = match asked.get("stop") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => vec![Value::String(text.clone())],
        Some(Value::Array(texts)) => texts.clone(),
        Some(_) => vec![Value::Null],
    };
    let read: Option<Vec<String>> = texts
        .iter()
        .map(|text| text.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
        .collect();
    match read.filter(|texts| texts.len() <= MOST_STOPS) {
        Some(texts) => Ok(texts),
        None => {
            refuse("stop", &format!("`stop` has to be a text, or a list of at most {MOST_STOPS}"))
        }
    }
}

fn most_tokens(asked: &Map<String, Value>) -> Read<Option<u64>> {
    for name in ["max_completion_tokens", "max_output_tokens", "max_tokens"] {
        match asked.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => {
                return match value.as_u64().filter(|most| *most > 0) {
                    Some(most) => Ok(Some(most)),
                    None => refuse(name, &format!("`{name}` has to be a whole number above 0")),
                };
            }
        }
    }
    Ok(None)
}

fn format(asked: &Map<String, Value>) -> Read<Option<AnswerFormat>> {
    let of_text = asked.get("text").and_then(|text| text.get("format"));
    let (name, format) = match (asked.get("response_format"), of_text) {
        (Some(format), _) if !format.is_null() => ("response_format", format),
        (_, Some(format)) if !format.is_null() => ("text", format),
        _ => return Ok(None),
    };
    // Chat completions wrap the schema in an object.
    let schema = format.get("json_schema").unwrap_or(format);
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(AnswerFormat::JsonObject)),
        Some("json_schema") if schema["schema"].is_object() => Ok(Some(AnswerFormat::JsonSchema {
            name: schema["name"].as_str().unwrap_or("answer").to_owned(),
            description: schema["description"].as_str().map(str::to_owned),
            schema: schema["schema"].clone(),
            strict: schema["strict"].as_bool(),
        })),
        Some("json_schema") => {
            refuse(name, &format!("`{name}` has no `schema`, which is an object"))
        }
        _ => {
            let why = "has to have the type `text`, `json_object` or `json_schema`";
            refuse(name, &format!("`{name}` {why}"))
        }
    }
}

fn tools(asked: &Map<String, Value>) -> Read<Vec<ToolSchema>> {
    let Some(value) = asked.get("tools").filter(|value| says_something(value)) else {
        return Ok(Vec::new());
    };
    let Ok(wire) = Vec::<WireTool>::deserialize(value) else {
        return refuse("tools", "`tools` has to be a list of functions, each with a name");
    };
    if wire.len() > MOST_TOOLS || value.to_string().len() > MOST_TOOL_BYTES {
        let most = format!("{MOST_TOOLS} tools, in {MOST_TOOL_BYTES} bytes");
        return refuse("tools", &format!("`tools` may have at most {most}; send fewer"));
    }
    let mut tools: Vec<ToolSchema> = Vec::new();
    for (number, tool) in wire.into_iter().enumerate() {
        if tool.r#type != "function" {
            let why = format!(
                "`tools[{number}]` has the type `{}`; only functions can be used, besides the agent's own tools",
                tool.r#type
            );
            return refuse("tools", &why);
        }
        let WireFunction { name, description, parameters } = match tool {
            WireTool { function: Some(function), .. } => function,
            WireTool { name, description, parameters, .. } => {
                WireFunction { name: name.unwrap_or_default(), description, parameters }
            }
        };
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(is_plain) {
            let why = format!(
                "the name of `tools[{number}]` has to have 1 to {MOST_NAME} letters, digits, `_` or `-`"
            );
            return refuse("tools", &why);
        }
        if tools.iter().any(|other| other.name == name) {
            return refuse("tools", &format!("`tools` has two functions `{name}`"));
        }
        let parameters = parameters.filter(Value::is_object);
        tools.push(ToolSchema {
            name,
            description: description.unwrap_or_default(),
            parameters: parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        });
    }
    Ok(tools)
}

/// Which tools may or must be called.
fn choose(asked: &Map<String, Value>, request: &mut ProgramRequest) -> Read<()> {
    let name = match asked.get("function_call").is_some_and(|choice| !choice.is_null()) {
        true => "function_call",
        false => "tool_choice",
    };
    let Some(choice) = asked.get(name).filter(|choice| !choice.is_null()) else { return Ok(()) };
    let named = choice["function"]["name"].as_str().or_else(|| choice["name"].as_str());
    match (choice.as_str(), named) {
        (Some("auto"), _) => Ok(()),
        (Some("none"), _) => {
            request.tools.clear();
            request.options.single_calls = false;
            Ok(())
        }
        (Some("required"), _) if !request.tools.is_empty() => {
            request.options.forced_call = Some(ForcedCall::Any);
            request.has_only_these = true;
            Ok(())
        }
        (None, Some(tool)) if request.tools.iter().any(|other| other.name == tool) => {
            request.options.forced_call = Some(ForcedCall::Tool(tool.to_owned()));
            request.has_only_these = true;
            Ok(())
        }
        _ => {
            let why = format!(
                "`{name}` has to be \"auto\", \"none\", or with `tools` \"required\" or the name of one of them"
            );
            refuse(name, &why)
        }
    }
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

fn refuse<T>(name: &str, message: &str) -> Read<T> {
    Err(Box::new(failure(StatusCode::BAD_REQUEST, "unsupported_parameter", name, message)))
}

fn failure(status: StatusCode, code: &str, name: &str, message: &str) -> Failure {
    let kind = "invalid_request_error";
    let error = json!({"message": message, "type": kind, "param": name, "code": code});
    (status, json!({"error": error}))
}

#[cfg(test)]
mod tests;
