//! AWS Signature Version 4.
//!
//! A request is written in one canonical form, hashed, and the hash is signed with a key made from the secret access
//! key for one day, region and service. See <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>.

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{HeaderMap, HeaderValue};
use ring::{digest, hmac};
use secrecy::ExposeSecret;
use url::Url;

use super::credentials::Credentials;
use super::no_access;
use myclaw_llm::ModelError;
use myclaw_llm::access::host_label;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Characters that are not encoded in the canonical path. The path is encoded a second time, so percent signs are
/// encoded again.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// What is signed.
pub(super) struct Request<'a> {
    /// In upper case.
    pub(super) method: &'a str,
    pub(super) url: &'a Url,
    /// Headers to sign besides the host, the date and the session token, with names in lower case.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

/// The scope of a signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// The headers that make `request` a signed one.
///
/// # Errors
/// The credentials hold characters that a header cannot have, or the time is before the year 1 or after 9999.
pub(super) fn sign(
    request: &Request<'_>,
    scope: Scope<'_>,
    credentials: &Credentials,
    time: SystemTime,
) -> Result<HeaderMap, ModelError> {
    let time =
        Timestamp::try_from(time).map_err(|_| no_access("the clock of this machine is not set"))?;
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let date = &time[..8];
    let token = credentials.session_token.as_ref().map(ExposeSecret::expose_secret);
    let host = host_label(request.url);
    let mut headers = request.headers.to_vec();
    headers.extend([("host", host.as_str()), ("x-amz-date", time.as_str())]);
    headers.extend(token.map(|token| ("x-amz-security-token", token)));
    headers.sort_unstable_by_key(|&(name, _)| name);

    let names: Vec<&str> = headers.iter().map(|&(name, _)| name).collect();
    let names = names.join(";");
    let canonical = canonical_request(request, &headers, &names);
    let scope_text = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let to_sign = format!(
        "{ALGORITHM}\n{time}\n{scope_text}\n{}",
        hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref())
    );
    let secret = format!("AWS4{}", credentials.secret_access_key.expose_secret());
    let key = [date, scope.region, scope.service, "aws4_request"]
        .into_iter()
        .fold(secret.into_bytes(), |key, part| keyed_hash(&key, part));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope_text}, SignedHeaders={names}, Signature={}",
        credentials.access_key_id,
        hex(&keyed_hash(&key, &to_sign))
    );

    let mut added = HeaderMap::new();
    added.insert("authorization", sensitive(&authorization)?);
    added.insert("x-amz-date", sensitive(&time)?);
    if let Some(token) = token {
        added.insert("x-amz-security-token", sensitive(token)?);
    }
    Ok(added)
}

fn canonical_request(request: &Request<'_>, headers: &[(&str, &str)], names: &str) -> String {
    let mut canonical = format!(
        "{}\n{}\n{}\n",
        request.method,
        utf8_percent_encode(request.url.path(), PATH),
        canonical_query(request.url.query().unwrap_or_default())
    );
    for (name, value) in headers {
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        // Writing to a string cannot fail.
        let _ = writeln!(canonical, "{name}:{}", words.join(" "));
    }
    let body = hex(digest::digest(&digest::SHA256, request.body).as_ref());
    let _ = write!(canonical, "\n{names}\n{body}");
    canonical
}

/// The parameters in the order of their names, then values. They are encoded already, as a URL is.
fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn keyed_hash(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// `bytes` in lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sensitive(text: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        no_access("the AWS credentials hold a character that no HTTP header can carry (a line break?): copy them again")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
