//! What the machine wants to be sent: keys, questions for keys, messages to devices.

use http::Response;
use matrix_sdk_crypto::types::requests::{
    AnyIncomingResponse, AnyOutgoingRequest, ToDeviceRequest,
};
use ruma::api::IncomingResponse;
use ruma::api::client::keys::{
    claim_keys, get_keys, upload_keys, upload_signatures, upload_signing_keys,
};
use ruma::api::client::to_device::send_event_to_device;
use ruma::{TransactionId, UserId};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::api::{ApiError, encode};
use super::super::{Failure, Matrix, Me};
use super::Encryption;
use super::machine::{broken, question};
use super::rows::{Batch, key};

const QUERY: &str = "/_matrix/client/v3/keys/query";
/// The row that says that the device is signed by the account.
const SIGNED: (&str, &str) = ("one", "signed");

impl Matrix {
    /// Sends what the machine wants to be sent. The caller has the turn.
    pub(super) async fn flush(&self, encryption: &Encryption) -> Result<(), Failure> {
        let requests = encryption.machine.outgoing_requests().await;
        for request in requests.map_err(|error| broken(&error))? {
            self.perform(encryption, request.request_id(), request.request()).await?;
        }
        // For devices whose messages could not be decrypted, or that wait for an answer.
        self.claim_sessions(encryption, std::iter::empty()).await
    }

    /// Begins sessions with the devices of users that have none.
    pub(super) async fn claim_sessions(
        &self,
        encryption: &Encryption,
        users: impl Iterator<Item = &UserId>,
    ) -> Result<(), Failure> {
        let missing = encryption.machine.get_missing_sessions(users).await;
        if let Some((id, request)) = missing.map_err(|error| broken(&error))? {
            self.perform(encryption, &id, &AnyOutgoingRequest::KeysClaim(request)).await?;
        }
        Ok(())
    }

    async fn perform(
        &self,
        encryption: &Encryption,
        id: &TransactionId,
        request: &AnyOutgoingRequest,
    ) -> Result<(), Failure> {
        match request {
            AnyOutgoingRequest::KeysUpload(request) => {
                let mut body = json!({
                    "one_time_keys": request.one_time_keys, "fallback_keys": request.fallback_keys,
                });
                if let (Value::Object(body), Some(keys)) = (&mut body, &request.device_keys) {
                    body.insert("device_keys".to_owned(), json!(keys));
                }
                let answer = self.ask("/_matrix/client/v3/keys/upload", &body).await?;
                let answer: upload_keys::v3::Response = read(&answer)?;
                mark(encryption, id, &answer).await
            }
            AnyOutgoingRequest::KeysQuery(request) => {
                let users = request.device_keys.keys().map(ToString::to_string);
                let answer: get_keys::v3::Response =
                    read(&self.ask(QUERY, &question(users)).await?)?;
                mark(encryption, id, &answer).await
            }
            AnyOutgoingRequest::KeysClaim(request) => {
                let body = json!({"one_time_keys": request.one_time_keys, "timeout": 10_000});
                let answer = self.ask("/_matrix/client/v3/keys/claim", &body).await?;
                let answer: claim_keys::v3::Response = read(&answer)?;
                mark(encryption, id, &answer).await
            }
            AnyOutgoingRequest::ToDeviceRequest(request) => {
                self.send_to_devices(encryption, request).await
            }
            AnyOutgoingRequest::SignatureUpload(request) => {
                let answer = self.upload_signatures(&request.signed_keys).await?;
                mark(encryption, id, &answer).await
            }
            // Only verification with a person sends such messages.
            AnyOutgoingRequest::RoomMessage(_) => Ok(()),
        }
    }

    pub(super) async fn send_to_devices(
        &self,
        encryption: &Encryption,
        request: &ToDeviceRequest,
    ) -> Result<(), Failure> {
        let (kind, id) = (encode(&request.event_type.to_string()), encode(request.txn_id.as_str()));
        let path = format!("/_matrix/client/v3/sendToDevice/{kind}/{id}");
        let answer: Value = self.api.put(&path, &json!({"messages": request.messages})).await?;
        let answer: send_event_to_device::v3::Response = read(&answer)?;
        mark(encryption, &request.txn_id, &answer).await
    }

