//! Keys of providers and logins at MCP servers as records, so that all nodes have the same keys and share their cooldowns.
//!
//! A record is the content of a file of keys, sealed with a key that is not in the database: each node gets it from
//! `MYCLAW_STORE_KEY`. So who can read the database, or a backup of it, cannot read the keys. The name of the record is sealed
//! with it, so a record cannot be put into the place of another one.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use myclaw_agent::KeyStores;
use myclaw_auth::{
    AuthFile, AuthStore, AuthStoreError, KeepKeys, KeyChange, LoginsHeld, Reservation,
};
use myclaw_config::ResolvedAgent;
use myclaw_files::variables;
use myclaw_store::{Change, Claims, Held, RecordId, Records};
use parking_lot::Mutex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::ClusterError;
use crate::address::{Setting, kept_text};
use crate::blocking::Blocking;

const KEYS: Records<Sealed> = Records::new(KIND);
pub(crate) const KIND: &str = "keys";
/// The kind of the claim under which a node renews logins.
pub(crate) const LOGINS_KIND: &str = "renewal";
/// The key of the logins at MCP servers. Those of agents have their id behind [`OF_AGENT`].
pub(crate) const OF_SERVERS: &str = "servers";
pub(crate) const OF_AGENT: &str = "agent/";
/// Bytes of a key that seals.
const KEY_BYTES: usize = 32;
/// How long the renewal of a login may take: longer than a request to its server. A node that dies meanwhile is waited for.
const RENEWAL: Duration = Duration::from_secs(45);
/// The longest wait for another node that renews one, and the pause between two looks.
const PATIENCE: Duration = Duration::from_secs(50);
const PAUSE: Duration = Duration::from_millis(250);
/// A success of the only key is written down again after this time. Each write is a transaction.
const SAME_USE_MS: u64 = 60_000;

/// Seals what is stored. The first key seals, and all of them open: so a key can be replaced on one node after the other.
pub(crate) struct Seal(Vec<LessSafeKey>);

const SETTING: Setting =
    Setting { name: variables::STORE_KEY, what: "the key", places: variables::STORE_KEY };

/// The value of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sealed {
    /// Nonce and ciphertext, in Base64.
    sealed: String,
}

/// Content that was opened.
struct Content {
    file: AuthFile,
    /// Whether an older key sealed it.
    is_old: bool,
}

impl Seal {
    /// The keys of `MYCLAW_STORE_KEY`: one or several, separated by commas, or the place of a file with them. `None` if it is
    /// not set. Blocks.
    ///
    /// # Errors
    /// It holds something else.
    pub(crate) fn find(home: &myclaw_agent::Home) -> Result<Option<Self>, ClusterError> {
        let name = variables::STORE_KEY;
        let Some(written) = home.environment.get(name).map(str::trim).filter(|it| !it.is_empty())
        else {
            return Ok(None);
        };
        let text = kept_text(home, &written.into(), &SETTING)?;
        let text = text.expose_secret();
        let keys = text.split(',').map(|key| sealing_key(key.trim())).collect::<Option<_>>();
        keys.map(|keys| Some(Self(keys))).ok_or_else(|| {
            ClusterError::Config(format!(
                "{name} is no key: set it to 64 hexadecimal digits, as `openssl rand -hex 32` prints them, or to file: and \
                 the path of a file with them, the same on all machines"
            ))
        })
    }

