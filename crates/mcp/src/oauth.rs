//! A login at a server behind an address: the authorization code flow of OAuth 2.1, as the protocol asks for it.
//!
//! [`begin`] finds the authorization server, registers this program there and gives the address that the person opens.
//! [`Begun::finish`] waits for the answer, on a port of this machine or as an address that the person pastes, and exchanges
//! it for tokens. Nothing is stored here.

pub mod known;
mod metadata;
mod redirect;
mod register;

use std::future::Future;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use myclaw_llm::HttpProvider;
use myclaw_llm::access::{host_label, is_loopback, one_line, read_capped, transport_error};
use myclaw_llm::oauth::client_header;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::timeout;
use url::Url;
use url::form_urlencoded::Serializer;

pub(crate) use self::metadata::parameter;
use self::metadata::{AuthorizationServer, Resource};
use self::redirect::Answer;

/// Limits of one request.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const MAX_BODY: usize = 1 << 20;
/// Most characters of a server's words in a sentence.
const SHOWN: usize = 200;
/// The path that the authorization server sends the person to.
const REDIRECT_PATH: &str = "/callback";
/// The scope with which servers of OpenID Connect give a refresh token.
const OFFLINE: &str = "offline_access";

/// What is known of the login before it begins.
#[derive(Debug, Clone, Default)]
pub struct LoginOptions {
    /// The id of this program at the authorization server, if the owner has one.
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// The address of a document that describes this program, for servers that take such an address as its id.
    pub client_document: Option<String>,
    /// What the login should permit, in place of what the server proposes.
    pub scope: Option<String>,
    /// What an earlier login permits, which the new one should permit too.
    pub granted: Option<String>,
    /// The port of this machine to which the answer comes; any free one without it.
    pub port: Option<u16>,
}

/// A login that waits for the person.
#[derive(Debug)]
pub struct Begun {
    /// What the person opens in a browser.
    pub address: Url,
    server: AuthorizationServer,
    client: Client,
    resource: String,
    scope: Option<String>,
    listener: TcpListener,
    redirect: String,
    state: String,
    verifier: String,
}

/// This program, as an authorization server knows it.
#[derive(Debug, Clone)]
struct Client {
    id: String,
    secret: Option<SecretString>,
    way: ClientProof,
}

/// How the secret of a client is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientProof {
    Form,
    Header,
}

/// What a login gives.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// Who has issued it.
    pub issuer: String,
    /// Where it is renewed.
    pub token_url: String,
    /// The id of this program there.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// Whether the secret is sent in a header.
    pub secret_in_header: bool,
    /// What the tokens are for.
    pub resource: String,
    /// What they permit.
    pub scope: Option<String>,
    /// The token for calls.
    pub access: SecretString,
    /// The token for a renewal, if there is one.
    pub refresh: Option<SecretString>,
    /// How long the token for calls lasts.
    pub expires_in: Option<Duration>,
}

/// Finds out how to log in at `server`, and registers this program if need be.
///
/// # Errors
/// One sentence that says why there can be no login.
pub async fn begin(
    http: &HttpProvider,
    server: &Url,
    options: &LoginOptions,
) -> Result<Begun, String> {
    let resource = Resource::find(http, server).await?;
    let authorization = AuthorizationServer::find(http, &resource).await?;
    let port = options.port.unwrap_or_default();
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|error| {
        format!("nothing can listen at port {port} of this machine for the answer: {error}")
    })?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let redirect = format!("http://127.0.0.1:{port}{REDIRECT_PATH}");
    let scope = scope_of(options, &resource, &authorization);
    let client = Client::find(http, &authorization, options, &redirect, scope.as_deref()).await?;
    let (state, verifier) = (random()?, random()?);
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    let mut address = authorization.authorize.clone();
    {
        let mut query = address.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &redirect)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &resource.id);
        if let Some(scope) = &scope {
            query.append_pair("scope", scope);
            if scope.split(' ').any(|one| one == OFFLINE) {
                // Without the question, servers of OpenID Connect leave the refresh token out.
                query.append_pair("prompt", "consent");
            }
        }
    }
    let (server, resource) = (authorization, resource.id);
    Ok(Begun { address, server, client, resource, scope, listener, redirect, state, verifier })
}

/// What to ask for: what the owner says, what the server has asked for, or all that it has.
fn scope_of(
    options: &LoginOptions,
    resource: &Resource,
    server: &AuthorizationServer,
) -> Option<String> {
    let mut scopes: Vec<&str> = match &options.scope {
        Some(scope) => scope.split_whitespace().collect(),
        None => resource.scopes.iter().map(String::as_str).collect(),
    };
    for granted in options.granted.iter().flat_map(|granted| granted.split_whitespace()) {
        if options.scope.is_some() && !scopes.contains(&granted) {
            scopes.push(granted);
        }
    }
    if !scopes.is_empty() && !scopes.contains(&OFFLINE) && server.offers(OFFLINE) {
        scopes.push(OFFLINE);
    }
    (!scopes.is_empty()).then(|| scopes.join(" "))
}

