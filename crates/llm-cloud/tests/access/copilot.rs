//! GitHub Copilot against a scripted server: the exchange of tokens, the headers, and the device login.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_llm::{
    Api, CallLimits, ContentBlock, ErrorClass, ImageContent, Message, Model, PairedMessages,
    UserMessage,
};
use myclaw_llm_cloud::copilot::{CopilotHosts, LoginError, finish_login, start_login};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::*;

const OPENAI: &str = include_str!("../../../llm/tests/data/openai_tools.sse");
const JSON: &str = "application/json";

fn copilot(server: &Server) -> Model {
    Model {
        provider: "github-copilot".to_owned(),
        base_url: format!("http://127.0.0.1:{}", server.port),
        ..model(Api::OpenaiCompletions, "")
    }
}

/// A session token that lives so long.
fn session(token: &str, life: Duration) -> Vec<Step> {
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + life;
    let answer_body = json!({"token": token, "expires_at": end.as_secs(), "refresh_in": 1500});
    answer("200 OK", JSON, &answer_body.to_string())
}

const LONG: Duration = Duration::from_secs(1800);

/// The request lines that the server saw, with the key of each.
fn seen(server: &Server) -> Vec<(String, String)> {
    let requests = server.requests();
    let line = |head: &str| head.lines().next().unwrap().replace(" HTTP/1.1", "");
    requests
        .iter()
        .map(|request| (line(&request.head), request.header("authorization").unwrap().to_owned()))
        .collect()
}

fn exchange() -> (String, String) {
    ("GET /copilot_internal/v2/token".to_owned(), format!("token {KEY}"))
}

fn chat(token: &str) -> (String, String) {
    ("POST /chat/completions".to_owned(), format!("Bearer {token}"))
}

#[tokio::test]
async fn a_session_serves_many_calls_and_is_replaced_before_it_ends() {
    let server = Server::start([session("tid=one", LONG), stream(OPENAI), stream(OPENAI)]).await;
    let (provider, model) = (crate::cloud_provider(&[]), copilot(&server));
    call(&provider, &model).await.message();
    call(&provider, &model).await.message();
    assert_eq!(seen(&server), [exchange(), chat("tid=one"), chat("tid=one")]);

    let server = Server::start([
        session("tid=old", Duration::from_secs(60)),
        stream(OPENAI),
        session("tid=new", LONG),
        stream(OPENAI),
    ])
    .await;
    let model = copilot(&server);
    // A provider of its own: the key is the same.
    let provider = crate::cloud_provider(&[]);
    call(&provider, &model).await.message();
    call(&provider, &model).await.message();
    assert_eq!(seen(&server), [exchange(), chat("tid=old"), exchange(), chat("tid=new")]);
}

#[tokio::test]
async fn calls_at_the_same_time_ask_for_one_session() {
    let server = Server::start([session("tid=one", LONG), stream(OPENAI), stream(OPENAI)]).await;
    let (provider, model) = (crate::cloud_provider(&[]), copilot(&server));
    let (first, second) = tokio::join!(call(&provider, &model), call(&provider, &model));
    first.message();
    second.message();
    assert_eq!(seen(&server), [exchange(), chat("tid=one"), chat("tid=one")]);
}

#[tokio::test]
async fn a_refused_session_is_replaced_once() {
    let refusal = || answer("401 Unauthorized", "text/plain", "unauthorized: token expired\n");
    let server = Server::start([
        session("tid=one", LONG),
        refusal(),
        session("tid=two", LONG),
        stream(OPENAI),
        refusal(),
        session("tid=three", LONG),
        refusal(),
        session("tid=four", LONG),
        stream(OPENAI),
    ])
    .await;
    let (provider, model) = (crate::cloud_provider(&[]), copilot(&server));
    call(&provider, &model).await.message();
    let refused = call(&provider, &model).await;
    assert_eq!(refused.error().class, ErrorClass::Auth);
    call(&provider, &model).await.message();
    assert_eq!(
        seen(&server),
        [
            exchange(),
            chat("tid=one"),
            exchange(),
            chat("tid=two"),
            chat("tid=two"),
            exchange(),
            chat("tid=three"),
            exchange(),
            chat("tid=four"),
        ]
    );
}

#[tokio::test]
async fn github_may_refuse_the_exchange() {
    for (status, body, class, words) in [
        (
            "401 Unauthorized",
            r#"{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}"#,
            ErrorClass::Auth,
            "Bad credentials; check the API key; sign in again, and see that the account has Copilot",
        ),
        (
            "404 Not Found",
            r#"{"message":"Not Found"}"#,
            ErrorClass::Auth,
            "sign in again, and see that the account has Copilot",
        ),
        ("503 Unavailable", "", ErrorClass::Timeout, "answered 503"),
        ("200 OK", "<html></html>", ErrorClass::Unknown, "something else: check the base URL"),
    ] {
        let server = Server::start([answer(status, JSON, body)]).await;
        let outcome = call(&crate::cloud_provider(&[]), &copilot(&server)).await;
        let error = outcome.error();
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.starts_with("github-copilot: 127.0.0.1"), "{error}");
        assert!(error.message.contains(words) && !error.message.contains(KEY), "{error}");
    }
}

