//! What the encryption library keeps, in the database of keys.

use std::collections::HashMap;
use std::sync::Mutex as StdMutex;

use async_trait::async_trait;
use matrix_sdk_crypto::olm::{
    InboundGroupSession, OlmMessageHash, OutboundGroupSession, PickledInboundGroupSession,
    PrivateCrossSigningIdentity, SenderDataType, StaticAccountData,
};
use matrix_sdk_crypto::store::CryptoStore;
use matrix_sdk_crypto::store::types::{
    BackupKeys, Changes, DehydratedDeviceKey, PendingChanges, RoomKeyCounts, RoomKeyWithheldEntry,
    RoomPendingKeyBundleDetails, RoomSettings, StoredRoomKeyBundleData, TrackedUser,
};
use matrix_sdk_crypto::vodozemac::Curve25519PublicKey;
use matrix_sdk_crypto::{
    Account, CryptoStoreError, DeviceData, GossipRequest, SecretInfo, Session, UserIdentityData,
};
use ruma::events::secret::request::SecretName;
use ruma::{DeviceId, OwnedDeviceId, RoomId, TransactionId, UserId};
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::rows::{Batch, Result, Rows, key};

const ONE: &str = "one";
const CUSTOM: &str = "custom";
const SESSION: &str = "session";
const INBOUND: &str = "inbound";
const OUTBOUND: &str = "outbound";
const DEVICE: &str = "device";
const IDENTITY: &str = "identity";
const TRACKED: &str = "tracked";
const HASH: &str = "hash";
const REQUEST: &str = "request";
const SECRET: &str = "secret";
const WITHHELD: &str = "withheld";
const SETTINGS: &str = "settings";
const BUNDLE: &str = "bundle";
const DOWNLOADED: &str = "downloaded";
const PENDING_BUNDLE: &str = "pending bundle";

/// The keys of one device.
#[derive(Debug)]
pub(super) struct Keys {
    rows: Rows,
    account: StdMutex<Option<StaticAccountData>>,
    /// Objects are read while they are written, so the writers take turns.
    writing: Mutex<()>,
}

impl Keys {
    pub(super) fn new(rows: Rows) -> Self {
        Self { rows, account: StdMutex::default(), writing: Mutex::default() }
    }

    fn account(&self) -> Result<StaticAccountData> {
        let account = self.account.lock();
        account.clone().ok_or(CryptoStoreError::AccountUnset)
    }

    fn set_account(&self, account: &Account) {
        let data = account.static_data().clone();
        *self.account.lock() = Some(data);
    }

    async fn inbound(&self, room: Option<&RoomId>) -> Result<Vec<InboundGroupSession>> {
        let room = room.map(RoomId::as_str);
        let pickles = self.rows.all::<PickledInboundGroupSession>(INBOUND, room).await?;
        pickles.into_iter().map(unpickled).collect()
    }

    async fn write_one(&self, name: &str, value: Option<&impl serde::Serialize>) -> Result<()> {
        let mut batch = Batch::default();
        match value {
            Some(value) => batch.put(key(ONE, name, ""), value)?,
            None => batch.remove(key(ONE, name, "")),
        }
        self.rows.write(batch).await
    }
}

fn unpickled(pickle: PickledInboundGroupSession) -> Result<InboundGroupSession> {
    InboundGroupSession::from_pickle(pickle).map_err(|_| CryptoStoreError::UnpicklingError)
}

/// Under which the keys of a device with a kind of trust are found.
fn device_sort(key: Curve25519PublicKey, trust: SenderDataType) -> String {
    format!("{} {trust:?}", key.to_base64())
}

async fn put_inbound(batch: &mut Batch, session: &InboundGroupSession) -> Result<()> {
    let sort = device_sort(session.sender_key(), session.sender_data_type());
    let row = key(INBOUND, session.room_id(), session.session_id());
    batch.put_sorted(row, sort, &session.pickle().await)
}

