//! Questions about calls that need an approval, as the protocol's own permission requests.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse,
};
use futures_util::future::BoxFuture;
use myclaw_agent::approvals::{Question, refusal};
use myclaw_engine::{AlwaysScope, Approval, ApprovalRequest, Approver};

use super::client_sessions::ClientSessions;
use super::requests::Requests;

/// The ids of the options. That of each further scope of "always" has its place behind it, such as `always-1`.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";

fn always_id(place: usize) -> String {
    if place == 0 { ALWAYS.to_owned() } else { format!("{ALWAYS}-{place}") }
}

/// Asks the client.
pub(super) struct Permissions {
    pub(super) requests: Arc<Requests>,
    pub(super) sessions: Arc<ClientSessions>,
}

impl Approver for Permissions {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let question = Question::from(request);
            let Some((session, call)) = self.sessions.call_to_approve(request, &question) else {
                return denied("the session is closed");
            };
            let once = PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce);
            let always = |(place, scope): (usize, &AlwaysScope)| {
                let text = format!("Always allow {}", scope.covers());
                PermissionOption::new(always_id(place), text, PermissionOptionKind::AllowAlways)
            };
            let mut options = vec![once];
            options.extend(question.always.iter().enumerate().map(always));
            options.push(PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce));
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
            chosen => {
                let mut scopes = request.always.iter().enumerate();
                let scope = scopes.find(|(place, _)| always_id(*place) == chosen);
                scope.map_or_else(
                    || denied(&refusal(None)),
                    |(_, scope)| Approval::Always(scope.clone()),
                )
            }
        },
        Ok(_) => denied("the user cancelled"),
        Err(why) => denied(&format!("the editor cannot ask: {why}")),
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
