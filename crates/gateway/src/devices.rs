//! Devices: other browsers, scripts, phones and nodes, each with a token and a scope of its own.
//!
//! The owner makes a code, which says what the new device may do. The device presents the code and gets a token, which
//! lets it in when the owner has approved it. What the device says about its scope is never read.

mod access;
mod codes;
mod links;
mod scope;

use std::collections::HashMap;
use std::time::Duration;

use myclaw_delivery::ledger::{Ledger, now_ms};
use myclaw_gateway_client::{GatewayToken, token_hash};
use myclaw_store::{Batch, BoxFuture, Commit, Place, Records, StoreError, Stored, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

pub use access::{DeviceChange, change_device, list_devices, new_device_code, new_link};
pub(crate) use scope::Needs;
pub use scope::Scope;

use self::codes::Codes;
use self::links::Links;
use crate::GatewayError;

const DEVICES: Records<Device> = Records::new("device");
/// Queue of the records, by the time at which the devices came.
const QUEUE: &str = "device";
/// Most devices. Their number is that of the owner's machines and scripts.
const MOST_DEVICES: usize = 200;
/// Most devices that wait for an approval.
const MOST_PENDING: usize = 20;
/// How long a device waits for an approval.
const PENDING_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The time at which a device was seen is stored this often, in milliseconds.
const SEEN_MS: u64 = 60_000;
/// Longest name, in characters.
const MAX_NAME: usize = 64;

/// A device, as the store keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Device {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) scope: Scope,
    state: Stage,
    /// SHA-256 of the token, in hexadecimal digits. The token itself is kept by the device alone.
    token_hash: String,
    /// Times are in milliseconds since the Unix epoch.
    created_at: u64,
    approved_at: Option<u64>,
    last_seen_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Pending,
    Approved,
    /// Cut off, and about to leave the store.
    Revoked,
}

impl Device {
    /// How people see it.
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.name, self.id)
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.state == Stage::Pending
    }

    fn is_old(&self, now: u64) -> bool {
        let time = u64::try_from(PENDING_TIME.as_millis()).unwrap_or(u64::MAX);
        self.is_pending() && now >= self.created_at.saturating_add(time)
    }

    pub(crate) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "scope": self.scope,
            "state": self.state,
            "createdAt": self.created_at,
            "approvedAt": self.approved_at,
            "lastSeenAt": self.last_seen_at,
        })
    }
}

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) scope: Scope,
    /// Id and label of the device; `None` for the gateway's own tokens.
    pub(crate) device: Option<(String, String)>,
    /// Whether it is another gateway on the same store.
    pub(crate) is_gateway: bool,
    /// Fires when the token no longer holds.
    pub(crate) gone: CancellationToken,
}

impl Login {
    /// How it is named in records.
    pub(crate) fn label(&self) -> String {
        self.device.as_ref().map_or_else(|| "owner".to_owned(), |(_, label)| label.clone())
    }
}

/// What a token of a device says.
#[derive(Debug)]
pub(crate) enum Known {
    Device(Login),
    /// The device waits for an approval.
    Pending,
    Nobody,
}

struct Entry {
    version: Version,
    device: Device,
    /// Fires when the token no longer holds.
    gone: CancellationToken,
}

/// All devices, as the store had them at the last look. Each change is made under the version that was seen.
pub(crate) struct Devices {
    ledger: Ledger,
    known: Mutex<HashMap<String, Entry>>,
    codes: Codes,
    links: Links,
    /// Held while a change is stored.
    changing: tokio::sync::Mutex<()>,
}

impl Devices {
    pub(crate) async fn load(ledger: Ledger) -> Result<Self, GatewayError> {
        let devices = Self {
            ledger,
            known: Mutex::default(),
            codes: Codes::default(),
            links: Links::default(),
            changing: tokio::sync::Mutex::default(),
        };
        devices.look().await?;
        Ok(devices)
    }