fn put_all(batch: &mut Batch, changes: Changes) -> Result<()> {
    for (name, text) in
        [("next batch", changes.next_batch_token), ("backup version", changes.backup_version)]
    {
        if let Some(text) = text {
            batch.put(key(ONE, name, ""), &text)?;
        }
    }
    if let Some(secret) = changes.backup_decryption_key {
        batch.put(key(ONE, "backup key", ""), &secret)?;
    }
    if let Some(secret) = changes.dehydrated_device_pickle_key {
        batch.put(key(ONE, "dehydrated", ""), &secret)?;
    }
    for device in changes.devices.new.iter().chain(&changes.devices.changed) {
        batch.put(key(DEVICE, device.user_id(), device.device_id()), device)?;
    }
    for device in &changes.devices.deleted {
        batch.remove(key(DEVICE, device.user_id(), device.device_id()));
    }
    for identity in changes.identities.new.iter().chain(&changes.identities.changed) {
        batch.put(key(IDENTITY, identity.user_id(), ""), identity)?;
    }
    for hash in &changes.message_hashes {
        batch.put(key(HASH, &hash.sender_key, &hash.hash), &true)?;
    }
    for request in &changes.key_requests {
        batch.put(key(REQUEST, &request.request_id, ""), request)?;
    }
    for (room, entries) in &changes.withheld_session_info {
        for (session, entry) in entries {
            batch.put(key(WITHHELD, room, session), entry)?;
        }
    }
    for (room, settings) in &changes.room_settings {
        batch.put(key(SETTINGS, room, ""), settings)?;
    }
    for item in &changes.secrets {
        let name = uuid::Uuid::now_v7().to_string();
        batch.put(key(SECRET, &item.secret_name, name), &*item.secret)?;
    }
    for bundle in &changes.received_room_key_bundles {
        batch.put(key(BUNDLE, &bundle.bundle_data.room_id, &bundle.sender_user), bundle)?;
    }
    for room in &changes.room_key_backups_fully_downloaded {
        batch.put(key(DOWNLOADED, room, ""), &true)?;
    }
    for (room, details) in &changes.rooms_pending_key_bundle {
        match details {
            Some(details) => batch.put(key(PENDING_BUNDLE, room, ""), details)?,
            None => batch.remove(key(PENDING_BUNDLE, room, "")),
        }
    }
    Ok(())
}

#[async_trait]
impl CryptoStore for Keys {
    type Error = CryptoStoreError;

    async fn load_account(&self) -> Result<Option<Account>> {
        let Some(pickle) = self.rows.get(key(ONE, "account", "")).await? else { return Ok(None) };
        let account = Account::from_pickle(pickle)?;
        self.set_account(&account);
        Ok(Some(account))
    }

    async fn load_identity(&self) -> Result<Option<PrivateCrossSigningIdentity>> {
        let Some(pickle) = self.rows.get(key(ONE, "identity", "")).await? else { return Ok(None) };
        let identity = PrivateCrossSigningIdentity::from_pickle(pickle);
        identity.map(Some).map_err(|_| CryptoStoreError::UnpicklingError)
    }

    async fn save_changes(&self, mut changes: Changes) -> Result<()> {
        let _turn = self.writing.lock().await;
        let mut batch = Batch::default();
        if let Some(identity) = changes.private_identity.take() {
            batch.put(key(ONE, "identity", ""), &identity.pickle().await)?;
        }
        for session in std::mem::take(&mut changes.sessions) {
            let row = key(SESSION, session.sender_key().to_base64(), session.session_id());
            batch.put(row, &session.pickle().await)?;
        }
        for session in std::mem::take(&mut changes.inbound_group_sessions) {
            put_inbound(&mut batch, &session).await?;
        }
        for session in std::mem::take(&mut changes.outbound_group_sessions) {
            batch.put(key(OUTBOUND, session.room_id(), ""), &session.pickle().await)?;
        }
        put_all(&mut batch, changes)?;
        self.rows.write(batch).await
    }

    async fn save_pending_changes(&self, changes: PendingChanges) -> Result<()> {
        let _turn = self.writing.lock().await;
        let Some(account) = changes.account else { return Ok(()) };
        self.set_account(&account);
        self.write_one("account", Some(&account.pickle())).await
    }

    async fn save_inbound_group_sessions(
        &self,
        sessions: Vec<InboundGroupSession>,
        _backed_up_to_version: Option<&str>,
    ) -> Result<()> {
        self.save_changes(Changes { inbound_group_sessions: sessions, ..Changes::default() }).await
    }

    async fn get_sessions(&self, sender_key: &str) -> Result<Option<Vec<Session>>> {
        let own = self.get_own_device().await?.as_device_keys().clone();
        let pickles = self.rows.all(SESSION, Some(sender_key)).await?;
        let sessions: Result<Vec<Session>> = pickles
            .into_iter()
            .map(|pickle| {
                Session::from_pickle(own.clone(), pickle)
                    .map_err(|_| CryptoStoreError::UnpicklingError)
            })
            .collect();
        sessions.map(|sessions| Some(sessions).filter(|sessions| !sessions.is_empty()))
    }

    async fn get_inbound_group_session(
        &self,
        room_id: &RoomId,
        session_id: &str,
    ) -> Result<Option<InboundGroupSession>> {
        let pickle = self.rows.get(key(INBOUND, room_id, session_id)).await?;
        pickle.map(unpickled).transpose()
    }

