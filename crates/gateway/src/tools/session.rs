//! The tools that a session uses on behalf of itself: what they are called, and who answers them.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use myclaw_agent::SessionConfig;
use myclaw_delivery::delivery::Delivery;
use myclaw_engine::{
    About, CallArguments, CallEffect, CallSubject, Power, Powers, SharedSchemas, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolGroup, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::{ToolCall, ToolSchema};
use serde_json::{Value, json};

use super::answer::{output, running};
use super::call::{Call, LateServer};
use super::message::text_of;

/// Which tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Spawn,
    Subagents,
    Agents,
    List,
    History,
    Send,
    Message,
    Voice,
    Gateway,
}

/// One of the tools, for one session.
pub(super) struct SessionTool {
    kind: Kind,
    schema: Arc<ToolSchema>,
    delivery: Weak<Delivery>,
    server: LateServer,
    caller: Arc<SessionConfig>,
}

impl SessionTool {
    pub(super) fn new(
        (kind, mut schema): (Kind, Arc<ToolSchema>),
        (delivery, server): (Weak<Delivery>, LateServer),
        caller: Arc<SessionConfig>,
    ) -> Self {
        if kind == Kind::Message
            && let Some(delivery) = delivery.upgrade()
        {
            static SCHEMAS: SharedSchemas<String> = SharedSchemas::new();
            schema = SCHEMAS.get(delivery.abilities(&caller), |abilities| {
                let mut schema = ToolSchema::clone(&schema);
                schema.description.push_str("\nWhat the channels can do: ");
                schema.description.push_str(abilities);
                schema
            });
        }
        Self { kind, schema, delivery, server, caller }
    }
}

impl Tool for SessionTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        self.kind.declaration()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let subject = CallSubject::of(arguments);
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        Ok(match self.kind {
            Kind::Send => {
                let to = text("session").unwrap_or_default();
                subject.with(CallEffect::Message(to.to_owned()))
            }
            Kind::Message | Kind::Voice => {
                let to = text("to").unwrap_or("the chat of this turn");
                subject.with(CallEffect::Message(to.to_owned()))
            }
            // What a sub-agent does is judged when it does it.
            Kind::Spawn | Kind::Subagents | Kind::Agents | Kind::List | Kind::History => subject,
            Kind::Gateway => match super::process::changes_config(arguments)? {
                true => subject.with(CallEffect::ChangeConfig),
                false => subject,
            },
        })
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let delivery = running(&self.delivery)?;
            let call = Call {
                delivery: &delivery,
                server: &self.server,
                caller: &self.caller,
                id: &invocation.call.tool_call_id,
                turn: invocation.context.turn.to_string(),
                arguments: invocation.call.arguments.clone(),
                cancel: &invocation.cancel,
            };
            let answer = match self.kind {
                Kind::Spawn => call.spawn().await,
                Kind::Subagents => call.subagents().await,
                Kind::Agents => call.agents(),
                Kind::List => call.list().await,
                Kind::History => call.history().await,
                Kind::Send => call.send().await,
                Kind::Message => call.message().await,
                Kind::Voice => call.voice().await,
                Kind::Gateway => call.gateway().await,
            };
            let value = answer.map_err(|error| ToolError::Failed(error.to_string()))?;
            if invocation.cancel.is_cancelled() {
                return Err(ToolError::Aborted("aborted while it waited".to_owned()));
            }
            Ok(output(&value))
        })
    }

    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let delivery = self.delivery.upgrade()?;
            let session = self.caller.session_key.as_str();
            let known = match self.kind {
                Kind::Message => delivery.spoken(session, &call.id, asked_at).await,
                Kind::Voice => match delivery.spoken(session, &text_of(&call.id), asked_at).await {
                    Ok(None) => delivery.spoken(session, &call.id, asked_at).await,
                    as_text => as_text,
                },
                Kind::Gateway => delivery.restarted(session, &call.id, asked_at).await,
                _ => Ok(None),
            };
            // Without it the model learns that the call was interrupted.
            known.ok().flatten().map(|value| output(&value))
        })
    }
}

