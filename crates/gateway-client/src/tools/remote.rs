//! The tools of the gateway in sessions that another program runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_agent::permissions::Permissions;
use myclaw_agent::{FrontEndTools, Home, SessionConfig};
use myclaw_engine::{ProgramRequest, SharedSchemas, Tool, ToolError, ToolInvocation};
use myclaw_session::CLI_CHANNEL;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::GatewayToolKind;
use super::tool::{GatewayCalls, GatewayTool, aborted};
use crate::client::ask_within;
use crate::{AskedGateway, ClientError, gateway_runs};

/// Longest wait for the end of a call: a message to a session waits up to ten minutes for the reply.
const LONGEST_CALL: Duration = Duration::from_secs(11 * 60);

/// What the model reads where no gateway runs.
const NO_GATEWAY: &str = "Reminders and chats need `myclaw gateway`, which the user starts.";
/// What the model reads in a sandboxed session of the owner in which the rules permit no reminders.
const NO_REMINDERS: &str = "This chat is sandboxed and plans no reminders. If one is wanted, say so, and what can: the chat \
                            `main`, \"Schedules\" on the page, or `myclaw cron add TEXT --at 20m`.";
/// The tool for them.
const CRON: &str = "cron";

/// A call that the gateway carries out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoteCall {
    /// The key of the session that makes it.
    pub session: String,
    /// The model's id of the call.
    pub call: String,
    /// The turn, in which no two calls have the same id.
    pub turn: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
}

/// The tools of the gateway for the sessions of a terminal, a program or an editor, while one runs for their state
/// directory. What the front-end offers besides is passed on.
pub struct RemoteTools {
    front_end: Option<Arc<dyn FrontEndTools>>,
    /// Whether a gateway was there. The tools stay when it stops, and say so: the list that the model sees is the same.
    was_there: AtomicBool,
}

impl RemoteTools {
    /// Nothing is asked before the first call.
    pub fn with(front_end: Option<Arc<dyn FrontEndTools>>) -> Arc<dyn FrontEndTools> {
        Arc::new(Self { front_end, was_there: AtomicBool::new(false) })
    }

    fn is_there(&self, home: &Home) -> bool {
        let is_there = self.was_there.load(Ordering::Relaxed) || gateway_runs(home);
        self.was_there.fetch_or(is_there, Ordering::Relaxed);
        is_there
    }
}

/// Whether the owner talks in the session, and not another agent.
fn is_of_owner(session: &SessionConfig) -> bool {
    session.session_key.parts().channel == CLI_CHANNEL
}

/// What the model reads in a session of the owner that is sandboxed and has no tool for reminders: it cannot know what else plans
/// them. Which tools sandboxed sessions have is for the config to say.
pub fn note_without_reminders(session: &SessionConfig) -> Option<&'static str> {
    let is_meant = is_of_owner(session) && session.is_sandboxed();
    let has_them = || Permissions::new(session, None, &[]).is_ok_and(|rules| rules.offers(CRON));
    (is_meant && !has_them()).then_some(NO_REMINDERS)
}

impl FrontEndTools for RemoteTools {
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.front_end.as_ref().map(|own| own.tools(session)).unwrap_or_default();
        if is_of_owner(session) && self.is_there(&session.home) {
            let calls = RemoteCalls(Arc::new(session.clone()));
            let offered =
                GatewayToolKind::ALL.into_iter().filter(|kind| kind.is_for_other_programs());
            tools.extend(offered.map(|kind| calls.tool(kind)));
        }
        tools
    }

    fn adapt(&self, session: &SessionConfig, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        match &self.front_end {
            Some(own) => own.adapt(session, tools),
            None => tools,
        }
    }

    fn asked(&self, session: &SessionConfig) -> ProgramRequest {
        self.front_end.as_ref().map(|own| own.asked(session)).unwrap_or_default()
    }

    fn note(&self, session: &SessionConfig) -> Option<String> {
        let own = self.front_end.as_ref().and_then(|own| own.note(session));
        let lack = match is_of_owner(session) && !session.is_sandboxed() {
            true if !self.is_there(&session.home) => Some(NO_GATEWAY),
            _ => note_without_reminders(session).filter(|_| self.is_there(&session.home)),
        };
        let notes: Vec<String> = own.into_iter().chain(lack.map(str::to_owned)).collect();
        (!notes.is_empty()).then(|| notes.join("\n"))
    }
}

/// Asks the gateway to carry out the calls of a session.
struct RemoteCalls(Arc<SessionConfig>);

impl RemoteCalls {
    fn tool(&self, kind: GatewayToolKind) -> Arc<dyn Tool> {
        static SCHEMAS: SharedSchemas<GatewayToolKind> = SharedSchemas::new();
        let schema = SCHEMAS.get(kind, |kind| kind.schema());
        Arc::new(GatewayTool { kind, schema, calls: Self(Arc::clone(&self.0)) })
    }

    /// What the gateway answers.
    async fn ask(&self, tool: &str, invocation: &ToolInvocation<'_>) -> Result<Value, String> {
        let Self(caller) = self;
        let call = RemoteCall {
            session: caller.session_key.to_string(),
            call: invocation.call.tool_call_id.clone(),
            turn: invocation.context.turn.to_string(),
            arguments: invocation.call.arguments.as_map().clone(),
        };
        let (home, config) = (&caller.home, &caller.config);
        let path = format!("/api/tools/{tool}");
        let asked =
            ask_within(home, Some(config), ("POST", &path), Some(json!(call)), LONGEST_CALL);
        match asked.await {
            Ok(AskedGateway::Answer(value)) => Ok(value),
            Ok(AskedGateway::NotRunning) => Err(
                "the gateway does not run any more, so nothing was done; the user starts it with `myclaw gateway`"
                    .to_owned(),
            ),
            Err(ClientError::Unusable(message)) => Err(message),
            Err(_) if !gateway_runs(home) => Err(
                "the gateway stopped during the call, so it is not known whether it was done; the user starts it with \
                 `myclaw gateway`"
                    .to_owned(),
            ),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl GatewayCalls for RemoteCalls {
    fn answer<'a>(
        &'a self,
        _: GatewayToolKind,
        invocation: &'a ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            tokio::select! {
                answer = self.ask(&invocation.call.tool_name, invocation) => answer.map_err(ToolError::Failed),
                () = invocation.cancel.cancelled() => Err(aborted()),
            }
        })
    }
}
