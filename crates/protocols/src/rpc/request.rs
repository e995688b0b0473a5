//! Requests of the program: one JSON object per line.

use std::path::PathBuf;

use myclaw_agent::{did_you_mean, goal::GoalOrder};
use myclaw_config::QueueMode;
use myclaw_engine::ScopeKind;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use myclaw_front::exit::CliError;

/// A command with its arguments.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Command {
    /// Sends a message.
    Prompt(Prompt),
    /// Sends a message to the running turn, which reads it before its next model call.
    Steer(Message),
    /// Sends a message to the running turn, which reads it when it would end.
    FollowUp(Message),
    /// Asks a question whose answer is not added to the session.
    AskAside(AskAside),
    /// Aborts the current work.
    Abort,
    /// Answers a question about a call that needs an approval.
    Approve(Approve),
    /// Runs a command of the program.
    Bash(Bash),
    /// Changes the active model.
    SetModel(SetModel),
    /// Changes the thinking level.
    SetThinking(SetThinking),
    /// Changes the permission mode.
    SetMode(SetMode),
    /// Summarises older messages.
    Compact(Compact),
    /// Undoes the file changes of a turn, or makes them again.
    Undo(Undo),
    /// Goes back in talk and files.
    Rewind(Rewind),
    /// Shows or drops the goal, or begins to work on one.
    Goal(GoalWanted),
    /// Returns what the tools have changed in the session.
    GetChanges,
    /// Returns the state of the session.
    GetState,
    /// Returns messages of the session.
    GetMessages(GetMessages),
    /// Returns figures about the session.
    GetSessionStats,
    /// Returns the commands.
    GetCommands,
    /// Begins a session that continues another one.
    Fork(Fork),
    /// Begins a session.
    NewSession(Name),
    /// Continues a session.
    SwitchSession(Name),
    /// Gives the session a title.
    Rename(Rename),
    /// Writes the session to a file.
    Export(Export),
    /// Deletes the session.
    Delete,
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
    /// Shows or changes what the agent remembers.
    Memory(Memory),
}

/// The commands, each with its fields besides `id`, `type` and `session`. Other fields are errors: a misspelt one would
/// change what happens without a word.
const COMMANDS: [(&str, &[&str]); 31] = [
    ("prompt", &["message", "content", "images", "skill", "mode"]),
    ("steer", &["message", "content", "images", "skill"]),
    ("follow_up", &["message", "content", "images", "skill"]),
    ("ask_aside", &["question"]),
    ("abort", &[]),
    ("approve", &["toolCallId", "decision", "scope", "reason", "words", "command"]),
    ("bash", &["command", "timeoutSeconds", "forModel"]),
    ("set_model", &["model", "modelId", "provider"]),
    ("set_thinking", &["level"]),
    ("set_mode", &["mode"]),
    ("compact", &["focus", "customInstructions"]),
    ("undo", &["turn", "redo", "dryRun"]),
    ("rewind", &["messageId", "name"]),
    ("goal", &["condition", "action"]),
    ("get_changes", &[]),
    ("get_state", &[]),
    ("get_messages", &["limit", "before"]),
    ("get_session_stats", &[]),
    ("get_commands", &[]),
    ("fork", &["at", "entryId", "name"]),
    ("new_session", &["name"]),
    ("switch_session", &["name"]),
    ("rename", &["title"]),
    ("export", &["path"]),
    ("delete", &[]),
    ("list_sessions", &["limit"]),
    ("list_models", &["provider", "search"]),
    ("list_jobs", &[]),
    ("kill_job", &["job"]),
    ("list_skills", &[]),
    ("memory", &["command"]),
];
/// Longest unknown command that a reply repeats, in characters.
const MOST_NAME_CHARS: usize = 64;

/// What to do with what the agent remembers.
#[derive(Debug, Deserialize)]
pub(super) struct Memory {
    /// As after `/memory` in the chat, such as `search boiler`; blank lists the facts.
    #[serde(default)]
    pub(super) command: String,
}

/// A question aside.
#[derive(Debug, Deserialize)]
pub(super) struct AskAside {
    pub(super) question: String,
}

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
    /// The command, or what stands in its place; `parse` for a line without one.
    pub(super) name: String,
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

