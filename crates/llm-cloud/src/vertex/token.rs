//! Access tokens: obtained with credentials, kept until shortly before they expire, and requested once for all calls
//! that wait.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::Serializer;

use super::auth_error;
use super::credentials::{
    Certainty, Credentials, Found, Identity, Machine, ServiceAccount, User, none_found,
};
use myclaw_llm::access::host_label;
use myclaw_llm::access::one_line;
use myclaw_llm::access::read_capped;
use myclaw_llm::access::redact;
use myclaw_llm::access::{Clients, transport_error};
use myclaw_llm::{ErrorClass, ModelError};

/// The scope of a token: everything that the account may do.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The requested lifetime of a service account's token: the maximum that Google allows.
const LIFETIME: Duration = Duration::from_secs(3600);

/// A token is no longer used this long before it expires: a request may take that long to arrive.
const MARGIN: Duration = Duration::from_secs(60);

/// How long a token server may take.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// How long a metadata server may take if it may not exist; on a Google machine it answers within milliseconds.
const GUESS_LIMIT: Duration = Duration::from_secs(1);

/// Largest response of a token server that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Most credentials whose tokens are kept, more than anyone uses. The oldest are removed first.
const MAX_SLOTS: usize = 16;

/// Longest reason of a token server that is shown, in characters.
const MAX_REASON: usize = 300;

/// A token and its expiry time.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    /// Tells this token from the others of its slot.
    pub(super) serial: u64,
    /// The project of the machine, if it is the machine's token.
    pub(super) project: Option<String>,
    /// By the wall clock, because it continues while a laptop sleeps.
    expires: SystemTime,
}

/// The tokens of all credentials.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    slots: Mutex<Vec<(Identity, Arc<Slot>)>>,
}

/// The token of one set of credentials. The holder of the lock is requesting one.
#[derive(Debug, Default)]
pub(super) struct Slot(tokio::sync::Mutex<State>);

#[derive(Debug, Default)]
struct State {
    token: Option<Token>,
    given: u64,
    /// The last failure; it applies to all calls that waited for that request.
    failure: Option<(Instant, ModelError)>,
}

impl TokenCache {
    pub(super) fn slot(&self, identity: Identity) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some((_, slot)) = slots.iter().find(|(known, _)| *known == identity) {
            return Arc::clone(slot);
        }
        if slots.len() == MAX_SLOTS {
            slots.remove(0);
        }
        let slot = Arc::new(Slot::default());
        slots.push((identity, Arc::clone(&slot)));
        slot
    }
}

impl Slot {
    /// The token; a new one from `exchange` if the kept one is missing or expires soon.
    pub(super) async fn token<F>(&self, exchange: impl FnOnce() -> F) -> Result<Token, ModelError>
    where
        F: Future<Output = Result<Token, ModelError>>,
    {
        let asked = Instant::now();
        let mut state = self.0.lock().await;
        let soon = SystemTime::now() + MARGIN;
        if let Some(token) = state.token.as_ref().filter(|token| token.expires > soon) {
            return Ok(token.clone());
        }
        if let Some((_, error)) = state.failure.as_ref().filter(|(failed, _)| *failed >= asked) {
            return Err(error.clone());
        }
        match exchange().await {
            Ok(token) => {
                state.given += 1;
                let token = Token { serial: state.given, ..token };
                state.token = Some(token.clone());
                Ok(token)
            }
            Err(error) => {
                state.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Discards the token with that serial number; a newer one stays.
    pub(super) async fn discard(&self, serial: u64) {
        let mut state = self.0.lock().await;
        state.token = state.token.take().filter(|token| token.serial != serial);
    }
}

/// Requests a token for `found`.
pub(super) async fn exchange(clients: &Clients, found: &Found) -> Result<Token, ModelError> {
    match &found.credentials {
        Credentials::ServiceAccount(account) => {
            let assertion = assertion(account, SystemTime::now())
                .map_err(|why| auth_error(format!("{} is not usable: {why}", found.origin)))?;
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion.as_str()),
            ];
            post(clients, &account.token_url, &form, found).await
        }
        Credentials::User(User { client_id, client_secret, refresh_token, token_url, .. }) => {
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", client_id.as_str()),
                ("client_secret", client_secret.expose_secret()),
                ("refresh_token", refresh_token.expose_secret()),
            ];
            post(clients, token_url, &form, found).await
        }
        Credentials::Machine(machine) => ask_machine(clients, machine).await,
    }
}

async fn post(
    clients: &Clients,
    url: &Url,
    form: &[(&str, &str)],
    found: &Found,
) -> Result<Token, ModelError> {
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let client = clients.client(url, TIME_LIMIT).await?;
    let request = client
        .post(url.clone())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body);
    let (status, answer) = ask(request, url, TIME_LIMIT).await?;
    if !(200..300).contains(&status) {
        return Err(refusal(status, &answer, url, found));
    }
    token(&answer).ok_or_else(|| {
        auth_error(format!("{} answered with something that is not a token", host_label(url)))
    })
}

/// Status and body of the answer.
async fn ask(
    request: RequestBuilder,
    url: &Url,
    limit: Duration,
) -> Result<(u16, Vec<u8>), ModelError> {
    let asking = async {
        let response = request.send().await.map_err(|error| transport_error(&error, url, limit))?;
        let status = response.status().as_u16();
        Ok((status, read_capped(response, MAX_ANSWER, limit).await))
    };
    tokio::time::timeout(limit, asking).await.unwrap_or_else(|_| {
        let message = format!("{}: no answer within {} s", host_label(url), limit.as_secs());
        Err(ModelError::new(ErrorClass::Timeout, message))
    })
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<u64>,
}

