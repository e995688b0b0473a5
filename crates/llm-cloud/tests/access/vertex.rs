//! Vertex AI: from Google Cloud's credentials to a token and an address, against a server that plays both the token
//! server and Vertex AI.

use std::path::PathBuf;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use myclaw_llm::{
    Api, CallLimits, ErrorClass, HttpProvider, Model, ModelRequest, Provider, ThinkingLevel,
    ToolUse,
};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cloud_provider as provider_with;
use crate::support::*;

const PEM: &str = include_str!("../data/vertex/throwaway_key.pem");
const TOKEN: &str = "ya29.test-token-0123456789";

/// A directory that goes when the test does.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("myclaw-vertex-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(path.join(".config/gcloud")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &Value) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path.display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn service_account(server: &Server) -> Value {
    json!({
        "type": "service_account", "project_id": "file-project", "private_key_id": "key-1", "private_key": PEM,
        "client_email": "robot@file-project.iam.gserviceaccount.com", "token_uri": format!("{}/token", server.url()),
    })
}

fn person(server: &Server) -> Value {
    json!({
        "type": "authorized_user", "client_id": "client", "client_secret": "the secret/1",
        "refresh_token": "1//refresh", "quota_project_id": "quota-project",
        "token_uri": format!("{}/token", server.url()),
    })
}

fn token() -> Vec<Step> {
    token_for(TOKEN, 3600)
}

fn token_for(token: &str, seconds: u64) -> Vec<Step> {
    let body = json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"});
    answer("200 OK", "application/json", &body.to_string())
}

fn refused_token(status: &str, error: &str, description: &str) -> Vec<Step> {
    let body = json!({"error": error, "error_description": description});
    answer(status, "application/json", &body.to_string())
}

fn four() -> Vec<Step> {
    let response = json!({"candidates": [{
        "content": {"role": "model", "parts": [{"text": "Four."}]}, "finishReason": "STOP",
    }]});
    stream(format!("data: {response}\n\n"))
}

fn refused(status: &str, message: &str, code: &str) -> Vec<Step> {
    let body = json!({"error": {"message": message, "status": code}});
    answer(status, "application/json", &body.to_string())
}

fn vertex(server: &Server) -> Model {
    Model { provider: "google-vertex".to_owned(), ..model(Api::GoogleGenerativeAi, &server.url()) }
}

async fn ask(provider: &HttpProvider, model: &Model, key: Option<&str>) -> Outcome {
    let key = key.map(SecretString::from);
    let messages = hello();
    let request = ModelRequest {
        model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: key.as_ref(),
        limits: CallLimits::default(),
    };
    let mut events = Vec::new();
    let cancel = CancellationToken::new();
    let result = provider.call(request, &cancel, &mut |event| events.push(event)).await;
    Outcome { result, events }
}

fn path(request: &Recorded) -> &str {
    request.head.split(' ').nth(1).unwrap()
}

fn form(request: &Recorded) -> Vec<(String, String)> {
    url::form_urlencoded::parse(request.text.as_bytes()).into_owned().collect()
}

