//! `myclaw auth`, and turns with the keys that it keeps.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, Step, TempHome, Terminal,
};
use serde_json::{Value, json};

use crate::{myclaw, run};

const KEY: &str = "sk-ant-first-0123456789-abcd";
const OTHER_KEY: &str = "sk-ant-other-0123456789-wxyz";

fn store_path(home: &TempHome) -> PathBuf {
    home.state_directory().join("agents/main/agent/auth-profiles.json")
}

fn store(home: &TempHome) -> Value {
    serde_json::from_str(&fs::read_to_string(store_path(home)).expect("the store")).expect("JSON")
}

fn mode(path: &PathBuf) -> u32 {
    fs::metadata(path).expect("exists").permissions().mode() & 0o777
}

fn files_beside_the_store(home: &TempHome) -> Vec<String> {
    let directory = fs::read_dir(store_path(home).with_file_name("")).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    let mut names: Vec<String> = directory.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

fn add(home: &TempHome, arguments: &[&str], key: &str) -> ChildOutput {
    let arguments: Vec<&str> = ["auth", "add"].iter().chain(arguments).copied().collect();
    RunningChild::run_with_input(&mut myclaw(home, &arguments), key)
}

fn listed(home: &TempHome) -> Vec<Value> {
    let output = run(home, &["auth", "list", "--json"]);
    output.assert_code(0);
    output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn names(home: &TempHome) -> Vec<String> {
    listed(home).iter().map(|key| key["profile"].as_str().expect("a name").to_owned()).collect()
}

/// A home whose default model is one of `server`, without any key.
fn home_at(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "lab/m"}},
        "models": {"providers": {"lab": {
            "baseUrl": server.url(), "api": "anthropic-messages",
            "models": [{"id": "m", "contextWindow": 200_000}],
        }}},
    }));
    home
}

fn keys_seen(server: &ModelServer) -> Vec<String> {
    let requests = server.requests();
    let key =
        |name: &str| requests.iter().filter_map(|r| Some(r.header(name)?.to_owned())).collect();
    key("x-api-key")
}

fn refused(status: u16, kind: &str) -> Step {
    let body = json!({"type": "error", "error": {"type": kind, "message": "no"}});
    Step::status(status, &[], body.to_string())
}

#[test]
fn a_key_is_kept_listed_by_its_end_and_removed() {
    let home = TempHome::new();
    let output = add(&home, &["--provider", "anthropic"], &format!("  {KEY}\n"));
    output.assert_code(0);
    assert!(!output.stdout().contains(KEY) && !output.stderr().contains(KEY));
    assert_eq!(mode(&store_path(&home)), 0o600);
    assert_eq!(
        store(&home),
        json!({"version": 1, "profiles": {"anthropic:default": {
            "provider": "anthropic", "type": "api_key", "key": KEY,
        }}})
    );

    assert_eq!(
        listed(&home),
        [json!({
            "provider": "anthropic", "profile": "anthropic:default", "type": "api_key",
            "origin": "store", "key": "…abcd", "state": "ok", "cooldown": [],
            "pinned": false, "preferred": false,
        })]
    );
    let table = run(&home, &["auth", "list"]).stdout();
    assert!(table.contains("anthropic:default") && !table.contains(KEY), "{table}");

    let again = add(&home, &["--provider", "anthropic"], OTHER_KEY);
    again.assert_code(2);
    assert!(again.stderr().contains("--replace"), "{}", again.stderr());
    add(&home, &["--provider", "anthropic", "--replace"], OTHER_KEY).assert_code(0);
    assert_eq!(listed(&home)[0]["key"], "…wxyz");

    run(&home, &["auth", "remove", "anthropic:default"]).assert_code(0);
    assert_eq!(listed(&home).len(), 0);
    let gone = run(&home, &["auth", "remove", "anthropic:default"]);
    gone.assert_code(2);
}

#[test]
fn a_typed_key_is_not_shown() {
    let home = TempHome::new();
    let arguments = ["auth", "add", "--provider", "anthropic"];
    let mut terminal = Terminal::spawn(&myclaw(&home, &arguments));
    terminal.expect("key for anthropic (not shown): ");
    terminal.send(&format!("{KEY}x\u{7f}\r"));
    terminal.expect("anthropic:default is kept in");
    assert!(terminal.wait().success());
    let drawn = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!drawn.contains("sk-ant"), "{drawn:?}");
    assert_eq!(store(&home)["profiles"]["anthropic:default"]["key"], KEY);

    let arguments = ["auth", "add", "anthropic", "--profile", "other"];
    let mut terminal = Terminal::spawn(&myclaw(&home, &arguments));
    terminal.expect("not shown");
    terminal.send("half\u{3}");
    terminal.expect("no key was kept");
    assert_eq!(terminal.wait().code(), Some(130));
}

