//! The tools that sessions of the gateway have besides those of the config.

mod call;
mod message;
mod nodes;
mod process;
mod session;
mod sessions;

use std::sync::{Arc, Weak};

use myclaw_agent::speech::speaker;
use myclaw_agent::{FrontEndTools, SessionConfig};
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::named_files::NOTE;
use myclaw_engine::{CallArguments, ProgramRequest, Tool};
use myclaw_gateway_client::{GatewayToolKind, RemoteCall, note_without_reminders};
use myclaw_llm::ToolSchema;
use myclaw_session::CLI_CHANNEL;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::GatewayError;
use crate::nodes::Nodes;
use crate::server::Server;
pub(crate) use call::LateServer;
use call::{Call, CallOrigin};
use nodes::NodesTool;
use session::session_tool;

/// Makes the tools of a session.
pub(crate) struct GatewayTools {
    delivery: Weak<Delivery>,
    nodes: Arc<Nodes>,
    server: LateServer,
    /// Description of each kind for the model. All sessions share it.
    kinds: [(GatewayToolKind, Arc<ToolSchema>); GatewayToolKind::ALL.len()],
}

impl GatewayTools {
    pub(crate) fn new(delivery: Weak<Delivery>, nodes: Arc<Nodes>, server: LateServer) -> Self {
        Self {
            delivery,
            nodes,
            server,
            kinds: GatewayToolKind::ALL.map(|kind| (kind, Arc::new(kind.schema()))),
        }
    }
}

impl FrontEndTools for GatewayTools {
    /// What the policy says about them comes after this. The tools for the process and its schedule are the owner's: only
    /// sessions of the terminal and the web chat have them, and the main session of an agent has the schedule.
    /// A session with somebody else, or one that the clock began, could otherwise plan work without end. A sub-agent
    /// talks with its parent, and with nobody else.
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        let key = session.session_key.as_str();
        let child = self.delivery.upgrade().and_then(|delivery| delivery.children().get(key));
        let depth = child.as_ref().map_or(0, |child| child.depth);
        let rules = session.config.subagents(&session.agent.id);
        let is_owners = session.session_key.parts().channel == CLI_CHANNEL;
        let is_offered = |kind: GatewayToolKind| match kind {
            GatewayToolKind::List | GatewayToolKind::History | GatewayToolKind::Send => true,
            GatewayToolKind::Spawn | GatewayToolKind::Subagents | GatewayToolKind::Agents => {
                depth < rules.max_depth
            }
            GatewayToolKind::Message => child.is_none(),
            GatewayToolKind::Voice => child.is_none() && speaker(&session.config).is_some(),
            GatewayToolKind::Cron => session.is_main() || is_owners,
            GatewayToolKind::Gateway => is_owners,
        };
        let caller = Arc::new(session.clone());
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if session.is_main() {
            tools.push(Arc::new(NodesTool::new(Arc::clone(&self.nodes), session)));
        }
        for kind in self.kinds.iter().filter(|(kind, _)| is_offered(*kind)) {
            let (delivery, caller) = (self.delivery.clone(), Arc::clone(&caller));
            let server = Arc::clone(&self.server);
            tools.push(Arc::new(session_tool(kind.clone(), (delivery, server), caller)));
        }
        tools
    }

    fn asked(&self, session: &SessionConfig) -> ProgramRequest {
        let delivery = self.delivery.upgrade();
        let key = session.session_key.as_str();
        delivery.map(|delivery| delivery.asked_in(key)).unwrap_or_default()
    }

    fn note(&self, session: &SessionConfig) -> Option<String> {
        let delivery = self.delivery.upgrade()?;
        let identity = delivery.persona_of(session.session_key.as_str()).identity;
        let name = identity.name.map(|name| format!("Your name is {name}."));
        let theme = identity.theme.map(|theme| format!("This is how you are: {theme}."));
        let files = delivery.sends_files(session).then(|| NOTE.to_owned());
        let lack = note_without_reminders(session).map(str::to_owned);
        let notes: Vec<String> = [name, theme, files, lack].into_iter().flatten().collect();
        Some(notes.join("\n")).filter(|note| !note.is_empty())
    }
}

/// Carries out a call of a session that another program runs. Its policy has judged it there.
pub(crate) async fn answer_elsewhere(
    server: &Arc<Server>,
    tool: &str,
    call: RemoteCall,
) -> Result<Value, GatewayError> {
    let kinds = GatewayToolKind::ALL.into_iter().filter(|kind| kind.is_for_other_programs());
    let found = kinds.map(|kind| (kind, Arc::new(kind.schema()))).find(|(_, it)| it.name == tool);
    let (kind, schema) = found.ok_or_else(|| {
        GatewayError::NotFound(format!("there is no tool {tool} for sessions of other programs"))
    })?;
    let delivery = &server.delivery;
    let caller = Arc::new(delivery.session_config(&call.session)?);
    let late_server: LateServer = Arc::new(Arc::downgrade(server).into());
    let weak = (Arc::downgrade(delivery), Arc::clone(&late_server));
    let of_tool = session_tool((kind, schema), weak, Arc::clone(&caller));
    let arguments = CallArguments::of(&of_tool, call.arguments)
        .map_err(|problems| GatewayError::Unusable(problems.join("; ")))?;
    // Fires when the other program gives the call up: its connection ends, and this with it.
    let cancel = CancellationToken::new();
    let _given_up = cancel.clone().drop_guard();
    let call = Call {
        delivery,
        server: &late_server,
        caller: &caller,
        id: &call.call,
        turn: call.turn,
        arguments,
        cancel: &cancel,
        origin: CallOrigin::Elsewhere,
    };
    call.answer(kind).await
}

#[cfg(test)]
mod tests;
