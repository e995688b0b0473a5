//! How an authorization server gets to know this program.

use myclaw_llm::HttpProvider;
use myclaw_llm::access::host_label;
use reqwest::header::CONTENT_TYPE;
use secrecy::SecretString;
use serde_json::json;

use super::{
    AuthorizationServer, CONNECT_LIMIT, Client, ClientProof, LoginOptions, json_of, refusal,
};

/// Ways to prove who asks, best first: without a secret, then with one.
const NONE: &str = "none";
const IN_FORM: &str = "client_secret_post";
const IN_HEADER: &str = "client_secret_basic";

impl Client {
    /// The client that the owner has, one that is a document, or one that registers itself (RFC 7591).
    pub(super) async fn find(
        http: &HttpProvider,
        server: &AuthorizationServer,
        options: &LoginOptions,
        redirect: &str,
        scope: Option<&str>,
    ) -> Result<Self, String> {
        if let Some(id) = &options.client_id {
            let secret = options.client_secret.clone();
            return Ok(Self { id: id.clone(), secret, way: proof(server, &[IN_FORM, IN_HEADER]) });
        }
        if let Some(document) =
            options.client_document.as_ref().filter(|_| server.reads_client_documents)
        {
            return Ok(Self { id: document.clone(), secret: None, way: ClientProof::Form });
        }
        let Some(url) = &server.register else {
            return Err(format!(
                "{} wants to know this program: register it there with the address http://127.0.0.1:PORT/callback, and set \
                 `auth.clientId` and `auth.port` of the server",
                server.issuer
            ));
        };
        let ways = [NONE, IN_FORM, IN_HEADER];
        let way = ways.iter().find(|way| takes(server, way)).unwrap_or(&NONE);
        let mut about = json!({
            "client_name": "MyClaw",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": way,
            "application_type": "native",
        });
        if let Some(scope) = scope {
            about["scope"] = json!(scope);
        }
        let client = http.clients().client(url, CONNECT_LIMIT).await;
        let request = client.map_err(|error| error.message)?.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(about.to_string());
        let (status, answer) = json_of(request, url).await?;
        let Some(id) = answer["client_id"].as_str().filter(|_| matches!(status, 200 | 201)) else {
            return Err(format!(
                "{} does not register this program ({}); register it yourself, and set `auth.clientId` of the server",
                host_label(url),
                refusal(status, &answer)
            ));
        };
        let secret = answer["client_secret"].as_str().filter(|secret| !secret.is_empty());
        let way = match answer["token_endpoint_auth_method"].as_str().unwrap_or(way) {
            IN_HEADER => ClientProof::Header,
            _ => ClientProof::Form,
        };
        Ok(Self { id: id.to_owned(), secret: secret.map(SecretString::from), way })
    }
}

/// Whether a server takes this proof. One that does not say takes all.
fn takes(server: &AuthorizationServer, way: &str) -> bool {
    server.client_proofs.is_empty() || server.client_proofs.iter().any(|taken| taken == way)
}

fn proof(server: &AuthorizationServer, ways: &[&str]) -> ClientProof {
    match ways.iter().find(|way| takes(server, way)) {
        Some(&IN_HEADER) => ClientProof::Header,
        _ => ClientProof::Form,
    }
}