#[test]
fn what_cannot_be_kept_is_refused_with_what_to_do() {
    let home = TempHome::new();
    for (arguments, input, expected) in [
        (&["--provider", "antropic"][..], KEY, "did you mean `anthropic`?"),
        (&["--provider", "anthropic"], " \n", "no key was given"),
        (&["--provider", "anthropic"], "two words", "no spaces"),
        (&["--provider", "anthropic", "--profile", "a/b"], KEY, "letters, digits"),
        (&["--provider", "anthropic", "--key-file", "/no/such"], "", "cannot read the key file"),
        (&["--provider", "anthropic", "--env", "A", "--command", "x"], "", "cannot be used with"),
        (&["--provider", "ollama"], KEY, "needs no key"),
    ] {
        let output = add(&home, arguments, input);
        output.assert_code(2);
        assert!(output.stderr().contains(expected), "{arguments:?}: {}", output.stderr());
    }
    assert!(!store_path(&home).exists(), "nothing was written");
}

#[test]
fn a_turn_uses_a_kept_key_and_goes_on_with_the_next() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        refused(401, "authentication_error"),
        Reply::anthropic().text("Second key.").into(),
        Reply::anthropic().text("And again.").into(),
    ]));
    let home = home_at(&server);
    add(&home, &["--provider", "lab", "--profile", "one"], KEY).assert_code(0);
    add(&home, &["--provider", "lab", "--profile", "two"], OTHER_KEY).assert_code(0);

    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Second key.\n");
    let keys = listed(&home);
    assert_eq!(keys[0]["profile"], "lab:two", "the one in cooldown comes last");
    assert_eq!(
        (&keys[1]["state"], &keys[1]["cooldown"][0]["reason"]),
        (&json!("cooldown"), &json!("auth"))
    );

    // The next turn leaves the refused key alone, without having tried it.
    run(&home, &["run", "hello"]).assert_code(0);
    assert_eq!(keys_seen(&server), [KEY, OTHER_KEY, OTHER_KEY]);

    run(&home, &["auth", "clear-cooldown", "lab:one"]).assert_code(0);
    assert!(listed(&home).iter().all(|key| key["state"] == "ok"));
}

#[test]
fn order_preference_and_pin_decide_who_is_first() {
    let home = TempHome::new();
    for name in ["a", "b", "c"] {
        add(
            &home,
            &["--provider", "groq", "--profile", name],
            &format!("key-of-{name}-0123456789"),
        )
        .assert_code(0);
    }
    assert_eq!(names(&home), ["groq:a", "groq:b", "groq:c"]);
    run(&home, &["auth", "order", "groq", "c", "groq:a"]).assert_code(0);
    assert_eq!(names(&home), ["groq:c", "groq:a", "groq:b"]);
    run(&home, &["auth", "prefer", "groq:b"]).assert_code(0);
    assert_eq!(names(&home), ["groq:b", "groq:c", "groq:a"]);
    run(&home, &["auth", "pin", "groq:a"]).assert_code(0);
    assert_eq!(listed(&home)[2]["pinned"], true);
    run(&home, &["auth", "unpin", "groq"]).assert_code(0);
    run(&home, &["auth", "order", "groq"]).assert_code(0);
    assert_eq!(names(&home), ["groq:a", "groq:b", "groq:c"]);
    for wrong in
        [&["auth", "pin", "groq:d"][..], &["auth", "order", "grok", "a"], &["auth", "list", "grok"]]
    {
        run(&home, wrong).assert_code(2);
    }
}