impl Kind {
    /// All of them, in the order in which the model sees them.
    pub(super) const ALL: [Self; 9] = [
        Self::List,
        Self::History,
        Self::Send,
        Self::Spawn,
        Self::Subagents,
        Self::Agents,
        Self::Message,
        Self::Voice,
        Self::Gateway,
    ];

    pub(super) fn declaration(self) -> ToolDeclaration {
        let (title, group, powers): (_, _, &[Power]) = match self {
            Self::Spawn => ("Start a sub-agent", ToolGroup::Sessions, &[Power::ChangesState]),
            Self::Subagents => {
                ("Attend to sub-agents", ToolGroup::Sessions, &[Power::ChangesState])
            }
            Self::Agents => ("List agents", ToolGroup::Sessions, &[]),
            Self::List => ("List sessions", ToolGroup::Sessions, &[]),
            Self::History => ("Read a session", ToolGroup::Sessions, &[]),
            Self::Send => ("Write to a session", ToolGroup::Sessions, &[Power::SendsMessages]),
            Self::Message => {
                ("Send a message", ToolGroup::Messaging, &[Power::SendsMessages, Power::ReadsFiles])
            }
            Self::Voice => ("Send a voice message", ToolGroup::Messaging, &[Power::SendsMessages]),
            Self::Gateway => ("Manage the gateway", ToolGroup::Automation, &[Power::ChangesState]),
        };
        ToolDeclaration {
            title,
            kind: ToolKind::Other,
            about: About::Nothing,
            group: Some(group),
            powers: Powers::of(powers),
            place: WorkPlace::Here,
        }
    }

    /// Its description for the model, the same in all sessions.
    pub(super) fn schema(self) -> ToolSchema {
        let (name, description) = self.text();
        let description = description.trim().to_owned();
        ToolSchema { name: name.to_owned(), description, parameters: self.parameters() }
    }

    fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Spawn => ("sessions_spawn", include_str!("session/spawn.md")),
            Self::Subagents => ("subagents", include_str!("session/subagents.md")),
            Self::Agents => ("agents_list", include_str!("session/agents.md")),
            Self::List => ("sessions_list", include_str!("session/list.md")),
            Self::History => ("sessions_history", include_str!("session/history.md")),
            Self::Send => ("sessions_send", include_str!("session/send.md")),
            Self::Message => ("message", include_str!("session/message.md")),
            Self::Voice => ("send_voice", include_str!("session/voice.md")),
            Self::Gateway => ("gateway", include_str!("session/gateway.md")),
        }
    }

    fn parameters(self) -> Value {
        let session = json!({"type": "string", "description": "Key or name of the session"});
        let (properties, required) = match self {
            Self::Spawn => (
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
            Self::Subagents => (
                json!({
                    "action": {"type": "string", "enum": ["list", "stop"]},
                    "session": {"type": "string", "description": "Key of its session, or its label (stop)"}
                }),
                vec!["action"],
            ),
            Self::Agents => (json!({}), Vec::new()),
            Self::List => (
                json!({
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 20"},
                    "activeMinutes": {"type": "integer", "minimum": 1, "description": "Only those that changed since"}
                }),
                Vec::new(),
            ),
            Self::History => (
                json!({
                    "session": session,
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 20"},
                    "before": {"type": "string", "description": "Id of a message: only older ones"},
                    "includeTools": {"type": "boolean", "description": "Also the results of tools"}
                }),
                vec!["session"],
            ),
            Self::Send => (
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
            Self::Message => (super::message::parameters(&session), vec!["action"]),
            Self::Voice => (super::message::voice_parameters(), vec!["text"]),
            Self::Gateway => (gateway_parameters(), vec!["action"]),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    }
}

fn gateway_parameters() -> Value {
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
