//! The commands that need no turn, but for `sessions`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::Value;

use crate::{myclaw, run};

#[test]
fn every_help_has_examples_and_the_root_names_the_exit_codes() {
    let home = TempHome::new();
    for command in [
        "run",
        "agent",
        "chat",
        "init",
        "onboard",
        "config",
        "sessions",
        "models",
        "skills",
        "auth",
        "runner",
        "doctor",
        "completions",
    ] {
        let output = run(&home, &[command, "--help"]);
        output.assert_code(0);
        assert!(output.stdout().contains("Examples:\n  "), "{command}: {}", output.stdout());
    }
    let root = run(&home, &["--help"]);
    root.assert_code(0);
    for code in ["0  ", "1  ", "2  ", "3  ", "4  ", "130", "141"] {
        assert!(root.stdout().contains(&format!("\n  {code}  ")), "{code}: {}", root.stdout());
    }
    assert_eq!(
        run(&home, &["--version"]).stdout(),
        format!("myclaw {}\n", env!("CARGO_PKG_VERSION"))
    );
    // Help reads and writes nothing.
    assert_eq!(fs::read_dir(home.path()).expect("the home").count(), 0);
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let home = TempHome::new();
    for arguments in [
        &["rum"][..],
        &["run", "--modle", "x", "y"],
        &["sessions", "prune", "--older-than", "soon"],
    ] {
        let output = run(&home, arguments);
        output.assert_code(2);
        assert!(!output.stderr().is_empty());
    }
}

#[test]
fn a_message_without_a_command_opens_the_chat_unless_it_is_a_misspelt_command() {
    let home = TempHome::new();
    let output = run(&home, &["list my files"]);
    output.assert_code(0);
    assert!(!output.stdout().is_empty());
    for (misspelt, meant) in [(&["sessons"][..], "sessions"), (&["sesions", "list"], "sessions")] {
        let output = run(&home, misspelt);
        output.assert_code(2);
        assert!(
            output.stderr().contains(&format!("did you mean `{meant}`?")),
            "{}",
            output.stderr()
        );
    }
}

#[test]
fn a_word_that_looks_like_a_command_is_no_message() {
    let home = TempHome::new();
    for (arguments, words) in [
        (&["upgrade"][..], "docs/use/install.md"),
        (&["login"], "myclaw auth add"),
        (&["login", "anthropic"], "myclaw auth add"),
        (&["export"], "myclaw sessions export"),
        (&["remember"], "myclaw memory add"),
        (&["exec", "list the files"], "myclaw run"),
        (&["forget", "x"], "myclaw memory forget"),
        (&["security", "status"], "doctor --security"),
        (&["Login"], "myclaw auth add"),
        (&["UPGRADE"], "docs/use/install.md"),
        (&["Sessions"], "did you mean `sessions`?"),
        (&["exit"], "`/quit`"),
        (&["agent", "--message", "hi"], "myclaw run"),
        (&["resume", "--last"], "myclaw --continue"),
        (&["extensions", "list"], "myclaw mcp list"),
        (&["version"], "myclaw --version"),
        (&["frobnicate"], "there is no command `frobnicate`"),
        (&["rnu", "hi"], "did you mean `run`?"),
        (&["rnu", "hi", "there"], "did you mean `run`?"),
        (&["caht", "hi"], "did you mean `chat`?"),
        (&["-p", "hello"], "`myclaw run"),
        (&["--print", "hello"], "`myclaw run"),
        (&["--yolo"], "docs/operate/policy.md"),
        (&["--config", "other.json", "hello"], "MYCLAW_CONFIG_PATH"),
        (&["run", "--verbose", "hello"], "MYCLAW_LOG"),
        (&["gateway", "--port", "8080"], "gateway.port"),
        (&["--json", "hello"], "`myclaw run --json"),
        (&["chat", "--effort", "high"], "`--thinking LEVEL`"),
        (&["run", "--fork", "hello"], "`myclaw sessions fork"),
        (&["--output-format", "json"], "run --json"),
        (&["gateway", "stop"], "systemctl --user stop myclaw-gateway"),
        (&["config", "list"], "config get"),
        (&["models", "set", "openai/gpt-5"], "config set agents.defaults.model"),
    ] {
        let output = run(&home, arguments);
        output.assert_code(2);
        let stderr = output.stderr();
        assert!(output.stdout().is_empty() && stderr.contains(words), "{arguments:?}: {stderr}");
    }
    // Nothing was sent, and so nothing was kept.
    assert_eq!(home.transcripts(), Vec::<std::path::PathBuf>::new());
    for message in [
        &["hello"][..],
        &["update the readme of this project"],
        &["export", "the", "list"],
        &["leaks", "of", "memory", "are", "what?"],
        &["Explain"],
        &["why?"],
    ] {
        let output = run(&home, message);
        output.assert_code(0);
        assert!(!output.stdout().is_empty(), "{message:?}");
    }
}

