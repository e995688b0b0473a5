//! The tool `gateway`: what the process says about itself, and its restart.
//!
//! A restart ends this process as a signal does, and the program begins anew in its place. The call that asked for it
//! waits meanwhile; the kept record lets the turn, which the next process continues, learn that the restart has happened.

use std::time::Duration;

use myclaw_agent::SessionConfig;
use myclaw_store::{Change, Place, Records};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Delivery;
use crate::DeliveryError;
use crate::ledger::{OVER, now_ms};
use crate::route::{OWNERS_ACCOUNT, WEB};
use crate::rows::hash;

/// The restarts, by the calls that asked for them.
const RESTARTS: Records<Restart> = Records::new("restart");
/// Key of the record of the newest one.
const NEWEST: &str = "newest";
/// Shortest time between two restarts, so that a model that repeats itself does not keep the gateway from working.
const SHORTEST_PAUSE: Duration = Duration::from_secs(60);

/// A restart that somebody asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Restart {
    /// The process that ended.
    process: String,
    /// Milliseconds since the Unix epoch.
    at: u64,
}

impl Delivery {
    /// Whether a session works for the owner alone at this moment.
    ///
    /// # Errors
    /// It does not; the text says why.
    pub fn check_owner(&self, session: &str) -> Result<(), DeliveryError> {
        let desk = self.desks().get(session).cloned();
        let is_owners = desk.is_some_and(|desk| {
            // Jobs have the route of a message of the owner, and another name.
            let (channels, routes) = (desk.running_channels(), desk.running_routes());
            !channels.is_empty()
                && channels.iter().all(|channel| channel == WEB)
                && routes.iter().all(|(route, _)| route.account == OWNERS_ACCOUNT)
        });
        match is_owners {
            true => Ok(()),
            false => Err(DeliveryError::Unusable(
                "only the owner may use this, in the web chat or the terminal; devices, other channels, jobs and \
                 sessions may not"
                    .to_owned(),
            )),
        }
    }

    /// Makes the process begin anew. The caller waits until it ends.
    pub async fn begin_restart(
        &self,
        caller: &SessionConfig,
        call: &str,
    ) -> Result<(), DeliveryError> {
        let session = caller.session_key.as_str();
        let now = now_ms();
        let newest = RESTARTS.get(self.ledger().store(), NEWEST).await?;
        if let Some(newest) = &newest {
            let seconds = now.saturating_sub(newest.row.at) / 1_000;
            if seconds < SHORTEST_PAUSE.as_secs() {
                return Err(DeliveryError::Unusable(format!(
                    "the gateway was restarted {seconds} s ago; restart it again only if the owner asks for it, after a \
                     minute"
                )));
            }
        }
        let key = hash("c", &[session, call]);
        for (key, place) in [(key.as_str(), Some(Place::new(OVER, now))), (NEWEST, None)] {
            let restart = |_| {
                Change::put(Restart { process: self.process.id.clone(), at: now }, place.clone())
            };
            RESTARTS.update(self.ledger().store(), key, restart).await?;
        }
        *self.process.restarting.lock() = Some(session.to_owned());
        tracing::warn!(session, "the gateway restarts, because a session asked for it");
        self.process.restart.cancel();
        Ok(())
    }

    /// What a call that asked for a restart finds afterwards; `None` if it did not restart anything since `since`.
    pub async fn restarted(
        &self,
        session: &str,
        call: &str,
        since: u64,
    ) -> Result<Option<Value>, DeliveryError> {
        let key = hash("c", &[session, call]);
        let record = RESTARTS.get(self.ledger().store(), &key).await?;
        let is_it = |restart: &Restart| restart.at >= since && restart.process != self.process.id;
        Ok(record.filter(|restart| is_it(&restart.row)).map(|_| {
            json!({
                "status": "restarted",
                "processId": std::process::id(),
                "version": env!("CARGO_PKG_VERSION"),
                "note": "the restart that you asked for has happened; go on with what is left to do",
            })
        }))
    }

    /// How many messages wait for a process after this one.
    pub(super) fn parked_count(&self) -> usize {
        let session = self.process.restarting.lock().clone();
        let desk = session.and_then(|session| self.desks().get(&session).cloned());
        desk.map_or(0, |desk| desk.open_count())
    }
}
