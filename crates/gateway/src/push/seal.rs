//! The encryption of a notification for one browser (RFC 8291), and what shows a push service who sends it (RFC 8292).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// Bytes of a point of P-256, uncompressed.
const POINT_BYTES: usize = 65;
/// Bytes of a browser's secret.
const AUTH_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
/// Bytes of the one record of a body. Push services take no larger body (RFC 8030, section 7.2).
const RECORD_BYTES: u32 = 4_096;
/// Longest text: a record without its header, its mark and its tag.
pub(super) const MOST_TEXT: usize = 3_900;
/// How long a push service may take what is signed, in seconds: half of what RFC 8292 allows.
const SIGNED_SECONDS: u64 = 12 * 60 * 60;
/// Whom a push service can ask about the sender. That of Apple wants an address; which person it is concerns nobody.
const CONTACT: &str = "mailto:owner@example.org";

/// Where notifications for one browser go, and its keys.
pub(super) struct BrowserKeys {
    /// Its public key, a point.
    point: Vec<u8>,
    /// The secret that it shares with those who may write to it.
    auth: Vec<u8>,
}

impl BrowserKeys {
    /// The keys as a browser names them, in base64url; `None` if they are none.
    pub(super) fn parse(point: &str, auth: &str) -> Option<Self> {
        let read = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let keys = Self { point: read(point)?, auth: read(auth)? };
        let is_point = keys.point.len() == POINT_BYTES && keys.point.first() == Some(&4);
        (is_point && keys.auth.len() == AUTH_BYTES).then_some(keys)
    }

    /// Encrypts a text of at most [`MOST_TEXT`] bytes; the body of the request.
    pub(super) fn seal(&self, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
        let own_point = own.compute_public_key()?;
        let mut salt = [0; SALT_BYTES];
        random.fill(&mut salt)?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, &self.point);
        agree_ephemeral(own, &theirs, |shared| {
            self.sealed(shared, own_point.as_ref(), &salt, text)
        })?
    }

    /// The body from the secret that both sides have agreed on (RFC 8291, section 3.4).
    fn sealed(
        &self,
        shared: &[u8],
        own_point: &[u8],
        salt: &[u8; SALT_BYTES],
        text: &[u8],
    ) -> Result<Vec<u8>, Unspecified> {
        let info: [&[u8]; 3] = [b"WebPush: info\0", &self.point, own_point];
        let input: [u8; 32] = derived(&self.auth, shared, &info)?;
        let key: [u8; 16] = derived(salt, &input, &[b"Content-Encoding: aes128gcm\0"])?;
        let nonce: [u8; NONCE_LEN] = derived(salt, &input, &[b"Content-Encoding: nonce\0"])?;
        // The mark of the last record.
        let mut record = [text, &[2]].concat();
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut record,
        )?;
        let length = u8::try_from(own_point.len()).map_err(|_| Unspecified)?;
        let rest = [&RECORD_BYTES.to_be_bytes()[..], &[length][..], own_point, &record[..]];
        Ok([&salt[..], &rest.concat()[..]].concat())
    }
}

/// The length of what [`derived`] gives.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived<const N: usize>(
    salt: &[u8],
    secret: &[u8],
    info: &[&[u8]],
) -> Result<[u8; N], Unspecified> {
    let mut output = [0; N];
    let key = Salt::new(HKDF_SHA256, salt).extract(secret);
    key.expand(info, Length(N))?.fill(&mut output)?;
    Ok(output)
}

/// Who this gateway is for push services.
pub(super) struct SenderKey(EcdsaKeyPair);

impl SenderKey {
    /// A new one as PKCS #8.
    pub(super) fn make() -> Result<Vec<u8>, Unspecified> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?;
        Ok(made.as_ref().to_vec())
    }

    pub(super) fn read(pkcs8: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).ok().map(Self)
    }

    /// The public half, in base64url: browsers tie a subscription to it.
    pub(super) fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// The header `Authorization` for the service at `origin`; `now` is in seconds.
    pub(super) fn authorization(&self, origin: &str, now: u64) -> Result<String, Unspecified> {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({"typ": "JWT", "alg": "ES256"}));
        let claims = part(json!({"aud": origin, "exp": now + SIGNED_SECONDS, "sub": CONTACT}));
        let signed = format!("{head}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes())?;
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(format!("vapid t={token}, k={}", self.public()))
    }
}

#[cfg(test)]
mod tests;
