//! The tools of a gateway: what they are, for the gateway, which does their work, and for programs that have it done there.

mod parameters;
mod remote;
mod tool;

use myclaw_engine::{
    About, CallArguments, CallEffect, CallSubject, Power, Powers, ToolAliases, ToolDeclaration,
    ToolGroup, ToolKind, WorkPlace,
};
use myclaw_llm::ToolSchema;
use serde_json::Value;

pub use remote::{RemoteCall, RemoteTools, note_without_reminders};
pub use tool::{GatewayCalls, GatewayTool, aborted, tool_output};

/// Which tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatewayToolKind {
    /// Lists sessions.
    List,
    /// Reads a session.
    History,
    /// Writes to a session.
    Send,
    /// Starts a sub-agent.
    Spawn,
    /// Lists and stops sub-agents.
    Subagents,
    /// Lists agents.
    Agents,
    /// Writes into chats.
    Message,
    /// Speaks in a chat.
    Voice,
    /// Plans work.
    Cron,
    /// Manages the process.
    Gateway,
}

/// Names that models know from other agents.
const CRON_ALIASES: ToolAliases = ToolAliases {
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

impl GatewayToolKind {
    /// All of them, in the order in which the model sees them.
    pub const ALL: [Self; 10] = [
        Self::Cron,
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

    /// What the tool is.
    pub fn declaration(self) -> ToolDeclaration {
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
            Self::Cron => ("Plan work", ToolGroup::Automation, &[Power::ChangesState]),
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
    pub fn schema(self) -> ToolSchema {
        let (name, description) = self.text();
        let description = description.trim().to_owned();
        ToolSchema { name: name.to_owned(), description, parameters: parameters::of(self) }
    }

    fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Spawn => ("sessions_spawn", include_str!("tools/spawn.md")),
            Self::Subagents => ("subagents", include_str!("tools/subagents.md")),
            Self::Agents => ("agents_list", include_str!("tools/agents.md")),
            Self::List => ("sessions_list", include_str!("tools/list.md")),
            Self::History => ("sessions_history", include_str!("tools/history.md")),
            Self::Send => ("sessions_send", include_str!("tools/send.md")),
            Self::Message => ("message", include_str!("tools/message.md")),
            Self::Voice => ("send_voice", include_str!("tools/voice.md")),
            Self::Cron => ("cron", include_str!("tools/cron.md")),
            Self::Gateway => ("gateway", include_str!("tools/gateway.md")),
        }
    }

    /// Whether sessions that other programs run have it. Those have sub-agents of their own.
    pub fn is_for_other_programs(self) -> bool {
        matches!(self, Self::Cron | Self::List | Self::History | Self::Send | Self::Message)
    }

    /// Other names of its arguments.
    pub fn aliases(self) -> ToolAliases {
        if self == Self::Cron { CRON_ALIASES } else { ToolAliases::default() }
    }

    /// What a call will do. What planned work and sub-agents do is judged when they do it.
    pub fn subject(self, arguments: &CallArguments) -> CallSubject {
        let subject = CallSubject::of(arguments);
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let message_to = |to: &str| CallEffect::Message(to.to_owned());
        match self {
            Self::Send => subject.with(message_to(text("session").unwrap_or_default())),
            Self::Message | Self::Voice => {
                subject.with(message_to(text("to").unwrap_or("the chat of this turn")))
            }
            Self::Gateway if text("action") == Some("change") => {
                subject.with(CallEffect::ChangeConfig)
            }
            _ => subject,
        }
    }
}
