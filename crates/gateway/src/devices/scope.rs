//! What a device may do, and what a request needs.

use serde::{Deserialize, Serialize};

/// What a device may do. The server decides it; what a client asks for is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everything, devices and the config included.
    Owner,
    /// Talks to the agent, aborts and approves.
    Operator,
    /// Runs what the gateway asks for, and nothing else.
    Node,
    /// Delivers messages, and reads nothing.
    Webhook,
    /// Sees everything that is no secret, and changes nothing.
    ReadOnly,
}

/// What a route or a method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Needs {
    /// Anybody who reaches the port may ask: it says nothing, or checks its caller in its own way.
    Nothing,
    /// To see sessions, channels, usage and the like.
    See,
    /// To deliver a message.
    Deliver,
    /// To talk to the agent: to send, abort, approve, and change sessions and jobs.
    Talk,
    /// To decide who has access, and what is configured.
    Own,
    /// To be a node.
    BeNode,
}

impl Scope {
    /// Its name, as in the config and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Operator => "operator",
            Self::Node => "node",
            Self::Webhook => "webhook",
            Self::ReadOnly => "read-only",
        }
    }

    /// Whether a caller with this scope may make a request that needs `needs`.
    pub(crate) fn may(self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::See => matches!(self, Self::Owner | Self::Operator | Self::ReadOnly),
            Needs::Deliver => matches!(self, Self::Owner | Self::Operator | Self::Webhook),
            Needs::Talk => matches!(self, Self::Owner | Self::Operator),
            Needs::Own => self == Self::Owner,
            Needs::BeNode => self == Self::Node,
        }
    }
}