#[test]
fn a_pinned_key_never_gives_way() {
    let server =
        ModelServer::spawn_blocking_thread(Script::repeat(refused(401, "authentication_error")));
    let home = home_at(&server);
    add(&home, &["--provider", "lab", "--profile", "one"], KEY).assert_code(0);
    add(&home, &["--provider", "lab", "--profile", "two"], OTHER_KEY).assert_code(0);

    run(&home, &["run", "--auth-profile", "lab:two", "hello"]).assert_code(4);
    run(&home, &["auth", "pin", "lab:one"]).assert_code(0);
    run(&home, &["run", "hello"]).assert_code(4);
    assert_eq!(keys_seen(&server), [OTHER_KEY, KEY]);

    let unknown = run(&home, &["run", "--auth-profile", "three", "hello"]);
    unknown.assert_code(2);
    assert!(unknown.stderr().contains("lab:one, lab:two"), "{}", unknown.stderr());
}

#[test]
fn keys_come_from_files_variables_and_commands_when_they_are_needed() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("ok")));
    let home = home_at(&server);
    let file = home.write("key.txt", "key-in-file-0123456789\n");
    let command = "echo complaint >&2; printf 'key-of-%s\\nother line\\n' \"$SUFFIX\"";
    for (name, arguments) in [
        ("file", ["--key-file", file.to_str().expect("UTF-8")]),
        ("variable", ["--env", "LAB_KEY"]),
        ("command", ["--command", command]),
    ] {
        add(&home, &["--provider", "lab", "--profile", name, arguments[0], arguments[1]], "")
            .assert_code(0);
        let profile = format!("lab:{name}");
        let output = RunningChild::run(
            myclaw(&home, &["run", "--auth-profile", &profile, "hello"])
                .env("LAB_KEY", "key-in-variable")
                .env("SUFFIX", "command-0123456789"),
        );
        output.assert_code(0);
        assert!(!output.stderr().contains("complaint"), "{}", output.stderr());
    }
    assert_eq!(
        keys_seen(&server),
        ["key-in-file-0123456789", "key-in-variable", "key-of-command-0123456789"]
    );
    assert!(!fs::read_to_string(store_path(&home)).expect("store").contains("0123456789"));
}

#[test]
fn a_key_that_cannot_be_had_is_reported_and_the_next_is_used() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("ok")));
    let home = home_at(&server);
    let command = "echo half-a-secret; echo 'vault is sealed: half-a-secret' >&2; exit 7";
    add(&home, &["--provider", "lab", "--profile", "sealed", "--command", command], "")
        .assert_code(0);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(4);
    assert!(
        output.stderr().contains("ended with code 7: vault is sealed: [redacted]"),
        "{}",
        output.stderr()
    );

    add(&home, &["--provider", "lab", "--profile", "unset", "--env", "NO_SUCH_KEY"], "")
        .assert_code(0);
    add(&home, &["--provider", "lab", "--profile", "work"], KEY).assert_code(0);
    run(&home, &["auth", "order", "lab", "sealed", "unset", "work"]).assert_code(0);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert!(output.stderr().contains("the variable NO_SUCH_KEY is not set"), "{}", output.stderr());
    assert_eq!(keys_seen(&server), [KEY]);
}

#[test]
fn keys_are_tested_one_by_one() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().text("ok").into(),
        refused(401, "authentication_error"),
    ]));
    let home = home_at(&server);
    add(&home, &["--provider", "lab", "--profile", "good"], KEY).assert_code(0);
    add(&home, &["--provider", "lab", "--profile", "wrong"], OTHER_KEY).assert_code(0);
    let output = run(&home, &["auth", "test", "--json"]);
    output.assert_code(4);
    let outcomes: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&outcomes[0]["profile"], &outcomes[0]["ok"]), (&json!("lab:good"), &json!(true)));
    assert_eq!((&outcomes[1]["ok"], &outcomes[1]["class"]), (&json!(false), &json!("auth")));
    assert!(output.stderr().contains("1 of 2 keys cannot be used"), "{}", output.stderr());
    assert_eq!(server.last_request().json()["max_tokens"], 16);
    let calls_itself = concat!("myclaw/", env!("CARGO_PKG_VERSION"));
    assert_eq!(server.last_request().header("user-agent"), Some(calls_itself), "as turns do");
}