#[tokio::test]
async fn requests_look_like_an_editors_and_say_who_began_them() {
    let image = ContentBlock::Image(ImageContent {
        data: "AAAA".to_owned(),
        mime_type: "image/png".to_owned(),
    });
    let user = Message::User(UserMessage::text("look", 1));
    let picture =
        Message::User(UserMessage { content: vec![image], annotation: None, timestamp: 1 });
    for (messages, vision) in [(vec![user], None), (vec![picture], Some("true"))] {
        let server = Server::start([session("tid=one", LONG), stream(OPENAI)]).await;
        let messages = PairedMessages::repair(messages);
        let (limits, cancel) = (CallLimits::default(), CancellationToken::new());
        call_with(&crate::cloud_provider(&[]), &copilot(&server), &messages, limits, &cancel)
            .await
            .message();
        let requests = server.requests();
        for request in &requests {
            assert!(request.header("editor-version").unwrap().starts_with("vscode/"));
            assert_eq!(request.header("copilot-integration-id"), Some("vscode-chat"));
        }
        assert_eq!(requests[1].header("x-initiator"), Some("user"));
        assert_eq!(requests[1].header("copilot-vision-request"), vision);
    }
}

/// The address of the scripted server as GitHub's.
fn github(server: &Server) -> CopilotHosts {
    CopilotHosts::enterprise(&format!("http://127.0.0.1:{}", server.port)).unwrap()
}

#[test]
fn a_company_may_have_a_github_of_its_own() {
    let company = CopilotHosts { github: "https://company.ghe.com".to_owned() };
    for host in ["company.ghe.com", " company.ghe.com/ ", "https://company.ghe.com"] {
        assert_eq!(CopilotHosts::enterprise(host).unwrap(), company);
    }
    assert_eq!(CopilotHosts::of_base_url("https://copilot-api.company.ghe.com/"), company);
    assert_eq!(company.models(), "https://copilot-api.company.ghe.com");
    for url in ["https://api.githubcopilot.com", "https://gateway.example/copilot", "nonsense"] {
        assert_eq!(CopilotHosts::of_base_url(url), CopilotHosts::default());
    }
    // A token is never asked for in the open.
    for host in
        ["", "http://company.ghe.com", "a b", "company.ghe.com/login", "ftp://x", "https://u:p@x"]
    {
        let error = CopilotHosts::enterprise(host).unwrap_err();
        assert!(error.message.contains("write it like company.ghe.com"), "{host}: {error}");
    }
}

fn code() -> Vec<Step> {
    let begun = json!({
        "device_code": "secret-device-code", "user_code": "ABCD-1234",
        "verification_uri": "https://github.com/login/device", "expires_in": 900, "interval": 0,
    });
    answer("200 OK", JSON, &begun.to_string())
}

fn polled(answer_body: &serde_json::Value) -> Vec<Step> {
    answer("200 OK", JSON, &answer_body.to_string())
}

#[tokio::test]
async fn a_login_waits_until_the_code_was_typed() {
    let server = Server::start([
        code(),
        polled(&json!({"error": "authorization_pending"})),
        polled(&json!({"error": "slow_down", "interval": 0})),
        polled(&json!({"access_token": "gho_token", "token_type": "bearer", "scope": "read:user"})),
    ])
    .await;
    let provider = crate::cloud_provider(&[]);
    let login = start_login(&provider, &github(&server)).await.unwrap();
    assert_eq!(
        (login.user_code.as_str(), login.verification_uri.as_str(), login.expires_in),
        ("ABCD-1234", "https://github.com/login/device", Duration::from_secs(900))
    );
    assert!(!format!("{login:?}").contains("secret-device-code"));
    let token = finish_login(&provider, &login, &CancellationToken::new()).await.unwrap();
    assert_eq!(token.expose_secret(), "gho_token");
    let requests = server.requests();
    assert!(requests[0].head.starts_with("POST /login/device/code "));
    for request in &requests[1..] {
        assert!(request.head.starts_with("POST /login/oauth/access_token "));
        let body = request.body.as_str().unwrap();
        assert!(body.contains("device_code=secret-device-code&grant_type=urn%3Aietf"), "{body}");
    }
}

#[tokio::test]
async fn a_login_may_end_without_a_token() {
    for (word, expected) in [
        ("access_denied", LoginError::Denied("GitHub".to_owned())),
        ("expired_token", LoginError::Expired),
    ] {
        let server = Server::start([code(), polled(&json!({"error": word}))]).await;
        let provider = crate::cloud_provider(&[]);
        let login = start_login(&provider, &github(&server)).await.unwrap();
        let outcome = finish_login(&provider, &login, &CancellationToken::new()).await;
        assert_eq!(outcome.unwrap_err(), expected);
    }
    let odd = json!({"error": "incorrect_client_credentials", "error_description": "No such app."});
    let server = Server::start([code(), polled(&odd), code()]).await;
    let provider = crate::cloud_provider(&[]);
    let login = start_login(&provider, &github(&server)).await.unwrap();
    let failed = finish_login(&provider, &login, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(failed.to_string(), "GitHub refused the login: No such app.");
    let login = start_login(&provider, &github(&server)).await.unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(finish_login(&provider, &login, &cancel).await.unwrap_err(), LoginError::Aborted);
}