    fn seal(&self, name: &str, file: &AuthFile) -> Result<Sealed, String> {
        let mut bytes = serde_json::to_vec(file).map_err(|error| error.to_string())?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| "the system gives no random numbers".to_owned())?;
        let key = self.0.first().ok_or("there is no key")?;
        let used = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(used, Aad::from(name.as_bytes()), &mut bytes)
            .map_err(|_| "it cannot be encrypted".to_owned())?;
        Ok(Sealed { sealed: BASE64.encode([nonce.as_slice(), &bytes].concat()) })
    }

    fn open(&self, name: &str, row: &Sealed) -> Result<Content, String> {
        let whole = BASE64.decode(&row.sealed).map_err(|_| "they are damaged")?;
        let (nonce, sealed) = whole.split_first_chunk::<NONCE_LEN>().ok_or("they are damaged")?;
        let opened = self.0.iter().enumerate().find_map(|(at, key)| {
            let mut bytes = Zeroizing::new(sealed.to_vec());
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let length =
                key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes).ok()?.len();
            bytes.truncate(length);
            Some((at, bytes))
        });
        let (at, bytes) = opened.ok_or_else(|| {
            format!(
                "they were encrypted with another {}; give this machine the one of the others",
                variables::STORE_KEY
            )
        })?;
        // The text of the error may quote the content.
        let file = serde_json::from_slice(&bytes)
            .map_err(|_| "they were written by a newer version of this program; update myclaw")?;
        Ok(Content { file, is_old: at > 0 })
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Seal")
    }
}

/// Hexadecimal digits as a key.
fn sealing_key(digits: &str) -> Option<LessSafeKey> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    if digits.len() != 2 * KEY_BYTES || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let key = UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice()).ok()?;
    Some(LessSafeKey::new(key))
}

/// The stores of keys in the database.
pub(crate) struct RecordedKeys {
    records: Arc<Blocking>,
    seal: Arc<Seal>,
    /// Claims the renewal of logins.
    claims: Arc<Claims>,
    stores: Mutex<HashMap<String, AuthStore>>,
}

impl RecordedKeys {
    /// The keys in `records`. `holder` is the name of this process.
    pub(crate) fn new(records: Arc<Blocking>, seal: Seal, holder: &str) -> Self {
        let claims = Claims::shared(records.store(), holder.to_owned(), RENEWAL);
        Self { records, seal: Arc::new(seal), claims, stores: Mutex::default() }
    }

    /// The store with this key. There is one of each, because its users share what they know of it.
    pub(crate) fn of(&self, key: &str) -> AuthStore {
        let mut stores = self.stores.lock();
        let new = || AuthStore::kept_by(Arc::new(self.one(key)));
        stores.entry(key.to_owned()).or_insert_with(new).clone()
    }

    fn one(&self, key: &str) -> OneStore {
        OneStore {
            records: Arc::clone(&self.records),
            seal: Arc::clone(&self.seal),
            claims: Arc::clone(&self.claims),
            key: key.to_owned(),
            is_there: AtomicBool::default(),
        }
    }
}

impl fmt::Debug for RecordedKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("RecordedKeys").field(&self.records.server()).finish()
    }
}

impl KeyStores for RecordedKeys {
    fn of_agent(&self, agent: &ResolvedAgent) -> AuthStore {
        self.of(&format!("{OF_AGENT}{}", agent.id))
    }

    fn of_servers(&self) -> AuthStore {
        self.of(OF_SERVERS)
    }
}

/// One store of keys.
struct OneStore {
    records: Arc<Blocking>,
    seal: Arc<Seal>,
    claims: Arc<Claims>,
    key: String,
    /// Whether it has been seen. Stores are not removed.
    is_there: AtomicBool,
}

impl fmt::Debug for OneStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("OneStore").field(&self.describe()).finish()
    }
}

impl OneStore {
    fn failed(&self, why: impl fmt::Display) -> AuthStoreError {
        AuthStoreError::Elsewhere(format!("the keys in {} cannot be used: {why}", self.describe()))
    }

    fn content(&self, row: Option<&Sealed>) -> Result<Content, String> {
        let none = || Ok(Content { file: AuthFile::default(), is_old: false });
        self.is_there.fetch_or(row.is_some(), Ordering::Relaxed);
        row.map_or_else(none, |row| self.seal.open(&self.key, row))
    }
}

impl KeepKeys for OneStore {
    fn describe(&self) -> String {
        format!("{}/{KIND}/{}", self.records.server(), self.key)
    }

    fn exists(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
            || self.load().is_ok_and(|it| it != AuthFile::default())
    }