#[test]
fn a_fallback_answers_says_so_and_the_next_turn_begins_with_the_first_model() {
    let first = ModelServer::spawn_blocking_thread(Script::from([
        refused(404, "not_found_error"),
        Reply::anthropic().text("First.").into(),
    ]));
    let second =
        ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Second.")));
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": ["two/m", "three/m"]}}},
        "models": {"providers": {
            "one": {"baseUrl": first.url(), "api": "anthropic-messages", "apiKey": KEY},
            "two": {"baseUrl": second.url(), "api": "anthropic-messages", "apiKey": OTHER_KEY},
        }},
    }));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Second.\n");
    let stderr = output.stderr();
    assert!(stderr.contains("two/m answers instead of one/m (refused): "), "{stderr}");
    assert!(
        stderr.contains("no fallback on three/m: the provider `three` is not known"),
        "{stderr}"
    );
    assert!(stderr.trim_end().ends_with("two/m"), "the usage names who answered: {stderr}");
    assert_eq!(run(&home, &["run", "hello"]).stdout(), "First.\n");

    let home = TempHome::new();
    let nobody = "http://127.0.0.1:9";
    home.write_config(&json!({
        "agent": {"maxRetries": 0},
        "agents": {"defaults": {"model": {"primary": "one/m", "fallbacks": ["two/m"]}}},
        "models": {"providers": {"one": {"baseUrl": nobody}, "two": {"baseUrl": nobody}}},
    }));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(4);
    let stderr = output.stderr();
    assert!(stderr.contains("none of the models could answer:\n  one/m (network): "), "{stderr}");
    assert!(stderr.contains("\n  two/m (network): "), "{stderr}");
}

#[test]
fn an_unreadable_store_is_reported_left_alone_by_turns_and_set_aside_by_a_change() {
    let home = TempHome::new();
    let broken = r#"{"version": 1, "profiles": {"anthropic:default": {"key": "sk-precious""#;
    home.write(store_path(&home), broken);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert!(
        output.stderr().contains("auth-profiles.json cannot be read (line 1,"),
        "{}",
        output.stderr()
    );
    run(&home, &["auth", "list"]).assert_code(1);
    assert_eq!(fs::read_to_string(store_path(&home)).expect("store"), broken);

    let output = add(&home, &["--provider", "anthropic"], KEY);
    output.assert_code(0);
    let stderr = output.stderr();
    let backup = stderr.split_whitespace().find(|word| word.contains(".bak.")).expect("a name");
    let backup = PathBuf::from(backup.trim_end_matches(','));
    assert_eq!(fs::read_to_string(&backup).expect("the backup"), broken);
    assert_eq!(mode(&backup), 0o600);
    assert!(!stderr.contains("precious"), "{stderr}");
    assert_eq!(names(&home), ["anthropic:default"]);
}

#[test]
fn what_a_later_version_wrote_is_kept() {
    let home = TempHome::new();
    let foreign = json!({
        "version": 1, "future": {"x": 1},
        "profiles": {"new:kind": {"type": "hologram", "provider": "new", "shape": 3}},
    });
    home.write(store_path(&home), foreign.to_string());
    add(&home, &["--provider", "anthropic"], KEY).assert_code(0);
    let after = store(&home);
    assert_eq!(after["future"], foreign["future"]);
    assert_eq!(after["profiles"]["new:kind"], foreign["profiles"]["new:kind"]);

    home.write(store_path(&home), r#"{"version": 2, "profiles": {}}"#);
    let output = add(&home, &["--provider", "anthropic"], KEY);
    output.assert_code(1);
    assert!(output.stderr().contains("Install the newer version"), "{}", output.stderr());
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let home = TempHome::new();
    let names: Vec<String> = (0..12).map(|number| format!("key{number:02}")).collect();
    let mut children: Vec<RunningChild> = names
        .iter()
        .map(|name| {
            let arguments = ["auth", "add", "--provider", "groq", "--profile", name];
            let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &arguments));
            child.send(&format!("{name}-0123456789-0123456789\n"));
            child.close_stdin();
            child
        })
        .collect();
    for child in children.drain(..) {
        child.wait(std::time::Duration::from_secs(60)).assert_code(0);
    }
    let expected: Vec<String> = names.iter().map(|name| format!("groq:{name}")).collect();
    assert_eq!(self::names(&home), expected);
}

#[test]
fn a_writer_that_is_killed_leaves_a_whole_file_and_no_lock() {
    let home = TempHome::new();
    add(&home, &["--provider", "groq", "--profile", "first"], KEY).assert_code(0);
    for pause_us in (0..40).map(|step| step * 250) {
        let arguments = ["auth", "add", "--replace", "--provider", "groq", "--profile", "second"];
        let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &arguments));
        child.send(OTHER_KEY);
        child.close_stdin();
        std::thread::sleep(std::time::Duration::from_micros(pause_us));
        drop(child);
        assert_eq!(listed(&home)[0]["profile"], "groq:first");
    }
    add(&home, &["--provider", "groq", "--profile", "third"], "third-key-0123456789")
        .assert_code(0);
    assert_eq!(files_beside_the_store(&home), ["auth-profiles.json", "auth-profiles.json.lock"]);
}