    async fn get_withheld_info(
        &self,
        room_id: &RoomId,
        session_id: &str,
    ) -> Result<Option<RoomKeyWithheldEntry>> {
        self.rows.get(key(WITHHELD, room_id, session_id)).await
    }

    async fn get_withheld_sessions_by_room_id(
        &self,
        room_id: &RoomId,
    ) -> Result<Vec<RoomKeyWithheldEntry>> {
        self.rows.all(WITHHELD, Some(room_id.as_str())).await
    }

    async fn get_inbound_group_sessions(&self) -> Result<Vec<InboundGroupSession>> {
        self.inbound(None).await
    }

    async fn inbound_group_session_counts(&self, _version: Option<&str>) -> Result<RoomKeyCounts> {
        let sessions = self.inbound(None).await?;
        let backed_up = sessions.iter().filter(|session| session.backed_up()).count();
        Ok(RoomKeyCounts { total: sessions.len(), backed_up })
    }

    async fn get_inbound_group_sessions_by_room_id(
        &self,
        room_id: &RoomId,
    ) -> Result<Vec<InboundGroupSession>> {
        self.inbound(Some(room_id)).await
    }

    async fn get_inbound_group_sessions_for_device_batch(
        &self,
        curve_key: Curve25519PublicKey,
        sender_data_type: SenderDataType,
        after_session_id: Option<String>,
        limit: usize,
    ) -> Result<Vec<InboundGroupSession>> {
        let sort = device_sort(curve_key, sender_data_type);
        let pickles = self.rows.sorted(INBOUND, sort, after_session_id, limit).await?;
        pickles.into_iter().map(unpickled).collect()
    }

    async fn inbound_group_sessions_for_backup(
        &self,
        _backup_version: &str,
        limit: usize,
    ) -> Result<Vec<InboundGroupSession>> {
        let mut sessions = self.inbound(None).await?;
        sessions.retain(|session| !session.backed_up());
        sessions.truncate(limit);
        Ok(sessions)
    }

    async fn mark_inbound_group_sessions_as_backed_up(
        &self,
        _backup_version: &str,
        room_and_session_ids: &[(&RoomId, &str)],
    ) -> Result<()> {
        let _turn = self.writing.lock().await;
        let mut batch = Batch::default();
        for (room, id) in room_and_session_ids {
            if let Some(session) = self.get_inbound_group_session(room, id).await? {
                session.mark_as_backed_up();
                put_inbound(&mut batch, &session).await?;
            }
        }
        self.rows.write(batch).await
    }

    async fn reset_backup_state(&self) -> Result<()> {
        let _turn = self.writing.lock().await;
        let mut batch = Batch::default();
        for session in self.inbound(None).await? {
            session.reset_backup_state();
            put_inbound(&mut batch, &session).await?;
        }
        self.rows.write(batch).await
    }

    async fn load_backup_keys(&self) -> Result<BackupKeys> {
        Ok(BackupKeys {
            decryption_key: self.rows.get(key(ONE, "backup key", "")).await?,
            backup_version: self.rows.get(key(ONE, "backup version", "")).await?,
        })
    }

    async fn load_dehydrated_device_pickle_key(&self) -> Result<Option<DehydratedDeviceKey>> {
        self.rows.get(key(ONE, "dehydrated", "")).await
    }

    async fn delete_dehydrated_device_pickle_key(&self) -> Result<()> {
        self.write_one("dehydrated", None::<&bool>).await
    }

    async fn get_outbound_group_session(
        &self,
        room_id: &RoomId,
    ) -> Result<Option<OutboundGroupSession>> {
        let Some(pickle) = self.rows.get(key(OUTBOUND, room_id, "")).await? else {
            return Ok(None);
        };
        let account = self.account()?;
        OutboundGroupSession::from_pickle(account.device_id, account.identity_keys, pickle)
            .map(Some)
            .map_err(|_| CryptoStoreError::UnpicklingError)
    }

    async fn load_tracked_users(&self) -> Result<Vec<TrackedUser>> {
        self.rows.all(TRACKED, None).await
    }

    async fn save_tracked_users(&self, users: &[(&UserId, bool)]) -> Result<()> {
        let mut batch = Batch::default();
        for (user, dirty) in users {
            let tracked = TrackedUser { user_id: (*user).to_owned(), dirty: *dirty };
            batch.put(key(TRACKED, user, ""), &tracked)?;
        }
        self.rows.write(batch).await
    }

    async fn get_device(
        &self,
        user_id: &UserId,
        device_id: &DeviceId,
    ) -> Result<Option<DeviceData>> {
        self.rows.get(key(DEVICE, user_id, device_id)).await
    }

