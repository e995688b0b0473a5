//! Logins in the store: they are renewed when they end, once, and the new tokens are kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_testkit::{
    ChildOutput, ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
};
use serde_json::{Value, json};

use crate::{myclaw, run};

const OLD: &str = "access-old-0123456789";
const NEW: &str = "access-new-0123456789";
const REFRESH: &str = "refresh-one-0123456789";
const NEXT_REFRESH: &str = "refresh-two-0123456789";

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    u64::try_from(now.as_millis()).expect("milliseconds")
}

fn serve(script: impl Into<Script>) -> ModelServer {
    ModelServer::spawn_blocking_thread(script.into().answer_every_route())
}

fn renewed() -> Step {
    let tokens = json!({"access_token": NEW, "refresh_token": NEXT_REFRESH, "expires_in": 3600});
    Step::status(200, &[], tokens.to_string())
}

fn refused(status: u16, error: &str) -> Step {
    let body = json!({"error": error, "error_description": format!("{REFRESH} was revoked")});
    Step::status(status, &[], body.to_string())
}

fn unauthorized() -> Step {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": "no"}});
    Step::status(401, &[], body.to_string())
}

fn answer() -> Step {
    Reply::anthropic().text("Hello.").into()
}

fn store_path(home: &TempHome) -> PathBuf {
    home.state_directory().join("agents/main/agent/auth-profiles.json")
}

fn stored(home: &TempHome) -> Value {
    let text = fs::read_to_string(store_path(home)).expect("the store");
    serde_json::from_str::<Value>(&text).expect("JSON")["profiles"]["lab:me"].take()
}

/// A login at `server` that ends at `expires`.
fn login(server: &ModelServer, expires: u64) -> Value {
    json!({
        "type": "oauth", "provider": "lab", "access": OLD, "refresh": REFRESH, "expires": expires,
        "tokenUrl": format!("{}/oauth/token", server.url()), "clientId": "app", "email": "me@lab",
    })
}

/// A home whose model is at `server`, with this login.
fn home_with(server: &ModelServer, login: &Value) -> TempHome {
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "lab/m"}},
        "agent": {"maxRetries": 0},
        "models": {"providers": {"lab": {
            "baseUrl": server.url(), "api": "anthropic-messages",
            "models": [{"id": "m", "contextWindow": 200_000}],
        }}},
    }));
    home.write(store_path(&home), json!({"version": 1, "profiles": {"lab:me": login}}).to_string());
    home
}

/// The paths and keys of what the server was asked.
fn asked(server: &ModelServer) -> Vec<(String, Option<String>)> {
    let request = |r: &RecordedRequest| (r.path.clone(), r.header("x-api-key").map(str::to_owned));
    server.all_requests().iter().map(|recorded| request(recorded)).collect()
}

fn renewal() -> (String, Option<String>) {
    ("/oauth/token".to_owned(), None)
}

fn call(key: &str) -> (String, Option<String>) {
    ("/v1/messages".to_owned(), Some(key.to_owned()))
}

fn assert_shows_no_token(output: &ChildOutput) {
    for printed in [output.stdout(), output.stderr()] {
        assert!(!printed.contains("-0123456789"), "{printed}");
    }
}

