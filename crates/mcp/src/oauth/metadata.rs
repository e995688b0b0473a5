//! Where a login at a server begins: what the server says of itself (RFC 9728), and its authorization server (RFC 8414 and
//! OpenID Connect Discovery).

use myclaw_llm::HttpProvider;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use serde_json::Value;
use url::Url;

use super::{CONNECT_LIMIT, answer_of, document, safe};

const PROTECTED_RESOURCE: &str = "oauth-protected-resource";

/// What a server behind a login says of itself.
#[derive(Debug, PartialEq)]
pub(super) struct Resource {
    /// What tokens are asked for.
    pub(super) id: String,
    /// What a login should permit.
    pub(super) scopes: Vec<String>,
    /// Its authorization server. Without one, that is at the origin of the server, as in the revision 2025-03-26.
    issuer: Option<String>,
    origin: Url,
}

/// An authorization server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorize: Url,
    pub(super) token: Url,
    pub(super) register: Option<Url>,
    /// Whether its answers say who it is (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether it takes the address of a document as the id of a client.
    pub(super) reads_client_documents: bool,
    /// How it wants the secrets of clients; empty if it does not say.
    pub(super) client_proofs: Vec<String>,
    scopes: Vec<String>,
}

impl Resource {
    /// Asks the server without a login, and reads what it says about that.
    pub(super) async fn find(http: &HttpProvider, server: &Url) -> Result<Self, String> {
        let challenge = challenge(http, server).await?;
        let named = parameter(&challenge, "resource_metadata");
        let places = match named {
            Some(url) => vec![safe(&url, "the address of the server's metadata")?],
            None => well_known(server, PROTECTED_RESOURCE),
        };
        let mut described = None;
        for place in &places {
            if place.origin() != server.origin() {
                return Err(format!(
                    "the server says that its metadata is at {place}, which is another origin"
                ));
            }
            described = document(http, place).await?;
            if described.is_some() {
                break;
            }
        }
        let described = described.unwrap_or_default();
        let mut id = server.clone();
        id.set_fragment(None);
        let mut id = id.to_string();
        if let Some(resource) = described["resource"].as_str() {
            check_resource(resource, server)?;
            id = resource.to_owned();
        }
        let asked = parameter(&challenge, "scope").map(|scope| words(&scope));
        let mut origin = server.clone();
        origin.set_path("/");
        origin.set_query(None);
        origin.set_fragment(None);
        Ok(Self {
            id: id.strip_suffix('/').map(str::to_owned).unwrap_or(id),
            scopes: asked.unwrap_or_else(|| texts(&described["scopes_supported"])),
            issuer: texts(&described["authorization_servers"]).into_iter().next(),
            origin,
        })
    }
}

/// Tokens for another resource than the server are never asked for: the server could pass them on.
fn check_resource(resource: &str, server: &Url) -> Result<(), String> {
    let found = Url::parse(resource).ok();
    let is_it = found.is_some_and(|found| {
        let path = found.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(path);
        found.origin() == server.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match is_it {
        true => Ok(()),
        false => Err(format!(
            "the server says that logins are for {resource:?}, which is another server than {server}"
        )),
    }
}

/// The header that says why a request without a login is refused; empty if there is none.
async fn challenge(http: &HttpProvider, server: &Url) -> Result<String, String> {
    let client = http.clients().client(server, CONNECT_LIMIT).await;
    let request = client
        .map_err(|error| error.message)?
        .post(server.clone())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let response = answer_of(request, server).await?;
    if response.status().is_success() {
        return Err(format!("{server} answers without a login, so none is needed"));
    }
    Ok(header(response.headers()))
}

fn header(headers: &HeaderMap) -> String {
    let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(", ")
}

/// A parameter of a challenge.
pub(crate) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut is_quoted = false;
    let mut before = ' ';
    for (at, char) in challenge.char_indices() {
        let begins = !is_quoted && matches!(before, ' ' | ',' | '\t');
        let behind = challenge[at..].strip_prefix(name).map(str::trim_start).filter(|_| begins);
        if let Some(value) = behind.and_then(|behind| behind.strip_prefix('=')) {
            let value = value.trim_start();
            let found = match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([',', ' ']).next(),
            };
            return found.filter(|found| !found.is_empty()).map(str::to_owned);
        }
        is_quoted ^= char == '"';
        before = char;
    }
    None
}

