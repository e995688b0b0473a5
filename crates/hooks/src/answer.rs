//! Parses the answers of commands. No output means no change. Anything undocumented is an error, so that a misspelt
//! `decision` does not let a call pass that it was meant to block.

use myclaw_engine::HookError;
use myclaw_llm::access::one_line;
use myclaw_llm::{ContentBlock, Message};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// Characters of an unreadable answer that are shown.
const QUOTED_CHARS: usize = 100;

/// Answer to `before_agent_start`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct StartAnswer {
    decision: Option<Decision>,
    reason: Option<String>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) append_system_prompt: Option<String>,
    pub(crate) user_message: Option<String>,
}

/// Answer to `context`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ContextAnswer {
    #[serde(deserialize_with = "messages")]
    pub(crate) messages: Option<Vec<Message>>,
}

/// Answer to `tool_call`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CallAnswer {
    decision: Option<Decision>,
    reason: Option<String>,
    pub(crate) arguments: Option<Map<String, Value>>,
}

/// Answer to `tool_result`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ResultAnswer {
    #[serde(deserialize_with = "content")]
    pub(crate) content: Option<Vec<ContentBlock>>,
    pub(crate) is_error: Option<bool>,
}

/// Answer to `before_session_compact`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CompactionAnswer {
    decision: Option<Decision>,
    reason: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) focus: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Block,
    /// For tool calls only: the call needs an approval.
    Ask,
}

/// An answer that can block.
pub(crate) trait Gate {
    /// The reason for blocking; `None` if the answer does not block.
    ///
    /// # Errors
    /// There is a reason but no decision.
    fn block_reason(&mut self) -> Result<Option<String>, HookError>;
}

impl CallAnswer {
    /// Why the call needs an approval; `None` if it needs none.
    pub(crate) fn approval_reason(&mut self) -> Option<String> {
        self.decision.take_if(|decision| *decision == Decision::Ask)?;
        Some(self.reason.take().unwrap_or_else(|| "it gave no reason".to_owned()))
    }
}

macro_rules! gate {
    ($($answer:ty),*) => {
        $(impl Gate for $answer {
            fn block_reason(&mut self) -> Result<Option<String>, HookError> {
                block_reason(self.decision, self.reason.take())
            }
        })*
    };
}

gate!(StartAnswer, CallAnswer, CompactionAnswer);

fn block_reason(
    decision: Option<Decision>,
    reason: Option<String>,
) -> Result<Option<String>, HookError> {
    match (decision, reason) {
        (Some(Decision::Ask), _) => {
            Err(HookError("only an answer to tool_call can have \"decision\": \"ask\"".to_owned()))
        }
        (Some(Decision::Block), reason) => {
            Ok(Some(reason.unwrap_or_else(|| "it gave no reason".to_owned())))
        }
        (None, Some(_)) => Err(HookError(
            "its answer has a reason and no decision; it should have \"decision\": \"block\" or \"allow\""
                .to_owned(),
        )),
        (Some(Decision::Allow), _) | (None, None) => Ok(None),
    }
}

/// Parses the output of a command.
pub(crate) fn read<T: DeserializeOwned + Default>(printed: &str) -> Result<T, HookError> {
    let printed = printed.trim();
    if printed.is_empty() {
        return Ok(T::default());
    }
    // Serde would accept a list and take its elements as the fields in order.
    let answer = serde_json::from_str::<Map<String, Value>>(printed)
        .and_then(|fields| T::deserialize(Value::Object(fields)));
    answer.map_err(|error| {
        let quoted = one_line(printed, QUOTED_CHARS);
        HookError(format!("its answer cannot be used: {error}. It began: {quoted}"))
    })
}

/// Blocks, or a string for one block of text.
fn content<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ContentBlock>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(vec![ContentBlock::text(text)])),
        blocks => serde_json::from_value(blocks).map(Some).map_err(serde::de::Error::custom),
    }
}

/// Messages in the form of the input. A new user message needs only a role and a text.
fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Message>>, D::Error> {
    let mut messages = Vec::<Value>::deserialize(deserializer)?;
    for message in &mut messages {
        let Some(fields) =
            message.as_object_mut().filter(|fields| fields.get("role") == Some(&json!("user")))
        else {
            continue;
        };
        if let Some(Value::String(text)) = fields.get("content") {
            let blocks = json!([ContentBlock::text(text.as_str())]);
            fields.insert("content".to_owned(), blocks);
        }
        fields.entry("timestamp").or_insert_with(|| json!(0));
    }
    let messages = messages.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    messages.map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
