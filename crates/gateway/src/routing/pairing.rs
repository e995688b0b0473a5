//! Pairing: people who write for the first time get a code, and may write when the owner has approved it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::Home;
use myclaw_channels::Arrival;
use myclaw_config::Config;
use myclaw_gateway_client::{AskedGateway, ask, store_path};
use myclaw_store::{Place, SqliteStore, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::GatewayError;
use crate::codes::{code, is_code};
use crate::ledger::{Ledger, now_ms};
use crate::rows::Route;

/// Kind and queue of the records.
const KIND: &str = "pairing";
/// How long a code can be approved.
const CODE_TIME: Duration = Duration::from_secs(60 * 60);
/// How long a denied person is not asked again.
const DENIED_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most codes of an account that wait. Strangers cost no more than this.
const MOST_PENDING: usize = 20;

/// A person who asked to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pairing {
    pub(crate) route: Route,
    /// The channel's id of the person.
    pub(crate) sender: String,
    /// Another id of the same person, if one was known when they asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other_sender: Option<String>,
    pub(crate) name: Option<String>,
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
    fn as_str(self) -> &'static str {
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
    pub(crate) fn sender_key(&self) -> String {
        format!("{}:{}", self.route.channel, self.sender)
    }

    /// Whether `name` is `channel:id` of the person, by any of their ids.
    fn is_called(&self, name: &str) -> bool {
        let id = name.strip_prefix(&self.route.channel).and_then(|rest| rest.strip_prefix(':'));
        id.is_some_and(|id| id == self.sender || self.other_sender.as_deref() == Some(id))
    }

    fn key(&self) -> String {
        key(&self.route, &self.sender)
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

/// All pairings. The store has one owner, so what is in memory is what is in it.
pub(crate) struct Pairings {
    ledger: Ledger,
    known: Mutex<HashMap<String, (Version, Pairing)>>,
    /// Held while a change is stored, so that a code is used once.
    changing: tokio::sync::Mutex<()>,
}

impl Pairings {
    pub(crate) async fn load(ledger: Ledger) -> Result<Self, GatewayError> {
        let rows = ledger.queue::<Pairing>(KIND).await?;
        let known = rows.into_iter().map(|row| (row.id, (row.version, row.row))).collect();
        Ok(Self { ledger, known: Mutex::new(known), changing: tokio::sync::Mutex::default() })
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
        let found = found.map(|(_, pairing)| pairing).min_by_key(|pairing| match pairing.state {
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
    ) -> Result<(String, Option<String>), GatewayError> {
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
        let pending =
            self.known.lock().values().filter(|(_, pairing)| is_of_account(pairing)).count();
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
        let place = Some(Place::new(KIND, now));
        let version = self.ledger.put(KIND, &key, &pairing, None, place).await?;
        self.known.lock().insert(key, (version, pairing));
        Ok(("the sender is not paired, and was given a code".to_owned(), Some(say)))
    }

    /// Changes the pairing with a code, or of a person (`channel:id`). A code works once.
    pub(crate) async fn change(
        &self,
        change: PairingChange,
        name: &str,
    ) -> Result<Pairing, GatewayError> {
        let _changing = self.changing.lock().await;
        let (now, name) = (now_ms(), name.trim());
        self.remove_old(now).await?;
        let is_it = |pairing: &Pairing| match (pairing.state, change) {
            (Stage::Pending, _) => is_code(&pairing.code, name).into(),
            (Stage::Approved, PairingChange::Deny) => pairing.is_called(name),
            _ => false,
        };
        let found = self.known.lock().values().find(|(_, pairing)| is_it(pairing)).cloned();
        let Some((version, mut pairing)) = found else {
            let what = match change {
                PairingChange::Approve => "no pending code",
                PairingChange::Deny => "no pending code and no paired person",
            };
            return Err(GatewayError::Unusable(format!(
                "there is {what} `{name}`; a code works once and for an hour, and `myclaw pairing list` shows all"
            )));
        };
        pairing.state = match change {
            PairingChange::Approve => Stage::Approved,
            PairingChange::Deny => Stage::Denied,
        };
        pairing.since = now;
        let (key, place) = (pairing.key(), Some(Place::new(KIND, now)));
        let version = self.ledger.put(KIND, &key, &pairing, Some(version), place).await?;
        self.known.lock().insert(key, (version, pairing.clone()));
        Ok(pairing)
    }

    /// Whether the person who asked from a chat may write; `None` if nobody asked there.
    pub(crate) fn of_route(&self, route: &Route) -> Option<bool> {
        let known = self.known.lock();
        let mut of_route = known.values().filter(|(_, pairing)| pairing.route == *route).peekable();
        of_route.peek()?;
        Some(of_route.any(|(_, pairing)| pairing.is_approved()))
    }

    /// All pairings, the oldest first.
    pub(crate) fn list(&self) -> Value {
        let now = now_ms();
        let mut pairings: Vec<Pairing> =
            self.known.lock().values().map(|(_, pairing)| pairing.clone()).collect();
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

    async fn remove_old(&self, now: u64) -> Result<(), GatewayError> {
        let old: Vec<(String, Version)> = self
            .known
            .lock()
            .iter()
            .filter(|(_, (_, pairing))| !pairing.is_valid(now))
            .map(|(key, (version, _))| (key.clone(), *version))
            .collect();
        for (key, version) in old {
            self.ledger.remove(KIND, &key, version).await?;
            self.known.lock().remove(&key);
        }
        Ok(())
    }
}

/// All pairings: from the running gateway, else from its store.
///
/// # Errors
/// The gateway refuses, or the store cannot be used.
pub async fn list_pairings(home: &Home, config: &Config) -> Result<Value, GatewayError> {
    match ask(home, config, "GET", "/api/pairing", None).await? {
        AskedGateway::Answer(list) => Ok(list),
        AskedGateway::NotRunning => Ok(stored(home).await?.list()),
    }
}

/// Changes a pairing: through the running gateway, else in its store.
///
/// # Errors
/// There is no such code or person, or the store cannot be used.
pub async fn change_pairing(
    home: &Home,
    config: &Config,
    change: PairingChange,
    name: &str,
) -> Result<Value, GatewayError> {
    let path = format!("/api/pairing/{}", change.as_str());
    match ask(home, config, "POST", &path, Some(json!({"name": name}))).await? {
        AskedGateway::Answer(changed) => Ok(changed),
        AskedGateway::NotRunning => {
            let changed = stored(home).await?.change(change, name).await?;
            Ok(json!({"sender": changed.sender_key(), "name": changed.name}))
        }
    }
}

/// The pairings in the store of a gateway that does not run. Its lock keeps a gateway from starting meanwhile.
async fn stored(home: &Home) -> Result<Pairings, GatewayError> {
    let path = store_path(home);
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&path));
    let store = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))??;
    Pairings::load(Ledger::new(Arc::new(store))).await
}

#[cfg(test)]
mod tests;