impl AuthorizationServer {
    /// Reads what the authorization server says of itself.
    pub(super) async fn find(http: &HttpProvider, resource: &Resource) -> Result<Self, String> {
        let Some(issuer) = &resource.issuer else {
            let origin = resource.origin.as_str().trim_end_matches('/');
            return Ok(match Self::described(http, origin).await? {
                Some(server) => server,
                None => Self::usual(&resource.origin)?,
            });
        };
        Self::described(http, issuer).await?.ok_or_else(|| {
            format!("{issuer}, where one logs in, does not say how: it has no metadata of OAuth or OpenID Connect")
        })
    }

    async fn described(http: &HttpProvider, issuer: &str) -> Result<Option<Self>, String> {
        let url = safe(issuer, "the authorization server")?;
        let mut places = well_known(&url, "oauth-authorization-server");
        places.truncate(1);
        places.extend(well_known(&url, "openid-configuration").into_iter().take(1));
        if url.path() != "/" {
            let path = url.path().trim_end_matches('/');
            let mut behind = url.clone();
            behind.set_path(&format!("{path}/.well-known/openid-configuration"));
            places.push(behind);
        }
        for place in places {
            if let Some(described) = document(http, &place).await? {
                return Self::read(issuer, &described).map(Some);
            }
        }
        Ok(None)
    }

    fn read(issuer: &str, described: &Value) -> Result<Self, String> {
        let named = described["issuer"].as_str().unwrap_or_default();
        if named.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(format!(
                "the metadata of {issuer} names another issuer, {named:?}, so it is not used"
            ));
        }
        let address = |name: &str| {
            let text = described[name].as_str().unwrap_or_default();
            safe(text, &format!("`{name}` of {issuer}"))
        };
        if !texts(&described["code_challenge_methods_supported"]).iter().any(|way| way == "S256") {
            return Err(format!(
                "{issuer} does not protect codes with S256 (PKCE), so a login there would not be safe"
            ));
        }
        let has = |name: &str| described[name] == true;
        Ok(Self {
            issuer: named.to_owned(),
            authorize: address("authorization_endpoint")?,
            token: address("token_endpoint")?,
            register: described["registration_endpoint"]
                .is_string()
                .then(|| address("registration_endpoint"))
                .transpose()?,
            names_itself: has("authorization_response_iss_parameter_supported"),
            reads_client_documents: has("client_id_metadata_document_supported"),
            client_proofs: texts(&described["token_endpoint_auth_methods_supported"]),
            scopes: texts(&described["scopes_supported"]),
        })
    }

    /// The addresses that servers without metadata have, after the revision 2025-03-26.
    fn usual(origin: &Url) -> Result<Self, String> {
        safe(origin.as_str(), "the server")?;
        let at = |path: &str| {
            let mut url = origin.clone();
            url.set_path(path);
            url
        };
        Ok(Self {
            issuer: origin.as_str().trim_end_matches('/').to_owned(),
            authorize: at("/authorize"),
            token: at("/token"),
            register: Some(at("/register")),
            names_itself: false,
            reads_client_documents: false,
            client_proofs: Vec::new(),
            scopes: Vec::new(),
        })
    }

    pub(super) fn offers(&self, scope: &str) -> bool {
        self.scopes.iter().any(|offered| offered == scope)
    }
}

/// The well-known addresses of `url`: with its path behind the name, and without.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let paths = [format!("/.well-known/{name}{path}"), format!("/.well-known/{name}")];
    let mut urls: Vec<Url> = paths
        .iter()
        .map(|path| {
            let mut place = url.clone();
            place.set_path(path);
            place.set_query(None);
            place.set_fragment(None);
            place
        })
        .collect();
    urls.dedup();
    urls
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
