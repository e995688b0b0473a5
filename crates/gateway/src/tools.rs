//! The tools that sessions of the gateway have besides those of the config.

mod answer;
mod call;
mod cron;
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
use myclaw_engine::{ProgramRequest, Tool};
use myclaw_llm::ToolSchema;
use myclaw_session::CLI_CHANNEL;

use crate::nodes::Nodes;
pub(crate) use call::LateServer;
use cron::CronTool;
use nodes::NodesTool;
use session::{Kind, SessionTool};

/// Makes the tools of a session.
pub(crate) struct GatewayTools {
    delivery: Weak<Delivery>,
    nodes: Arc<Nodes>,
    server: LateServer,
    /// Description of each kind for the model. All sessions share it.
    kinds: [(Kind, Arc<ToolSchema>); Kind::ALL.len()],
}

impl GatewayTools {
    pub(crate) fn new(delivery: Weak<Delivery>, nodes: Arc<Nodes>, server: LateServer) -> Self {
        Self {
            delivery,
            nodes,
            server,
            kinds: Kind::ALL.map(|kind| (kind, Arc::new(kind.schema()))),
        }
    }
}

impl FrontEndTools for GatewayTools {
    /// What the policy says about them comes after this. The tools for the process and its schedule are the owner's: only
    /// the main session of an agent has the schedule, and only sessions of the terminal and the web chat have the process.
    /// A session with somebody else, or one that the clock began, could otherwise plan work without end. A sub-agent
    /// talks with its parent, and with nobody else.
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        let key = session.session_key.as_str();
        let child = self.delivery.upgrade().and_then(|delivery| delivery.children().get(key));
        let depth = child.as_ref().map_or(0, |child| child.depth);
        let rules = session.config.subagents(&session.agent.id);
        let is_offered = |kind: Kind| match kind {
            Kind::List | Kind::History | Kind::Send => true,
            Kind::Spawn | Kind::Subagents | Kind::Agents => depth < rules.max_depth,
            Kind::Message => child.is_none(),
            Kind::Voice => child.is_none() && speaker(&session.config).is_some(),
            Kind::Gateway => session.session_key.parts().channel == CLI_CHANNEL,
        };
        let caller = Arc::new(session.clone());
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if session.is_main() {
            let agent = session.agent.id.to_string();
            tools.push(Arc::new(CronTool::new(self.delivery.clone(), agent)));
            tools.push(Arc::new(NodesTool::new(Arc::clone(&self.nodes), session)));
        }
        for kind in self.kinds.iter().filter(|(kind, _)| is_offered(*kind)) {
            let (delivery, caller) = (self.delivery.clone(), Arc::clone(&caller));
            let server = Arc::clone(&self.server);
            tools.push(Arc::new(SessionTool::new(kind.clone(), (delivery, server), caller)));
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
        let notes: Vec<String> = [name, theme, files].into_iter().flatten().collect();
        Some(notes.join("\n")).filter(|note| !note.is_empty())
    }
}

#[cfg(test)]
mod tests;
