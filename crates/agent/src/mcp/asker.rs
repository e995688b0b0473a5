//! Asks the user what an MCP server wants to know in the middle of a call, through the approver of the front-end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{Approval, ApprovalRequest, Approver, PreparedCall, ShownFact};
use myclaw_mcp::{Asker, Elicitation, Yes};
use myclaw_session::SessionKey;
use tokio::time::timeout;

/// The user of a session.
pub(super) struct UserOf {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) session: Arc<SessionKey>,
    /// Longest wait for an answer.
    pub(super) limit: Duration,
}

impl Asker for UserOf {
    fn ask<'a>(
        &'a self,
        server: &'a str,
        call: &'a PreparedCall,
        question: Elicitation,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let reason = format!("the MCP server {server} asks you something before it answers");
            let mut request = ApprovalRequest::new(Arc::clone(&self.session), call.clone(), reason);
            request.shown.push(ShownFact::text("what it asks", question.message));
            match question.yes {
                Yes::Opens(url) => {
                    request.shown.push(ShownFact::text("page to open in your browser", url));
                }
                Yes::Sends(values) if values.is_empty() => {
                    request.shown.push(ShownFact::text("a yes sends", "nothing else"));
                }
                Yes::Sends(values) => {
                    let facts = values.iter().map(|(name, value)| {
                        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        ShownFact::text(format!("a yes sends {name}"), text)
                    });
                    request.shown.extend(facts);
                }
            }
            let answer = timeout(self.limit, self.approver.decide(&request)).await;
            matches!(answer, Ok(Approval::Once | Approval::Always(_)))
        })
    }
}
