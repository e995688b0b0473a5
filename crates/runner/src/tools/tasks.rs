//! The tools for work by the clock: requests to the host, which has the schedule.

use std::io::ErrorKind;
use std::sync::Arc;

use jiff::civil::DateTime;
use myclaw_engine::{Power, Tool, ToolDeclaration, ToolError, ToolGroup, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Call, not_written, of_host, ready, schema, simple};
use crate::ipc::{Ipc, Outbound, timestamp};

/// The list that the host keeps next to the directories.
const SNAPSHOT: &str = "current_tasks.json";

/// When a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum When {
    Cron,
    Interval,
    Once,
}

/// What the model of a task knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Context {
    #[default]
    Group,
    Isolated,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTask {
    prompt: String,
    schedule_type: When,
    schedule_value: String,
    #[serde(default)]
    context_mode: Context,
    #[serde(default)]
    target_group_jid: Option<String>,
}

impl When {
    fn name(self) -> &'static str {
        match self {
            Self::Cron => "cron",
            Self::Interval => "interval",
            Self::Once => "once",
        }
    }

    /// Checks a value as far as it is possible without the host.
    fn check(self, value: &str) -> Result<(), String> {
        let fits = match self {
            Self::Cron => (5..=6).contains(&value.split_whitespace().count()),
            Self::Interval => value.parse::<u64>().is_ok_and(|ms| ms > 0),
            // A zone or an offset would be read and ignored.
            Self::Once => {
                let time = value.split_once('T').map_or("", |(_, time)| time);
                !time.contains(['Z', 'z', '+', '-', '[']) && value.parse::<DateTime>().is_ok()
            }
        };
        let form = match self {
            Self::Cron => "five fields, such as 0 9 * * 1-5",
            Self::Interval => "milliseconds, such as 3600000 for an hour",
            Self::Once => "a local time without a zone, such as 2026-02-01T15:30:00",
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "the schedule_value {value:?} does not fit schedule_type {}: write {form}",
            self.name()
        ))
    }
}

pub(super) fn tools(ipc: &Arc<Ipc>) -> Vec<Arc<dyn Tool>> {
    let change = |name, kind, does: &str| by_id(Arc::clone(ipc), name, kind, does);
    vec![
        plan(Arc::clone(ipc)),
        list(Arc::clone(ipc)),
        change("pause_task", "pause_task", "Pause a task, until resume_task."),
        change("resume_task", "resume_task", "Go on with a paused task."),
        change("cancel_task", "cancel_task", "Delete a task."),
    ]
}

fn declaration() -> ToolDeclaration {
    of_host("Plan work", ToolGroup::Automation, Power::ChangesState)
}

fn plan(ipc: Arc<Ipc>) -> Arc<dyn Tool> {
    let schema = schema(
        "schedule_task",
        "Plan work for later, once or again and again. At its time the prompt is given to an agent like you, with the \
         session of this chat (context_mode group) or without (isolated; then the prompt must say everything).",
        &json!({
            "prompt": {"type": "string"},
            "schedule_type": {"type": "string", "enum": ["cron", "interval", "once"]},
            "schedule_value": {
                "type": "string",
                "description": "cron: five fields; interval: milliseconds; once: a local time without zone",
            },
            "context_mode": {"type": "string", "enum": ["group", "isolated"]},
            "target_group_jid": {"type": "string", "description": "Another chat; from the main group only"},
        }),
        &["prompt", "schedule_type", "schedule_value"],
    );
    let work = move |call: Call| ready(planned(&ipc, &call));
    simple(schema, declaration(), work)
}

fn planned(ipc: &Ipc, call: &Call) -> Result<ToolOutput, ToolError> {
    let task: NewTask = call.arguments.parse()?;
    let value = task.schedule_value.trim();
    task.schedule_type.check(value).map_err(ToolError::Failed)?;
    let target = task.target_group_jid.unwrap_or_else(|| ipc.chat_jid.clone());
    if target != ipc.chat_jid && !ipc.is_main {
        return Err(ToolError::Failed(
            "only the main group may plan tasks of other chats; leave target_group_jid out"
                .to_owned(),
        ));
    }
    let context = match task.context_mode {
        Context::Group => "group",
        Context::Isolated => "isolated",
    };
    let request = json!({
        "type": "schedule_task",
        "prompt": task.prompt,
        "schedule_type": task.schedule_type.name(),
        "schedule_value": value,
        "context_mode": context,
        "targetJid": target,
        "createdBy": ipc.group_folder,
        "timestamp": timestamp(),
    });
    ipc.write(Outbound::Tasks, &request).map_err(|error| not_written(&error))?;
    Ok(ToolOutput::text(format!(
        "The host is asked to plan it: {} {value}.",
        task.schedule_type.name()
    )))
}

fn list(ipc: Arc<Ipc>) -> Arc<dyn Tool> {
    let schema = schema("list_tasks", "List the planned tasks, with their ids.", &json!({}), &[]);
    let work = move |_: Call| ready(listed(&ipc));
    simple(schema, declaration(), work)
}

fn listed(ipc: &Ipc) -> Result<ToolOutput, ToolError> {
    let text = match ipc.snapshot(SNAPSHOT) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(ToolOutput::text("There are no tasks."));
        }
        Err(error) => {
            return Err(ToolError::Failed(format!("the list of tasks cannot be read: {error}")));
        }
    };
    let Ok(Value::Array(tasks)) = serde_json::from_slice(&text) else {
        return Err(ToolError::Failed(
            "the host's list of tasks is damaged; tell the user that its file current_tasks.json is not a JSON list"
                .to_owned(),
        ));
    };
    if tasks.is_empty() {
        return Ok(ToolOutput::text("There are no tasks."));
    }
    let lines: Vec<String> = tasks.iter().map(line).collect();
    Ok(ToolOutput::text(lines.join("\n")))
}

fn line(task: &Value) -> String {
    let field = |name: &str| task[name].as_str().unwrap_or("?").to_owned();
    let (id, kind, value) = (field("id"), field("schedule_type"), field("schedule_value"));
    let (state, prompt) = (field("status"), field("prompt"));
    let next = task["next_run"].as_str().map(|next| format!(", next {next}")).unwrap_or_default();
    format!("- {id}: {kind} {value}, {state}{next}: {prompt}")
}

fn by_id(ipc: Arc<Ipc>, name: &str, kind: &'static str, does: &str) -> Arc<dyn Tool> {
    let schema = schema(
        name,
        does,
        &json!({"task_id": {"type": "string", "description": "As list_tasks shows it"}}),
        &["task_id"],
    );
    let work = move |call: Call| -> Answer {
        let id = call.text("task_id");
        let request = json!({
            "type": kind,
            "taskId": id,
            "groupFolder": ipc.group_folder,
            "timestamp": timestamp(),
        });
        let written = ipc.write(Outbound::Tasks, &request).map_err(|error| not_written(&error));
        ready(written.map(|()| ToolOutput::text(format!("The host is asked: {kind} {id}."))))
    };
    simple(schema, declaration(), work)
}
