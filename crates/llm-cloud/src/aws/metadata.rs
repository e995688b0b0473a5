//! The credentials of a machine in Amazon's cloud: those of a container and of an EC2 instance.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use super::credentials::{Credentials, Document};
use super::no_access;
use myclaw_llm::access::Clients;
use myclaw_llm::access::{host_label, is_link_local, is_loopback};
use myclaw_llm::{ErrorClass, ModelError, Variables};

/// Limit for the connection. These services are on the machine or next to it; on other machines a search takes this
/// long.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Limit for one request.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Largest answer read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Where containers of ECS find `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`.
const CONTAINER_HOST: &str = "http://169.254.170.2";

/// The hosts beside loopback addresses that `AWS_CONTAINER_CREDENTIALS_FULL_URI` may name without TLS: those of ECS
/// and EKS. Other hosts could belong to anybody.
const CONTAINER_ADDRESSES: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// The service of EC2 instances, unless `AWS_EC2_METADATA_SERVICE_ENDPOINT` names another.
const INSTANCE_HOST: &str = "http://169.254.169.254";

/// How long a session with the instance's service lasts, in seconds: the maximum.
const SESSION_SECONDS: &str = "21600";

/// The credentials of the container; `None` outside of one.
///
/// # Errors
/// The variables of a container are set, but its service gives no credentials.
pub(super) async fn of_container(clients: &Clients) -> Result<Option<Credentials>, ModelError> {
    let variables = clients.variables();
    let Some(url) = container_url(variables)? else { return Ok(None) };
    let mut request = client(clients, &url).await?.get(url.clone());
    if let Some(token) = container_token(variables).await? {
        request = request.header("authorization", token);
    }
    let document: Document = asked(request, &url).await?;
    document.into_credentials().map(Some).ok_or_else(|| no_credentials_in(&url))
}

fn container_url(variables: &Variables) -> Result<Option<Url>, ModelError> {
    let (name, text) = match (
        variables.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        variables.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    ) {
        (Some(path), _) => {
            ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", format!("{CONTAINER_HOST}{path}"))
        }
        (None, Some(url)) => ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.to_owned()),
        (None, None) => return Ok(None),
    };
    let url =
        Url::parse(&text).map_err(|error| no_access(format!("{name} is not a URL: {error}")))?;
    let is_near =
        is_loopback(&url) || url.host_str().is_some_and(|host| CONTAINER_ADDRESSES.contains(&host));
    if url.scheme() == "https" || is_near {
        return Ok(Some(url));
    }
    let message = format!(
        "{name} names {}, which is neither this machine nor the container's service: use https there",
        host_label(&url)
    );
    Err(no_access(message))
}

/// The token that the container's service requires, read anew each time because its file changes.
async fn container_token(variables: &Variables) -> Result<Option<String>, ModelError> {
    let Some(path) = variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") else {
        return Ok(variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned));
    };
    match tokio::fs::read_to_string(path).await {
        Ok(token) => Ok(Some(token.trim().to_owned())),
        Err(error) => {
            let message =
                format!("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE ({path}) cannot be read: {error}");
            Err(no_access(message))
        }
    }
}

/// The credentials of the EC2 instance, by the second version of its service; `None` on other machines, and if
/// `AWS_EC2_METADATA_DISABLED` is `true`.
///
/// # Errors
/// The service exists, but its answers cannot be read.
pub(super) async fn of_instance(clients: &Clients) -> Result<Option<Credentials>, ModelError> {
    let variables = clients.variables();
    let is_disabled = variables.get("AWS_EC2_METADATA_DISABLED");
    if is_disabled.is_some_and(|word| word.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let base = variables.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(INSTANCE_HOST);
    let url = |path: &str| {
        Url::parse(&format!("{}{path}", base.trim_end_matches('/'))).map_err(|error| {
            no_access(format!("AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL: {error}"))
        })
    };
    let token_url = url("/latest/api/token")?;
    let client = client(clients, &token_url).await?;
    let session = client
        .request(Method::PUT, token_url)
        .header("x-aws-ec2-metadata-token-ttl-seconds", SESSION_SECONDS)
        .timeout(TIME_LIMIT);
    // Any failure here means that this is not an EC2 instance.
    let Ok(session) = session.send().await else { return Ok(None) };
    if session.status() != StatusCode::OK {
        return Ok(None);
    }
    let Some(session) = text_of(session).await else { return Ok(None) };
    let with_session =
        |url: &Url| client.get(url.clone()).header("x-aws-ec2-metadata-token", session.trim());

    let roles_url = url("/latest/meta-data/iam/security-credentials/")?;
    let Ok(roles) = with_session(&roles_url).timeout(TIME_LIMIT).send().await else {
        return Ok(None);
    };
    if roles.status() != StatusCode::OK {
        // An instance without a role.
        return Ok(None);
    }
    let roles = text_of(roles).await.unwrap_or_default();
    let Some(role) = roles.lines().next().map(str::trim).filter(|role| !role.is_empty()) else {
        return Ok(None);
    };
    let role_url = url(&format!("/latest/meta-data/iam/security-credentials/{role}"))?;
    let document: Document = asked(with_session(&role_url), &role_url).await?;
    document.into_credentials().map(Some).ok_or_else(|| no_credentials_in(&role_url))
}

/// A client for a service that gives out credentials.
pub(super) async fn client(clients: &Clients, url: &Url) -> Result<Client, ModelError> {
    let limit = if is_link_local(url) || is_loopback(url) { CONNECT_LIMIT } else { TIME_LIMIT };
    clients.client(url, limit).await
}

/// Sends `request` to `url` and reads the JSON of its answer.
///
/// # Errors
/// There is no answer in time, or it is a refusal or not the expected JSON. The answer is never shown, because it may
/// hold secrets.
pub(super) async fn asked<T: DeserializeOwned>(
    request: RequestBuilder,
    url: &Url,
) -> Result<T, ModelError> {
    let host = host_label(url);
    let response = request.timeout(TIME_LIMIT).send().await.map_err(|error| {
        let why = if error.is_timeout() { "did not answer in time" } else { "cannot be reached" };
        let message = format!("{host}, which gives out AWS credentials, {why}");
        ModelError::new(ErrorClass::Timeout, message)
    })?;
    let status = response.status();
    if !status.is_success() {
        let class = if status.is_server_error() { ErrorClass::Timeout } else { ErrorClass::Auth };
        let message =
            format!("{host}, which gives out AWS credentials, answered {}", status.as_u16());
        return Err(ModelError {
            status: Some(status.as_u16()),
            ..ModelError::new(class, message)
        });
    }
    let text = text_of(response).await.unwrap_or_default();
    serde_json::from_str(&text).map_err(|_| no_credentials_in(url))
}

fn no_credentials_in(url: &Url) -> ModelError {
    no_access(format!("{} answered with something that is no AWS credentials", host_label(url)))
}

/// The body as text, if it arrives whole and is not too long.
async fn text_of(mut response: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    String::from_utf8(body).ok()
}