    fn load(&self) -> Result<AuthFile, AuthStoreError> {
        let found = self.records.wait(|store| KEYS.get(store, &self.key));
        let row = found.map_err(|error| self.failed(error))?.map(|stored| stored.row);
        Ok(self.content(row.as_ref()).map_err(|why| self.failed(why))?.file)
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut AuthFile),
        how: KeyChange,
    ) -> Result<Option<PathBuf>, AuthStoreError> {
        let mut problem = None;
        let mut changed = |before: Option<Sealed>| {
            let Content { file: before, is_old } = self.content(before.as_ref())?;
            let mut after = before.clone();
            change(&mut after);
            let is_same = match how {
                KeyChange::Use => is_same_use(&before, &after),
                KeyChange::Profiles | KeyChange::Tokens(_) => before == after,
            };
            (!is_same || is_old).then(|| self.seal.seal(&self.key, &after)).transpose()
        };
        let decide = |before: Option<Sealed>| match changed(before) {
            Ok(Some(sealed)) => Change::put(sealed, None),
            Ok(None) => Change::Keep,
            Err(why) => {
                let _: &String = problem.insert(why);
                Change::Keep
            }
        };
        let updated = self.records.wait(|store| KEYS.update(store, &self.key, decide));
        let updated = updated.map_err(|error| self.failed(error))?;
        self.is_there.fetch_or(updated.is_some(), Ordering::Relaxed);
        problem.map_or(Ok(None), |why| Err(self.failed(why)))
    }

    /// A database reserves nothing, so what would keep the tokens from being stored is looked for: whether it answers, and
    /// whether what it holds can be opened.
    fn reserve(&self) -> Result<Reservation, AuthStoreError> {
        self.load().map(|_| Reservation::default())
    }

    fn hold_logins(&self) -> LoginsHeld<'_> {
        Box::pin(async move {
            let (id, begun) = (RecordId::new(LOGINS_KIND, &self.key), Instant::now());
            loop {
                let (records, claims, id) =
                    (Arc::clone(&self.records), Arc::clone(&self.claims), id.clone());
                // On a thread of its own: if nobody waits for the claim any more, it is given back as soon as it is there.
                let acquiring =
                    tokio::task::spawn_blocking(move || {
                        let held = records.wait(|_| claims.acquire(&id))?;
                        Ok::<_, myclaw_store::StoreError>(held.map(|held| Renewing {
                            held: Some(held),
                            records: Arc::clone(&records),
                        }))
                    });
                match acquiring.await.map_err(|error| self.failed(error))? {
                    Ok(Some(renewing)) => return Ok(Box::new(renewing) as Box<dyn Any + Send>),
                    Ok(None) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                    Ok(None) => {
                        let waited = PATIENCE.as_secs();
                        return Err(self.failed(format!(
                            "another machine has renewed a login for {waited} s; try again"
                        )));
                    }
                    Err(error) => return Err(self.failed(error)),
                }
            }
        })
    }
}

/// The right to renew logins, which is given back when this is dropped.
struct Renewing {
    held: Option<Held>,
    records: Arc<Blocking>,
}

impl Drop for Renewing {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let records = Arc::clone(&self.records);
        // Where this fails, the others wait until the claim ends by itself.
        let giving_back = move || drop(records.wait(|_| held.release()));
        drop(thread::Builder::new().name("login".to_owned()).spawn(giving_back));
    }
}

/// Whether two contents differ in nothing but the last use of the only key, which was lately. The order in which several keys
/// are tried depends on it.
fn is_same_use(before: &AuthFile, after: &AuthFile) -> bool {
    let mut after = after.clone();
    if after.profiles().count() < 2 && after.usage_stats.len() < 2 {
        for (name, usage) in &mut after.usage_stats {
            let known = before.usage_stats.get(name).and_then(|known| known.last_used);
            if let (Some(known), Some(now)) = (known, usage.last_used)
                && now.abs_diff(known) < SAME_USE_MS
            {
                usage.last_used = Some(known);
            }
        }
    }
    *before == after
}

#[cfg(test)]
mod tests;
