//! Requests of the program: one JSON object per line.

use myclaw_agent::config::QueueMode;
use myclaw_agent::did_you_mean;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A command with its arguments. Unknown fields are ignored, so that programs can be older or newer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Command {
    /// Sends a message.
    Prompt(Prompt),
    /// Sends a message to the running turn, which reads it before its next model call.
    Steer(Message),
    /// Sends a message to the running turn, which reads it when it would end.
    FollowUp(Message),
    /// Aborts the current work.
    Abort,
    /// Answers a question about a call that needs an approval.
    Approve(Approve),
    /// Changes the active model.
    SetModel(SetModel),
    /// Changes the thinking level.
    SetThinking(SetThinking),
    /// Summarises older messages.
    Compact(Compact),
    /// Undoes the file changes of a turn, or makes them again.
    Undo(Undo),
    /// Returns the state of the session.
    GetState,
    /// Returns messages of the session.
    GetMessages(GetMessages),
    /// Begins a session that continues another one.
    Fork(Fork),
    /// Begins a session.
    NewSession(Name),
    /// Continues a session.
    SwitchSession(Name),
    /// Lists sessions.
    ListSessions(Limit),
    /// Lists models.
    ListModels(ListModels),
    /// Lists the background jobs of the session.
    ListJobs,
    /// Ends a background job.
    KillJob(KillJob),
    /// Lists the skills that the agent can use.
    ListSkills,
}

/// The commands by name.
const NAMES: [&str; 19] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "approve",
    "set_model",
    "set_thinking",
    "compact",
    "undo",
    "get_state",
    "get_messages",
    "fork",
    "new_session",
    "switch_session",
    "list_sessions",
    "list_models",
    "list_jobs",
    "kill_job",
    "list_skills",
];

/// One line of a program.
#[derive(Debug)]
pub(super) struct Request {
    /// The type of the command.
    pub(super) name: &'static str,
    /// The session of the command, if not the current one.
    pub(super) session: Option<String>,
    /// The command with its arguments.
    pub(super) command: Command,
}

/// Why a line is not a valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadRequest {
    /// The command, if it is one.
    pub(super) name: Option<&'static str>,
    /// `parse`, `unknown_command` or `usage`.
    pub(super) class: &'static str,
    /// A message for the program's author.
    pub(super) message: String,
}

/// A message: its text, or blocks of text and pictures.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    /// The content. Two names, for programs that were written for other agents.
    #[serde(alias = "content")]
    pub(super) message: Spoken,
    /// Pictures after the content.
    #[serde(default)]
    pub(super) images: Vec<Picture>,
    /// A skill that the agent shall use.
    #[serde(default)]
    pub(super) skill: Option<String>,
}

/// The content of a message.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "neither text nor a list of blocks ({\"type\":\"text\",\"text\":…} or \
                               {\"type\":\"image\",\"data\":…})"
)]
pub(super) enum Spoken {
    /// Text alone.
    Text(String),
    /// Text and pictures.
    Blocks(Vec<Block>),
}

/// A content block of a message.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Picture),
}

/// A picture. Its bytes say what kind it is; a media type beside them is not needed.
#[derive(Debug, Deserialize)]
pub(super) struct Picture {
    /// Standard base64 of a PNG, JPEG, GIF or WebP file.
    pub(super) data: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Prompt {
    #[serde(flatten)]
    pub(super) message: Message,
    /// What happens to the message while the session is busy.
    #[serde(default)]
    pub(super) mode: Option<QueueMode>,
}

/// The answer to a question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Approve {
    pub(super) tool_call_id: String,
    pub(super) decision: Decision,
    /// Why not, for the model.
    #[serde(default)]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    Once,
    Always,
    No,
}

#[derive(Debug, Deserialize)]
pub(super) struct KillJob {
    /// The id of the job.
    pub(super) job: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModel {
    /// `provider/model`, or the model's id alone if `provider` is given as well.
    #[serde(alias = "modelId")]
    pub(super) model: String,
    #[serde(default)]
    pub(super) provider: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SetThinking {
    pub(super) level: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Compact {
    #[serde(default, alias = "customInstructions")]
    pub(super) focus: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Undo {
    /// Counted from the latest turn that changed files, which is 1.
    #[serde(default)]
    pub(super) turn: Option<usize>,
    #[serde(default)]
    pub(super) redo: bool,
    #[serde(default)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct GetMessages {
    /// Most messages of the reply.
    #[serde(default)]
    pub(super) limit: Option<usize>,
    /// Only those before the one with this id.
    #[serde(default)]
    pub(super) before: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Fork {
    /// The last message that the two share.
    #[serde(default, alias = "entryId")]
    pub(super) at: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Name {
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    #[serde(default)]
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListModels {
    #[serde(default)]
    pub(super) provider: Option<String>,
    #[serde(default)]
    pub(super) search: Option<String>,
}

impl Request {
    /// Parses a line into the id that the reply repeats, and the request or the reason why the line cannot be used.
    pub(super) fn parse(line: &str) -> (Option<Value>, Result<Self, BadRequest>) {
        let mut fields = match serde_json::from_str(line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => {
                return (None, Err(BadRequest::unreadable("the line is JSON but no object")));
            }
            Err(error) => {
                let why = format!("the line is not JSON: {error}");
                return (None, Err(BadRequest::unreadable(&why)));
            }
        };
        let id = fields.remove("id").filter(|id| !id.is_null());
        (id, Self::read(fields))
    }

    fn read(mut fields: Map<String, Value>) -> Result<Self, BadRequest> {
        let Some(Value::String(kind)) = fields.get("type") else {
            return Err(BadRequest::unreadable("the object has no text as its `type`"));
        };
        let Some(name) = NAMES.into_iter().find(|name| name == kind) else {
            let suggestion = did_you_mean(kind, NAMES);
            return Err(BadRequest {
                class: "unknown_command",
                ..BadRequest::unreadable(&format!(
                    "there is no command `{kind}`{suggestion} There are: {}",
                    NAMES.join(", ")
                ))
            });
        };
        let session = match fields.remove("session") {
            None | Some(Value::Null) => None,
            Some(Value::String(session)) => Some(session),
            Some(_) => return Err(BadRequest::unusable(name, "`session` is not text")),
        };
        let command = Command::deserialize(Value::Object(fields))
            .map_err(|error| BadRequest::unusable(name, &error.to_string()))?;
        Ok(Self { name, session, command })
    }
}

impl BadRequest {
    pub(super) fn unreadable(message: &str) -> Self {
        let message = format!(
            "{message}; write one JSON object per line, such as {{\"type\":\"get_state\"}}"
        );
        Self { name: None, class: "parse", message }
    }

    fn unusable(name: &'static str, why: &str) -> Self {
        Self { name: Some(name), class: "usage", message: format!("{name}: {why}") }
    }
}

#[cfg(test)]
mod tests;
