//! Questions about calls that need an approval, as the protocol's own permission requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestId, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse,
};
use myclaw_agent::{Approval, ApprovalRequest, Approver, BoxFuture};
use serde_json::Value;
use tokio::sync::oneshot;

use super::client_sessions::ClientSessions;
use super::wire::Wire;

/// The ids of the options.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// The permission requests that wait for the client.
pub(super) struct Permissions {
    wire: Wire,
    sessions: Arc<ClientSessions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<String, oneshot::Sender<Approval>>,
}

/// Removes a request when its answer has come or nobody waits for it any more.
struct Waiting<'a>(&'a Permissions, String);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().open.remove(&self.1);
    }
}

impl Permissions {
    pub(super) fn new(wire: Wire, sessions: Arc<ClientSessions>) -> Self {
        Self { wire, sessions, state: Mutex::default() }
    }

    /// Takes the client's response to a request of this program.
    pub(super) fn answer(&self, id: &RequestId, outcome: Result<Value, String>) {
        let RequestId::Str(id) = id else { return };
        if let Some(asked) = self.lock().open.remove(id) {
            // The run may have ended meanwhile.
            let _ = asked.send(approval(outcome));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for Permissions {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some((session, call)) = self.sessions.call_to_approve(request) else {
                return denied("the session is closed");
            };
            let always = format!("Always allow {}", request.always);
            let options = vec![
                PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce),
                PermissionOption::new(ALWAYS, always, PermissionOptionKind::AllowAlways),
                PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce),
            ];
            let (sender, answered) = oneshot::channel();
            let id = {
                let state = &mut *self.lock();
                state.last += 1;
                let id = format!("permission-{}", state.last);
                state.open.insert(id.clone(), sender);
                id
            };
            let waiting = Waiting(self, id.clone());
            let asked = RequestPermissionRequest::new(session, call, options);
            self.wire.ask_permission(RequestId::Str(id), asked);
            let approval = answered.await;
            drop(waiting);
            approval.unwrap_or_else(|_| denied("the question was withdrawn"))
        })
    }
}

/// The meaning of a response. Everything but a clear yes counts as no.
fn approval(outcome: Result<Value, String>) -> Approval {
    let response = match outcome {
        Ok(result) => serde_json::from_value::<RequestPermissionResponse>(result),
        Err(message) => return denied(&format!("the editor cannot ask: {message}")),
    };
    match response.map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => match &*selected.option_id.0 {
            ONCE => Approval::Once,
            ALWAYS => Approval::Always,
            _ => denied("the user said no"),
        },
        Ok(_) => denied("the user cancelled"),
        Err(error) => denied(&format!("the editor's answer cannot be read: {error}")),
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
