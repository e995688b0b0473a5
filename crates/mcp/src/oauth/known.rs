//! A login at an authorization server that is known beforehand, such as that of a provider of models: the same flow, without
//! the search for the server.

use std::future::Future;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use myclaw_llm::HttpProvider;
use myclaw_llm::access::{host_label, one_line};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::redirect::{self, Answer};
use super::{CONNECT_LIMIT, Client, ClientProof, SHOWN, document, json_of, random, refusal, safe};

/// How a code becomes something to call with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// Tokens, as OAuth 2 has it.
    Tokens,
    /// A key that lasts, as OpenRouter gives it. There is no `state`, so the path of the answer has it.
    Key,
}

/// An authorization server, and this program there.
#[derive(Debug, Clone)]
pub struct KnownServer {
    /// Who that is; an answer that names another issuer is refused.
    pub issuer: String,
    /// The page that the person opens.
    pub authorize: String,
    /// Where a code is exchanged.
    pub token: String,
    /// What it is exchanged for.
    pub exchange: Exchange,
    /// The id of this program, or what stands for it until the server gives it one.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// Whether the answer has the id that the server has given to this program.
    pub gives_id: bool,
    /// What the login should permit.
    pub scope: String,
    /// What the tokens are for, if the server wants to know.
    pub resource: Option<String>,
    /// More parameters of the page.
    pub more: Vec<(&'static str, String)>,
    /// The host of the address to which the answer comes, as the server wants it: `127.0.0.1` or `localhost`.
    pub host: &'static str,
    /// Its path.
    pub path: &'static str,
    /// Its port; any free one without it.
    pub port: Option<u16>,
}

/// A login that waits for the person.
#[derive(Debug)]
pub struct BegunAtKnown {
    /// What the person opens in a browser.
    pub address: Url,
    server: KnownServer,
    token: Url,
    listener: TcpListener,
    redirect: String,
    path: String,
    state: String,
    nonce: String,
    verifier: String,
}

/// What such a login gives.
#[derive(Debug, Clone)]
pub struct Given {
    /// The token for calls, or a key.
    pub access: SecretString,
    /// The token for a renewal, if there is one.
    pub refresh: Option<SecretString>,
    /// How long the token for calls lasts, if the server says so.
    pub expires_in: Option<Duration>,
    /// What it permits, if the server says so.
    pub scope: Option<String>,
    /// The id of this program at the server.
    pub client_id: String,
    /// What the server says of the person; `Null` if it says nothing.
    pub person: Value,
}

/// Shows where to log in at `server`.
///
/// # Errors
/// One sentence that says why there can be no login.
pub async fn begin_at(server: KnownServer) -> Result<BegunAtKnown, String> {
    let mut address = safe(&server.authorize, "the page of the login")?;
    let token = safe(&server.token, "the address of tokens")?;
    let port = server.port.unwrap_or_default();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
        format!("nothing can listen at port {port} of this machine for the answer: {error}")
    })?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let (state, nonce, verifier) = (random()?, random()?, random()?);
    let path = match server.exchange {
        Exchange::Tokens => server.path.to_owned(),
        Exchange::Key => format!("{}/{state}", server.path),
    };
    let redirect = format!("http://{}:{port}{path}", server.host);
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    {
        let mut query = address.query_pairs_mut();
        match server.exchange {
            Exchange::Tokens => {
                query
                    .append_pair("response_type", "code")
                    .append_pair("client_id", &server.client_id)
                    .append_pair("redirect_uri", &redirect)
                    .append_pair("scope", &server.scope)
                    .append_pair("state", &state)
                    .append_pair("nonce", &nonce);
            }
            Exchange::Key => {
                query.append_pair("callback_url", &redirect);
            }
        }
        query
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if let Some(resource) = &server.resource {
            query.append_pair("resource", resource);
        }
        query.extend_pairs(&server.more);
    }
    Ok(BegunAtKnown { address, server, token, listener, redirect, path, state, nonce, verifier })
}

