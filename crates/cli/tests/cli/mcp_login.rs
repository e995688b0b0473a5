//! Logins at MCP servers, with an authorization server that follows the rules, and with ones that do not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use myclaw_testkit::{ChildOutput, McpHttpServer, RunningChild, Signal, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, results};
use crate::{myclaw, run};

const MINUTE: Duration = Duration::from_secs(60);

struct Place {
    home: TempHome,
    remote: McpHttpServer,
}

impl Place {
    /// A server that wants a login; its authorization server has these faults.
    fn new(faults: &Value) -> Self {
        let home = TempHome::new();
        let mut all = json!({"lifetime": 3600});
        for (name, fault) in faults.as_object().into_iter().flatten() {
            all[name] = fault.clone();
        }
        let remote = McpHttpServer::with_login(&home, "sessions", &all);
        let place = Self { home, remote };
        place.write("/mcp", "http://127.0.0.1:9");
        place
    }

    fn write(&self, path: &str, model: &str) {
        let mut config = TempHome::config_for(model, WireFormat::AnthropicMessages);
        config["mcp"]["servers"]["faults"] = json!({"url": format!("{}{path}", self.remote.url)});
        self.home.write_config(&config);
    }

    /// Begins a login; the page that the person should open.
    fn begin(&self) -> (RunningChild, String) {
        let child = RunningChild::spawn_piped(&mut myclaw(&self.home, &["mcp", "login", "faults"]));
        let line = child.wait_for_stderr("/authorize?");
        let address = line.split_whitespace().find(|word| word.contains("/authorize?"));
        (child, address.expect("an address").to_owned())
    }

    fn log_in(&self) -> ChildOutput {
        let (child, address) = self.begin();
        open(&address, true);
        child.wait(MINUTE)
    }

    fn requests(&self, path: &str) -> Vec<Value> {
        let all = self.remote.requests().into_iter();
        all.filter(|request| request["path"].as_str().is_some_and(|asked| asked.starts_with(path)))
            .collect()
    }

    fn store(&self) -> PathBuf {
        self.home.state_directory().join("mcp/logins/auth-profiles.json")
    }

    /// What the server answers to these calls in a run.
    fn answers(&self, tools: &[&str]) -> Vec<String> {
        let wanted: Vec<(&str, Value)> = tools
            .iter()
            .map(|tool| {
                (
                    "mcp__tools",
                    json!({"call": format!("faults__{tool}"), "arguments": {"text": "hello"}}),
                )
            })
            .collect();
        let model = calls(&wanted);
        self.write("/mcp", model.url());
        let output = run(&self.home, &["run", "go on"]);
        output.assert_code(0);
        no_token_in(&output);
        results(&model)
    }
}