/// A picture. Its bytes say what kind it is; a media type next to them is not needed.
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
    /// How much `always` covers; the least if it is left out.
    #[serde(default)]
    pub(super) scope: Option<ScopeKind>,
    /// Why not, for the model.
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// The words that the question wants; none if they are left out.
    #[serde(default)]
    pub(super) words: Option<String>,
    /// The command that runs in the place of that of the call.
    #[serde(default)]
    pub(super) command: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    Once,
    Always,
    No,
    Words,
    Cancel,
    Instead,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bash {
    pub(super) command: String,
    #[serde(default)]
    pub(super) timeout_seconds: Option<u64>,
    /// Whether the model reads the command and its output with its next message.
    #[serde(default)]
    pub(super) for_model: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rename {
    /// Blank for none.
    pub(super) title: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Export {
    /// Its end says the format.
    pub(super) path: PathBuf,
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
pub(super) struct SetMode {
    pub(super) mode: String,
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

/// The message of the user before which the new session ends.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rewind {
    pub(super) message_id: String,
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Fork {
    /// The last message that the two share.
    #[serde(default, alias = "entryId")]
    pub(super) at: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
}

/// What is wanted of the goal; nothing shows it.
#[derive(Debug, Deserialize)]
pub(super) struct GoalWanted {
    /// A new one: what is to hold, or a command behind an exclamation mark.
    #[serde(default)]
    pub(super) condition: Option<String>,
    /// What is done with the one that there is.
    #[serde(default)]
    pub(super) action: Option<GoalAction>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GoalAction {
    Stop,
    Resume,
}

impl GoalWanted {
    /// The order.
    ///
    /// # Errors
    /// Both fields are there.
    pub(super) fn order(self) -> Result<GoalOrder, CliError> {
        match (self.condition, self.action) {
            (None, None) => Ok(GoalOrder::Show),
            (Some(condition), None) => Ok(GoalOrder::Begin(condition)),
            (None, Some(GoalAction::Stop)) => Ok(GoalOrder::Stop),
            (None, Some(GoalAction::Resume)) => Ok(GoalOrder::Resume),
            (Some(_), Some(_)) => Err(CliError::usage(
                "goal: `condition` begins a new goal and `action` is about the one that there is; write one of them",
            )),
        }
    }
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
        let names = || COMMANDS.iter().map(|(name, _)| *name);
        let Some((name, known)) = COMMANDS.iter().copied().find(|(name, _)| name == kind) else {
            let suggestion = did_you_mean(kind, names());
            let there_are = names().collect::<Vec<_>>().join(", ");
            let unknown = BadRequest::unreadable(&format!(
                "there is no command `{kind}`{suggestion} There are: {there_are}"
            ));
            let name = kind.chars().take(MOST_NAME_CHARS).collect();
            return Err(BadRequest { name, class: "unknown_command", ..unknown });
        };
        let is_unknown = |key: &&String| {
            !known.contains(&key.as_str()) && !matches!(key.as_str(), "type" | "session")
        };
        if let Some(key) = fields.keys().find(is_unknown) {
            let suggestion = did_you_mean(key, known.iter().copied());
            let has = match known {
                [] => "it has none beside `id` and `session`".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            let why = format!("there is no field `{key}`{suggestion} In `{name}` {has}");
            return Err(BadRequest::unusable(name, &why));
        }
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

/// The commands with their fields.
pub(super) fn described() -> Vec<Value> {
    COMMANDS.iter().map(|(name, fields)| json!({"name": name, "fields": fields})).collect()
}

impl BadRequest {
    pub(super) fn unreadable(message: &str) -> Self {
        let message = format!(
            "{message}; write one JSON object per line, such as {{\"type\":\"get_state\"}}"
        );
        Self { name: "parse".to_owned(), class: "parse", message }
    }

    fn unusable(name: &'static str, why: &str) -> Self {
        Self { name: name.to_owned(), class: "usage", message: format!("{name}: {why}") }
    }
}

#[cfg(test)]
mod tests;
