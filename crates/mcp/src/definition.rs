//! A tool as a server describes it.

use myclaw_files::hex;
use myclaw_llm::ToolSchema;
use myclaw_llm::outside::visible;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Longest name of a tool that all providers take.
const MAX_NAME: usize = 64;
/// Longest description that a model is shown. Longer ones are manuals.
const MAX_DESCRIPTION: usize = 4_000;
/// Most bytes of all that is said about a tool.
const MAX_BYTES: usize = 64 * 1024;
/// Digits of the digest behind a name that had to be changed.
const NAME_DIGITS: usize = 6;
/// Between the name of a server and that of its tool.
pub(crate) const SEPARATOR: &str = "__";

/// The name of the tool that finds others. No server may be called `mcp`.
pub const FINDER: &str = "mcp__tools";

/// A tool as a server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name that the server gives it.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl ToolDefinition {
    /// Reads an entry of a server's list.
    ///
    /// # Errors
    /// It is no tool that can be offered; why.
    pub(crate) fn parse(entry: Value) -> Result<Self, String> {
        let shown = entry.get("name").and_then(Value::as_str).unwrap_or("without a name");
        let name: String = visible(shown).chars().take(MAX_NAME).collect();
        if entry.to_string().len() > MAX_BYTES {
            return Err(format!("the tool {name} is described in more than {MAX_BYTES} bytes"));
        }
        let tool: Self =
            serde_json::from_value(entry).map_err(|error| format!("the tool {name}: {error}"))?;
        match tool.name.trim() {
            "" => Err("a tool has no name".to_owned()),
            _ if !tool.input_schema.is_object() => {
                Err(format!("the tool {name} has a schema that is no object"))
            }
            _ => Ok(tool),
        }
    }

    /// Whether the server says that the tool changes nothing. What it says was approved with the tool.
    pub fn is_read_only(&self) -> bool {
        let hints = self.annotations.as_ref();
        hints.is_some_and(|hints| hints["readOnlyHint"] == true)
    }

    /// A SHA-256 digest of all that is said about the tool, in hexadecimal digits. The order of keys does not count.
    pub fn digest(&self) -> String {
        let whole = serde_json::to_value(self).map(|value| sorted(&value)).unwrap_or_default();
        hex(digest(&SHA256, whole.to_string().as_bytes()).as_ref())
    }

    /// The name that a model knows it by: `server__tool`, with the characters that all providers take. A name that had to be
    /// changed ends with digits that belong to it alone, so that no two tools of a server share one.
    pub fn offered_name(&self, server: &str) -> String {
        offered_name(server, &self.name)
    }

    /// What a model is shown of it.
    pub(crate) fn schema(&self, server: &str) -> ToolSchema {
        let description = match (self.description.trim(), self.title.as_deref()) {
            ("", Some(title)) => title,
            ("", None) => "(no description)",
            (description, _) => description,
        };
        let description: String = visible(description).chars().take(MAX_DESCRIPTION).collect();
        ToolSchema {
            name: self.offered_name(server),
            description: format!("{description} (MCP server {server})"),
            parameters: self.parameters(),
        }
    }

    /// The schema of the arguments as providers take it: an object with properties.
    fn parameters(&self) -> Value {
        let mut schema: Map<String, Value> =
            self.input_schema.as_object().cloned().unwrap_or_default();
        schema.remove("$schema");
        schema.remove("$id");
        schema.insert("type".to_owned(), json!("object"));
        if !schema.get("properties").is_some_and(Value::is_object) {
            schema.insert("properties".to_owned(), json!({}));
        }
        Value::Object(schema)
    }
}

/// The name that a model knows a tool by.
pub(crate) fn offered_name(server: &str, tool: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let plain: String = tool.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    let room = MAX_NAME.saturating_sub(server.len() + SEPARATOR.len());
    if plain == tool && plain.len() <= room {
        return format!("{server}{SEPARATOR}{plain}");
    }
    let digits = hex(digest(&SHA256, tool.as_bytes()).as_ref());
    let kept = &plain[..plain.len().min(room.saturating_sub(NAME_DIGITS + 1))];
    format!("{server}{SEPARATOR}{kept}_{}", &digits[..NAME_DIGITS])
}

/// The value with the keys of all its objects in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            Value::Object(
                names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