impl Begun {
    /// Waits for the answer and exchanges it. `pasted` gives the address that the person was sent to, if the browser runs on
    /// another machine; it may never give one.
    ///
    /// # Errors
    /// One sentence that says why there is no login.
    pub async fn finish(
        self,
        http: &HttpProvider,
        pasted: impl Future<Output = Option<String>>,
    ) -> Result<LoggedIn, String> {
        let answer = tokio::select! {
            answer = redirect::arrival(&self.listener, REDIRECT_PATH, Some(&self.state)) => answer?,
            Some(text) = pasted => Answer::pasted(&text)?,
        };
        let code = self.code_of(answer)?;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", &code)
            .append_pair("redirect_uri", &self.redirect)
            .append_pair("code_verifier", &self.verifier)
            .append_pair("resource", &self.resource);
        let url = &self.server.token;
        let client = http.clients().client(url, CONNECT_LIMIT).await;
        let request = client.map_err(|error| error.message)?.post(url.clone());
        let request = self.client.proven(request, form);
        let (status, answer) = json_of(request, url).await?;
        let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
        let Some(access) = text("access_token").filter(|_| status == 200 || status == 201) else {
            return Err(format!("{} gave no token: {}", host_label(url), refusal(status, &answer)));
        };
        let seconds = answer["expires_in"].as_f64().or_else(|| text("expires_in")?.parse().ok());
        Ok(LoggedIn {
            issuer: self.server.issuer,
            token_url: url.to_string(),
            client_id: self.client.id,
            secret_in_header: self.client.way == ClientProof::Header,
            client_secret: self.client.secret,
            resource: self.resource,
            scope: text("scope").map(str::to_owned).or(self.scope),
            access: access.into(),
            refresh: text("refresh_token").map(SecretString::from),
            expires_in: seconds.and_then(|life| Duration::try_from_secs_f64(life).ok()),
        })
    }

    /// The code in an answer, if the answer is to this question and from the server that was asked (RFC 9207).
    fn code_of(&self, answer: Answer) -> Result<String, String> {
        if answer.state.as_deref() != Some(&self.state) {
            return Err("the answer belongs to another login; begin again".to_owned());
        }
        match &answer.issuer {
            Some(issuer) if *issuer != self.server.issuer => {
                return Err(format!(
                    "the answer came from {}, and the login was asked of {}; nothing was sent there",
                    one_line(issuer, SHOWN),
                    self.server.issuer
                ));
            }
            None if self.server.names_itself => {
                return Err(format!(
                    "the answer does not say that it is from {}, as that server promises; nothing was sent",
                    self.server.issuer
                ));
            }
            _ => {}
        }
        answer.code.ok_or_else(|| {
            let why = answer.error.unwrap_or_else(|| "it holds no code".to_owned());
            format!("the login was refused: {}", one_line(&why, SHOWN))
        })
    }
}

impl Client {
    /// The request with the form, and with what proves who asks.
    fn proven(&self, request: RequestBuilder, mut form: Serializer<'_, String>) -> RequestBuilder {
        let mut request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match (&self.secret, self.way) {
            (Some(secret), ClientProof::Header) => {
                request = request.header(AUTHORIZATION, client_header(&self.id, secret));
            }
            (secret, _) => {
                form.append_pair("client_id", &self.id);
                if let Some(secret) = secret {
                    form.append_pair("client_secret", secret.expose_secret());
                }
            }
        }
        request.body(form.finish())
    }
}

/// Random text that nobody guesses, of the characters of URLs.
fn random() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "there are no random numbers".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// An address to which secrets may be sent.
fn safe(text: &str, what: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url) => {
            Ok(url)
        }
        _ => Err(format!("{what} is {:?}, which must begin with https://", one_line(text, SHOWN))),
    }
}

/// Sends a request, and reads the JSON of its answer; `Null` if there is none.
async fn json_of(request: RequestBuilder, url: &Url) -> Result<(u16, Value), String> {
    let response = answer_of(request.header(ACCEPT, "application/json"), url).await?;
    let status = response.status().as_u16();
    let body = read_capped(response, MAX_BODY, REQUEST_LIMIT).await;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

async fn answer_of(request: RequestBuilder, url: &Url) -> Result<Response, String> {
    // A person logs in between two of these. A server may close an idle connection just when the next one is sent on it, and a
    // code cannot be sent twice.
    let request = request.header(CONNECTION, "close");
    match timeout(REQUEST_LIMIT, request.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(transport_error(&error, url, CONNECT_LIMIT).message),
        Err(_) => {
            Err(format!("{} did not answer within {} s", host_label(url), REQUEST_LIMIT.as_secs()))
        }
    }
}

/// Asks for a document; `None` if it is not there.
async fn document(http: &HttpProvider, url: &Url) -> Result<Option<Value>, String> {
    let client = http.clients().client(url, CONNECT_LIMIT).await.map_err(|error| error.message)?;
    let (status, answer) = json_of(client.get(url.clone()), url).await?;
    Ok(Some(answer).filter(|answer| status == 200 && answer.is_object()))
}

/// What a server says about a refusal.
fn refusal(status: u16, answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let why = format!("{} {}", text("error"), text("error_description"));
    match why.trim() {
        "" => format!("HTTP {status}"),
        why => one_line(why, SHOWN),
    }
}

#[cfg(test)]
mod tests;
