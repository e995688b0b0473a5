//! `myclaw auth login`: with servers that follow the vendors' rules, and with ones that do not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use myclaw_testkit::{
    ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::parse;

use crate::{myclaw, run};

const MINUTE: Duration = Duration::from_secs(60);
const ACCESS: &str = "access-0123456789-one";
/// An answer of OpenAI to a login.
const FINE: [(&str, &str); 2] = [("code", "mine"), ("client_id", "oaiapp_1")];
const PLAN: &str = "openid email chatgpt.tokens.use.direct";

fn answer(status: u16, body: &Value) -> Step {
    Step::status(status, &[], body.to_string())
}

fn serve(decide: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static) -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::answer_with(decide).answer_every_route())
}

/// What a server says of a person, as a JSON web token.
fn id_token(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn profiles(home: &TempHome) -> Value {
    let path = home.state_directory().join("agents/main/agent/auth-profiles.json");
    let text = fs::read_to_string(path).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str::<Value>(&text).expect("JSON")["profiles"].take()
}

fn field(url: &Url, name: &str) -> String {
    let found = url.query_pairs().find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn form(request: &RecordedRequest, name: &str) -> String {
    let body = request.body_text();
    let found = parse(body.as_bytes()).find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// A login that waits, and the page that it shows.
fn begin(home: &TempHome, server: &ModelServer, arguments: &[&str]) -> (RunningChild, Url) {
    let all: Vec<&str> = ["auth", "login", "--server", server.url()]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let child = RunningChild::spawn_piped(&mut myclaw(home, &all));
    let line = child.wait_for_stderr("code_challenge=");
    let page = line.split_whitespace().find(|word| word.contains("code_challenge="));
    (child, Url::parse(page.expect("a page")).expect("an address"))
}

/// What a browser does at the end: it goes to this address.
fn go_to(address: &Url) -> String {
    let port = address.port().expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a listener");
    let (path, query) = (address.path(), address.query().unwrap_or_default());
    write!(stream, "GET {path}?{query} HTTP/1.1\r\nhost: {port}\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.lines().next().unwrap_or_default().to_owned()
}

/// Where the browser goes with this answer of the server.
fn redirect(page: &Url, more: &[(&str, &str)]) -> Url {
    let mut address = Url::parse(&field(page, "redirect_uri")).expect("an address");
    address.query_pairs_mut().append_pair("state", &field(page, "state")).extend_pairs(more);
    address
}

fn refused(child: RunningChild, words: &str, home: &TempHome) {
    let output = child.wait(MINUTE);
    output.assert_code(4);
    assert!(output.stderr().contains(words), "{words}: {}", output.stderr());
    assert_eq!(profiles(home), Value::Null, "nothing is kept");
}

#[test]
fn openrouter_gives_a_key_for_a_code_that_came_to_the_right_path() {
    let server = serve(|_, _| answer(200, &json!({"key": ACCESS, "user_id": "user_7"})));
    let home = TempHome::new();
    let (child, page) = begin(&home, &server, &["openrouter"]);
    assert_eq!(page.path(), "/auth");
    let callback = Url::parse(&field(&page, "callback_url")).expect("an address");
    assert_eq!(callback.host_str(), Some("localhost"));
    // Any page can send a browser here, but none knows the path.
    let mut other = callback.clone();
    other.set_path("/callback/guessed");
    other.set_query(Some("code=theirs"));
    assert!(go_to(&other).contains("404"));
    let mut ours = callback;
    ours.set_query(Some("code=mine"));
    assert!(go_to(&ours).contains("200"));
    let output = child.wait(MINUTE);
    output.assert_code(0);
    assert!(!output.stdout().contains(ACCESS) && !output.stderr().contains(ACCESS));
    let asked = server.last_request();
    assert_eq!((asked.route(), &asked.json()["code"]), ("/api/v1/auth/keys", &json!("mine")));
    let verifier = asked.json()["code_verifier"].as_str().expect("a verifier");
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    assert_eq!(challenge, field(&page, "code_challenge"));
    assert_eq!(
        profiles(&home),
        json!({"openrouter:default": {
            "type": "api_key", "provider": "openrouter", "key": ACCESS, "account": "user_7",
        }})
    );
    let listed = run(&home, &["auth", "list"]);
    assert!(listed.stdout().contains("ok, of user_7"), "{}", listed.stdout());
    // A login that would replace it is refused before anybody opens a page.
    let again = run(&home, &["auth", "login", "openrouter", "--server", server.url()]);
    again.assert_code(2);
    assert!(again.stderr().contains("--replace"), "{}", again.stderr());
}

/// OpenAI: gives the token `one` for a login and `two` for a renewal; the model refuses the first.
fn openai(request: &RecordedRequest, _: usize) -> Step {
    match request.route() {
        "/api/accounts/oauth/token" => {
            let is_renewal = form(request, "grant_type") == "refresh_token";
            let number = if is_renewal { "two" } else { "one" };
            let person = json!({
                "email": "ann@example.com", "https://api.openai.com/auth": {"chatgpt_plan_type": "plus"},
            });
            answer(
                200,
                &json!({
                    "access_token": format!("access-0123456789-{number}"),
                    "refresh_token": format!("refresh-0123456789-{number}"),
                    "expires_in": 3600, "scope": PLAN, "id_token": id_token(&person),
                }),
            )
        }
        _ if request.header("authorization") == Some("Bearer access-0123456789-two") => {
            Reply::openai().text("Done.").into()
        }
        _ => answer(401, &json!({"error": {"message": "The token has been revoked."}})),
    }
}

#[test]
fn a_chatgpt_plan_is_used_and_its_login_renewed_when_it_is_refused() {
    let server = serve(openai);
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "openai/gpt-5.1"}},
        "models": {"providers": {"openai": {"baseUrl": server.url()}}},
    }));
    let (child, page) = begin(&home, &server, &["openai"]);
    let host = field(&page, "ext_agent_host_id");
    assert!(host.starts_with("urn:uuid:"), "{host}");
    assert_eq!(field(&page, "client_id"), "dynamic_agent_client");
    assert_eq!(field(&page, "agent_name_hint"), "MyClaw");
    assert!(field(&page, "redirect_uri").starts_with("http://127.0.0.1:"));
    // The answer is pasted, as from a browser on another machine.
    let mut child = child;
    let address = redirect(&page, &[("code", "mine"), ("client_id", "oaiapp_1")]);
    child.send(&format!("{address}\n"));
    let output = child.wait(MINUTE);
    output.assert_code(0);
    let asked = server.last_request();
    assert_eq!(form(&asked, "client_id"), "oaiapp_1");
    assert_eq!(form(&asked, "resource"), "https://api.openai.com/v1");
    let mut kept = profiles(&home)["openai:default"].take();
    assert!(kept["expires"].take().as_u64().is_some());
    assert_eq!(
        kept,
        json!({
            "type": "oauth", "provider": "openai", "access": ACCESS, "refresh": "refresh-0123456789-one",
            "tokenUrl": format!("{}/api/accounts/oauth/token", server.url()), "clientId": "oaiapp_1",
            "resource": "https://api.openai.com/v1", "issuer": server.url(), "granted": PLAN,
            "account": "ann@example.com", "plan": "plus", "host": host, "expires": null,
        })
    );
    let listed = run(&home, &["auth", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout()).expect("JSON");
    assert_eq!((&listed["account"], &listed["plan"]), (&json!("ann@example.com"), &json!("plus")));
    assert!(listed["expires"].as_u64().is_some());
    let listed = run(&home, &["auth", "list"]).stdout();
    assert!(listed.contains("ok, until 20") && listed.contains("of ann@example.com, plan plus"));

    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Done.\n");
    assert_eq!(profiles(&home)["openai:default"]["refresh"], "refresh-0123456789-two");

    // The next login is of the same installation and the same client.
    let (child, page) = begin(&home, &server, &["openai", "--replace"]);
    assert_eq!(field(&page, "ext_agent_host_id"), host);
    assert_eq!(field(&page, "client_id"), "oaiapp_1");
    assert_eq!(field(&page, "agent_name_hint"), "");
    child.signal(Signal::Kill);
    child.wait(MINUTE);
    assert_eq!(profiles(&home)["openai:default"]["refresh"], "refresh-0123456789-two");
}