    async fn get_user_devices(
        &self,
        user_id: &UserId,
    ) -> Result<HashMap<OwnedDeviceId, DeviceData>> {
        let devices: Vec<DeviceData> = self.rows.all(DEVICE, Some(user_id.as_str())).await?;
        Ok(devices.into_iter().map(|device| (device.device_id().to_owned(), device)).collect())
    }

    async fn get_own_device(&self) -> Result<DeviceData> {
        let account = self.account()?;
        let device = self.get_device(&account.user_id, &account.device_id).await?;
        device.ok_or(CryptoStoreError::AccountUnset)
    }

    async fn get_user_identity(&self, user_id: &UserId) -> Result<Option<UserIdentityData>> {
        self.rows.get(key(IDENTITY, user_id, "")).await
    }

    async fn is_message_known(&self, hash: &OlmMessageHash) -> Result<bool> {
        let known: Option<bool> = self.rows.get(key(HASH, &hash.sender_key, &hash.hash)).await?;
        Ok(known.is_some())
    }

    async fn get_outgoing_secret_requests(
        &self,
        request_id: &TransactionId,
    ) -> Result<Option<GossipRequest>> {
        self.rows.get(key(REQUEST, request_id, "")).await
    }

    async fn get_secret_request_by_info(&self, info: &SecretInfo) -> Result<Option<GossipRequest>> {
        let requests: Vec<GossipRequest> = self.rows.all(REQUEST, None).await?;
        Ok(requests.into_iter().find(|request| request.info == *info))
    }

    async fn get_unsent_secret_requests(&self) -> Result<Vec<GossipRequest>> {
        let mut requests: Vec<GossipRequest> = self.rows.all(REQUEST, None).await?;
        requests.retain(|request| !request.sent_out);
        Ok(requests)
    }

    async fn delete_outgoing_secret_requests(&self, request_id: &TransactionId) -> Result<()> {
        let mut batch = Batch::default();
        batch.remove(key(REQUEST, request_id, ""));
        self.rows.write(batch).await
    }

    async fn get_secrets_from_inbox(&self, name: &SecretName) -> Result<Vec<Zeroizing<String>>> {
        let secrets: Vec<String> = self.rows.all(SECRET, Some(name.as_ref())).await?;
        Ok(secrets.into_iter().map(Zeroizing::new).collect())
    }

    async fn delete_secrets_from_inbox(&self, name: &SecretName) -> Result<()> {
        self.rows.remove_all(SECRET, name.as_ref()).await
    }

    async fn get_room_settings(&self, room_id: &RoomId) -> Result<Option<RoomSettings>> {
        self.rows.get(key(SETTINGS, room_id, "")).await
    }

    async fn get_received_room_key_bundle_data(
        &self,
        room_id: &RoomId,
        user_id: &UserId,
    ) -> Result<Option<StoredRoomKeyBundleData>> {
        self.rows.get(key(BUNDLE, room_id, user_id)).await
    }

    async fn get_pending_key_bundle_details_for_room(
        &self,
        room_id: &RoomId,
    ) -> Result<Option<RoomPendingKeyBundleDetails>> {
        self.rows.get(key(PENDING_BUNDLE, room_id, "")).await
    }

    async fn get_all_rooms_pending_key_bundles(&self) -> Result<Vec<RoomPendingKeyBundleDetails>> {
        self.rows.all(PENDING_BUNDLE, None).await
    }

    async fn has_downloaded_all_room_keys(&self, room_id: &RoomId) -> Result<bool> {
        let known: Option<bool> = self.rows.get(key(DOWNLOADED, room_id, "")).await?;
        Ok(known.is_some())
    }

    async fn get_custom_value(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.rows.get(key(CUSTOM, name, "")).await
    }

    async fn set_custom_value(&self, name: &str, value: Vec<u8>) -> Result<()> {
        let mut batch = Batch::default();
        batch.put(key(CUSTOM, name, ""), &value)?;
        self.rows.write(batch).await
    }

    async fn remove_custom_value(&self, name: &str) -> Result<()> {
        let mut batch = Batch::default();
        batch.remove(key(CUSTOM, name, ""));
        self.rows.write(batch).await
    }

    async fn try_take_leased_lock(
        &self,
        _lease_duration_ms: u32,
        _key: &str,
        _holder: &str,
    ) -> Result<Option<u64>> {
        // The file is locked, so there is no other holder.
        Ok(Some(1))
    }

    async fn next_batch_token(&self) -> Result<Option<String>> {
        self.rows.get(key(ONE, "next batch", "")).await
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    async fn reopen(&self) -> Result<()> {
        Ok(())
    }

    async fn get_size(&self) -> Result<Option<usize>> {
        Ok(None)
    }
}
