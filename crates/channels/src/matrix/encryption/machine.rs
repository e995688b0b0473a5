//! The keys of an account: opening, receiving, encrypting, decrypting.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use matrix_sdk_common::deserialized_responses::{VerificationLevel, VerificationState};
use matrix_sdk_crypto::store::types::RoomSettings;
use matrix_sdk_crypto::{
    CryptoStoreError, DecryptionSettings, EncryptionSettings, EncryptionSyncChanges, MegolmError,
    OlmMachine, TrustRequirement,
};
use ruma::api::client::sync::sync_events::DeviceLists;
use ruma::events::AnyToDeviceEvent;
use ruma::events::room::history_visibility::HistoryVisibility;
use ruma::serde::Raw;
use ruma::{OwnedUserId, RoomId, UserId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::super::event::{Event, KeyChanges};
use super::super::{Failure, Matrix, Me};
use super::Encryption;
use super::keys::Keys;
use super::rows::Rows;

/// The files that are open. After a change of the config, the channel that is new takes over what the old one may still
/// use: two machines would encrypt two texts under one index.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Encryption>>> = Mutex::const_new(BTreeMap::new());

/// Messages of all devices are read, as the other side chooses them. See docs/channels/matrix.md.
pub(super) const TRUST: DecryptionSettings =
    DecryptionSettings { sender_device_trust_requirement: TrustRequirement::Untrusted };

/// A failure of the database of keys.
pub(super) fn broken(error: &impl std::fmt::Display) -> Failure {
    Failure::NotNow(format!("the keys of encryption: {error}"))
}

/// Ids of users, in a type of its own: the compiler cannot see that a future with a closure in its place is `Send`.
struct Users<'a>(std::slice::Iter<'a, OwnedUserId>);

impl<'a> Iterator for Users<'a> {
    type Item = &'a UserId;

    fn next(&mut self) -> Option<&'a UserId> {
        self.0.next().map(AsRef::as_ref)
    }
}

impl Matrix {
    pub(super) async fn encryption(&self, me: &Me) -> Result<Arc<Encryption>, Failure> {
        let opened = self.encryption.get_or_try_init(|| async {
            let path = &self.options.keys;
            let mut open = OPEN.lock().await;
            if let Some(known) = open.get(path).and_then(Weak::upgrade) {
                return check_device(&known.machine, me, self).map(|()| known);
            }
            let opened = Arc::new(self.open(me).await?);
            open.insert(path.clone(), Arc::downgrade(&opened));
            Ok(opened)
        });
        opened.await.map(Arc::clone)
    }

    async fn open(&self, me: &Me) -> Result<Encryption, Failure> {
        let Some(device) = &me.device else {
            let reason = "the access token names no device, which encryption needs; log in with a password to get one";
            return Err(Failure::Stop(reason.to_owned()));
        };
        let path = self.options.keys.clone();
        let is_new = !path.exists();
        if is_new && self.published_device(me, device).await?.is_some() {
            return Err(Failure::Stop(format!(
                "another program published keys for the login {device}, and they are not in {}; log in again and put the \
                 new token into accessToken of the config, or put the file back",
                path.display()
            )));
        }
        let unusable = |error: CryptoStoreError| match error {
            CryptoStoreError::MismatchedAccount { expected: (_, kept), .. } => {
                self.wrong_device(kept.as_str(), me)
            }
            error => Failure::Stop(format!(
                "the keys of encryption in {} cannot be used: {error}; end other programs that use the file, or put a \
                 copy back",
                path.display()
            )),
        };
        let opened = path.clone();
        let rows = tokio::task::spawn_blocking(move || Rows::open(&opened)).await;
        let rows = rows.map_err(|error| broken(&error))?.map_err(unusable)?;
        let user = UserId::parse(&me.id).map_err(|error| broken(&error))?;
        let keys = Keys::new(rows.clone());
        let machine = OlmMachine::with_store(&user, device.as_str().into(), keys, None).await;
        let machine = machine.map_err(unusable)?;
        let fingerprint = machine.identity_keys().ed25519.to_base64();
        tracing::info!(device, fingerprint, "the keys of encryption are open");
        Ok(Encryption { machine, rows, turn: Mutex::default() })
    }

    fn wrong_device(&self, kept: &str, me: &Me) -> Failure {
        let device = me.device.as_deref().unwrap_or("without a device");
        Failure::Stop(format!(
            "the access token belongs to the login {device} of {}, and the keys in {} to the login {kept}; put the old \
             token back, or move the file away: then the agent begins with new keys and cannot read what was sent before",
            me.id,
            self.options.keys.display()
        ))
    }