/// Where the browser goes, given the page.
type Answer = Box<dyn Fn(&Url) -> Url>;

#[test]
fn answers_that_are_not_to_this_login_give_nothing() {
    let wrong_state = |page: &Url| {
        let mut address = redirect(page, &FINE);
        address.set_query(Some("code=mine&client_id=oaiapp_1&state=other"));
        address
    };
    let with =
        |more: &'static [(&'static str, &'static str)]| move |page: &Url| redirect(page, more);
    let cases: [(Answer, &str); 5] = [
        (Box::new(wrong_state), "belongs to another login"),
        (Box::new(with(&[("error", "access_denied")])), "was refused: access_denied"),
        (
            Box::new(with(&[("code", "mine"), ("iss", "https://evil.example")])),
            "the answer came from https://evil.example",
        ),
        (Box::new(with(&[("code", "mine")])), "does not permit the use of the ChatGPT plan"),
        (Box::new(|_| Url::parse("http://127.0.0.1/auth/callback").unwrap()), "another login"),
    ];
    for (answer, words) in cases {
        let server = serve(openai);
        let home = TempHome::new();
        let (mut child, page) = begin(&home, &server, &["openai"]);
        child.send(&format!("{}\n", answer(&page)));
        refused(child, words, &home);
    }
    // The person allows the login, and not the plan; and the tokens are those of another login.
    let other_nonce = id_token(&json!({"email": "eve@example.com", "nonce": "other"}));
    for (token, words) in [
        (json!({"access_token": ACCESS, "scope": "openid email"}), "the ChatGPT plan"),
        (
            json!({"access_token": ACCESS, "scope": PLAN, "id_token": other_nonce}),
            "belong to another login",
        ),
        (json!({"error": "invalid_grant", "error_description": "Too late."}), "Too late."),
    ] {
        let server = serve(move |_, _| answer(200, &token));
        let home = TempHome::new();
        let (child, page) = begin(&home, &server, &["openai"]);
        go_to(&redirect(&page, &FINE));
        refused(child, words, &home);
    }
}

