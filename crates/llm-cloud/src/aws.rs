//! Amazon's credentials: where they are found, and the signature that they make.
//!
//! A call goes out with a bearer key ([`BEARER_VARIABLE`]) or, with access keys from any of AWS's usual places, with a
//! signature over the whole request. They are looked for in the environment and in the profile, in the order of AWS's
//! own tools. What else those tools know (single sign-on, roles, the services of containers and machines), they
//! themselves hand over: `aws configure export-credentials` as the profile's `credential_process`.

mod credentials;
mod process;
mod profile;
mod region;
mod signature;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use self::credentials::Credentials;
use self::profile::Profile;
use futures_util::future::BoxFuture;
use myclaw_llm::access::aws_error_name;
use myclaw_llm::access::http_date;
use myclaw_llm::access::redact;
use myclaw_llm::access::{Access, Caller, Clients, Credential};
use myclaw_llm::wire::EncodedRequest;
use myclaw_llm::{Api, ErrorClass, Model, ModelError, ModelRequest, Variables};

/// Holds a key that needs no signature.
const BEARER_VARIABLE: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// The service's name in signatures.
const SERVICE: &str = "bedrock";

/// AWS refuses signatures when the clock is off by more than five minutes. A refusal with a smaller difference than
/// this has another reason.
const NOTICEABLE_SKEW: Duration = Duration::from_secs(4 * 60);

/// Credentials are fetched anew this long before they expire, so that they do not expire during a request.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The names of refusals that a wrong clock causes, among other things.
const CLOCK_ERRORS: [&str; 4] = [
    "InvalidSignatureException",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "RequestExpired",
];

/// Access to Amazon Bedrock. It keeps temporary credentials between calls.
#[derive(Debug, Default)]
pub struct Aws(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Temporary credentials, kept until they expire, because a program was asked for them.
    temporary: Mutex<Option<Credentials>>,
    /// How many seconds the servers' clock is ahead of this machine's, if the difference matters.
    clock_offset: AtomicI64,
}

impl Access for Aws {
    fn serves(&self, model: &Model) -> bool {
        model.api == Api::BedrockConverse
    }

    fn caller<'a>(
        &'a self,
        clients: &'a Clients,
        request: &'a ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Caller, ModelError>> {
        Box::pin(self.find_caller(clients, request))
    }
}

impl Aws {
    /// What a call of `request` needs: a bearer token or a signer, and the base URL of its region.
    ///
    /// # Errors
    /// There are no credentials or no region, or the source of the credentials refuses.
    async fn find_caller(
        &self,
        clients: &Clients,
        request: &ModelRequest<'_>,
    ) -> Result<Caller, ModelError> {
        let variables = clients.variables();
        let key = Key::of(request, variables)?;
        let is_bearer = matches!(key, Key::Bearer(_));
        let needs_region = !is_bearer || region::is_open(&request.model.base_url);
        let named = region::named(request.model, variables);
        let needs_profile = matches!(key, Key::Ambient) || (needs_region && named.is_none());
        let profile =
            if needs_profile { Profile::load(variables).await? } else { Profile::default() };
        let region = match needs_region {
            true => region::checked(named.or_else(|| profile.get("region").map(str::to_owned)))?,
            false => String::new(),
        };
        let model = Some(Model {
            base_url: region::base_url(&request.model.base_url, &region),
            ..request.model.clone()
        });
        let credentials = match key {
            Key::Bearer(token) => {
                return Ok(Caller { token: Some(token), model, ..Caller::default() });
            }
            Key::Pair(credentials) => credentials,
            Key::Ambient => self.found(variables, &profile).await?,
        };
        let signer = Signer { credentials, region, state: Arc::clone(&self.0) };
        Ok(Caller { model, credential: Some(Box::new(signer)), ..Caller::default() })
    }

    /// The credentials of this machine, from the first place that has any.
    async fn found(
        &self,
        variables: &Variables,
        profile: &Profile,
    ) -> Result<Credentials, ModelError> {
        let mut temporary = self.0.temporary.lock().await;
        if let Some(credentials) = temporary.as_ref().filter(|found| found.lasts(EXPIRY_MARGIN)) {
            return Ok(credentials.clone());
        }
        let credentials = credentials::find(variables, profile).await?;
        *temporary = credentials.expires.is_some().then(|| credentials.clone());
        Ok(credentials)
    }
}

