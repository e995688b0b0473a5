//! What is logged, where, and what never is.

use std::fs;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, Step, TempHome, WireFormat,
};

use crate::{myclaw, run};

const RUN: [&str; 2] = ["run", "List the files in my workspace"];

fn log_of(home: &TempHome) -> String {
    fs::read_to_string(home.state_directory().join("logs/myclaw.log")).unwrap_or_default()
}

fn run_with_variable(home: &TempHome, value: &str) -> ChildOutput {
    RunningChild::run(myclaw(home, &RUN).env("MYCLAW_LOG", value))
}

#[test]
fn nothing_is_logged_unless_somebody_asks() {
    let home = TempHome::new();
    home.write_config_text("{ logging: { level: 'debug' } }");
    for output in [run(&home, &RUN), run_with_variable(&home, "off"), run_with_variable(&home, " ")]
    {
        output.assert_code(0);
        assert!(!output.stderr().contains("INFO"), "{}", output.stderr());
    }
    assert!(!home.state_directory().join("logs").exists());
}

#[test]
fn the_config_turns_the_file_on_and_sets_its_level() {
    let home = TempHome::new();
    home.write_config_text("{ logging: { file: true } }");
    let output = run(&home, &RUN);
    output.assert_code(0);
    assert!(!output.stderr().contains("INFO"), "{}", output.stderr());
    let log = log_of(&home);
    assert!(log.contains(" INFO myclaw_front::home: config loaded"), "{log}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &str| {
            fs::metadata(home.state_directory().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("logs"), mode("logs/myclaw.log")), (0o700, 0o600));
    }

    let home = TempHome::new();
    home.write_config_text("{ logging: { file: true, level: 'error' } }");
    run(&home, &RUN).assert_code(0);
    assert_eq!(log_of(&home), "");
    run(&home, &["run", "--model", "nobody/m", "hello"]).assert_code(2);
    let log = log_of(&home);
    assert!(log.contains("ERROR myclaw: ") && log.contains("class=\"usage\""), "{log}");
}

#[test]
fn the_variable_logs_to_standard_error_and_goes_before_the_level() {
    let home = TempHome::new();
    home.write_config_text("{ logging: { file: true, level: 'error' } }");
    for filter in ["info", "myclaw=info", "warn,myclaw_front::home=info"] {
        let output = run_with_variable(&home, filter);
        output.assert_code(0);
        let stderr = output.stderr();
        assert_eq!(stderr.matches("config loaded").count(), 1, "{filter}: {stderr}");
    }
    assert_eq!(log_of(&home).matches("config loaded").count(), 3);
    let output = run_with_variable(&home, "error");
    assert!(!output.stderr().contains("config loaded"), "{}", output.stderr());
    let output = run_with_variable(&home, "loud");
    output.assert_code(0);
    assert!(output.stderr().contains("MYCLAW_LOG: expected off, error"), "{}", output.stderr());
}

#[test]
fn debug_lines_follow_a_model_call_and_the_log_without_any_text() {
    let refusal = Step::status(529, &[("retry-after", "0")], "{\"error\": \"the finch sang\"}");
    let script = Script::new().then(refusal).then(Reply::anthropic().text("It sang twice."));
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let mut command = myclaw(&home, &["run", "--quiet", "Did the heron sing?"]);
    let output = RunningChild::run(command.env("MYCLAW_LOG", "debug"));
    output.assert_code(0);
    let log = output.stderr();
    for event in [
        "myclaw_llm::driver: sending the request host=",
        "the server answers status=529",
        "the call failed class=\"server_error\" status=529",
        "the server answers status=200",
        "first event after_ms=",
        "the message is whole stop=Stop",
        "myclaw_session::store: locked the session ",
        "myclaw_session::log: opened the session log ",
        "appended to the session log entries=1 ",
        "the session log is on disk waited_us=",
        "locked the session index ",
    ] {
        assert!(log.contains(event), "{event}\n{log}");
    }
    for text in ["heron", "sang", "test-key", "You are MyClaw"] {
        assert!(!log.contains(text), "{text}\n{log}");
    }
}

#[test]
fn secrets_stay_out_of_logs_unless_the_config_says_otherwise() {
    // The path of the config file is logged, so it stands for any text that holds a secret.
    let known = "correct-horse-battery";
    let log_with = |logging: &str| {
        let home = TempHome::new();
        let directory = format!("sk-ant-api03-abcdefgh/{known}/stored-secret-1/search-secret-1");
        let keys = format!("authProfiles: [{{ id: 'a', apiKey: '{known}' }}]");
        let config = home.write(
            format!("{directory}/myclaw.json"),
            format!(
                "{{ logging: {{ file: true{logging} }}, provider: {{ name: 'openai', model: 'm', {keys} }},
                   tools: {{ web: {{ search: {{ provider: 'brave', apiKey: 'search-secret-1' }} }} }} }}"
            ),
        );
        home.write(
            ".myclaw/agents/main/agent/auth-profiles.json",
            r#"{ "version": 1, "profiles": { "x:a": { "type": "api_key", "provider": "x", "key": "stored-secret-1" } } }"#,
        );
        let mut command = myclaw(&home, &["run", "--model", "builtin/demo", "hello"]);
        RunningChild::run(command.env("MYCLAW_CONFIG_PATH", config)).assert_code(0);
        log_of(&home)
    };
    let log = log_with("");
    assert!(log.contains("config loaded") && log.contains("[redacted]"), "{log}");
    for secret in [known, "sk-ant-api03", "stored-secret-1", "search-secret-1"] {
        assert!(!log.contains(secret), "{secret}\n{log}");
    }
    let log = log_with(", redactSensitive: false");
    assert!(log.contains(known) && log.contains("sk-ant-api03-abcdefgh"), "{log}");
}

#[test]
fn what_looks_like_a_key_stays_out_of_the_log_before_the_config_is_read() {
    let home = TempHome::new();
    let missing = home.path().join("sk-ant-api03-abcdefgh/myclaw.json");
    let mut command = myclaw(&home, &["run", "hello"]);
    let output =
        RunningChild::run(command.env("MYCLAW_CONFIG_PATH", missing).env("MYCLAW_LOG", "error"));
    assert_ne!(output.code(), Some(0));
    let stderr = output.stderr();
    // The message to the user is not part of the log.
    let logged: Vec<&str> = stderr.lines().filter(|line| line.contains(" ERROR ")).collect();
    assert!(
        !logged.is_empty() && logged.iter().all(|line| line.contains("[redacted]")),
        "{stderr}"
    );
    assert!(!logged.iter().any(|line| line.contains("sk-ant")), "{stderr}");
}
