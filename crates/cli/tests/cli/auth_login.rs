//! The login of GitHub Copilot, and turns with the token that it gives.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Signal, Step, TempHome, Terminal};
use serde_json::{Value, json};

use crate::{myclaw, run};

const TOKEN: &str = "gho_token-0123456789-abcd";

/// GitHub's answer to the question for a code, which lives so many seconds.
fn code(expires_in: u64) -> Step {
    let begun = json!({
        "device_code": "secret-device-code", "user_code": "ABCD-1234",
        "verification_uri": "https://github.com/login/device", "expires_in": expires_in, "interval": 0,
    });
    Step::status(200, &[], begun.to_string())
}

fn polled(answer: &Value) -> Step {
    Step::status(200, &[], answer.to_string())
}

fn pending() -> Step {
    polled(&json!({"error": "authorization_pending"}))
}

fn granted() -> Step {
    polled(&json!({"access_token": TOKEN, "token_type": "bearer", "scope": "read:user"}))
}

/// A session token that lives so many seconds.
fn session(token: &str, seconds: u64) -> Step {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    Step::status(200, &[], json!({"token": token, "expires_at": now + seconds}).to_string())
}

fn serve(steps: impl Into<Script>) -> ModelServer {
    ModelServer::spawn_blocking_thread(steps.into().answer_every_route())
}

/// A home whose Copilot is at `server`.
fn home_at(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "github-copilot/gpt-4.1"}},
        "models": {"providers": {"github-copilot": {"baseUrl": server.url()}}},
    }));
    home
}

fn store(home: &TempHome) -> Option<Value> {
    let path = home.state_directory().join("agents/main/agent/auth-profiles.json");
    let text = fs::read_to_string(&path).ok()?;
    assert_eq!(fs::metadata(&path).expect("exists").permissions().mode() & 0o777, 0o600);
    Some(serde_json::from_str(&text).expect("JSON"))
}

fn login<'a>(server: &'a ModelServer, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["auth", "add", "github-copilot", "--github", server.url()];
    first.iter().chain(more).copied().collect()
}

/// What the server was asked, with the key of each request.
fn asked(server: &ModelServer) -> Vec<(String, String)> {
    let requests = server.all_requests();
    let of = |name: &str, index: usize| requests[index].header(name).unwrap_or_default().to_owned();
    (0..requests.len())
        .map(|index| (requests[index].path.clone(), of("authorization", index)))
        .collect()
}

fn call(path: &str, authorization: &str) -> (String, String) {
    (path.to_owned(), authorization.to_owned())
}

#[test]
fn a_login_is_kept_and_turns_exchange_it_and_renew_the_session() {
    let server = serve([code(900), pending(), granted()]);
    let home = home_at(&server);
    let mut terminal = Terminal::spawn(&myclaw(&home, &login(&server, &[])));
    terminal.expect("open https://github.com/login/device and type this code:");
    terminal.expect("ABCD-1234");
    terminal.expect("github-copilot:default is kept in");
    assert!(terminal.wait().success());
    let shown = terminal.text();
    assert!(!shown.contains(TOKEN) && !shown.contains("secret-device-code"), "{shown}");
    server.assert_finished();
    assert_eq!(
        store(&home).expect("a store")["profiles"],
        json!({"github-copilot:default": {
            "type": "token", "provider": "github-copilot", "token": TOKEN,
        }})
    );

    // The first session is nearly over, so the second call of the turn has a new one.
    let server = serve([
        session("tid=one", 60),
        Reply::openai().tool_call("call_1", "ls", json!({"path": "."})).into(),
        session("tid=two", 1800),
        Reply::openai().text("Done.").into(),
    ]);
    home.write_config(&json!({
        "agents": {"defaults": {"model": "github-copilot/gpt-4.1"}},
        "models": {"providers": {"github-copilot": {"baseUrl": server.url()}}},
    }));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Done.\n");
    let exchange = call("/copilot_internal/v2/token", &format!("token {TOKEN}"));
    assert_eq!(
        asked(&server),
        [
            exchange.clone(),
            call("/chat/completions", "Bearer tid=one"),
            exchange,
            call("/chat/completions", "Bearer tid=two"),
        ]
    );
    server.assert_finished();
}