/// A server of OpenID Connect that has all places.
fn described(request: &RecordedRequest) -> Option<Step> {
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    request.route().ends_with("/.well-known/openid-configuration").then(|| {
        answer(
            200,
            &json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "device_authorization_endpoint": format!("{base}/device"),
                "userinfo_endpoint": format!("{base}/userinfo"),
            }),
        )
    })
}

#[test]
fn google_is_asked_with_the_owners_client() {
    let server = serve(|request, _| {
        described(request).unwrap_or_else(|| {
            let person = id_token(&json!({"email": "ann@example.com"}));
            answer(
                200,
                &json!({
                    "access_token": "ya29.token-0123456789", "refresh_token": "1//r-0123456789",
                    "expires_in": 3599, "id_token": person,
                }),
            )
        })
    });
    let home = TempHome::new();
    let file = home.state_directory().join("client.json");
    fs::create_dir_all(home.state_directory()).unwrap();
    let client = json!({"installed": {"client_id": "me.apps", "client_secret": "shh-0123456789"}});
    fs::write(&file, client.to_string()).unwrap();
    let (child, page) = begin(&home, &server, &["google", "--client-file", file.to_str().unwrap()]);
    assert_eq!(field(&page, "access_type"), "offline");
    assert!(field(&page, "scope").contains("auth/generative-language.retriever"));
    go_to(&redirect(&page, &[("code", "mine")]));
    child.wait(MINUTE).assert_code(0);
    let asked = server.last_request();
    assert_eq!(form(&asked, "client_id"), "me.apps");
    assert_eq!(form(&asked, "client_secret"), "shh-0123456789");
    let kept = &profiles(&home)["google:default"];
    assert_eq!(
        (&kept["account"], &kept["clientSecret"]),
        (&json!("ann@example.com"), &json!("shh-0123456789"))
    );
    // The token is sent as one, not as a key.
    home.write_config(&json!({
        "agents": {"defaults": {"model": "google/gemini-2.5-flash"}},
        "models": {"providers": {"google": {"baseUrl": server.url(), "api": "google-generative-ai"}}},
    }));
    run(&home, &["run", "hello"]);
    let called = server.last_request();
    assert_eq!(called.header("authorization"), Some("Bearer ya29.token-0123456789"));
    assert_eq!(called.header("x-goog-api-key"), None);
}

/// A server with codes, which answers the polls in turn.
fn codes(polls: Vec<(u16, Value)>) -> ModelServer {
    let next = std::sync::atomic::AtomicUsize::new(0);
    serve(move |request, _| {
        if let Some(step) = described(request) {
            return step;
        }
        match request.route() {
            "/device" => answer(
                200,
                &json!({
                    "device_code": "secret-device-code", "user_code": "ABCD-1234", "interval": 0,
                    "verification_uri": "https://login.example/device", "expires_in": 900,
                }),
            ),
            "/userinfo" => answer(200, &json!({"preferred_username": "ann", "isPro": true})),
            _ => {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let (status, body) = &polls[at.min(polls.len() - 1)];
                answer(*status, body)
            }
        }
    })
}

fn pending() -> (u16, Value) {
    (400, json!({"error": "authorization_pending", "error_description": "AADSTS70016: not yet"}))
}

