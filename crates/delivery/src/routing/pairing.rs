//! Pairing: people who write for the first time get a code, and may write when the owner has approved it.

use std::collections::HashMap;
use std::time::Duration;

use myclaw_channels::Arrival;
use myclaw_store::{Batch, BoxFuture, Commit, Place, Records, Stored};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::DeliveryError;
use crate::codes::{code, is_code};
use crate::ledger::{Ledger, now_ms};
use crate::route::Route;

const PAIRINGS: Records<Pairing> = Records::new("pairing");
/// Queue of the records, by the time of their last change.
const QUEUE: &str = "pairing";
/// How long a code can be approved.
const CODE_TIME: Duration = Duration::from_secs(60 * 60);
/// How long a denied person is not asked again.
const DENIED_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most codes of an account that wait. Strangers cost no more than this.
const MOST_PENDING: usize = 20;

/// A person who asked to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pairing {
    pub(crate) route: Route,
    /// The channel's id of the person.
    pub(crate) sender: String,
    /// Another id of the same person, if one was known when they asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other_sender: Option<String>,
    /// The name that the channel gives.
    pub name: Option<String>,
    pub(crate) code: String,
    state: Stage,
    /// When it came to this state, in milliseconds since the Unix epoch.
    since: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Pending,
    Approved,
    Denied,
}

/// What the owner decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingChange {
    /// The person may write.
    Approve,
    /// The person may not write, or no longer.
    Deny,
}

impl PairingChange {
    /// Its name in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

impl Pairing {
    pub(crate) fn is_approved(&self) -> bool {
        self.state == Stage::Approved
    }

    /// The person, as in `tools.bySender`.
    pub fn sender_key(&self) -> String {
        format!("{}:{}", self.route.channel, self.sender)
    }

    /// Whether `name` is `channel:id` of the person, by any of their ids.
    fn is_called(&self, name: &str) -> bool {
        let id = name.strip_prefix(&self.route.channel).and_then(|rest| rest.strip_prefix(':'));
        id.is_some_and(|id| id == self.sender || self.other_sender.as_deref() == Some(id))
    }

    /// Whether it still says something.
    fn is_valid(&self, now: u64) -> bool {
        let time = match self.state {
            Stage::Approved => return true,
            Stage::Pending => CODE_TIME,
            Stage::Denied => DENIED_TIME,
        };
        now < self.since.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }
}

fn key(route: &Route, sender: &str) -> String {
    format!("{}:{}:{sender}", route.channel, route.account)
}

/// All pairings, as the store had them at the last look. Each change is made under the version that was seen.
pub struct Pairings {
    ledger: Ledger,
    known: Mutex<HashMap<String, Stored<Pairing>>>,
    /// Held while a change is stored, so that a code is used once.
    changing: tokio::sync::Mutex<()>,
}

impl Pairings {
    /// Reads all pairings.
    /// # Errors
    /// The store cannot be read.
    pub async fn load(ledger: Ledger) -> Result<Self, DeliveryError> {
        let pairings =
            Self { ledger, known: Mutex::default(), changing: tokio::sync::Mutex::default() };
        pairings.look().await?;
        Ok(pairings)
    }

    /// Sees what other processes change, for ever.
    pub async fn follow(&self) {
        let look = || -> BoxFuture<'_, Result<(), DeliveryError>> {
            Box::pin(async {
                let _changing = self.changing.lock().await;
                self.look().await
            })
        };
        self.ledger.follow(QUEUE, look).await;
    }

    /// Reads all pairings again.
    async fn look(&self) -> Result<(), DeliveryError> {
        let rows = PAIRINGS.all(self.ledger.store(), QUEUE).await?;
        *self.known.lock() = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        Ok(())
    }

    pub(super) fn is_approved(&self, arrival: &Arrival) -> bool {
        self.of_sender(arrival).is_some_and(|pairing| pairing.is_approved())
    }

    /// What is known of a person under any of their ids. A refusal counts before a permission.
    fn of_sender(&self, arrival: &Arrival) -> Option<Pairing> {
        let ids = [Some(&arrival.sender.id), arrival.sender.other_id.as_ref()];
        let known = self.known.lock();
        let found = ids
            .into_iter()
            .flatten()
            .filter_map(|id| known.get(&format!("{}:{}:{id}", arrival.channel, arrival.account)));
        let found = found.map(|known| &known.row).min_by_key(|pairing| match pairing.state {
            Stage::Denied => 0,
            Stage::Approved => 1,
            Stage::Pending => 2,
        });
        found.cloned()
    }

