//! The job: one JSON object on standard input.

use std::collections::BTreeMap;
use std::io::Read;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

/// Most bytes of a job: far more than a model reads.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The assistant's name if the job has none.
const DEFAULT_NAME: &str = "Assistant";

/// A job. Fields that are not here are ignored, `group` among them.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The session to continue.
    pub(crate) session_id: Option<String>,
    pub(crate) group_folder: String,
    pub(crate) chat_jid: String,
    /// Whether the group is the owner's own.
    pub(crate) is_main: bool,
    /// Whether the schedule sent the prompt, and not a person.
    pub(crate) is_scheduled: bool,
    pub(crate) assistant_name: String,
    pub(crate) prompt: String,
    pub(crate) secrets: Secrets,
}

/// The secrets of a job, by name.
#[derive(Debug, Default)]
pub(crate) struct Secrets(BTreeMap<String, SecretString>);

impl Secrets {
    /// The value of that name, unless it is blank.
    pub(crate) fn get(&self, name: &str) -> Option<&SecretString> {
        self.0.get(name).filter(|value| !value.expose_secret().trim().is_empty())
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(ExposeSecret::expose_secret)
    }
}

impl Payload {
    /// Reads a job to the end of the input.
    ///
    /// # Errors
    /// What is wrong with it, and what to do. The text holds nothing of the job, which has secrets in it.
    pub(crate) fn read(input: impl Read) -> Result<Self, String> {
        let mut text = Vec::new();
        input
            .take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| format!("the job cannot be read from standard input: {error}"))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("the job is longer than {MAX_BYTES} bytes; send less"));
        }
        if text.trim_ascii().is_empty() {
            return Err(
                "there is no job on standard input; write one JSON object to it and close it"
                    .to_owned(),
            );
        }
        // The error has a position and no content, except for the content of a number.
        let value: Value = serde_json::from_slice(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            if error.is_eof() {
                return "the job ended before its JSON was complete; write all of it before you close standard input"
                    .to_owned();
            }
            format!("the job is not valid JSON (line {line}, column {column}); write one JSON object")
        })?;
        let Value::Object(fields) = value else {
            return Err("the job is not a JSON object; write one with the fields groupFolder, chatJid and prompt".to_owned());
        };
        Self::from_fields(fields)
    }

    fn from_fields(mut fields: Map<String, Value>) -> Result<Self, String> {
        let secrets = secrets(fields.remove("secrets"))?;
        let mut fields = Fields(fields);
        Ok(Self {
            session_id: fields.text("sessionId")?,
            group_folder: fields.required("groupFolder")?,
            chat_jid: fields.required("chatJid")?,
            is_main: fields.flag("isMain")?,
            is_scheduled: fields.flag("isScheduledTask")?,
            assistant_name: fields
                .text("assistantName")?
                .unwrap_or_else(|| DEFAULT_NAME.to_owned()),
            prompt: fields.required("prompt")?,
            secrets,
        })
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    /// A text; `None` if it is missing, null or blank.
    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Some(_) => Err(format!("the field `{name}` of the job must be a text")),
        }
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.text(name)?
            .ok_or_else(|| format!("the job has no `{name}`; add it as a text that is not empty"))
    }

    fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(format!("the field `{name}` of the job must be true or false")),
        }
    }
}

fn secrets(value: Option<Value>) -> Result<Secrets, String> {
    let fields = match value {
        None | Some(Value::Null) => return Ok(Secrets::default()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err("the field `secrets` of the job must be an object".to_owned()),
    };
    let mut secrets = BTreeMap::new();
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::String(value) => {
                secrets.insert(name, SecretString::from(value));
            }
            _ => return Err(format!("the secret `{name}` of the job must be a text")),
        }
    }
    Ok(Secrets(secrets))
}
