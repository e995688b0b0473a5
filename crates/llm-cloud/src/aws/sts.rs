//! AWS's token service, which gives temporary keys of a role to those who may assume it.
//!
//! It uses AWS's older protocol: the request is a form, the response is XML. Four of its elements are read.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, DATE};
use reqwest::{Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::credentials::Credentials;
use super::{NOTICEABLE_SKEW, difference, no_access, signature};
use myclaw_llm::access::host_label;
use myclaw_llm::access::http_date;
use myclaw_llm::access::one_line;
use myclaw_llm::access::read_capped;
use myclaw_llm::access::redact;
use myclaw_llm::access::{Clients, transport_error};
use myclaw_llm::{ErrorClass, ModelError};

/// The version of the protocol.
const VERSION: &str = "2011-06-15";

/// The service's name in signatures.
const SERVICE: &str = "sts";

const FORM: &str = "application/x-www-form-urlencoded";

/// Limit for the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Limit for one request.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Largest response that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Most characters of a refusal that are shown.
const SHOWN_REASON: usize = 300;

/// Asks the token service of one region.
#[derive(Debug)]
pub(super) struct Sts<'a> {
    pub(super) clients: &'a Clients,
    pub(super) region: &'a str,
}

/// The role to be assumed.
#[derive(Debug, Default)]
pub(super) struct Assumption<'a> {
    pub(super) arn: &'a str,
    /// The name of the session in AWS's logs.
    pub(super) session_name: Option<&'a str>,
    pub(super) external_id: Option<&'a str>,
    pub(super) duration_seconds: Option<&'a str>,
}

/// The proof that a role may be assumed.
#[derive(Debug)]
pub(super) enum Voucher {
    /// A signature with these keys.
    Keys(Credentials),
    /// A token of an identity provider.
    WebIdentity(SecretString),
}

impl From<Credentials> for Voucher {
    fn from(credentials: Credentials) -> Self {
        Self::Keys(credentials)
    }
}

impl From<SecretString> for Voucher {
    fn from(token: SecretString) -> Self {
        Self::WebIdentity(token)
    }
}

impl Sts<'_> {
    /// Temporary keys of the role.
    ///
    /// # Errors
    /// AWS refuses or cannot be reached. No message holds a secret.
    pub(super) async fn assume(
        &self,
        assumption: &Assumption<'_>,
        voucher: &Voucher,
    ) -> Result<Credentials, ModelError> {
        let url = self.url()?;
        let form = form(assumption, voucher);
        let response = tokio::time::timeout(TIME_LIMIT, self.send(&url, &form, voucher))
            .await
            .unwrap_or_else(|_| {
                let message = format!("{} did not answer in time", host_label(&url));
                Err(ModelError::new(ErrorClass::Timeout, message))
            })?;
        let status = response.status();
        let body = read_capped(response, MAX_ANSWER, TIME_LIMIT).await;
        let text = String::from_utf8_lossy(&body);
        if status.is_success() {
            return credentials(&text).ok_or_else(|| {
                let host = host_label(&url);
                no_access(format!("{host} answered with something that is no AWS credentials"))
            });
        }
        Err(refusal(status, &text, assumption.arn, voucher, &url))
    }

    /// The service of the region, unless `AWS_ENDPOINT_URL_STS` names another.
    fn url(&self) -> Result<Url, ModelError> {
        let address = match self.clients.variables().get("AWS_ENDPOINT_URL_STS") {
            Some(address) => address.to_owned(),
            None if self.region.starts_with("cn-") => {
                format!("https://sts.{}.amazonaws.com.cn", self.region)
            }
            None => format!("https://sts.{}.amazonaws.com", self.region),
        };
        Url::parse(&address)
            .map_err(|error| no_access(format!("AWS_ENDPOINT_URL_STS is not a URL: {error}")))
    }

    /// Sends the form, signed if keys are the proof; a second time with the server's time if that is far from this
    /// machine's.
    async fn send(&self, url: &Url, form: &str, voucher: &Voucher) -> Result<Response, ModelError> {
        let client = self.clients.client(url, CONNECT_LIMIT).await?;
        let ask = async |time: SystemTime| {
            let mut request =
                client.post(url.clone()).header(CONTENT_TYPE, FORM).body(form.to_owned());
            if let Voucher::Keys(keys) = voucher {
                let signed = signature::Request {
                    method: "POST",
                    url,
                    headers: &[("content-type", FORM)],
                    body: form.as_bytes(),
                };
                let scope = signature::Scope { region: self.region, service: SERVICE };
                request = request.headers(signature::sign(&signed, scope, keys, time)?);
            }
            request.send().await.map_err(|error| transport_error(&error, url, CONNECT_LIMIT))
        };
        let now = SystemTime::now();
        let response = ask(now).await?;
        if !matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST) {
            return Ok(response);
        }
        let date = response.headers().get(DATE).and_then(|date| http_date(date.to_str().ok()?));
        match date {
            Some(date) if difference(date, now).unsigned_abs() >= NOTICEABLE_SKEW.as_secs() => {
                ask(date).await
            }
            _ => Ok(response),
        }
    }
}