#[test]
fn a_login_that_has_ended_is_renewed_and_kept() {
    let server = serve([renewed(), answer(), answer()]);
    let home = home_with(&server, &login(&server, 1));
    let list = run(&home, &["auth", "list", "--json"]).stdout();
    assert!(list.contains(r#""state":"renewable""#), "{list}");
    let before = now_ms();
    for _ in 0..2 {
        let output = run(&home, &["run", "hello"]);
        output.assert_code(0);
        assert_shows_no_token(&output);
    }
    assert_eq!(asked(&server), [renewal(), call(NEW), call(NEW)]);
    let form = server.all_requests()[0].body_text();
    assert_eq!(form, format!("grant_type=refresh_token&refresh_token={REFRESH}&client_id=app"));
    let mut kept = stored(&home);
    let expires = kept["expires"].take().as_u64().expect("when it ends");
    assert!((before..=now_ms()).contains(&(expires - 3_600_000)), "{expires}");
    let mut expected = login(&server, 0);
    (expected["access"], expected["refresh"]) = (json!(NEW), json!(NEXT_REFRESH));
    expected["expires"] = Value::Null;
    assert_eq!(kept, expected, "what else was in it is kept");
    let mode = fs::metadata(store_path(&home)).expect("the store").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn doctor_and_the_list_tell_of_logins_that_have_ended() {
    let server = serve(Script::answer_with(|_, _| answer()));
    let without = |field: &str| {
        let mut login = login(&server, 1);
        login.as_object_mut().expect("an object").remove(field);
        login
    };
    let reported = |login: &Value, code: i32, doctor: &[&str], list: &[&str]| {
        let home = home_with(&server, login);
        let output = run(&home, &["doctor"]);
        output.assert_code(code);
        assert_shows_no_token(&output);
        let listed = run(&home, &["auth", "list"]);
        listed.assert_code(0);
        let listed = format!("{}{}", listed.stdout(), listed.stderr());
        for (printed, wanted) in [(output.stdout(), doctor), (listed, list)] {
            for words in wanted {
                assert!(printed.contains(words), "{words}: {printed}");
            }
        }
        output.stdout()
    };
    let mend = "keep another key with `myclaw auth add lab --profile me --replace`";
    for login in [without("tokenUrl"), without("clientId"), without("refresh")] {
        let doctor = reported(
            &login,
            1,
            &["fail  login      lab:me ended ", " and cannot be renewed here", mend],
            &[" expired", "lab:me has expired and cannot be renewed here", mend],
        );
        assert!(!doctor.contains("key for lab"), "{doctor}");
    }
    let mut empty = login(&server, 1);
    empty["refresh"] = json!("");
    reported(&empty, 1, &["fail  login"], &[" expired", mend]);
    let renewed = "ok    login      lab:me has ended, and is renewed when it is used";
    for login in [login(&server, 1), without("access")] {
        reported(&login, 0, &["1 key for lab", renewed], &["renewed when used"]);
    }
    let valid = reported(&login(&server, now_ms() + 3_600_000), 0, &["1 key for lab"], &[" ok"]);
    assert!(!valid.contains("login "), "{valid}");
}

/// One that has ended prevents nothing while there is another key, or another model.
#[test]
fn doctor_warns_of_a_login_that_has_ended_beside_other_keys() {
    let server = serve(Script::answer_with(|_, _| answer()));
    let mut ended = login(&server, 1);
    ended.as_object_mut().expect("an object").remove("tokenUrl");
    let home = home_with(&server, &ended);
    let key = json!({"type": "api_key", "provider": "lab", "key": "key-0123456789"});
    let profiles = json!({"lab:me": ended.clone(), "lab:key": key});
    let with_pin = |pinned: Value| {
        let file = json!({"version": 1, "profiles": profiles.clone(), "pinned": pinned});
        home.write(store_path(&home), file.to_string());
        run(&home, &["doctor"])
    };
    let output = with_pin(json!({}));
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.contains("ok    key        1 key for lab, kept by"), "{stdout}");
    assert!(stdout.contains("warn  login      lab:me ended"), "{stdout}");
    with_pin(json!({"lab": "lab:me"})).assert_code(1);

    let home = home_with(&server, &ended);
    home.write_config(&json!({
        "agents": {"defaults": {"model": {"primary": "lab/m", "fallbacks": ["builtin/demo"]}}},
        "models": {"providers": {"lab": {"baseUrl": server.url(), "api": "anthropic-messages"}}},
    }));
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    assert!(output.stdout().contains("warn  login      lab:me ended"), "{}", output.stdout());
}

#[test]
fn of_several_processes_one_renews() {
    let server = serve(Script::answer_with(|request, number| match request.route() {
        "/oauth/token" if number == 0 => renewed().delay(Duration::from_millis(200)),
        "/oauth/token" => refused(400, "invalid_grant"),
        _ => answer(),
    }));
    let home = home_with(&server, &login(&server, 1));
    let children: Vec<RunningChild> = (0..4)
        .map(|number| {
            let session = format!("s{number}");
            RunningChild::spawn(&mut myclaw(&home, &["run", "--session", &session, "hello"]))
        })
        .collect();
    for child in children {
        child.wait(Duration::from_secs(60)).assert_code(0);
    }
    let renewals = asked(&server).into_iter().filter(|request| *request == renewal()).count();
    assert_eq!(renewals, 1);
}

#[test]
fn a_login_that_cannot_be_renewed_says_what_to_do() {
    let server = serve(Script::answer_with(|_, _| refused(400, "invalid_grant")));
    let no_url = {
        let mut login = login(&server, 1);
        login.as_object_mut().expect("an object").remove("tokenUrl");
        login
    };
    let mut unsafe_url = login(&server, 1);
    unsafe_url["tokenUrl"] = json!("http://tokens.example/");
    let nobody = {
        let mut login = login(&server, 1);
        login["tokenUrl"] = json!("http://127.0.0.1:9/");
        login
    };
    for (login, words) in [
        (login(&server, 1), "refused: invalid_grant ([redacted] was revoked); sign in again"),
        (
            no_url,
            "cannot be renewed here; sign in again where it was made, or keep another key with `myclaw auth add lab --profile me --replace`",
        ),
        (unsafe_url, "must begin with https://"),
        (nobody, "nothing listens at http://127.0.0.1:9"),
    ] {
        let home = home_with(&server, &login);
        let output = run(&home, &["run", "hello"]);
        output.assert_code(4);
        let stderr = output.stderr();
        assert!(
            stderr.contains("auth profile lab:me cannot be fetched") && stderr.contains(words),
            "{stderr}"
        );
        assert_eq!(stderr.matches("cannot be fetched").count(), 1, "reported once: {stderr}");
        assert_shows_no_token(&output);
        assert_eq!(stored(&home), login, "nothing is lost");
        assert_eq!(home.only_transcript()[1]["content"], "hello");
    }
}

#[test]
fn a_login_that_has_not_ended_is_used_and_renewed_when_it_is_refused() {
    let ended = now_ms() + 3_600_000;
    let server = serve([unauthorized(), renewed(), answer()]);
    let home = home_with(&server, &login(&server, ended));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert!(output.stderr().contains("the login is renewed"), "{}", output.stderr());
    assert_eq!(asked(&server), [call(OLD), renewal(), call(NEW)]);

    // Once, and no more.
    let server = serve([unauthorized(), renewed(), unauthorized()]);
    let home = home_with(&server, &login(&server, ended));
    run(&home, &["run", "hello"]).assert_code(4);
    assert_eq!(asked(&server), [call(OLD), renewal(), call(NEW)]);

    // Just before it ends it is renewed, and used as it is if that fails.
    let server = serve([Step::status(503, &[], ""), answer()]);
    let home = home_with(&server, &login(&server, now_ms() + 40_000));
    run(&home, &["run", "hello"]).assert_code(0);
    assert_eq!(asked(&server), [renewal(), call(OLD)]);
}

#[test]
fn a_renewal_that_is_killed_leaves_the_login_as_it_was() {
    let server = serve([renewed().stall_after(10), renewed(), answer()]);
    let home = home_with(&server, &login(&server, 1));
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "hello"]));
    server.wait_for_requests_blocking(1);
    child.signal(Signal::Kill);
    child.wait(Duration::from_secs(30));
    assert_eq!(stored(&home), login(&server, 1));
    run(&home, &["run", "hello again"]).assert_code(0);
    assert_eq!(asked(&server), [renewal(), renewal(), call(NEW)]);
}

/// Other programs keep a login of Copilot as a session of some minutes and the token that it was exchanged for.
#[test]
fn a_login_of_copilot_is_used_by_its_github_token() {
    let session = json!({"token": "tid=new", "expires_at": now_ms() / 1000 + 1800});
    let server =
        serve([Step::status(200, &[], session.to_string()), Reply::openai().text("Hello.").into()]);
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "github-copilot/gpt-4.1"}},
        "models": {"providers": {"github-copilot": {"baseUrl": server.url()}}},
    }));
    let login = json!({
        "type": "oauth", "provider": "github-copilot", "refresh": "gho_0123456789",
        "access": "tid=old", "expires": 1,
    });
    let file = json!({"version": 1, "profiles": {"github-copilot:github": login}});
    home.write(store_path(&home), file.to_string());
    run(&home, &["run", "hello"]).assert_code(0);
    let requests = server.all_requests();
    assert_eq!(requests[0].header("authorization"), Some("token gho_0123456789"));
    assert_eq!(requests[1].header("authorization"), Some("Bearer tid=new"));
}
