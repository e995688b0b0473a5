//! Questions about calls that need an approval, as the protocol's own permission requests.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse,
};
use myclaw_agent::{Approval, ApprovalRequest, Approver, BoxFuture};

use super::client_sessions::ClientSessions;
use super::requests::Requests;

/// The ids of the options.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// Asks the client.
pub(super) struct Permissions {
    pub(super) requests: Arc<Requests>,
    pub(super) sessions: Arc<ClientSessions>,
}

impl Approver for Permissions {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some((session, call)) = self.sessions.call_to_approve(request) else {
                return denied("the session is closed");
            };
            let once = PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce);
            let always = request.always.first().map(|scope| {
                let text = format!("Always allow {}", scope.covers());
                PermissionOption::new(ALWAYS, text, PermissionOptionKind::AllowAlways)
            });
            let no = PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce);
            let options: Vec<PermissionOption> =
                [Some(once), always, Some(no)].into_iter().flatten().collect();
            let asked = RequestPermissionRequest::new(session, call, options);
            let method = CLIENT_METHOD_NAMES.session_request_permission;
            approval(request, self.requests.ask(method, asked).await)
        })
    }
}

/// The meaning of a response. Everything but a clear yes counts as no.
fn approval(
    request: &ApprovalRequest,
    response: Result<RequestPermissionResponse, String>,
) -> Approval {
    match response.map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => match &*selected.option_id.0 {
            ONCE => Approval::Once,
            ALWAYS => request.approved_for_good(),
            _ => denied("the user said no"),
        },
        Ok(_) => denied("the user cancelled"),
        Err(why) => denied(&format!("the editor cannot ask: {why}")),
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
