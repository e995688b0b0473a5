//! GitHub Copilot: a GitHub token is exchanged for a session token, which is valid for some minutes and names the host
//! to call.
//!
//! Copilot answers only editors, so requests carry an editor's headers. A request counts as a premium request if the
//! user began it, and not if the agent did.

mod login;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use myclaw_llm::access::host_label;
use myclaw_llm::access::redact;
use myclaw_llm::access::transport_error;
use myclaw_llm::access::{Access, Caller, Clients, Credential, read_capped, read_refusal};
use myclaw_llm::{ContentBlock, ErrorClass, Message, Model, ModelError, ModelRequest};

pub use crate::device::{DeviceLogin, LoginError};
use login::ENTERPRISE_MODELS;
pub use login::{CopilotHosts, finish_login, start_login};

/// The provider's name.
const PROVIDER: &str = "github-copilot";

/// The headers of an editor, without which Copilot answers 400: those of a recent Visual Studio Code.
const EDITOR_HEADERS: [(&str, &str); 4] = [
    ("editor-version", "vscode/1.107.0"),
    ("editor-plugin-version", "copilot-chat/0.35.0"),
    ("copilot-integration-id", "vscode-chat"),
    ("user-agent", "GitHubCopilotChat/0.35.0"),
];

/// A session token is replaced this long before it expires, so that it does not expire during a long answer.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

/// How long the exchange may take.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(30);

/// Largest response to the exchange, in bytes; real ones have about 3,000.
const MAX_ANSWER: usize = 256 * 1024;

/// Most sessions that are kept, one for each GitHub token. The oldest is removed first.
const MAX_SESSIONS: usize = 16;

/// Access to GitHub Copilot. It keeps the session of each GitHub token between calls.
#[derive(Debug, Default)]
pub struct Copilot(Arc<Sessions>);

/// The sessions of this process. The lock is held during an exchange, so that calls that need the same token at the
/// same time ask for it once.
#[derive(Debug, Default)]
struct Sessions(Mutex<Vec<Session>>);

#[derive(Debug, Clone)]
struct Session {
    github_token: SecretString,
    token: SecretString,
    /// The host to call, if the response names one.
    api: Option<String>,
    expires_at: SystemTime,
}

/// The answer to the exchange.
#[derive(Deserialize)]
struct Exchanged {
    token: String,
    /// In seconds since the Unix epoch.
    expires_at: u64,
    #[serde(default)]
    endpoints: Value,
}

impl Access for Copilot {
    fn serves(&self, model: &Model) -> bool {
        model.provider == PROVIDER
    }

    /// The session for the key of `request`, and the headers that Copilot requires.
    fn caller<'a>(
        &'a self,
        clients: &'a Clients,
        request: &'a ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Caller, ModelError>> {
        Box::pin(async move {
            let headers = headers(request.messages.as_slice());
            let key = request.api_key.map(|key| key.expose_secret().trim()).unwrap_or_default();
            if key.is_empty() {
                return Err(sign_in("there is no GitHub token"));
            }
            // A session token that another program obtained is used as it is.
            if key.starts_with("tid=") {
                return Ok(Caller { headers, ..Caller::default() });
            }
            let session = self.0.session(clients, key, request).await?;
            let mut model = request.model.clone();
            if let Some(api) = session.api.filter(|_| is_public(&model.base_url)) {
                model.base_url = api;
            }
            Ok(Caller {
                token: Some(session.token),
                model: Some(model),
                headers,
                credential: Some(Box::new(SessionOf {
                    github_token: session.github_token,
                    sessions: Arc::clone(&self.0),
                })),
            })
        })
    }
}

/// The session of a call.
#[derive(Debug)]
struct SessionOf {
    github_token: SecretString,
    sessions: Arc<Sessions>,
}

impl Credential for SessionOf {
    /// Forgets a session that Copilot refused: it may have been revoked.
    fn may_replace<'a>(&'a self, error: &'a ModelError) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if error.class != ErrorClass::Auth {
                return false;
            }
            let mut sessions = self.sessions.0.lock().await;
            let before = sessions.len();
            let refused = self.github_token.expose_secret();
            sessions.retain(|session| session.github_token.expose_secret() != refused);
            error.status == Some(401) && sessions.len() < before
        })
    }
}

impl Sessions {
    async fn session(
        &self,
        clients: &Clients,
        github_token: &str,
        request: &ModelRequest<'_>,
    ) -> Result<Session, ModelError> {
        let mut sessions = self.0.lock().await;
        let now = SystemTime::now();
        sessions.retain(|session| now + RENEW_BEFORE < session.expires_at);
        let is_ours = |session: &&Session| session.github_token.expose_secret() == github_token;
        if let Some(session) = sessions.iter().find(is_ours) {
            return Ok(session.clone());
        }
        let exchange = exchange(clients, github_token, request);
        let session =
            tokio::time::timeout(EXCHANGE_LIMIT, exchange).await.unwrap_or_else(|_| {
                let message =
                    format!("GitHub gave no Copilot token within {} s", EXCHANGE_LIMIT.as_secs());
                Err(ModelError::new(ErrorClass::Timeout, message))
            })?;
        if sessions.len() == MAX_SESSIONS {
            sessions.remove(0);
        }
        sessions.push(session.clone());
        Ok(session)
    }
}