/// What a browser does: it opens the page and goes where that sends it; the address, if it must not.
fn open(address: &str, follows: bool) -> String {
    let script = "
import sys, urllib.request, urllib.error
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
opener = urllib.request.build_opener() if sys.argv[2] == 'true' else urllib.request.build_opener(Stay)
try:
    print(opener.open(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.headers.get('location', ''))
";
    let mut python = Command::new("python3");
    python.args(["-c", script, address, if follows { "true" } else { "false" }]);
    RunningChild::run(&mut python).stdout().trim().to_owned()
}

fn no_token_in(output: &ChildOutput) {
    for printed in [output.stdout(), output.stderr()] {
        assert!(!printed.contains("-0123456789"), "{printed}");
    }
}

#[test]
fn a_login_through_the_browser_is_kept_and_sent_to_that_address_only() {
    let place = Place::new(&json!({}));
    let before = run(&place.home, &["mcp", "test"]);
    before.assert_code(1);
    let advice = "log in with `myclaw mcp login faults`";
    assert!(before.stdout().contains(advice), "{}", before.stdout());
    let output = place.log_in();
    output.assert_code(0);
    no_token_in(&output);
    assert!(output.stdout().contains(&format!("logged in at {}", place.remote.url)));
    assert!(output.stdout().contains("myclaw mcp approve faults"), "{}", output.stdout());
    let mode = fs::metadata(place.store()).expect("the store").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let resource = format!("{}/mcp", place.remote.url);
    let registered = place.requests("/register");
    assert_eq!(registered[0]["body"]["application_type"], "native");
    assert_eq!(registered[0]["body"]["token_endpoint_auth_method"], "none");
    let asked = place.requests("/authorize")[0]["path"].as_str().unwrap().to_owned();
    for words in ["code_challenge_method=S256", "scope=read+offline_access", "resource=http"] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
    assert_eq!(place.requests("/token")[0]["body"]["resource"], json!(resource));
    approve(&place.home);
    let echoed = place.answers(&["echo"]);
    assert!(echoed[0].contains("echo: hello"), "{}", echoed[0]);
    // Another address gets no token.
    place.write("/moved", "http://127.0.0.1:9");
    run(&place.home, &["mcp", "test"]).assert_code(1);
    let moved = place.requests("/moved");
    assert!(!moved.is_empty());
    assert!(moved.iter().all(|request| request["headers"]["authorization"].is_null()), "{moved:?}");
    place.write("/mcp", "http://127.0.0.1:9");
    run(&place.home, &["mcp", "test"]).assert_code(0);
    let forgotten = run(&place.home, &["mcp", "logout", "faults"]);
    assert!(forgotten.stdout().contains("is forgotten here"), "{}", forgotten.stdout());
    assert!(!fs::read_to_string(place.store()).unwrap().contains("-0123456789"));
    run(&place.home, &["mcp", "test"]).assert_code(1);
    assert!(run(&place.home, &["mcp", "logout", "faults"]).stdout().contains("there is no login"));
}

#[test]
fn the_address_of_the_last_page_can_be_pasted() {
    let place = Place::new(&json!({}));
    let (mut child, address) = place.begin();
    let last = open(&address, false);
    child.send(&format!("\n  {last}\n"));
    child.wait(MINUTE).assert_code(0);
    run(&place.home, &["mcp", "test"]).assert_code(0);
    for (text, words) in [
        ("not an address", "is no address"),
        ("http://127.0.0.1/callback?code=stolen&state=other", "belongs to another login"),
    ] {
        let (mut child, _) = place.begin();
        child.send(&format!("{text}\n"));
        let output = child.wait(MINUTE);
        output.assert_code(1);
        assert!(output.stderr().contains(words), "{text}: {}", output.stderr());
    }
}

#[test]
fn a_request_of_another_page_does_not_end_the_login() {
    let place = Place::new(&json!({}));
    let (child, address) = place.begin();
    let last = open(&address, false);
    let (callback, _) = last.split_once('?').unwrap();
    open(&format!("{callback}?code=stolen&state=guessed"), true);
    open(&callback.replace("/callback", "/favicon.ico"), true);
    open(&last, true);
    child.wait(MINUTE).assert_code(0);
}

#[test]
fn an_authorization_server_that_breaks_the_rules_gets_no_code_and_gives_no_login() {
    let away = "https://evil.example";
    for (faults, words, asks_person) in [
        (json!({"iss": away}), "the answer came from https://evil.example", true),
        (json!({"iss": ""}), "does not say that it is from", true),
        (json!({"deny": true}), "access_denied", true),
        (json!({"issuer": away}), "names another issuer", false),
        (json!({"resource": "https://evil.example/mcp"}), "which is another server", false),
        (json!({"about": {"code_challenge_methods_supported": null}}), "(PKCE)", false),
        (
            json!({"about": {"token_endpoint": "http://evil.example/token"}}),
            "must begin with https://",
            false,
        ),
        (json!({"about": {"registration_endpoint": null}}), "set `auth.clientId`", false),
    ] {
        let place = Place::new(&faults);
        let output = match asks_person {
            true => place.log_in(),
            false => run(&place.home, &["mcp", "login", "faults"]),
        };
        output.assert_code(1);
        assert!(output.stderr().contains(words), "{faults}: {}", output.stderr());
        assert!(place.requests("/token").is_empty(), "{faults}");
        assert!(!place.store().exists(), "{faults}");
    }
}

/// Neither a code, nor a token, nor a registration is sent to where a server points: another port or host is another origin.
#[test]
fn nothing_of_a_login_follows_a_redirect_to_another_origin() {
    for path in ["/.well-known/oauth-authorization-server", "/register"] {
        let place = Place::new(&json!({"away": path}));
        let output = run(&place.home, &["mcp", "login", "faults"]);
        output.assert_code(1);
        assert!(!place.requests(path).is_empty(), "{path}: {}", output.stderr());
        assert_eq!(place.requests("/stolen"), Vec::<Value>::new(), "{path}");
    }
    let place = Place::new(&json!({"away": "/token"}));
    let output = place.log_in();
    output.assert_code(1);
    no_token_in(&output);
    assert_eq!(place.requests("/token").len(), 1);
    assert_eq!(place.requests("/stolen"), Vec::<Value>::new());
    let place = Place::new(&json!({}));
    place.log_in().assert_code(0);
    approve(&place.home);
    let answers = place.answers(&["away"]);
    assert!(answers[0].contains("sends requests on to http://localhost"), "{answers:?}");
    assert_eq!(place.requests("/elsewhere"), Vec::<Value>::new());
}

#[test]
fn a_client_with_a_secret_proves_itself_in_a_header() {
    let place = Place::new(&json!({"proof": "client_secret_basic", "lifetime": 1}));
    place.log_in().assert_code(0);
    // It is renewed in the same way.
    run(&place.home, &["mcp", "test"]).assert_code(0);
    assert!(place.requests("/token").len() > 1);
}

#[test]
fn tokens_that_are_replaced_each_time_are_never_used_twice() {
    let place = Place::new(&json!({"lifetime": 1}));
    place.log_in().assert_code(0);
    approve(&place.home);
    let start = || RunningChild::spawn(&mut myclaw(&place.home, &["mcp", "test"]));
    let at_once: Vec<RunningChild> = (0..4).map(|_| start()).collect();
    for child in at_once {
        child.wait(MINUTE).assert_code(0);
    }
    let answers = place.answers(&["echo", "echo"]);
    assert!(answers.iter().all(|answer| answer.contains("echo: hello")), "{answers:?}");
    let renewals = place.requests("/token");
    let mut used: Vec<&Value> =
        renewals.iter().map(|request| &request["body"]["refresh_token"]).collect();
    used.retain(|token| !token.is_null());
    let count = used.len();
    used.sort_by_key(|token| token.to_string());
    used.dedup();
    assert_eq!((count > 6, used.len()), (true, count));
}

#[test]
fn a_token_that_is_refused_in_a_run_is_renewed_and_a_login_that_has_ended_says_what_to_do() {
    let place = Place::new(&json!({}));
    place.log_in().assert_code(0);
    approve(&place.home);
    let answers = place.answers(&["revoke", "echo", "revoke_all", "echo"]);
    assert!(answers[1].contains("echo: hello"), "{}", answers[1]);
    for words in ["invalid_grant", "Log in again with `myclaw mcp login faults`"] {
        assert!(answers[3].contains(words), "{words}: {}", answers[3]);
    }
    assert!(!answers[3].contains("-0123456789"), "{}", answers[3]);
    // And it is good again afterwards.
    place.log_in().assert_code(0);
    let answers = place.answers(&["echo"]);
    let last = answers.last().expect("an answer");
    assert!(last.contains("echo: hello"), "{last}");
}

/// The server has replaced the token, and its answer is lost with the process. Nobody can have the new one any more.
#[test]
fn a_kill_in_the_middle_of_a_renewal_ends_the_login_and_says_how_to_begin_another() {
    let place = Place::new(&json!({"lifetime": 1, "lost_renewal": true}));
    place.log_in().assert_code(0);
    let child = RunningChild::spawn(&mut myclaw(&place.home, &["mcp", "test"]));
    let limit = std::time::Instant::now() + MINUTE;
    while place.requests("/token").len() < 2 {
        assert!(std::time::Instant::now() < limit, "nothing is renewed");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.signal(Signal::Kill);
    child.wait(MINUTE);
    // The store is whole, and the lock of the renewal is free.
    let output = run(&place.home, &["mcp", "test"]);
    output.assert_code(1);
    for words in ["invalid_grant", "Log in again with `myclaw mcp login faults`"] {
        assert!(output.stdout().contains(words), "{words}: {}", output.stdout());
    }
    no_token_in(&output);
    place.log_in().assert_code(0);
    run(&place.home, &["mcp", "test"]).assert_code(0);
}

#[test]
fn a_program_and_a_server_with_a_key_have_no_login() {
    let place = Place::new(&json!({}));
    let mut config = TempHome::config_for("http://127.0.0.1:9", WireFormat::AnthropicMessages);
    config["mcp"]["servers"]["faults"] = json!({"command": "python3"});
    place.home.write_config(&config);
    let output = run(&place.home, &["mcp", "login", "faults"]);
    output.assert_code(2);
    assert!(output.stderr().contains("gets its keys from `env`"), "{}", output.stderr());
    // Nor a server that is given a key.
    config["mcp"]["servers"]["faults"] =
        json!({"url": "http://127.0.0.1:9/mcp", "headers": {"authorization": "Bearer x"}});
    place.home.write_config(&config);
    let output = run(&place.home, &["mcp", "login", "faults"]);
    output.assert_code(2);
    assert!(output.stderr().contains("would be sent in place of a login"), "{}", output.stderr());
}
