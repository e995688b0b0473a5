//! What commands ask of a gateway, and how its answers are replies.

use myclaw_front::approval::ApprovalAnswer;
use myclaw_front::exit::CliError;
use myclaw_front::time::new_session_name;
use serde_json::{Value, json};

use super::super::approvals::Answer;
use super::super::request::{
    AskAside, Command, Compact, Fork, GetMessages, GoalAction, Limit, Memory, Rename, SetModel,
    Undo,
};

/// Commands that work here.
pub(super) const OFFERED: [&str; 21] = [
    "prompt",
    "abort",
    "approve",
    "ask_aside",
    "set_model",
    "set_thinking",
    "set_mode",
    "compact",
    "undo",
    "goal",
    "get_changes",
    "get_state",
    "get_messages",
    "get_commands",
    "fork",
    "new_session",
    "switch_session",
    "rename",
    "delete",
    "list_sessions",
    "memory",
];
/// Messages of a reply if the command gives no limit.
const SOME_MESSAGES: usize = 100;

impl From<Answer> for ApprovalAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Once => Self::Once,
            Answer::Always(scope) => Self::Always(scope),
            Answer::No { reason } => Self::No(reason),
            Answer::Words(words) => Self::Said(words),
            Answer::Cancel => Self::Cancel,
            Answer::Instead(command) => Self::Instead(command),
        }
    }
}

/// The method of the gateway for a command that is one request, and its parameters.
pub(super) fn request(
    name: &'static str,
    command: Command,
    with: impl Fn(&str, Value) -> Value,
) -> Result<(&'static str, Value), CliError> {
    let line = |command: &str, argument: &str| {
        ("command", with("text", json!(format!("{command} {argument}").trim_end())))
    };
    Ok(match command {
        Command::Abort => ("abort", Value::Null),
        Command::AskAside(AskAside { question }) => line("/btw", &question),
        Command::SetModel(SetModel { model, provider }) => {
            let name = provider.map_or(model.clone(), |provider| format!("{provider}/{model}"));
            ("model", with("model", json!(name)))
        }
        Command::SetThinking(wanted) => ("model", with("thinking", json!(wanted.level))),
        Command::SetMode(wanted) => ("mode", with("mode", json!(wanted.mode))),
        Command::Compact(Compact { focus }) => {
            line("/compact", focus.as_deref().unwrap_or_default())
        }
        Command::Undo(Undo { turn: None, redo, dry_run: false }) => {
            line(if redo { "/redo" } else { "/undo" }, "")
        }
        Command::Goal(wanted) => match (wanted.condition, wanted.action) {
            (Some(condition), None) => line("/goal", &condition),
            (None, Some(GoalAction::Stop)) => line("/goal", "stop"),
            (None, Some(GoalAction::Resume)) => line("/goal", "resume"),
            (None, None) => line("/goal", ""),
            (Some(_), Some(_)) => {
                return Err(CliError::usage("goal: write `condition` or `action`"));
            }
        },
        Command::GetChanges => ("changes", Value::Null),
        Command::GetMessages(GetMessages { limit, before }) => {
            let mut params = with("limit", json!(limit.unwrap_or(SOME_MESSAGES)));
            params["before"] = json!(before);
            ("history", params)
        }
        Command::Fork(Fork { at, name }) => {
            let name = name.unwrap_or_else(|| new_session_name(|_| false));
            let mut params = with("newSession", json!(name));
            params["at"] = json!(at);
            ("fork", params)
        }
        Command::Rename(Rename { title }) => ("title", with("title", json!(title))),
        Command::Delete => ("delete", Value::Null),
        Command::ListSessions(Limit { limit }) => ("sessions", with("limit", json!(limit))),
        Command::Memory(Memory { command }) => line("/memory", &command),
        _ => {
            return Err(CliError::usage(format!(
                "{name}: this does not work on a session of a gateway; `get_commands` lists what does"
            )));
        }
    })
}

/// The data of a reply, in the form that it has without a gateway as far as the gateway says the same.
pub(super) fn shaped(name: &str, answer: Value, state: &str) -> Value {
    match name {
        "prompt" => json!({"state": state, "messageId": answer["messageId"]}),
        "ask_aside" => json!({"reply": answer["text"]}),
        "compact" | "undo" | "goal" | "memory" => json!({"text": answer["text"]}),
        "get_messages" => json!({"messages": answer["messages"]}),
        "set_mode" => json!({"mode": answer["mode"]}),
        "rename" => json!({"session": answer["key"], "title": answer["title"]}),
        "delete" => json!({"session": answer["deleted"]}),
        "approve" => Value::Null,
        _ => answer,
    }
}

/// A message that waits: its id, and how the state of the session shows it.
pub(super) fn message_of(message: &Value) -> Option<(String, Value)> {
    let id = message["messageId"].as_str()?;
    let ts = &message["acceptedAt"];
    Some((id.to_owned(), json!({"messageId": id, "text": message["text"], "ts": ts})))
}