impl BegunAtKnown {
    /// Waits for the answer and exchanges it. `pasted` gives the address that the person was sent to, if the browser runs on
    /// another machine; it may never give one.
    ///
    /// # Errors
    /// One sentence that says why there is no login.
    pub async fn finish(
        self,
        http: &HttpProvider,
        pasted: impl Future<Output = Option<String>>,
    ) -> Result<Given, String> {
        let state = (self.server.exchange == Exchange::Tokens).then_some(self.state.as_str());
        let answer = tokio::select! {
            answer = redirect::arrival(&self.listener, &self.path, state) => answer?,
            Some(text) = pasted => Answer::pasted(&text)?,
        };
        let (code, client_id) = self.code_of(answer)?;
        let client = http.clients().client(&self.token, CONNECT_LIMIT).await;
        let request = client.map_err(|error| error.message)?.post(self.token.clone());
        let request = match self.server.exchange {
            Exchange::Key => request.header(CONTENT_TYPE, "application/json").body(
                json!({"code": code, "code_verifier": self.verifier, "code_challenge_method": "S256"})
                    .to_string(),
            ),
            Exchange::Tokens => {
                let mut form = Serializer::new(String::new());
                form.append_pair("grant_type", "authorization_code")
                    .append_pair("code", &code)
                    .append_pair("redirect_uri", &self.redirect)
                    .append_pair("code_verifier", &self.verifier);
                if let Some(resource) = &self.server.resource {
                    form.append_pair("resource", resource);
                }
                let secret = self.server.client_secret.clone();
                let client = Client { id: client_id.clone(), secret, way: ClientProof::Form };
                client.proven(request, form)
            }
        };
        let (status, answer) = json_of(request, &self.token).await?;
        self.given(client_id, status, &answer)
    }

    /// The code in an answer, if the answer is to this question and from the server that was asked; and the id of this program.
    fn code_of(&self, answer: Answer) -> Result<(String, String), String> {
        let is_ours = match self.server.exchange {
            Exchange::Tokens => answer.state.as_deref() == Some(self.state.as_str()),
            Exchange::Key => answer.path == self.path,
        };
        if !is_ours {
            return Err("the answer belongs to another login; begin again".to_owned());
        }
        if let Some(issuer) = answer.issuer.filter(|issuer| *issuer != self.server.issuer) {
            return Err(format!(
                "the answer came from {}, and the login was asked of {}; nothing was sent there",
                one_line(&issuer, SHOWN),
                self.server.issuer
            ));
        }
        let Some(code) = answer.code.filter(|code| !code.is_empty()) else {
            let why = answer.error.unwrap_or_else(|| "it holds no code".to_owned());
            return Err(format!("the login was refused: {}", one_line(&why, SHOWN)));
        };
        let given = answer.client.filter(|_| self.server.gives_id);
        if given.as_deref().is_some_and(|id| id.is_empty() || id.len() > SHOWN) {
            return Err("the answer names no usable id for this program; begin again".to_owned());
        }
        Ok((code, given.unwrap_or_else(|| self.server.client_id.clone())))
    }

    fn given(&self, client_id: String, status: u16, answer: &Value) -> Result<Given, String> {
        let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
        let name = match self.server.exchange {
            Exchange::Tokens => "access_token",
            Exchange::Key => "key",
        };
        let Some(access) = text(name).filter(|_| status == 200 || status == 201) else {
            return Err(format!(
                "{} gave no token: {}",
                host_label(&self.token),
                refusal(status, answer)
            ));
        };
        let person = match text("id_token").map(claims) {
            Some(claims) if claims["nonce"].as_str().is_some_and(|it| it != self.nonce) => {
                return Err("the tokens belong to another login; begin again".to_owned());
            }
            Some(claims) => claims,
            None => json!({"sub": answer["user_id"]}),
        };
        let seconds = answer["expires_in"].as_f64().or_else(|| text("expires_in")?.parse().ok());
        Ok(Given {
            access: access.into(),
            refresh: text("refresh_token").map(SecretString::from),
            expires_in: seconds.and_then(|life| Duration::try_from_secs_f64(life).ok()),
            scope: text("scope").map(str::to_owned),
            client_id,
            person,
        })
    }
}

/// What a JSON web token says; `Null` if it is none. It came from the server itself over its encrypted connection, which
/// stands for its signature (OpenID Connect Core, section 3.1.3.7), and it is only shown.
pub fn claims(token: &str) -> Value {
    let body = token.split('.').nth(1).and_then(|body| URL_SAFE_NO_PAD.decode(body).ok());
    body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
}

/// What a server says of itself at `url`.
///
/// # Errors
/// One sentence that says why that is unknown.
pub async fn description(http: &HttpProvider, url: &str) -> Result<Value, String> {
    let url = safe(url, "the address of the login")?;
    document(http, &url)
        .await?
        .ok_or_else(|| format!("{url} does not say how to log in: it has no such document"))
}

/// What a server says of the person with this token; `Null` if it says nothing.
pub async fn person(http: &HttpProvider, url: &str, access: &SecretString) -> Value {
    let asking = async {
        let url = safe(url, "the address of the account")?;
        let client =
            http.clients().client(&url, CONNECT_LIMIT).await.map_err(|error| error.message)?;
        let bearer = format!("Bearer {}", access.expose_secret());
        let (status, answer) =
            json_of(client.get(url.clone()).header(AUTHORIZATION, bearer), &url).await?;
        Ok::<_, String>(Some(answer).filter(|_| status == 200))
    };
    asking.await.ok().flatten().unwrap_or_default()
}

/// A name for this installation that says nothing about it.
pub fn new_host_id() -> String {
    Uuid::new_v4().urn().to_string()
}