#[tokio::test]
async fn a_service_account_signs_for_its_token() {
    let server = Server::start([token(), four(), four()]).await;
    let directory = Directory::new();
    let file = directory.write("robot.json", &service_account(&server));
    let provider = provider_with(&[
        ("GOOGLE_APPLICATION_CREDENTIALS", file.as_str()),
        ("GOOGLE_CLOUD_LOCATION", "europe-west4"),
    ]);
    for _ in 0..2 {
        let outcome = ask(&provider, &vertex(&server), None).await;
        assert_eq!(outcome.message().text(), "Four.");
        assert_eq!(outcome.message().provider, "google-vertex");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "one token for both calls");

    assert_eq!(path(&requests[0]), "/token");
    let form = form(&requests[0]);
    assert_eq!(
        form[0],
        ("grant_type".to_owned(), "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned())
    );
    let (signed, signature) = form[1].1.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let decoded = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
    let value = |text: &str| serde_json::from_slice::<Value>(&decoded(text)).unwrap();
    assert_eq!(value(header), json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"}));
    let claims = value(claims);
    assert_eq!(
        (&claims["iss"], &claims["aud"], &claims["scope"]),
        (
            &json!("robot@file-project.iam.gserviceaccount.com"),
            &json!(format!("{}/token", server.url())),
            &json!("https://www.googleapis.com/auth/cloud-platform"),
        )
    );
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    let pem: String = PEM.lines().filter(|line| !line.starts_with('-')).collect();
    let key = RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(pem).unwrap()).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
        .verify(signed.as_bytes(), &decoded(signature))
        .unwrap();

    for request in &requests[1..] {
        assert_eq!(
            path(request),
            "/v1/projects/file-project/locations/europe-west4/publishers/google/models/test-model:streamGenerateContent?alt=sse"
        );
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(request.header("x-goog-api-key"), None);
    }
}

#[tokio::test]
async fn a_login_is_found_where_gcloud_leaves_it() {
    let server = Server::start([token(), four()]).await;
    let directory = Directory::new();
    directory.write(".config/gcloud/application_default_credentials.json", &person(&server));
    let home = directory.0.display().to_string();
    let outcome = ask(&provider_with(&[("HOME", home.as_str())]), &vertex(&server), None).await;
    assert_eq!(outcome.message().text(), "Four.");
    let requests = server.requests();
    let expected = [
        ("grant_type", "refresh_token"),
        ("client_id", "client"),
        ("client_secret", "the secret/1"),
        ("refresh_token", "1//refresh"),
    ];
    assert_eq!(
        form(&requests[0]),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert!(path(&requests[1]).starts_with("/v1/projects/quota-project/locations/global/"));
    assert_eq!(requests[1].header("x-goog-user-project"), Some("quota-project"));
}

#[tokio::test]
async fn the_key_may_be_a_path_the_text_of_a_file_or_an_api_key() {
    let server = Server::start([token(), four(), token(), four(), four()]).await;
    let directory = Directory::new();
    let file = directory.write("robot.json", &service_account(&server));
    let provider = provider_with(&[("GCLOUD_PROJECT", "set")]);
    let text = service_account(&server).to_string().replace("key-1", "key-2");
    for key in [file.as_str(), text.as_str(), "AIzaTest-express-key"] {
        let outcome = ask(&provider, &vertex(&server), Some(key)).await;
        assert_eq!(outcome.message().text(), "Four.");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 5, "different credentials have different tokens");
    for number in [1, 3] {
        assert!(path(&requests[number]).starts_with("/v1/projects/set/locations/global/"));
    }
    assert_eq!(
        path(&requests[4]),
        "/v1/publishers/google/models/test-model:streamGenerateContent?alt=sse"
    );
    assert_eq!(requests[4].header("x-goog-api-key"), Some("AIzaTest-express-key"));
    assert_eq!(requests[4].header("authorization"), None);
}

#[tokio::test]
async fn a_machine_has_an_account_of_its_own() {
    let project = answer("200 OK", "text/plain", "machine-project");
    let server = Server::start([token(), project, four()]).await;
    let host = format!("127.0.0.1:{}", server.port);
    let outcome =
        ask(&provider_with(&[("GCE_METADATA_HOST", host.as_str())]), &vertex(&server), None).await;
    assert_eq!(outcome.message().text(), "Four.");
    let requests = server.requests();
    assert_eq!(path(&requests[0]), "/computeMetadata/v1/instance/service-accounts/default/token");
    assert_eq!(path(&requests[1]), "/computeMetadata/v1/project/project-id");
    assert_eq!(requests[0].header("metadata-flavor"), Some("Google"));
    assert!(path(&requests[2]).starts_with("/v1/projects/machine-project/locations/global/"));
}

#[tokio::test]
async fn concurrent_calls_share_one_token_and_one_failure() {
    let server = Server::start([token(), four(), four(), four()]).await;
    let provider = provider_with(&[]);
    let key = service_account(&server).to_string();
    let model = vertex(&server);
    let call = || ask(&provider, &model, Some(&key));
    let (one, two, three) = tokio::join!(call(), call(), call());
    for outcome in [one, two, three] {
        assert_eq!(outcome.message().text(), "Four.");
    }
    let tokens = server.requests().iter().filter(|request| path(request) == "/token").count();
    assert_eq!(tokens, 1);

    let server = Server::start([refused_token("400 Bad Request", "invalid_grant", "Gone.")]).await;
    let key = service_account(&server).to_string();
    let model = vertex(&server);
    let call = || ask(&provider, &model, Some(&key));
    let (one, two) = tokio::join!(call(), call());
    assert_eq!(one.error(), two.error());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_token_is_replaced_before_it_expires_and_once_when_it_is_refused() {
    let unauthenticated =
        || refused("401 Unauthorized", "Request had invalid credentials.", "UNAUTHENTICATED");
    let server = Server::start([
        token_for("ya29.short-lived", 30),
        four(),
        token_for("ya29.second", 3600),
        unauthenticated(),
        token_for("ya29.third", 3600),
        four(),
        unauthenticated(),
        token_for("ya29.fourth", 3600),
        unauthenticated(),
    ])
    .await;
    let provider = provider_with(&[]);
    let key = service_account(&server).to_string();
    let model = vertex(&server);
    assert_eq!(ask(&provider, &model, Some(&key)).await.message().text(), "Four.");
    assert_eq!(ask(&provider, &model, Some(&key)).await.message().text(), "Four.");
    let outcome = ask(&provider, &model, Some(&key)).await;
    let error = outcome.error();
    assert_eq!((error.class, error.status), (ErrorClass::Auth, Some(401)));
    let shown = error.message.replace(&server.port.to_string(), "PORT");
    assert_eq!(
        shown,
        "google-vertex at 127.0.0.1:PORT: answered 401 (UNAUTHENTICATED): Request had invalid credentials; the token was \
         refused; check the credentials in the key given for google-vertex"
    );
    let requests = server.requests();
    let bearers: Vec<_> =
        requests.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!(
        bearers,
        [
            "Bearer ya29.short-lived",
            "Bearer ya29.second",
            "Bearer ya29.third",
            "Bearer ya29.third",
            "Bearer ya29.fourth"
        ]
    );
}

#[tokio::test]
async fn a_refused_token_request_says_what_to_do() {
    let iat = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.";
    let robot: fn(&Server) -> Value = service_account;
    for (credentials, status, code, description, class, expected) in [
        (
            robot,
            "400 Bad Request",
            "invalid_grant",
            iat,
            ErrorClass::Auth,
            format!("Google refused the time of the token request ({iat}): set the clock of this machine"),
        ),
        (
            robot,
            "400 Bad Request",
            "invalid_grant",
            "Invalid JWT Signature.",
            ErrorClass::Auth,
            "Google refused the key of robot@file-project.iam.gserviceaccount.com in the file FILE (Invalid JWT \
             Signature.): check that the account and the key still exist, or make a new key"
                .to_owned(),
        ),
        (
            person,
            "400 Bad Request",
            "invalid_grant",
            "Token has been expired or revoked.",
            ErrorClass::Auth,
            "the login in the file FILE has expired or was revoked (Token has been expired or revoked.): run `gcloud \
             auth application-default login`"
                .to_owned(),
        ),
        (
            person,
            "503 Service Unavailable",
            "internal_failure",
            "Try again.",
            ErrorClass::Timeout,
            "127.0.0.1:PORT answered 503 to the credentials in the file FILE: Try again.".to_owned(),
        ),
    ] {
        let server = Server::start([refused_token(status, code, description)]).await;
        let directory = Directory::new();
        let file = directory.write("credentials.json", &credentials(&server));
        let outcome = ask(&provider_with(&[]), &vertex(&server), Some(&file)).await;
        let error = outcome.error();
        let shown =
            error.message.replace(&file, "FILE").replace(&server.port.to_string(), "PORT");
        assert_eq!(shown, format!("google-vertex: {expected}"));
        assert_eq!((error.class, error.status, error.code.as_deref()), (class, None, Some(code)));
    }
}

#[tokio::test]
async fn bad_credentials_say_what_is_wrong_and_show_no_secret() {
    let server = Server::start([]).await;
    let directory = Directory::new();
    let good = service_account(&server);
    let with = |field: &str, value: Value| {
        let mut file = good.clone();
        file[field] = value;
        directory.write("bad.json", &file)
    };
    let missing = directory.0.join("missing.json").display().to_string();
    let home = directory.0.display().to_string();
    let none = [("HOME", home.as_str()), ("NO_GCE_CHECK", "true")];
    let set_up = "no Google Cloud credentials found: run `gcloud auth application-default login`, or set \
        GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or GOOGLE_CLOUD_API_KEY to an API key";
    let provider = provider_with(&none);
    assert_eq!(
        ask(&provider, &vertex(&server), None).await.error().message,
        format!("google-vertex: {set_up}")
    );
    let file = directory.0.join("bad.json").display().to_string();
    for (make, expected) in [
        (
            missing.clone(),
            format!(
                "the file {missing}, which should hold Google Cloud credentials, cannot be read: "
            ),
        ),
        (
            with("type", json!("external_account")),
            format!(
                "the file {file} holds credentials of type \"external_account\", which are not supported"
            ),
        ),
    ] {
        let outcome = ask(&provider, &vertex(&server), Some(&make)).await;
        let message = &outcome.error().message;
        assert!(message.starts_with(&format!("google-vertex: {expected}")), "{message}");
    }
    for (field, value, expected) in [
        (
            "token_uri",
            json!("http://oauth2.example/token"),
            "the `token_uri` in the file FILE must begin with https://",
        ),
        ("client_email", Value::Null, "the file FILE has no `client_email`: download it again"),
        (
            "private_key",
            json!("garbage!"),
            "the file FILE is not usable: its `private_key` is no PEM: download it again",
        ),
        (
            "private_key",
            json!("AAAA"),
            "the file FILE is not usable: its `private_key` is no RSA key of at least 2048 bits: download it again",
        ),
        (
            "private_key",
            json!(7),
            "the file FILE holds no Google Cloud credentials: no JSON of that form at line 1",
        ),
    ] {
        let file = with(field, value);
        let outcome = ask(&provider, &vertex(&server), Some(&file)).await;
        let message = outcome.error().message.replace(&file, "FILE");
        assert_eq!(message, format!("google-vertex: {expected}"));
        assert!(!message.contains(&PEM[40..80]), "{message}");
    }
    let mut nowhere = good.clone();
    nowhere.as_object_mut().unwrap().remove("project_id");
    let server = Server::start([token()]).await;
    nowhere["token_uri"] = json!(format!("{}/token", server.url()));
    let outcome = ask(&provider, &vertex(&server), Some(&nowhere.to_string())).await;
    assert_eq!(
        outcome.error().message,
        "google-vertex: no Google Cloud project: set GOOGLE_CLOUD_PROJECT to its id"
    );
}

#[tokio::test]
async fn what_vertex_refuses_says_what_to_set_up() {
    let disabled =
        "Vertex AI API has not been used in project file-project before or it is disabled.";
    let denied =
        "Permission 'aiplatform.endpoints.predict' denied on resource (or it may not exist).";
    for (status, message, code, expected) in [
        (
            "403 Forbidden",
            disabled,
            "PERMISSION_DENIED",
            format!("answered 403 (PERMISSION_DENIED): {}; enable the API: gcloud services enable aiplatform.googleapis.com --project file-project", disabled.trim_end_matches('.')),
        ),
        (
            "403 Forbidden",
            denied,
            "PERMISSION_DENIED",
            format!("answered 403 (PERMISSION_DENIED): {}; give the account the role `Vertex AI User` in project file-project, or set GOOGLE_CLOUD_PROJECT to another project", denied.trim_end_matches('.')),
        ),
        (
            "404 Not Found",
            "Publisher Model was not found.",
            "NOT_FOUND",
            "answered 404 (NOT_FOUND): Publisher Model was not found; check the model id, the project (file-project) and whether global has the model (GOOGLE_CLOUD_LOCATION)".to_owned(),
        ),
    ] {
        let server = Server::start([token(), refused(status, message, code)]).await;
        let key = service_account(&server).to_string();
        let outcome = ask(&provider_with(&[]), &vertex(&server), Some(&key)).await;
        let message = &outcome.error().message;
        assert_eq!(*message, format!("google-vertex at 127.0.0.1:{}: {expected}", server.port));
    }
}