async fn exchange(
    clients: &Clients,
    github_token: &str,
    request: &ModelRequest<'_>,
) -> Result<Session, ModelError> {
    let connect = request.limits.connect;
    let url = exchange_url(&request.model.base_url)?;
    let mut headers = editor_headers();
    let mut value = HeaderValue::from_str(&format!("token {github_token}"))
        .map_err(|_| sign_in("the GitHub token holds a character that no header can carry"))?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    let client = clients.client(&url, connect).await?;
    let response = client
        .get(url.clone())
        .headers(headers)
        .send()
        .await
        .map_err(|error| transport_error(&error, &url, connect))?;
    if !response.status().is_success() {
        let refusal = read_refusal(response).await;
        let refused = redact(&refusal.message, Some(github_token));
        let advice = match refusal.class {
            // GitHub answers 404 to accounts without Copilot.
            ErrorClass::Auth | ErrorClass::Unknown => {
                "; sign in again, and see that the account has Copilot"
            }
            _ => "",
        };
        let class = match refusal.status {
            Some(404) => ErrorClass::Auth,
            _ => refusal.class,
        };
        let message = format!("{} gave no Copilot token: {refused}{advice}", host_label(&url));
        return Err(ModelError { class, message, ..refusal });
    }
    let body = read_capped(response, MAX_ANSWER, EXCHANGE_LIMIT).await;
    read_session(github_token, &body).ok_or_else(|| {
        let message = format!(
            "{} answered the request for a Copilot token with something else: check the base URL",
            host_label(&url)
        );
        ModelError::new(ErrorClass::Unknown, message)
    })
}

fn read_session(github_token: &str, body: &[u8]) -> Option<Session> {
    let answer: Exchanged = serde_json::from_slice(body).ok()?;
    let named = answer.endpoints["api"].as_str().map(str::to_owned);
    Some(Session {
        github_token: SecretString::from(github_token),
        api: named.or_else(|| api_of_token(&answer.token)),
        token: answer.token.into(),
        expires_at: UNIX_EPOCH.checked_add(Duration::from_secs(answer.expires_at))?,
    })
}

/// The host that a token names in its field `proxy-ep`: `…;proxy-ep=proxy.individual.githubcopilot.com;…`.
fn api_of_token(token: &str) -> Option<String> {
    let proxy = token.split(';').find_map(|field| field.strip_prefix("proxy-ep="))?;
    Some(format!("https://api.{}", proxy.strip_prefix("proxy.")?))
}

/// Whether `base_url` is Copilot's own. The session may replace it; any other was chosen by the user.
fn is_public(base_url: &str) -> bool {
    let url = Url::parse(base_url.trim()).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host == "githubcopilot.com" || host.ends_with(".githubcopilot.com")
}

/// The address at which the token for `base_url` is exchanged: GitHub's, a company's own (`api.company.ghe.com` for
/// `copilot-api.company.ghe.com`), or the gateway itself if `base_url` is one.
fn exchange_url(base_url: &str) -> Result<Url, ModelError> {
    let unusable = || {
        let message =
            format!("the base URL {base_url:?} is not usable: write it like https://host");
        ModelError::new(ErrorClass::Unknown, message)
    };
    let mut url = Url::parse(base_url.trim()).map_err(|_| unusable())?;
    let host = url.host_str().ok_or_else(unusable)?.to_owned();
    let api = match host.strip_prefix(ENTERPRISE_MODELS) {
        _ if is_public(base_url) => "api.github.com".to_owned(),
        Some(company) => format!("api.{company}"),
        None => host,
    };
    url.set_host(Some(&api)).map_err(|_| unusable())?;
    url.set_path("/copilot_internal/v2/token");
    url.set_query(None);
    Ok(url)
}

fn editor_headers() -> HeaderMap {
    let mut headers: HeaderMap = EDITOR_HEADERS
        .iter()
        .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    headers
}

/// The headers of a model call.
fn headers(messages: &[Message]) -> HeaderMap {
    let mut headers = editor_headers();
    headers.remove("accept");
    headers.insert("openai-intent", HeaderValue::from_static("conversation-edits"));
    let initiator = match messages.last() {
        Some(Message::User(_)) | None => "user",
        Some(Message::Assistant(_) | Message::ToolResult(_)) => "agent",
    };
    headers.insert("x-initiator", HeaderValue::from_static(initiator));
    let has_image = messages.iter().any(|message| {
        let content = match message {
            Message::User(user) => &user.content,
            Message::Assistant(assistant) => &assistant.content,
            Message::ToolResult(result) => &result.content,
        };
        content.iter().any(|block| matches!(block, ContentBlock::Image(_)))
    });
    if has_image {
        headers.insert("copilot-vision-request", HeaderValue::from_static("true"));
    }
    headers
}

fn sign_in(why: &str) -> ModelError {
    ModelError::new(ErrorClass::Auth, format!("{why}: sign in to GitHub Copilot"))
}

#[cfg(test)]
mod tests;