#[test]
fn what_a_killed_writer_left_beside_the_store_goes_with_the_next_change() {
    let home = TempHome::new();
    add(&home, &["anthropic"], KEY).assert_code(0);
    home.write(store_path(&home).with_file_name(".auth-profiles.json.new"), OTHER_KEY);
    run(&home, &["auth", "remove", "anthropic:default"]).assert_code(0);
    assert_eq!(files_beside_the_store(&home), ["auth-profiles.json", "auth-profiles.json.lock"]);
}

/// The names of keys stay when the keys are replaced, in the config or in a variable.
#[test]
fn a_key_in_the_place_of_another_does_not_rest_for_it() {
    let server =
        ModelServer::spawn_blocking_thread(Script::answer_with(|request, _| {
            match request.header("x-api-key").expect("a key") {
                key if key.starts_with("good") => Reply::anthropic().text("hi").into(),
                key if key.starts_with("spent") => {
                    let body = json!({"error": {"code": "insufficient_quota", "message": "no"}});
                    Step::status(429, &[("retry-after", "80000")], body.to_string())
                }
                _ => refused(401, "authentication_error"),
            }
        }));
    let home = TempHome::new();
    let with_keys = |keys: [&str; 2], variable: &str| {
        home.write_config(&json!({
            "agents": {"defaults": {"model": "lab/m"}},
            "provider": {"name": "lab", "model": "m", "baseUrl": server.url(), "authProfiles": [
                {"id": "k1", "apiKey": keys[0]}, {"id": "k2", "apiKey": keys[1]},
            ]},
            "models": {"providers": {"lab": {"api": "anthropic-messages"}}},
        }));
        RunningChild::run(myclaw(&home, &["run", "hello"]).env("LAB_KEY", variable))
    };
    with_keys(["spent-0123456789", "bad-0123456789"], "").assert_code(4);
    with_keys(["spent-0123456789", "bad-0123456789"], "").assert_code(4);
    let spent = keys_seen(&server).iter().filter(|key| key.starts_with("spent")).count();
    assert_eq!(spent, 1, "the same key is in cooldown");
    with_keys(["good-0123456789", "good-9876543210"], "").assert_code(0);
    assert_eq!(names(&home), ["k1", "k2"]);
    assert!(listed(&home).iter().all(|key| key["state"] == "ok"), "{:?}", listed(&home));

    with_keys(["env:LAB_KEY", "bad-0123456789"], "spent-0123456789").assert_code(4);
    with_keys(["env:LAB_KEY", "bad-0123456789"], "good-0123456789").assert_code(0);
    let stored = fs::read_to_string(store_path(&home)).expect("the store");
    assert!(!stored.contains("0123456789"), "{stored}");
}

#[test]
fn doctor_says_which_files_with_keys_others_can_read() {
    let home = TempHome::new();
    add(&home, &["--provider", "anthropic"], KEY).assert_code(0);
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.contains("ok    key files  readable by their owner alone"), "{stdout}");
    assert!(stdout.contains("1 key for anthropic, kept by `myclaw auth`"), "{stdout}");

    let written = |key: &str| {
        home.write_config(&json!({"provider": {"name": "anthropic", "model": "m",
            "authProfiles": [{"id": "a", "apiKey": key}]}}));
        fs::set_permissions(home.config_path(), fs::Permissions::from_mode(0o644)).expect("chmod");
        RunningChild::run(myclaw(&home, &["doctor"]).env("SOME_KEY", "k")).stdout()
    };
    let literal = written("sk-ant-literal-0123456789");
    assert!(literal.contains(&format!("chmod 600 {}", home.config_path().display())), "{literal}");
    assert!(!literal.contains("sk-ant-literal"));
    assert!(!written("${SOME_KEY}").contains("chmod"), "a reference is no key");
    fs::set_permissions(store_path(&home), fs::Permissions::from_mode(0o640)).expect("chmod");
    assert!(written("${SOME_KEY}").contains("auth-profiles.json"));
}