fn token(answer: &[u8]) -> Option<Token> {
    let answer: TokenAnswer = serde_json::from_slice(answer).ok()?;
    let lifetime = answer.expires_in.map_or(LIFETIME, Duration::from_secs);
    Some(Token {
        secret: answer.access_token.into(),
        serial: 0,
        project: None,
        expires: SystemTime::now().checked_add(lifetime)?,
    })
}

/// Why there is no token, from the error codes of OAuth and Google's own words next to them.
fn refusal(status: u16, answer: &[u8], url: &Url, found: &Found) -> ModelError {
    let body: Value = serde_json::from_slice(answer).unwrap_or(Value::Null);
    let code = body["error"].as_str().unwrap_or_default();
    let reason = [&body["error_description"], &body["error"]["message"], &body["error"]]
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or("no reason given");
    let reason = redact(&one_line(reason, MAX_REASON), None);
    let origin = &found.origin;
    let message = match (&found.credentials, code) {
        _ if reason.contains("iat") || reason.contains("reasonable timeframe") => {
            format!(
                "Google refused the time of the token request ({reason}): set the clock of this machine"
            )
        }
        (Credentials::User(_), "invalid_grant" | "invalid_rapt") => format!(
            "the login in {origin} has expired or was revoked ({reason}): run `gcloud auth application-default login`"
        ),
        (Credentials::ServiceAccount(account), "invalid_grant") => format!(
            "Google refused the key of {} in {origin} ({reason}): check that the account and the key still exist, or make a new key",
            account.email
        ),
        _ => format!(
            "{} answered {status} to the credentials in {origin}: {reason}",
            host_label(url)
        ),
    };
    let class = if status >= 500 { ErrorClass::Timeout } else { ErrorClass::Auth };
    let code = Some(code).filter(|code| !code.is_empty()).map(str::to_owned);
    // The status is not kept: it is that of the token server, and a 401 of the model server means something else.
    ModelError { code, ..ModelError::new(class, message) }
}

async fn ask_machine(clients: &Clients, machine: &Machine) -> Result<Token, ModelError> {
    let (limit, is_guess) = match machine.certainty {
        Certainty::Named => (TIME_LIMIT, false),
        Certainty::Guessed => (GUESS_LIMIT, true),
    };
    let get = async |path: &str| {
        let address = format!("http://{}/computeMetadata/v1/{path}", machine.host);
        let url = Url::parse(&address).map_err(|error| {
            auth_error(format!("GCE_METADATA_HOST is not a host ({error}): {:?}", machine.host))
        })?;
        let client = clients.client(&url, limit).await?;
        let request = client.get(url.clone()).header("metadata-flavor", "Google");
        ask(request, &url, limit).await
    };
    let answer = match get("instance/service-accounts/default/token").await {
        Err(_) if is_guess => return Err(none_found()),
        Err(error) => return Err(error),
        Ok((200, answer)) => answer,
        Ok(_) if is_guess => return Err(none_found()),
        Ok((status, _)) => {
            return Err(auth_error(format!(
                "the metadata server {} answered {status}: attach a service account to this machine",
                machine.host
            )));
        }
    };
    let token = token(&answer).ok_or_else(|| {
        auth_error("the metadata server answered with something that is not a token")
    })?;
    // Without it the project must come from a variable; the caller reports that.
    let project = match get("project/project-id").await {
        Ok((200, id)) => String::from_utf8(id).ok(),
        _ => None,
    };
    Ok(Token { project, ..token })
}

/// The signed statement that a service account exchanges for a token (RFC 7523). Signing takes about a millisecond.
fn assertion(account: &ServiceAccount, now: SystemTime) -> Result<String, &'static str> {
    let key = private_key(&account.private_key)?;
    let issued = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = &account.key_id {
        header["kid"] = json!(id);
    }
    let claims = json!({
        "iss": account.email, "scope": SCOPE, "aud": account.token_url.as_str(),
        "iat": issued, "exp": issued + LIFETIME.as_secs(),
    });
    let encoded = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let mut assertion = format!("{}.{}", encoded(&header), encoded(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), assertion.as_bytes(), &mut signature)
        .map_err(|_| "its private key cannot sign")?;
    assertion.push('.');
    assertion.push_str(&BASE64_URL_SAFE_NO_PAD.encode(signature));
    Ok(assertion)
}

/// The key in PEM, of either form that there is for RSA.
fn private_key(pem: &SecretString) -> Result<RsaKeyPair, &'static str> {
    let pem = pem.expose_secret();
    let base64: String =
        pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect();
    let der = SecretSlice::from(
        BASE64_STANDARD
            .decode(base64)
            .map_err(|_| "its `private_key` is no PEM: download it again")?,
    );
    let key = if pem.contains("BEGIN RSA PRIVATE KEY") {
        RsaKeyPair::from_der(der.expose_secret())
    } else {
        RsaKeyPair::from_pkcs8(der.expose_secret())
    };
    key.map_err(|_| "its `private_key` is no RSA key of at least 2048 bits: download it again")
}