/// The credential of a call.
enum Key {
    /// A Bedrock API key.
    Bearer(SecretString),
    /// Access keys, given as one key.
    Pair(Credentials),
    /// The credentials that this machine has.
    Ambient,
}

impl Key {
    fn of(request: &ModelRequest<'_>, variables: &Variables) -> Result<Self, ModelError> {
        let given = request.api_key.map(|key| key.expose_secret().trim());
        let key = given.filter(|key| !key.is_empty()).or_else(|| variables.get(BEARER_VARIABLE));
        Ok(match key {
            // No bearer key holds a colon.
            Some(key) if key.contains(':') => Self::Pair(Credentials::from_key(key)?),
            Some(key) => Self::Bearer(SecretString::from(key)),
            None => Self::Ambient,
        })
    }
}

/// Signs requests for one call.
#[derive(Debug)]
struct Signer {
    credentials: Credentials,
    region: String,
    state: Arc<State>,
}

impl Signer {
    fn now(&self) -> SystemTime {
        shifted(SystemTime::now(), self.state.clock_offset.load(Ordering::Relaxed))
    }
}

impl Credential for Signer {
    fn replaces_key(&self) -> bool {
        true
    }

    /// `encoded` with its signature, made for the present time of the servers' clock.
    fn sign(&self, mut encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        let scope = signature::Scope { region: &self.region, service: SERVICE };
        let content_type: Vec<_> = encoded
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| Some(("content-type", value.to_str().ok()?)))
            .into_iter()
            .collect();
        let request = signature::Request {
            method: "POST",
            url: &encoded.url,
            headers: &content_type,
            body: &encoded.body,
        };
        let signed = signature::sign(&request, scope, &self.credentials, self.now())?;
        encoded.headers.extend(signed);
        Ok(encoded)
    }

    /// Records the time of a server that refused a signature because of its time. Returns whether this changes the
    /// correction, so that a retry may succeed.
    fn learns_from(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let blames_signature = matches!(
            status,
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST
        ) && aws_error_name(headers)
            .is_none_or(|name| CLOCK_ERRORS.contains(&name));
        let date = headers.get(DATE).and_then(|date| http_date(date.to_str().ok()?));
        let Some(date) = date.filter(|_| blames_signature) else { return false };
        if difference(date, self.now()).unsigned_abs() < NOTICEABLE_SKEW.as_secs() {
            return false;
        }
        let offset = difference(date, SystemTime::now());
        self.state.clock_offset.store(offset, Ordering::Relaxed);
        true
    }

    /// Forgets temporary credentials that have expired: the next call looks for new ones.
    fn may_replace<'a>(&'a self, error: &'a ModelError) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if error.code.as_deref().is_some_and(|code| code.starts_with("ExpiredToken")) {
                *self.state.temporary.lock().await = None;
            }
            false
        })
    }

    /// Adds advice if a wrong clock may be the reason of a refusal, and removes the session token, because AWS quotes
    /// the request that it would have signed.
    fn explain(&self, mut error: ModelError) -> ModelError {
        let code = error.code.as_deref().unwrap_or_default();
        let offset = self.state.clock_offset.load(Ordering::Relaxed);
        if CLOCK_ERRORS.contains(&code) && offset != 0 {
            let direction = if offset > 0 { "behind" } else { "ahead" };
            error.message = format!(
                "{}; the clock of this machine is {} s {direction} the server's: set it",
                error.message,
                offset.unsigned_abs()
            );
        }
        let secrets =
            [Some(&self.credentials.secret_access_key), self.credentials.session_token.as_ref()];
        for secret in secrets.into_iter().flatten() {
            error.message = redact(&error.message, Some(secret.expose_secret()));
        }
        error
    }
}

/// `later - earlier` in seconds.
fn difference(later: SystemTime, earlier: SystemTime) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match later.duration_since(earlier) {
        Ok(ahead) => seconds(ahead),
        Err(behind) => -seconds(behind.duration()),
    }
}

fn shifted(time: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 { time.checked_sub(by) } else { time.checked_add(by) };
    shifted.unwrap_or(time)
}

/// An error of the search for credentials. Only another key or the user can help.
fn no_access(message: impl Into<String>) -> ModelError {
    ModelError::new(ErrorClass::Auth, message)
}

/// The home directory, below which AWS's files are.
fn home(variables: &Variables) -> Option<&str> {
    variables.get("HOME").or_else(|| variables.get("USERPROFILE"))
}
