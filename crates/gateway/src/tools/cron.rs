//! The tool `cron`: the agent plans its own work.

use std::sync::{LazyLock, Weak};

use futures_util::future::BoxFuture;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::schedule::{Asker, CronRequest};
use myclaw_engine::{
    About, CallArguments, CallSubject, Power, Powers, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolGroup, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::ToolSchema;
use serde_json::{Value, json};

use super::answer::{output, running};

const DESCRIPTION: &str = include_str!("cron/description.md");

const ALIASES: ToolAliases = ToolAliases {
    names: &[],
    arguments: &[
        ("jobId", "id"),
        ("job.text", "message"),
        ("job.sessionTarget", "target"),
        ("job.schedule.atMs", "at"),
        ("job.schedule.cron", "expr"),
        ("patch.text", "message"),
        ("patch.sessionTarget", "target"),
        ("patch.schedule.atMs", "at"),
        ("patch.schedule.cron", "expr"),
    ],
    unlisted: &[],
};

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: "cron".to_owned(),
    description: DESCRIPTION.trim().to_owned(),
    parameters: parameters(),
});

/// What the tool is.
pub(super) const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Plan work",
    kind: ToolKind::Other,
    about: About::Nothing,
    group: Some(ToolGroup::Automation),
    powers: Powers::of(&[Power::ChangesState]),
    place: WorkPlace::Here,
};

/// The tool for one agent.
pub(super) struct CronTool {
    delivery: Weak<Delivery>,
    agent: String,
}

impl CronTool {
    pub(super) fn new(delivery: Weak<Delivery>, agent: String) -> Self {
        Self { delivery, agent }
    }
}

impl Tool for CronTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn aliases(&self) -> ToolAliases {
        ALIASES
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        // What a job does is judged when it does it.
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let delivery = running(&self.delivery)?;
            let answer = async {
                let request =
                    CronRequest::of_arguments(invocation.call.arguments.as_map().clone())?;
                delivery.cron(request, Asker::Agent(self.agent.clone())).await
            };
            let value = answer.await.map_err(|error| ToolError::Failed(error.to_string()))?;
            Ok(output(&value))
        })
    }
}

fn parameters() -> Value {
    let job = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "A short name"},
            "schedule": {
                "type": "object",
                "description": "One of: {\"when\": \"tomorrow at 9\"}, as the user says it in English; {\"at\": \"2026-12-24T18:00\"}; \
                                {\"every\": \"2h\"}; {\"expr\": \"0 9 * * 1-5\"}. With tz, times are local to that zone",
                "properties": {
                    "kind": {"type": "string", "enum": ["at", "every", "cron"]},
                    "when": {"type": "string"},
                    "at": {"description": "A time, or a duration from now"},
                    "every": {"type": "string", "description": "An interval such as 30m or 1d"},
                    "everyMs": {"type": "integer", "minimum": 1000},
                    "anchorMs": {"type": "integer", "minimum": 0},
                    "expr": {"type": "string", "description": "minute hour day-of-month month day-of-week"},
                    "tz": {"type": "string", "description": "Such as Europe/Berlin"}
                },
                "additionalProperties": false
            },
            "message": {"type": "string", "description": "What you are told when it is due"},
            "target": {
                "type": "string",
                "enum": ["main", "isolated"],
                "description": "Your main session (default), or a session of the job's own"
            },
            "delivery": {"description": "Where your answer goes: \"last\" (default), \"none\", or a channel's name"},
            "enabled": {"type": "boolean"},
            "deleteAfterRun": {"type": "boolean"},
            "missed": {"type": "string", "enum": ["skip", "once", "all"]}
        },
        "additionalProperties": false
    });
    json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["status", "list", "add", "update", "remove", "run", "runs", "wake"]
            },
            "id": {"type": "string", "description": "Id or name of the job (update, remove, run, runs)"},
            "job": job,
            "patch": job,
            "limit": {"type": "integer", "minimum": 1, "description": "Most entries (runs)"},
            "text": {"type": "string", "description": "What to be told (wake)"},
            "mode": {"type": "string", "enum": ["now", "next-heartbeat"]}
        },
        "required": ["action"],
        "additionalProperties": false
    })
}