    /// Notes that somebody wants to write. Gives the reason why the message is dropped, and the reply to the person.
    pub(super) async fn ask(
        &self,
        arrival: &Arrival,
        route: &Route,
    ) -> Result<(String, Option<String>), DeliveryError> {
        let _changing = self.changing.lock().await;
        let now = now_ms();
        self.remove_old(now).await?;
        let key = key(route, &arrival.sender.id);
        if let Some(pairing) = self.of_sender(arrival) {
            let reason = match pairing.state {
                Stage::Denied => "the sender was denied (myclaw pairing)",
                _ => "the sender is not paired yet, and has a code",
            };
            return Ok((reason.to_owned(), None));
        }
        let is_of_account = |pairing: &Pairing| {
            pairing.state == Stage::Pending
                && pairing.route.channel == route.channel
                && pairing.route.account == route.account
        };
        let pending = self.known.lock().values().filter(|known| is_of_account(&known.row)).count();
        if pending >= MOST_PENDING {
            let reason = format!("the sender is not paired, and {pending} codes wait already");
            return Ok((reason, None));
        }
        let pairing = Pairing {
            route: route.clone(),
            sender: arrival.sender.id.clone(),
            other_sender: arrival.sender.other_id.clone(),
            name: arrival.sender.name.clone().map(|name| name.chars().take(64).collect()),
            code: code()?,
            state: Stage::Pending,
            since: now,
        };
        let say = format!(
            "I do not know you yet (your id is {}). Ask the owner to run this within an hour:\n\n\
             `myclaw pairing approve {}`\n\nThen write again.",
            pairing.sender, pairing.code
        );
        let stored = PAIRINGS.insert(self.ledger.store(), &key, &pairing, Place::new(QUEUE, now));
        let Some(version) = stored.await? else {
            // Another process has just given them one.
            self.look().await?;
            return Ok(("the sender is not paired yet, and has a code".to_owned(), None));
        };
        self.known.lock().insert(key.clone(), Stored::new(key, version, pairing));
        Ok(("the sender is not paired, and was given a code".to_owned(), Some(say)))
    }

    /// Changes the pairing with a code, or of a person (`channel:id`). A code works once.
    pub async fn change(
        &self,
        change: PairingChange,
        name: &str,
    ) -> Result<Pairing, DeliveryError> {
        let _changing = self.changing.lock().await;
        let (now, name) = (now_ms(), name.trim());
        self.remove_old(now).await?;
        let is_it = |pairing: &Pairing| match (pairing.state, change) {
            (Stage::Pending, _) => is_code(&pairing.code, name).into(),
            (Stage::Approved, PairingChange::Deny) => pairing.is_called(name),
            _ => false,
        };
        loop {
            let found = self.known.lock().values().find(|known| is_it(&known.row)).cloned();
            let Some(mut found) = found else {
                let what = match change {
                    PairingChange::Approve => "no pending code",
                    PairingChange::Deny => "no pending code and no paired person",
                };
                return Err(DeliveryError::Unusable(format!(
                    "there is {what} `{name}`; a code works once and for an hour, and `myclaw pairing list` shows all"
                )));
            };
            found.row.state = match change {
                PairingChange::Approve => Stage::Approved,
                PairingChange::Deny => Stage::Denied,
            };
            found.row.since = now;
            let (store, place) = (self.ledger.store(), Place::new(QUEUE, now));
            let stored = PAIRINGS.replace(store, &found.id, found.version, &found.row, place);
            let Some(version) = stored.await? else {
                // Another process has changed it, so it is looked for again.
                self.look().await?;
                continue;
            };
            let changed = Stored { version, ..found };
            self.known.lock().insert(changed.id.clone(), changed.clone());
            return Ok(changed.row);
        }
    }

    /// Whether the person who asked from a chat may write; `None` if nobody asked there.
    pub(crate) fn of_route(&self, route: &Route) -> Option<bool> {
        let known = self.known.lock();
        let mut of_route =
            known.values().map(|it| &it.row).filter(|it| it.route == *route).peekable();
        of_route.peek()?;
        Some(of_route.any(Pairing::is_approved))
    }

    /// All pairings, the oldest first.
    pub fn list(&self) -> Value {
        let now = now_ms();
        let mut pairings: Vec<Pairing> =
            self.known.lock().values().map(|known| known.row.clone()).collect();
        pairings.retain(|pairing| pairing.is_valid(now));
        pairings.sort_by_key(|pairing| pairing.since);
        let shown = pairings.iter().map(|pairing| {
            json!({
                "sender": pairing.sender_key(),
                "account": pairing.route.account,
                "name": pairing.name,
                "state": pairing.state,
                "since": pairing.since,
                // A code that was used says nothing.
                "code": (pairing.state == Stage::Pending).then_some(&pairing.code),
            })
        });
        json!({"pairings": shown.collect::<Vec<_>>()})
    }

    async fn remove_old(&self, now: u64) -> Result<(), DeliveryError> {
        let is_old = |known: &&Stored<Pairing>| !known.row.is_valid(now);
        let old: Vec<_> = self.known.lock().values().filter(is_old).cloned().collect();
        for Stored { id, version, .. } in old {
            let remove = Batch::of(PAIRINGS.remove(&id, version));
            match self.ledger.store().commit(remove).await? {
                Commit::Done(_) => drop(self.known.lock().remove(&id)),
                // Another process has changed it.
                Commit::Refused(_) => self.look().await?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
