//! Jobs that were asked for in a session of another program, such as a chat in a terminal, and appear there.

use myclaw_agent::{AgentError, put_reminder};
use myclaw_session::SessionKey;

use super::book::Claimed;
use super::job::{Job, JobWork, Outcome};
use super::runner::Runner;
use crate::DeliveryError;

impl Runner {
    /// Puts the message of a job into the inbox of its session, once also if this process is killed meanwhile. The program that
    /// has the session open answers it, or the next one that opens it.
    pub(super) async fn remind(
        &self,
        claimed: &Claimed,
        job: &Job,
        session: SessionKey,
        (until, now): (Option<u64>, u64),
    ) -> Result<(), DeliveryError> {
        let JobWork::Message { text, .. } = &job.work else { return Ok(()) };
        let (home, text) = (self.delivery.home(), job.told(text));
        let (id, due, key) =
            (claimed.occurrence.message_id(), claimed.occurrence.due, session.clone());
        let putting = tokio::task::spawn_blocking(move || {
            put_reminder(&home, &key, (id.as_str(), due), text)
        });
        let put = putting.await.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        let outcome = match put.map_err(AgentError::from)? {
            true => Outcome::Answered { said: format!("put into the session {session}") },
            false => Outcome::Failed {
                class: "not_found".to_owned(),
                message: format!("there is no session {session} any more"),
            },
        };
        self.book.end(claimed, outcome, until.unwrap_or(due), now).await.map(drop)
    }
}
