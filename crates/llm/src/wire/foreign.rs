//! Distinguishes an answer in another format from a failed answer. A retry can help only the second.

use serde_json::Value;

use crate::{Api, ErrorClass, ModelError, classify};

/// The types of Anthropic's events and answers.
const ANTHROPIC_TYPES: [&str; 9] = [
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "error",
    "message",
    "message_delta",
    "message_start",
    "message_stop",
    "ping",
];

/// The members that only Google's responses have.
const GOOGLE_MEMBERS: [&str; 5] =
    ["candidates", "modelVersion", "promptFeedback", "responseId", "usageMetadata"];

/// The names of Amazon's events.
const BEDROCK_EVENTS: [&str; 6] = [
    "contentBlockDelta",
    "contentBlockStart",
    "contentBlockStop",
    "messageStart",
    "messageStop",
    "metadata",
];

/// Whether this event or document is of the format, even if it has no content.
pub(super) fn belongs_to(api: Api, event_name: &str, data: &Value) -> bool {
    let word = |member: &str| data[member].as_str().unwrap_or_default();
    match api {
        Api::AnthropicMessages => {
            [event_name, word("type")].iter().any(|kind| ANTHROPIC_TYPES.contains(kind))
        }
        Api::OpenaiCompletions => {
            data.get("choices").is_some() || word("object").starts_with("chat.completion")
        }
        Api::OpenaiResponses => {
            word("object") == "response"
                || [event_name, word("type")].iter().any(|kind| kind.starts_with("response."))
        }
        Api::GoogleGenerativeAi => {
            let first = data.get(0).unwrap_or(data);
            GOOGLE_MEMBERS.iter().any(|member| first.get(member).is_some())
        }
        Api::BedrockConverse => {
            BEDROCK_EVENTS.contains(&event_name)
                || data.get("output").is_some_and(|output| output.get("message").is_some())
        }
        Api::Builtin => false,
    }
}

/// Whether the JSON at the beginning of `data` is neither of the format nor an error. Servers that write one document a
/// line are judged by the first.
pub(super) fn is_foreign(api: Api, event_name: &str, data: &str) -> bool {
    let first = serde_json::Deserializer::from_str(data).into_iter::<Value>().next();
    let Some(Ok(value)) = first else { return false };
    event_name != "error"
        && !belongs_to(api, event_name, &value)
        && !classify::reports_an_error(&value)
}

/// Whether an event reports a failure without the member `error` by which the formats know one: a gateway's own body,
/// such as `{"object":"error","message":…}` or `{"detail":…}`.
pub(super) fn is_unmarked_failure(api: Api, event_name: &str, data: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(data) else { return false };
    value.is_object()
        && value["error"].is_null()
        && !belongs_to(api, event_name, &value)
        && classify::reports_an_error(&value)
}

pub(super) fn foreign_format(api: Api) -> ModelError {
    let name = serde_json::to_value(api).unwrap_or_default();
    let message = format!(
        "the server does not speak {}: check `api` and the base URL",
        name.as_str().unwrap_or("this format")
    );
    ModelError::new(ErrorClass::Unknown, message)
}
