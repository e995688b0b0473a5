use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use secrecy::SecretString;
use serde::Deserialize;

use super::*;

/// Requests that botocore signed; see the SOURCE.md next to it. The first is of AWS's own test suite.
const SIGNED: &str = include_str!("../../../tests/data/aws/signatures.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suite {
    access_key_id: String,
    secret_access_key: String,
    time: u64,
    requests: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    region: String,
    service: String,
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    body: String,
    token: Option<String>,
    authorization: String,
}

#[test]
fn signatures_are_those_of_amazons_own_code() {
    let suite: Suite = serde_json::from_str(SIGNED).unwrap();
    assert_eq!(suite.requests.len(), 7);
    for vector in &suite.requests {
        let credentials = Credentials {
            access_key_id: suite.access_key_id.clone(),
            secret_access_key: SecretString::from(suite.secret_access_key.as_str()),
            session_token: vector.token.as_deref().map(SecretString::from),
            expires: None,
        };
        let headers: Vec<_> =
            vector.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let url = Url::parse(&vector.url).unwrap();
        let request = Request {
            method: &vector.method,
            url: &url,
            headers: &headers,
            body: vector.body.as_bytes(),
        };
        let scope = Scope { region: &vector.region, service: &vector.service };
        let time = UNIX_EPOCH + Duration::from_secs(suite.time);
        let added = sign(&request, scope, &credentials, time).unwrap();
        let text = |name: &str| added.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(text("authorization"), Some(vector.authorization.as_str()), "{}", vector.name);
        assert_eq!(text("x-amz-date"), Some("20150830T123600Z"));
        assert_eq!(text("x-amz-security-token"), vector.token.as_deref());
        assert!(added.values().all(HeaderValue::is_sensitive));
    }
}

#[test]
fn keys_that_no_header_can_carry_are_refused_without_being_shown() {
    let credentials = Credentials::from_key("AKID:secret:to\nken").unwrap();
    let url = Url::parse("https://h.example/").unwrap();
    let request = Request { method: "POST", url: &url, headers: &[], body: b"" };
    let scope = Scope { region: "us-east-1", service: "bedrock" };
    let error = sign(&request, scope, &credentials, UNIX_EPOCH).unwrap_err();
    assert_eq!(
        error.message,
        "the AWS credentials hold a character that no HTTP header can carry (a line break?): copy them again"
    );
}