#[test]
fn without_a_terminal_the_code_is_on_standard_error() {
    for (arguments, input) in [(&["--login"][..], "not-a-key"), (&["--profile", "work"], "")] {
        let slower = polled(&json!({"error": "slow_down", "interval": 0}));
        let server = serve([code(900), slower, granted()]);
        let home = TempHome::new();
        let mut command = myclaw(&home, &login(&server, arguments));
        let output = RunningChild::run_with_input(&mut command, input);
        output.assert_code(0);
        let (stdout, stderr) = (output.stdout(), output.stderr());
        assert!(stderr.contains("https://github.com/login/device"), "{stderr}");
        assert!(stderr.contains("ABCD-1234"), "{stderr}");
        assert!(stderr.contains("now choose a model of github-copilot"), "{stderr}");
        // The models of a company's own GitHub are elsewhere.
        assert!(stderr.contains("models.providers.github-copilot.baseUrl"), "{stderr}");
        assert!(stdout.starts_with("github-copilot:") && stdout.lines().count() == 1, "{stdout}");
        server.assert_finished();
        assert!(store(&home).is_some());
    }
}

#[test]
fn a_login_that_fails_says_why_and_keeps_nothing() {
    let denied = || polled(&json!({"error": "access_denied"}));
    let cases: [(Vec<Step>, &str); 6] = [
        (vec![code(900), denied()], "refused on GitHub's page; `myclaw auth login github-copilot`"),
        (vec![code(900), polled(&json!({"error": "expired_token"}))], "has expired"),
        (vec![code(0)], "has expired"),
        (vec![code(900), polled(&json!({"error": "incorrect_client"}))], "incorrect_client"),
        (vec![Step::status(404, &[], "{}")], "404"),
        (vec![Step::html("<title>Sign in to the hotel</title>")], "not JSON"),
    ];
    for (steps, words) in cases {
        let server = serve(steps);
        let home = TempHome::new();
        let output = RunningChild::run(&mut myclaw(&home, &login(&server, &[])));
        output.assert_code(4);
        assert!(output.stderr().contains(words), "{words}: {}", output.stderr());
        assert_eq!((output.stdout().as_str(), store(&home)), ("", None));
    }
}

#[test]
fn a_login_that_is_given_up_keeps_nothing() {
    let server = serve(Script::answer_with(|request, _| match request.route() {
        "/login/device/code" => code(900),
        _ => pending(),
    }));
    let home = TempHome::new();
    let mut terminal = Terminal::spawn(&myclaw(&home, &login(&server, &[])));
    terminal.expect("ABCD-1234");
    terminal.press_ctrl_c();
    terminal.expect("the login was aborted; nothing is kept");
    assert_eq!(terminal.wait().code(), Some(130));

    let child = RunningChild::spawn(&mut myclaw(&home, &login(&server, &[])));
    child.wait_for_stderr("ABCD-1234");
    child.signal(Signal::Kill);
    child.wait(std::time::Duration::from_secs(30));
    assert_eq!(store(&home), None);
}

#[test]
fn an_obstacle_to_a_login_is_reported_before_it() {
    let server = serve(Script::new());
    let home = TempHome::new();
    let add = ["auth", "add", "github-copilot"];
    // A token may be piped in as any other key.
    let output = RunningChild::run_with_input(&mut myclaw(&home, &add), format!("{TOKEN}\n"));
    output.assert_code(0);
    assert_eq!(store(&home).expect("a store")["profiles"].as_object().expect("profiles").len(), 1);

    let cases: [(Vec<&str>, &str); 7] = [
        (login(&server, &[]), "--replace"),
        (
            vec!["auth", "add", "github-copilot", "--github", "http://a.b", "--replace"],
            "company.ghe",
        ),
        (vec!["auth", "add", "anthropic", "--login"], "Anthropic does not permit logins"),
        (vec!["auth", "add", "google", "--login"], "log in with `myclaw auth login google`"),
        (vec!["auth", "add", "openai", "--login"], "log in with `myclaw auth login openai`"),
        (vec!["auth", "add", "mistral", "--login"], "mistral has no login"),
        (login(&server, &["--env", "X"]), "cannot be used with"),
    ];
    for (arguments, words) in cases {
        let output = RunningChild::run(&mut myclaw(&home, &arguments));
        output.assert_code(2);
        assert!(output.stderr().contains(words), "{words}: {}", output.stderr());
    }
    assert_eq!(server.all_requests().len(), 0);
}