#[test]
fn codes_are_typed_at_microsoft_and_hugging_face() {
    let granted = json!({
        "access_token": "eyJ0.token-0123456789", "refresh_token": "r-0123456789", "expires_in": 3600,
        "id_token": id_token(&json!({"preferred_username": "ann@contoso.com"})),
    });
    let cases = [
        (
            vec!["azure-openai", "--client-id", "app", "--tenant", "contoso.com"],
            "ann@contoso.com",
            Value::Null,
        ),
        (vec!["huggingface", "--client-id", "app"], "ann", json!("pro")),
    ];
    for (arguments, account, plan) in cases {
        let slower = (400, json!({"error": "slow_down", "interval": 0}));
        let server = codes(vec![pending(), slower, (200, granted.clone())]);
        let home = TempHome::new();
        let mut all = vec!["auth", "login", "--server", server.url()];
        all.extend(&arguments);
        let output = RunningChild::run(&mut myclaw(&home, &all));
        output.assert_code(0);
        let shown = output.stderr();
        assert!(shown.contains("https://login.example/device") && shown.contains("ABCD-1234"));
        assert!(!shown.contains("secret-device-code") && !shown.contains("0123456789"), "{shown}");
        let first = &server.all_requests()[0];
        let tenant = if arguments[0] == "azure-openai" { "/contoso.com/v2.0" } else { "" };
        assert_eq!(first.path, format!("{tenant}/.well-known/openid-configuration"));
        let kept = &profiles(&home)[format!("{}:default", arguments[0])];
        assert_eq!((&kept["account"], &kept["plan"]), (&json!(account), &plan));
        assert_eq!(kept["tokenUrl"], format!("{}/token", server.url()));
        assert_eq!((&kept["clientId"], &kept["refresh"]), (&json!("app"), &json!("r-0123456789")));
    }
}

#[test]
fn a_code_that_leads_to_nothing_says_why() {
    for (polls, words) in [
        (
            vec![pending(), (400, json!({"error": "authorization_declined"}))],
            "refused on Hugging Face's page",
        ),
        (vec![(400, json!({"error": "access_denied"}))], "refused on Hugging Face's page"),
        (vec![pending(), (400, json!({"error": "expired_token"}))], "has expired"),
        (vec![(401, json!({"error": "invalid_client"}))], "invalid_client"),
        (vec![(403, json!({}))], "403"),
        (vec![(200, json!("no"))], "not JSON"),
    ] {
        let server = codes(polls);
        let home = TempHome::new();
        let login =
            ["auth", "login", "huggingface", "--client-id", "app", "--server", server.url()];
        refused(RunningChild::spawn(&mut myclaw(&home, &login)), words, &home);
    }
    // A server that names no place for codes, and one that names none that is safe.
    let server = serve(|_, _| {
        answer(
            200,
            &json!({"token_endpoint": "http://login.example/token",
        "device_authorization_endpoint": "http://login.example/device"}),
        )
    });
    let home = TempHome::new();
    let login = ["auth", "login", "huggingface", "--client-id", "app", "--server", server.url()];
    refused(RunningChild::spawn(&mut myclaw(&home, &login)), "must begin with https://", &home);
}

#[test]
fn a_login_that_cannot_begin_says_what_is_missing() {
    let home = TempHome::new();
    let wrong = home.state_directory().join("client.json");
    fs::create_dir_all(home.state_directory()).unwrap();
    fs::write(&wrong, "{}").unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["anthropic"], "Anthropic does not permit logins with a Claude plan"),
        (&["chatgpt"], "chatgpt is openai here: `myclaw auth login openai`"),
        (&["mistral"], "mistral has no login here; `myclaw auth add mistral` takes its key"),
        (&["nobody"], "There are logins at: openrouter, openai, google"),
        (&["google"], "--client-file"),
        (&["google", "--client-file", wrong.to_str().unwrap()], "installed.client_id"),
        (&["azure-openai", "--client-id", "app"], "--tenant"),
        (&["huggingface"], "https://huggingface.co/settings/applications/new"),
        (&["openrouter", "--client-id", "app"], "needs no client of your own"),
        (&["openai", "--profile", "a b"], "letters, digits"),
    ];
    for (arguments, words) in cases {
        let all: Vec<&str> = ["auth", "login"].iter().chain(arguments).copied().collect();
        let output = run(&home, &all);
        output.assert_code(2);
        assert!(output.stderr().contains(words), "{words}: {}", output.stderr());
    }
    let unsafe_one =
        run(&home, &["auth", "login", "openrouter", "--server", "http://login.example"]);
    unsafe_one.assert_code(4);
    assert!(unsafe_one.stderr().contains("must begin with https://"), "{}", unsafe_one.stderr());
}
