//! The arguments of the tools, as the model sees them.

use serde_json::{Value, json};

use super::GatewayToolKind;

/// The arguments of one.
pub(super) fn of(kind: GatewayToolKind) -> Value {
    let session = json!({"type": "string", "description": "Key or name of the session"});
    let (properties, required) = match kind {
        GatewayToolKind::Spawn => (
            json!({
                "task": {"type": "string", "description": "What is to be done, with everything it needs to know"},
                "label": {"type": "string", "description": "A short name"},
                "agentId": {"type": "string", "description": "Another agent; see agents_list"},
                "model": {"type": "string", "description": "provider/model, if not the usual one"},
                "thinking": {
                    "type": "string",
                    "enum": ["off", "minimal", "low", "medium", "high", "xhigh"]
                },
                "runTimeoutSeconds": {"type": "integer", "minimum": 1, "description": "When it is stopped"}
            }),
            vec!["task"],
        ),
        GatewayToolKind::Subagents => (
            json!({
                "action": {"type": "string", "enum": ["list", "stop"]},
                "session": {"type": "string", "description": "Key of its session, or its label (stop)"}
            }),
            vec!["action"],
        ),
        GatewayToolKind::Agents => (json!({}), Vec::new()),
        GatewayToolKind::List => (
            json!({
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 20"},
                "activeMinutes": {"type": "integer", "minimum": 1, "description": "Only those that changed since"}
            }),
            Vec::new(),
        ),
        GatewayToolKind::History => (
            json!({
                "session": session,
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 20"},
                "before": {"type": "string", "description": "Id of a message: only older ones"},
                "includeTools": {"type": "boolean", "description": "Also the results of tools"}
            }),
            vec!["session"],
        ),
        GatewayToolKind::Send => (
            json!({
                "session": session,
                "message": {"type": "string"},
                "timeoutSeconds": {
                    "type": "integer", "minimum": 0, "maximum": 600,
                    "description": "How long you wait for the reply; default 30, 0 for not at all"
                }
            }),
            vec!["session", "message"],
        ),
        GatewayToolKind::Message => (message(&session), vec!["action"]),
        GatewayToolKind::Voice => (voice(), vec!["text"]),
        GatewayToolKind::Cron => (cron(), vec!["action"]),
        GatewayToolKind::Gateway => (gateway(), vec!["action"]),
    };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// There is no place for an address: chats are named by their sessions.
fn message(session: &Value) -> Value {
    let mut to = session.clone();
    to["description"] = json!(
        "Another chat, by the key of its session, if the config allows it; see sessions_list"
    );
    json!({
        "action": {"type": "string", "enum": ["send", "reply", "react", "edit", "unsend", "poll"]},
        "text": {"type": "string", "description": "What it says, in Markdown (send, reply, edit)"},
        "files": {
            "type": "array", "items": {"type": "string"},
            "description": "Paths of files of the working directory (send, reply)"
        },
        "emoji": {"type": "string", "description": "One emoji (react)"},
        "messageId": {
            "type": "string",
            "description": "An id that this tool returned (edit, unsend; also reply, react, where the default is the \
                            person's newest message)"
        },
        "question": {"type": "string", "description": "At most 300 characters (poll)"},
        "options": {
            "type": "array", "items": {"type": "string"},
            "description": "2 to 10 answers of at most 100 characters (poll)"
        },
        "several": {"type": "boolean", "description": "Whether people may choose several answers (poll)"},
        "to": to
    })
}

fn voice() -> Value {
    json!({
        "text": {"type": "string", "description": "What is said, in plain sentences without Markdown"},
        "voice": {"type": "string", "description": "Name of a voice, if the person wants a certain one"}
    })
}

fn cron() -> Value {
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
    })
}

fn gateway() -> Value {
    json!({
        "action": {
            "type": "string",
            "enum": ["status", "restart", "config", "schema", "change"]
        },
        "path": {"type": "string", "description": "Such as tools.exec or agents.list[0] (config, schema); default: everything"},
        "version": {"type": "string", "description": "That of the file which you have read (change)"},
        "changes": {
            "type": "array",
            "description": "What is to be changed (change)",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": ["set", "unset", "append"]},
                    "path": {"type": "string"},
                    "value": {"description": "The new value (set, append)"}
                },
                "required": ["op", "path"],
                "additionalProperties": false
            }
        }
    })
}