    /// Encrypts for the devices of all members of a room, who get the room's key first.
    pub(super) async fn encrypt_for_members(
        &self,
        room: &str,
        kind: &str,
        content: Map<String, Value>,
    ) -> Result<Map<String, Value>, Failure> {
        let me = self.me().await?;
        let encryption = self.encryption(&me).await?;
        let people = self.room(room).await?.people.unwrap_or_default();
        let users: Vec<OwnedUserId> =
            people.keys().filter_map(|id| UserId::parse(id).ok()).collect();
        let room = RoomId::parse(room).map_err(|error| broken(&error))?;
        let machine = &encryption.machine;
        let settings = machine.room_settings(&room).await.map_err(|error| broken(&error))?;
        let settings = settings.unwrap_or_default();
        let mut encryption_settings = EncryptionSettings {
            history_visibility: HistoryVisibility::Joined,
            ..EncryptionSettings::default()
        };
        if let Some(period) = settings.session_rotation_period {
            encryption_settings.rotation_period = period;
        }
        if let Some(count) = settings.session_rotation_period_messages {
            encryption_settings.rotation_period_msgs = u64::try_from(count).unwrap_or(u64::MAX);
        }
        let _turn = encryption.turn.lock().await;
        machine.update_tracked_users(Users(users.iter())).await.map_err(|error| broken(&error))?;
        self.flush(&encryption).await?;
        self.claim_sessions(&encryption, Users(users.iter())).await?;
        let requests =
            machine.share_room_key(&room, Users(users.iter()), encryption_settings).await;
        for request in requests.map_err(|error| broken(&error))? {
            self.send_to_devices(&encryption, &request).await?;
        }
        let content = Raw::from_json(
            serde_json::value::to_raw_value(&content).map_err(|error| broken(&error))?,
        );
        let encrypted = machine.encrypt_room_event_raw(&room, kind, &content).await;
        let encrypted = encrypted.map_err(|error| broken(&error))?;
        encrypted.content.deserialize_as_unchecked().map_err(|error| broken(&error))
    }
}

fn check_device(machine: &OlmMachine, me: &Me, matrix: &Matrix) -> Result<(), Failure> {
    let is_same = machine.user_id().as_str() == me.id
        && me.device.as_deref() == Some(machine.device_id().as_str());
    if is_same { Ok(()) } else { Err(matrix.wrong_device(machine.device_id().as_str(), me)) }
}

impl Encryption {
    /// Takes what a sync says about keys; gives the ids of the sessions that came.
    pub(super) async fn receive(
        &self,
        changes: KeyChanges,
        next_batch: &str,
    ) -> Result<Vec<String>, Failure> {
        let fallback = changes.device_unused_fallback_key_types.map(lenient::<Vec<_>>);
        let events = changes.to_device.events.iter().map(raw::<AnyToDeviceEvent>);
        let lists: DeviceLists = lenient(changes.device_lists);
        let counts = lenient(changes.device_one_time_keys_count);
        let changes = EncryptionSyncChanges {
            to_device_events: events.collect::<Result<_, _>>()?,
            changed_devices: &lists,
            one_time_keys_counts: &counts,
            unused_fallback_keys: fallback.as_deref(),
            next_batch_token: Some(next_batch.to_owned()),
        };
        let received = self.machine.receive_sync_changes(changes, &TRUST);
        let (_, keys) = received.await.map_err(|error| broken(&error))?;
        Ok(keys.into_iter().map(|key| key.session_id).collect())
    }

    /// Decrypts an event. The inner error says why this is not possible, perhaps only now.
    ///
    /// # Errors
    /// The database fails.
    pub(super) async fn decrypt(
        &self,
        room: &str,
        event: &Event,
    ) -> Result<Result<Event, String>, String> {
        let Ok(room) = RoomId::parse(room) else { return Ok(Err("no room".to_owned())) };
        let json = serde_json::to_value(event).map_err(|error| error.to_string())?;
        let raw = raw(&json).map_err(|failure| failure.to_string())?;
        let decrypted = match self.machine.decrypt_room_event(&raw, &room, &TRUST).await {
            Ok(decrypted) => decrypted,
            Err(
                error @ (MegolmError::EventError(_)
                | MegolmError::JsonError(_)
                | MegolmError::MissingRoomKey(_)
                | MegolmError::MismatchedIdentityKeys(_)
                | MegolmError::Decode(_)
                | MegolmError::Decryption(_)
                | MegolmError::SenderIdentityNotTrusted(_)),
            ) => return Ok(Err(error.to_string())),
            // The keys cannot be read or written.
            Err(error) => return Err(error.to_string()),
        };
        use VerificationLevel::{MismatchedSender, VerificationViolation};
        if let VerificationState::Unverified(level @ (MismatchedSender | VerificationViolation)) =
            &decrypted.encryption_info.verification_state
        {
            return Ok(Err(level.to_string()));
        }
        let opened = decrypted.event.deserialize_as_unchecked::<Event>();
        Ok(opened.map_err(|error| error.to_string()))
    }
}

pub(super) fn raw<T>(value: &Value) -> Result<Raw<T>, Failure> {
    let json = serde_json::value::to_raw_value(value).map_err(|error| broken(&error))?;
    Ok(Raw::from_json(json))
}

/// What a server says, or nothing if it has another form.
fn lenient<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

/// The settings of a room in the content of `m.room.encryption`.
pub(super) fn settings_of(content: &Value) -> RoomSettings {
    let number = |key: &str| content.get(key).and_then(Value::as_u64);
    RoomSettings {
        session_rotation_period: number("rotation_period_ms").map(Duration::from_millis),
        session_rotation_period_messages: number("rotation_period_msgs")
            .and_then(|count| usize::try_from(count).ok()),
        ..RoomSettings::default()
    }
}

/// The body of a question for the keys of users.
pub(super) fn question(users: impl IntoIterator<Item = String>) -> Value {
    let users: Map<String, Value> = users.into_iter().map(|user| (user, json!([]))).collect();
    json!({"device_keys": users, "timeout": 10_000})
}