fn form(assumption: &Assumption<'_>, voucher: &Voucher) -> String {
    let seconds = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("myclaw-{}", now.as_secs())
    };
    let session_name = assumption.session_name.map_or_else(seconds, str::to_owned);
    let action = match voucher {
        Voucher::Keys(_) => "AssumeRole",
        Voucher::WebIdentity(_) => "AssumeRoleWithWebIdentity",
    };
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", action)
        .append_pair("Version", VERSION)
        .append_pair("RoleArn", assumption.arn)
        .append_pair("RoleSessionName", &session_name);
    if let Some(seconds) = assumption.duration_seconds {
        form.append_pair("DurationSeconds", seconds);
    }
    match voucher {
        Voucher::Keys(_) => {
            if let Some(id) = assumption.external_id {
                form.append_pair("ExternalId", id);
            }
        }
        Voucher::WebIdentity(token) => {
            form.append_pair("WebIdentityToken", token.expose_secret());
        }
    }
    form.finish()
}

/// The keys in a response.
fn credentials(xml: &str) -> Option<Credentials> {
    let found = element(xml, "Credentials")?;
    let text = |name: &str| element(found, name).map(unescaped).filter(|text| !text.is_empty());
    let end: Timestamp = text("Expiration")?.parse().ok()?;
    Some(Credentials {
        access_key_id: text("AccessKeyId")?,
        secret_access_key: text("SecretAccessKey")?.into(),
        session_token: Some(text("SessionToken")?.into()),
        expires: Some(end.into()),
    })
}

/// What a refusal means.
fn refusal(status: StatusCode, xml: &str, arn: &str, voucher: &Voucher, url: &Url) -> ModelError {
    let text = |name: &str| element(xml, name).map(unescaped).unwrap_or_default();
    let (code, said) = (text("Code"), text("Message"));
    let advice = match (code.as_str(), voucher) {
        ("AccessDenied", _) => {
            "; see that the role's trust policy names who assumes it, and that they may"
        }
        ("ExpiredToken" | "ExpiredTokenException", Voucher::Keys(_)) => {
            "; renew the credentials that the role is assumed with"
        }
        ("ExpiredTokenException" | "InvalidIdentityToken", Voucher::WebIdentity(_)) => {
            "; see that the file has a fresh token, and that the role trusts its issuer"
        }
        ("SignatureDoesNotMatch" | "InvalidClientTokenId", _) => {
            "; check the secret key that the role is assumed with, and the clock of this machine"
        }
        _ => "",
    };
    let reason = match (code.is_empty(), said.trim_end_matches('.')) {
        (true, _) => String::new(),
        (false, "") => format!(" ({code})"),
        (false, said) => format!(" ({code}): {}", one_line(said, SHOWN_REASON)),
    };
    let mut message = format!(
        "{} answered {}{reason} when the AWS role {arn} was to be assumed{advice}",
        host_label(url),
        status.as_u16()
    );
    let secrets = match voucher {
        Voucher::Keys(keys) => [Some(&keys.secret_access_key), keys.session_token.as_ref()],
        Voucher::WebIdentity(token) => [Some(token), None],
    };
    for secret in secrets.into_iter().flatten() {
        message = redact(&message, Some(secret.expose_secret()));
    }
    let is_failing = status.is_server_error() || code == "IDPCommunicationError";
    let class = if is_failing { ErrorClass::Timeout } else { ErrorClass::Auth };
    ModelError {
        status: Some(status.as_u16()),
        code: (!code.is_empty()).then_some(code),
        ..ModelError::new(class, message)
    }
}

/// The text between the first `<name>` and the next `</name>`. AWS's responses have no attributes there, no comments,
/// and no nested elements of the same name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("<{name}>");
    let (_, rest) = xml.split_once(start.as_str())?;
    let (content, _) = rest.split_once(format!("</{name}>").as_str())?;
    Some(content)
}

/// Text with the five entities of XML decoded, the ampersand last.
fn unescaped(text: &str) -> String {
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let trimmed = text.trim().to_owned();
    entities.into_iter().fold(trimmed, |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests;