/// A typo of a command is refused where a command of it, or an option of it, follows.
#[test]
fn a_misspelt_command_with_what_it_takes_is_no_message() {
    let home = TempHome::new();
    for (line, meant) in [
        ("gatway", "gateway"),
        ("gatway start", "gateway"),
        ("gatewya status", "gateway"),
        ("gateawy install", "gateway"),
        ("sesions list", "sessions"),
        ("sesion list", "sessions"),
        ("sessoins show main", "sessions"),
        ("sesions lsit", "sessions"),
        ("sessons rm main", "sessions"),
        ("sesions search friday", "sessions"),
        ("confg get x", "config"),
        ("conifg set a.b 1", "config"),
        ("confg get", "config"),
        ("cofnig gte a", "config"),
        ("config get", ""),
        ("modles list", "models"),
        ("model list", "models"),
        ("model test openai/gpt-5", "models"),
        ("chanels status", "channels"),
        ("channel list", "channels"),
        ("skils list", "skills"),
        ("polcy explain bash", "policy"),
        ("crno list", "cron"),
        ("atuh login", "auth"),
        ("auht list", "auth"),
        ("mpc list", "mcp"),
        ("sandbx test", "sandbox"),
        ("grups list", "groups"),
        ("workflow list", "workflows"),
        ("device list", "devices"),
        ("docter --security", "doctor"),
        ("sesions list --json", "sessions"),
        ("usge --json", "usage"),
        ("rnu --json hi", "run"),
        ("runn hello there", "run"),
        ("chatt hello there", "chat"),
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run(&home, &arguments);
        if meant.is_empty() {
            output.assert_code(0);
            continue;
        }
        output.assert_code(2);
        let stderr = output.stderr();
        let expected = format!("there is no command `{}`; did you mean `{meant}`?", arguments[0]);
        assert!(output.stdout().is_empty() && stderr.contains(&expected), "{line}: {stderr}");
    }
    assert_eq!(home.transcripts(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_sentence_that_begins_like_a_command_is_a_message() {
    let home = TempHome::new();
    for sentence in [
        "status update please write one",
        "refresh the readme",
        "test all the things",
        "list my open tasks",
        "search the web for news",
        "model list of planets as json",
        "skill list what you can do",
        "code add a function to main.rs",
        "note list of things to buy",
        "notes about the meeting",
        "session list for the conference on monday",
        "channel list of all tv stations",
        "group list the files by size",
        "most list comprehensions are slow",
        "corn add to the soup",
        "extensions are broken in this editor",
        "tools show nothing in the menu",
        "history of the roman empire",
        "security update needed for openssl?",
        "memories of my last holiday",
        "fun tests please write some",
        "ran the tests and they fail",
        "chart the numbers in data.csv",
        "one list of names please",
        "send mail to bob about lunch",
        "each line shall be shorter",
        "start with the first file",
        "set up a new project",
        "confirm set theory is consistent",
        "policies explain nothing to me",
    ] {
        let arguments: Vec<&str> = sentence.split(' ').collect();
        let output = run(&home, &arguments);
        output.assert_code(0);
        assert!(!output.stdout().is_empty(), "{sentence}");
    }
}

#[test]
fn init_writes_once_and_never_again() {
    let home = TempHome::new();
    let output = run(&home, &["init"]);
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.contains(&format!("{} (written)", home.config_path().display())), "{stdout}");
    assert!(stdout.contains(&format!("{} (written)", home.workspace().display())), "{stdout}");
    // Nothing was found on this machine, so the file pins nothing and the built-in model goes on answering.
    assert!(stdout.contains("  1. Set ANTHROPIC_API_KEY"), "{stdout}");
    assert!(stdout.contains("  2. myclaw config check"), "{stdout}");
    assert!(home.workspace().is_dir());
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    assert_eq!((mode(&home.config_path()), mode(&home.state_directory())), (0o600, 0o700));
    assert_eq!(mode(&home.workspace()), 0o700);

    run(&home, &["config", "check"]).assert_code(0);
    run(&home, &["run", "List the files in my workspace"]).assert_code(0);

    home.write_config_text("{ agent: { maxIterations: 7 } }");
    let output = run(&home, &["init"]);
    output.assert_code(0);
    assert_eq!(
        output.stdout().matches("there already, unchanged").count(),
        2,
        "{}",
        output.stdout()
    );
    assert!(output.stdout().contains("Next:\n  1. myclaw config check"), "{}", output.stdout());
    assert_eq!(
        fs::read_to_string(home.config_path()).expect("config"),
        "{ agent: { maxIterations: 7 } }"
    );
}

#[test]
fn init_writes_the_model_that_answers_without_it() {
    let home = TempHome::new();
    let mut init = myclaw(&home, &["init"]);
    RunningChild::run(init.env("OPENAI_API_KEY", "sk-x").env("MYCLAW_LOCAL_SERVERS", "none"))
        .assert_code(0);
    let text = fs::read_to_string(home.config_path()).expect("config");
    assert!(text.contains("name: \"openai\"") && text.contains("${OPENAI_API_KEY}"), "{text}");
    let mut check = myclaw(&home, &["config", "check"]);
    RunningChild::run(check.env("OPENAI_API_KEY", "sk-x")).assert_code(0);

    let server = ModelServer::spawn_blocking_thread(
        Script::repeat(Reply::openai().text("Local.")).models(["qwen3:8b"]),
    );
    let home = TempHome::new();
    let address = format!("ollama={}", server.address());
    let mut init = myclaw(&home, &["init"]);
    RunningChild::run(init.env("MYCLAW_LOCAL_SERVERS", &address)).assert_code(0);
    let text = fs::read_to_string(home.config_path()).expect("config");
    assert!(text.contains("agents: { defaults: { model: \"ollama/qwen3:8b\" } }"), "{text}");
    let mut hello = myclaw(&home, &["run", "hello"]);
    let output = RunningChild::run(hello.env("MYCLAW_LOCAL_SERVERS", &address));
    output.assert_code(0);
    assert_eq!(output.stdout(), "Local.\n");
}

#[test]
fn init_says_what_it_cannot_write() {
    let home = TempHome::new();
    home.write(".myclaw", "a file where the directory should be");
    let output = run(&home, &["init"]);
    output.assert_code(1);
    assert!(output.stderr().starts_with("myclaw: cannot write "), "{}", output.stderr());
}

#[test]
fn config_path_and_schema_need_no_config_file() {
    let home = TempHome::new();
    let output = run(&home, &["config", "path"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), format!("{}\n", home.config_path().display()));
    let output = run(&home, &["config", "schema"]);
    output.assert_code(0);
    let schema: Value = serde_json::from_str(&output.stdout()).expect("JSON");
    assert!(schema["properties"]["provider"].is_object(), "{schema}");
}

#[test]
fn config_check_says_ok_or_what_is_wrong_and_where() {
    let home = TempHome::new();
    let output = run(&home, &["config", "check"]);
    output.assert_code(3);
    assert!(output.stderr().contains("`myclaw init` writes one"), "{}", output.stderr());

    home.write_config_text("{\n  // fine so far\n  agent: { maxIteration: 7 },\n}\n");
    let output = run(&home, &["config", "check"]);
    output.assert_code(3);
    let stderr = output.stderr();
    assert!(stderr.contains("myclaw.json:3:12"), "{stderr}");
    assert!(stderr.contains("agent.maxIteration") && stderr.contains("maxIterations"), "{stderr}");
    assert_eq!(output.stdout(), "");

    home.write_config_text(r#"{ provider: { name: "anthropic", model: "m", authProfiles: [{ id: "a", apiKey: "${SOME_KEY}" }] } }"#);
    let output = run(&home, &["config", "check"]);
    output.assert_code(3);
    assert!(output.stderr().contains("SOME_KEY"), "{}", output.stderr());
    let output =
        RunningChild::run(myclaw(&home, &["config", "check"]).env("SOME_KEY", "sk-secret"));
    output.assert_code(0);
    assert_eq!(output.stdout(), format!("{}: ok\n", home.config_path().display()));
}

#[test]
fn a_secret_in_a_broken_config_file_is_not_repeated() {
    let home = TempHome::new();
    home.write_config_text(r#"{ provider: { name: "anthropic", modle: "m", authProfiles: [{ id: "a", apiKey: "sk-ant-secret" }] } }"#);
    for arguments in [&["config", "check"][..], &["run", "--json", "hi"], &["doctor"]] {
        let output = run(&home, arguments);
        output.assert_code(3);
        assert!(!output.stderr().contains("sk-ant-secret"), "{}", output.stderr());
        assert!(!output.stdout().contains("sk-ant-secret"), "{}", output.stdout());
    }
}

#[test]
fn doctor_in_an_empty_home_says_that_a_turn_can_run_and_leaves_no_trace() {
    let home = TempHome::new();
    let output = run(&home, &["doctor", "--json"]);
    output.assert_code(0);
    let checks: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let status = |name: &str| {
        let check = checks.iter().find(|check| check["check"] == name);
        check.unwrap_or_else(|| panic!("no check `{name}`: {checks:?}"))["status"]
            .as_str()
            .expect("a status")
            .to_owned()
    };
    for name in ["config", "servers", "workspace", "sessions", "terminal"] {
        assert_eq!(status(name), "ok", "{name}");
    }
    assert_eq!(status("model"), "warn");
    let model = checks.iter().find(|check| check["check"] == "model").expect("the model");
    assert!(model["next"].as_str().expect("a next step").contains("ANTHROPIC_API_KEY"), "{model}");
    assert_eq!(fs::read_dir(home.path()).expect("the home").count(), 0);
}

#[test]
fn doctor_fails_where_no_turn_can_run_and_says_what_to_do() {
    let home = TempHome::new();
    home.write_config_text(r#"{ provider: { name: "anthropic", model: "m", authProfiles: [{ id: "a", apiKey: "${NO_SUCH_KEY}" }] } }"#);
    let output = run(&home, &["doctor"]);
    output.assert_code(3);
    let stdout = output.stdout();
    assert!(stdout.contains("fail  config") && stdout.contains("-> set NO_SUCH_KEY"), "{stdout}");
    assert!(stdout.contains("ok    workspace"), "{stdout}");

    // As a turn would end.
    home.write_config_text("{ agents: { defaults: { model: \"openai/gpt-5.1\" } } }");
    run(&home, &["run", "hi"]).assert_code(3);
    let output = run(&home, &["doctor"]);
    output.assert_code(3);
    assert!(
        output.stdout().contains("fail  model") && output.stdout().contains("OPENAI_API_KEY"),
        "{}",
        output.stdout()
    );

    home.write_config_text("{ agent: { workspaceDir: \"/proc/nowhere/at/all\" } }");
    let output = run(&home, &["doctor"]);
    output.assert_code(1);
    assert!(output.stdout().contains("fail  workspace"), "{}", output.stdout());
}

#[test]
fn doctor_names_the_servers_of_this_machine() {
    let server =
        ModelServer::spawn_blocking_thread(Script::new().models(["llama3.2", "nomic-embed-text"]));
    let home = TempHome::new();
    let output = RunningChild::run(
        myclaw(&home, &["doctor"])
            .env("MYCLAW_LOCAL_SERVERS", format!("ollama={}", server.address())),
    );
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(
        stdout.contains(&format!("ollama at {} offers llama3.2\n", server.address())),
        "{stdout}"
    );
}

#[test]
fn models_are_listed_with_what_they_cost_and_whether_there_is_a_key() {
    let home = TempHome::new();
    let output = RunningChild::run(
        myclaw(&home, &["models", "list", "anthropic"]).env("ANTHROPIC_API_KEY", "k"),
    );
    output.assert_code(0);
    let stdout = output.stdout();
    let line = stdout
        .lines()
        .find(|line| line.starts_with("anthropic/claude-haiku-4-5 "))
        .expect("the model");
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["anthropic/claude-haiku-4-5", "200k", "64k", "1", "5", "yes", "off-high", "set"]
    );

    let output = run(&home, &["models", "list", "--json"]);
    output.assert_code(0);
    let models: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(models.iter().any(|model| model["provider"] == "openai" && model["key"] == "missing"));

    let output = run(&home, &["models", "list", "anthropc"]);
    output.assert_code(2);
    assert!(output.stderr().contains("did you mean `anthropic`?"), "{}", output.stderr());
}

#[test]
fn models_of_a_local_server_and_of_the_config_file_are_listed_too() {
    let server = ModelServer::spawn_blocking_thread(Script::new().models(["my-own-model"]));
    let home = TempHome::new();
    let mut config = TempHome::config_for("http://127.0.0.1:9", WireFormat::AnthropicMessages);
    config["models"] = serde_json::json!({"providers": {"lab": {
        "baseUrl": "http://127.0.0.1:9/v1", "models": [{"id": "big", "contextWindow": 64000}]
    }}});
    home.write_config(&config);
    let output = RunningChild::run(
        myclaw(&home, &["models", "list"])
            .env("MYCLAW_LOCAL_SERVERS", format!("llamacpp={}", server.address())),
    );
    output.assert_code(0);
    let stdout = output.stdout();
    for expected in ["llamacpp/my-own-model ", "lab/big ", "anthropic/claude-sonnet-4-20250514 "] {
        assert!(stdout.lines().any(|line| line.starts_with(expected)), "{expected}: {stdout}");
    }
    let line = stdout.lines().find(|line| line.starts_with("lab/big ")).expect("lab/big");
    assert_eq!(line.split_whitespace().nth(1), Some("64k"));
}

#[test]
fn completions_are_printed_for_each_shell() {
    let home = TempHome::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&home, &["completions", shell]);
        output.assert_code(0);
        assert!(output.stdout().contains("sessions"), "{shell}");
    }
    run(&home, &["completions", "tcsh"]).assert_code(2);
}