    async fn upload_signatures(
        &self,
        signed: &impl Serialize,
    ) -> Result<upload_signatures::v3::Response, Failure> {
        let path = "/_matrix/client/v3/keys/signatures/upload";
        read(&self.ask(path, &json!(signed)).await?)
    }

    /// The keys that the server has for a device of this account.
    pub(super) async fn published_device(
        &self,
        me: &Me,
        device: &str,
    ) -> Result<Option<Value>, Failure> {
        let mut answer = self.ask(QUERY, &question([me.id.clone()])).await?;
        let devices = answer.get_mut("device_keys").and_then(|users| users.get_mut(&me.id));
        Ok(devices.and_then(|devices| devices.get_mut(device)).map(Value::take))
    }

    /// Signs the device with keys of the account, so that clients that ask for this do not refuse it. The account gets such
    /// keys if nobody has made some.
    pub(super) async fn sign_device(
        &self,
        encryption: &Encryption,
        me: &Me,
    ) -> Result<(), Failure> {
        let done: Option<bool> = encryption
            .rows
            .get(key(SIGNED.0, SIGNED.1, ""))
            .await
            .map_err(|error| broken(&error))?;
        if done.is_some() {
            return Ok(());
        }
        let machine = &encryption.machine;
        let published = self.ask(QUERY, &question([me.id.clone()])).await?;
        let is_theirs = published.get("master_keys").and_then(|keys| keys.get(&me.id)).is_some();
        if is_theirs && !machine.cross_signing_status().await.has_master {
            let device = machine.device_id();
            tracing::warn!(%device, "another program has made the signing keys of the account; sign this device there, or some people's clients refuse it");
            return Ok(());
        }
        let requests =
            machine.bootstrap_cross_signing(false).await.map_err(|error| broken(&error))?;
        if let Some(upload) = requests.upload_keys_req {
            self.perform(encryption, upload.request_id(), upload.request()).await?;
        }
        let keys = requests.upload_signing_keys_req;
        let mut body = Map::new();
        for (name, key) in [
            ("master_key", keys.master_key),
            ("self_signing_key", keys.self_signing_key),
            ("user_signing_key", keys.user_signing_key),
        ] {
            body.insert(name.to_owned(), json!(key));
        }
        let path = "/_matrix/client/v3/keys/device_signing/upload";
        match self.ask(path, &Value::Object(body)).await {
            Ok(answer) => {
                let answer: upload_signing_keys::v3::Response = read(&answer)?;
                let answer = AnyIncomingResponse::SigningKeysUpload(&answer);
                mark(encryption, &TransactionId::new(), answer).await?;
            }
            Err(Failure::Call(ApiError::Refused(refused))) if refused.status != 429 => {
                tracing::warn!(%refused, "the homeserver does not take signing keys of the account; some people's clients may refuse its device");
                return Ok(());
            }
            Err(failure) => return Err(failure),
        }
        self.upload_signatures(&requests.upload_signatures_req.signed_keys).await?;
        let mut batch = Batch::default();
        batch.put(key(SIGNED.0, SIGNED.1, ""), &true).map_err(|error| broken(&error))?;
        encryption.rows.write(batch).await.map_err(|error| broken(&error))
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        Ok(self.api.post(path, body).await?)
    }
}

/// An answer in the library's form.
fn read<T: IncomingResponse>(answer: &Value) -> Result<T, Failure> {
    let answer = Response::new(answer.to_string().into_bytes());
    T::try_from_http_response(answer).map_err(|error| broken(&error))
}

async fn mark<'a>(
    encryption: &Encryption,
    id: &TransactionId,
    answer: impl Into<AnyIncomingResponse<'a>>,
) -> Result<(), Failure> {
    let marked = encryption.machine.mark_request_as_sent(id, answer).await;
    marked.map_err(|error| broken(&error))
}