    /// Sees what other processes change, for ever: a device that one revokes is cut off here too.
    pub(crate) async fn follow(&self) {
        let look = || -> BoxFuture<'_, Result<(), GatewayError>> {
            Box::pin(async {
                let _changing = self.changing.lock().await;
                self.look().await
            })
        };
        self.ledger.follow(QUEUE, look).await;
    }

    /// Reads all devices again, and cuts off those whose tokens no longer hold.
    async fn look(&self) -> Result<(), GatewayError> {
        let rows = DEVICES.all(self.ledger.store(), QUEUE).await?;
        let mut known = self.known.lock();
        let mut before = std::mem::take(&mut *known);
        for Stored { id, version, row: device, .. } in rows {
            let gone = match before.remove(&id) {
                // Cut off here, and not yet gone from the store, which may be full.
                Some(entry) if entry.device.state == Stage::Revoked => {
                    known.insert(id, Entry { version, ..entry });
                    continue;
                }
                Some(entry) if entry.device.token_hash == device.token_hash => entry.gone,
                Some(entry) => {
                    entry.gone.cancel();
                    CancellationToken::new()
                }
                None => CancellationToken::new(),
            };
            known.insert(id, Entry { version, device, gone });
        }
        before.into_values().for_each(|entry| entry.gone.cancel());
        Ok(())
    }

    /// Makes a code for one new device with this scope.
    pub(crate) fn new_code(&self, scope: Scope) -> Result<Value, GatewayError> {
        let (code, expires_at) = self.codes.make(scope)?;
        Ok(json!({"code": code, "scope": scope, "expiresAt": expires_at}))
    }

    /// The secret of a link that signs the owner in once, in one browser.
    pub(crate) fn new_link(&self) -> (String, u64) {
        self.links.make()
    }

    /// Signs a browser of the owner in: it is a device that the owner has approved by making the link.
    pub(crate) async fn sign_in(&self, secret: &str, name: &str) -> Result<Value, GatewayError> {
        self.links.take(secret)?;
        self.add(Scope::Owner, Stage::Approved, name).await
    }

    /// Takes a new device in, which then waits for an approval. A code works once, also if the device cannot be stored.
    pub(crate) async fn pair(&self, code: &str, name: &str) -> Result<Value, GatewayError> {
        let scope = self.codes.take(code)?;
        self.add(scope, Stage::Pending, name).await
    }

    /// Adds a device. Its token leaves here only.
    async fn add(&self, scope: Scope, state: Stage, name: &str) -> Result<Value, GatewayError> {
        let _changing = self.changing.lock().await;
        let now = now_ms();
        self.remove_old(now).await?;
        let name: String =
            name.trim().chars().filter(|char| !char.is_control()).take(MAX_NAME).collect();
        {
            let known = self.known.lock();
            let pending = known.values().filter(|entry| entry.device.is_pending()).count();
            let is_full = state == Stage::Pending && pending >= MOST_PENDING;
            if known.len() >= MOST_DEVICES || is_full {
                return Err(GatewayError::Unusable(format!(
                    "there are {} devices, {pending} of them wait for an approval; remove some with `myclaw devices \
                     deny` or `myclaw devices revoke`",
                    known.len()
                )));
            }
        }
        let token = GatewayToken::random();
        let device = Device {
            id: myclaw_delivery::codes::code()?.to_ascii_lowercase(),
            name: if name.is_empty() { "device".to_owned() } else { name },
            scope,
            state,
            token_hash: token.hash(),
            created_at: now,
            approved_at: (state == Stage::Approved).then_some(now),
            last_seen_at: None,
        };
        let version = self.store(&device, None).await?;
        let version = version.ok_or_else(|| StoreError::Contended(device.id.clone()))?;
        let mut shown = device.shown();
        shown["token"] = json!(token);
        let entry = Entry { version, device, gone: CancellationToken::new() };
        self.known.lock().insert(entry.device.id.clone(), entry);
        Ok(shown)
    }

    /// Who presents this token.
    pub(crate) fn who(&self, token: &str) -> Known {
        let hash = token_hash(token);
        let known = self.known.lock();
        let is_it =
            |entry: &&Entry| bool::from(entry.device.token_hash.as_bytes().ct_eq(hash.as_bytes()));
        match known.values().find(is_it) {
            Some(Entry { device, gone, .. }) if device.state == Stage::Approved => {
                let (scope, gone) = (device.scope, gone.clone());
                Known::Device(Login {
                    scope,
                    device: Some((device.id.clone(), device.label())),
                    is_gateway: false,
                    gone,
                })
            }
            Some(entry) if entry.device.is_pending() => Known::Pending,
            _ => Known::Nobody,
        }
    }

    /// Notes that a device was there.
    pub(crate) async fn see(&self, id: &str) {
        let now = now_ms();
        let is_news = |entry: &Entry| {
            entry.device.last_seen_at.is_none_or(|last| last.saturating_add(SEEN_MS) <= now)
        };
        if !self.known.lock().get(id).is_some_and(is_news) {
            return;
        }
        let _changing = self.changing.lock().await;
        let found = self.known.lock().get(id).filter(|entry| is_news(entry)).map(Entry::record);
        let Some((version, mut device)) = found else { return };
        device.last_seen_at = Some(now);
        // Without it, the device is shown as seen earlier.
        if let Ok(Some(version)) = self.store(&device, Some(version)).await {
            self.update(device, version);
        }
    }

    /// Changes the device with this id or name. Gives it as it is now; with its new token if it was changed.
    pub(crate) async fn change(
        &self,
        change: DeviceChange,
        name: &str,
    ) -> Result<(Device, Value), GatewayError> {
        let _changing = self.changing.lock().await;
        let now = now_ms();
        self.remove_old(now).await?;
        loop {
            if let Some(changed) = self.try_change(change, name, now).await? {
                return Ok(changed);
            }
            // Another process has changed the device, so it is looked for again.
            self.look().await?;
        }
    }

    /// `None` if the device has changed in the store.
    async fn try_change(
        &self,
        change: DeviceChange,
        name: &str,
        now: u64,
    ) -> Result<Option<(Device, Value)>, GatewayError> {
        let (version, mut device) = self.named(name)?;
        let is_pending = device.is_pending();
        match change {
            DeviceChange::Approve if !is_pending => Err(unfit(&device, "is approved already")),
            DeviceChange::Deny if !is_pending => Err(unfit(
                &device,
                "is approved; take its access away with `myclaw devices revoke`",
            )),
            DeviceChange::Rotate if is_pending => {
                Err(unfit(&device, "waits for an approval; approve it first"))
            }
            DeviceChange::Approve => {
                (device.state, device.approved_at) = (Stage::Approved, Some(now));
                let Some(version) = self.store(&device, Some(version)).await? else {
                    return Ok(None);
                };
                self.update(device.clone(), version);
                Ok(Some((device.clone(), device.shown())))
            }
            DeviceChange::Rotate => {
                let token = GatewayToken::random();
                device.token_hash = token.hash();
                let Some(version) = self.store(&device, Some(version)).await? else {
                    return Ok(None);
                };
                self.update(device.clone(), version);
                self.cut(&device.id);
                let mut shown = device.shown();
                shown["token"] = json!(token);
                Ok(Some((device, shown)))
            }
            DeviceChange::Deny | DeviceChange::Revoke => {
                // Cut off first: a full disk must not keep it connected.
                device.state = Stage::Revoked;
                self.update(device.clone(), version);
                self.cut(&device.id);
                DEVICES.delete(self.ledger.store(), &device.id).await?;
                self.known.lock().remove(&device.id);
                Ok(Some((device.clone(), device.shown())))
            }
        }
    }

    /// All devices, the oldest first.
    pub(crate) fn list(&self) -> Vec<Device> {
        let now = now_ms();
        let mut devices: Vec<Device> =
            self.known.lock().values().map(|entry| entry.device.clone()).collect();
        devices.retain(|device| !device.is_old(now));
        devices.sort_by_key(|device| device.created_at);
        devices
    }

    /// The list for clients.
    pub(crate) fn listed(&self) -> Value {
        json!({"devices": self.list().iter().map(Device::shown).collect::<Vec<_>>()})
    }

    fn named(&self, name: &str) -> Result<(Version, Device), GatewayError> {
        let (known, name) = (self.known.lock(), name.trim());
        if let Some(entry) = known.get(&name.to_ascii_lowercase()) {
            return Ok(entry.record());
        }
        let mut found = known.values().filter(|entry| entry.device.name == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry.record()),
            (Some(_), Some(_)) => Err(GatewayError::Unusable(format!(
                "several devices are called `{name}`; give the id that `myclaw devices list` shows"
            ))),
            (None, _) => Err(GatewayError::NotFound(format!(
                "there is no device `{name}`; `myclaw devices list` shows all"
            ))),
        }
    }

    /// Ends the connections of a device.
    fn cut(&self, id: &str) {
        if let Some(entry) = self.known.lock().get_mut(id) {
            std::mem::take(&mut entry.gone).cancel();
        }
    }

    fn update(&self, device: Device, version: Version) {
        if let Some(entry) = self.known.lock().get_mut(&device.id) {
            (entry.version, entry.device) = (version, device);
        }
    }

    /// `None` if the device has changed in the store.
    async fn store(
        &self,
        device: &Device,
        known: Option<Version>,
    ) -> Result<Option<Version>, GatewayError> {
        let write = DEVICES.put(&device.id, known, device, Place::new(QUEUE, device.created_at))?;
        Ok(match self.ledger.store().commit(Batch::of(write)).await? {
            Commit::Done(version) => Some(version),
            Commit::Refused(_) => None,
        })
    }

    async fn remove_old(&self, now: u64) -> Result<(), GatewayError> {
        let is_old = |entry: &&Entry| entry.device.is_old(now);
        let old: Vec<(Version, Device)> =
            self.known.lock().values().filter(is_old).map(Entry::record).collect();
        for (version, device) in old {
            let remove = Batch::of(DEVICES.remove(&device.id, version));
            match self.ledger.store().commit(remove).await? {
                Commit::Done(_) => drop(self.known.lock().remove(&device.id)),
                // Another process has changed it.
                Commit::Refused(_) => self.look().await?,
            }
        }
        Ok(())
    }
}

impl Entry {
    fn record(&self) -> (Version, Device) {
        (self.version, self.device.clone())
    }
}

fn unfit(device: &Device, why: &str) -> GatewayError {
    GatewayError::Unusable(format!("the device {} {why}", device.label()))
}

#[cfg(test)]
mod tests;
