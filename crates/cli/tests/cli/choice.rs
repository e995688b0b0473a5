//! Which model answers where nothing is configured, and what is said about it.

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, Terminal, WireFormat};
use serde_json::json;

use crate::{myclaw, run, serve};

const MODEL: &str = "anthropic/claude-sonnet-4-20250514";

#[test]
fn with_nothing_at_all_the_planner_answers_with_real_tools_and_says_what_it_is() {
    let home = TempHome::new();
    home.write_in_workspace("plan.txt", "1. rest\n");
    let output = run(&home, &["run", "--quiet", "List the files in my workspace"]);
    output.assert_code(0);
    assert!(output.stdout().contains("plan.txt"), "{}", output.stdout());
    let stderr = output.stderr();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.starts_with("myclaw: builtin/demo answers: a small built-in planner"),
        "{stderr}"
    );
    assert!(stderr.contains("ANTHROPIC_API_KEY") && stderr.contains("myclaw init"), "{stderr}");
}

#[test]
fn on_a_narrow_terminal_the_words_of_what_is_said_stay_whole() {
    let home = TempHome::new();
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["-s", "a-long-name"]), 40, 30);
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    let words: Vec<&str> = screen.split_whitespace().collect();
    for said in [
        "answers: a small built-in planner, not a language model",
        "builtin/demo, session `a-long-name`, /help for help",
    ] {
        assert!(words.join(" ").contains(said), "{screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
}

#[test]
fn a_server_on_this_machine_goes_before_the_planner_and_a_key_before_both() {
    let server = ModelServer::spawn_blocking_thread(
        Script::repeat(Reply::openai().text("Hello from here.")).models(["qwen3:8b"]),
    );
    let home = TempHome::new();
    let address = format!("ollama={}", server.address());
    let output =
        RunningChild::run(myclaw(&home, &["run", "hello"]).env("MYCLAW_LOCAL_SERVERS", &address));
    output.assert_code(0);
    assert_eq!(output.stdout(), "Hello from here.\n");
    let stderr = output.stderr();
    let announced = format!(
        "myclaw: ollama/qwen3:8b answers, from the server at http://{}/v1;",
        server.address()
    );
    assert!(stderr.starts_with(&announced) && stderr.contains("--model"), "{stderr}");

    // No key is asked of a provider that does not exist here, so the failure shows which one was chosen.
    let output = RunningChild::run(
        myclaw(&home, &["doctor", "--json"])
            .env("MYCLAW_LOCAL_SERVERS", &address)
            .env("OPENAI_API_KEY", "sk-very-secret"),
    );
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.contains("because OPENAI_API_KEY is set"), "{stdout}");
    assert!(!stdout.contains("sk-very-secret"), "{stdout}");
}

#[test]
fn on_a_narrow_terminal_runs_and_lists_break_no_word() {
    let (server, home) = serve(Script::repeat(Reply::anthropic().text("Done.").usage(12_345, 678)));
    let said = "compare the timetables of all southern railways";
    let shown = |arguments: &[&str], expected: &str| {
        let mut terminal = Terminal::spawn_sized(&myclaw(&home, arguments), 45, 30);
        let words = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ");
        terminal.expect_screen(|screen| words(screen).contains(expected));
        assert!(terminal.wait().success());
    };
    shown(&["run", said], "678 out, $0.0472, anthropic/claude-sonnet-4-20250514");
    shown(&["sessions", "list"], &format!("claude-sonnet-4-20250514 13023 {said}"));
    let long =
        "The server at http://127.0.0.1:9/v1 answers with claude-sonnet-4-20250514 every day";
    server.push(Reply::anthropic().text("Done."));
    run(&home, &["run", long]).assert_code(0);
    shown(&["sessions", "show", "main"], long);
    shown(&["skills", "list"], "`myclaw skills --help` says where they are looked for");
}

#[test]
fn init_keeps_the_address_of_a_server_at_an_unusual_port() {
    let script = Script::repeat(Reply::openai().text("Yes.")).models(["weights.gguf"]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let address = format!("llamacpp={}", server.address());
    RunningChild::run(myclaw(&home, &["init"]).env("MYCLAW_LOCAL_SERVERS", &address))
        .assert_code(0);
    let config = std::fs::read_to_string(home.config_path()).unwrap();
    let base_url = format!("\"llamacpp\": {{ baseUrl: \"http://{}/v1\" }}", server.address());
    assert!(config.contains(&base_url), "{config}");
    run(&home, &["config", "check"]).assert_code(0);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Yes.\n");
    // The list asks the server where the config says that it is, and not at the usual port.
    let usual = [("MYCLAW_LOCAL_SERVERS", "llamacpp=127.0.0.1:9")];
    let list = ["models", "list", "llamacpp"];
    let output = RunningChild::run(myclaw(&home, &list).envs(usual));
    output.assert_code(0);
    assert!(output.stdout().contains("llamacpp/weights.gguf"), "{}", output.stdout());
    run(&home, &["config", "unset", "agents"]).assert_code(0);
    let base_url = format!("http://{}/v1", server.address());
    drop(server);
    let output = RunningChild::run(myclaw(&home, &list).envs(usual));
    assert!(output.stderr().contains(&format!("its server answers at {base_url};")), "{output:?}");
}

#[test]
fn a_discovered_server_states_its_window_in_the_list_and_ollama_is_asked_for_its_own() {
    let list = json!({"data": [{"id": "weights.gguf", "meta": {"n_ctx": 20_000}}]});
    let script = Script::repeat(Reply::openai().text("Yes.")).document("/v1/models", list);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let address = format!("llamacpp={}", server.address());
    let output =
        RunningChild::run(myclaw(&home, &["run", "hello"]).env("MYCLAW_LOCAL_SERVERS", &address));
    output.assert_code(0);
    assert!(output.stderr().contains("a context window of 20000 tokens"), "{}", output.stderr());
    assert_eq!(server.all_requests().len(), 2, "the list and the call");

    let show = ["models", "show", "llamacpp/weights.gguf"];
    let output = RunningChild::run(myclaw(&home, &show).env("MYCLAW_LOCAL_SERVERS", &address));
    output.assert_code(0);
    let stdout = output.stdout();
    let window = stdout.lines().find(|line| line.starts_with("context window")).unwrap();
    assert!(window.contains("20000 tokens") && window.ends_with("server"), "{stdout}");

    let script = Script::new()
        .models(["qwen3:8b"])
        .document("/api/show", json!({"model_info": {"qwen3.context_length": 40_960}}))
        .document("/api/ps", json!({"models": [{"model": "qwen3:8b", "context_length": 4_096}]}));
    let server = ModelServer::spawn_blocking_thread(script);
    let address = format!("ollama={}", server.address());
    for (arguments, code) in [(&["run", "hello"][..], 4), (&["doctor"], 0)] {
        let output =
            RunningChild::run(myclaw(&home, arguments).env("MYCLAW_LOCAL_SERVERS", &address));
        output.assert_code(code);
        let said = output.stdout() + &output.stderr();
        assert!(
            said.contains("is 4096 tokens") && said.contains("OLLAMA_CONTEXT_LENGTH"),
            "{said}"
        );
    }
    assert_eq!(server.requests().len(), 0, "nothing is sent that would be cut off");
}

#[test]
fn the_config_file_goes_first_and_needs_no_announcement() {
    let server =
        ModelServer::spawn_blocking_thread(Script::from(Reply::openai().text("Configured.")));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::OpenAiCompletions);
    let output =
        RunningChild::run(myclaw(&home, &["run", "hello"]).env("ANTHROPIC_API_KEY", "sk-other"));
    output.assert_code(0);
    assert_eq!(output.stdout(), "Configured.\n");
    assert_eq!(output.stderr().lines().count(), 1, "the usage alone: {}", output.stderr());
    assert_eq!(server.last_request().header("authorization"), Some("Bearer test-key"));
}

#[test]
fn a_model_on_the_command_line_goes_before_the_config_file() {
    let configured = ModelServer::spawn_blocking_thread(Script::new());
    let home = TempHome::new();
    home.use_server(&configured, WireFormat::AnthropicMessages);
    let output = run(&home, &["run", "--model", "builtin/demo", "List the files in my workspace"]);
    output.assert_code(0);
    assert!(output.stderr().starts_with("myclaw: builtin/demo answers"), "{}", output.stderr());
    assert_eq!(configured.requests().len(), 0);
}

#[test]
fn a_model_that_cannot_be_used_is_a_usage_error_that_helps() {
    let home = TempHome::new();
    for (model, help) in [
        ("openai/gpt-5.1", "OPENAI_API_KEY"),
        ("antropic/claude-sonnet-4-6", "`anthropic`"),
        ("claude-sonnet-4-6", "anthropic/claude-sonnet-4-6"),
        ("", "provider/model"),
    ] {
        let output = run(&home, &["run", "--model", model, "hello"]);
        output.assert_code(2);
        assert!(output.stderr().contains(help), "{model}: {}", output.stderr());
    }
}

#[test]
fn a_key_in_the_state_directorys_env_file_counts() {
    let home = TempHome::new();
    home.write(".myclaw/.env", "GEMINI_API_KEY=g-secret\n");
    let output = run(&home, &["doctor"]);
    output.assert_code(0);
    assert!(output.stdout().contains("because GEMINI_API_KEY is set"), "{}", output.stdout());
    assert!(!output.stdout().contains("g-secret"));
}

#[test]
fn a_wrong_list_of_servers_is_reported() {
    let home = TempHome::new();
    let output =
        RunningChild::run(myclaw(&home, &["run", "hello"]).env("MYCLAW_LOCAL_SERVERS", "ollama"));
    output.assert_code(2);
    assert!(output.stderr().contains("MYCLAW_LOCAL_SERVERS"), "{}", output.stderr());
}

#[test]
fn what_a_variable_holds_is_a_key_and_never_a_command_or_a_file() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("Hi.")));
    let home = TempHome::new();
    let config = json!({"models": {"providers": {"anthropic": {"baseUrl": server.url()}}}});
    home.write_config(&config);
    let secret = home.write("secret", "of somebody else");
    let values = ["!touch pwned; echo K", &format!("file:{}", secret.display()), "env:HOME"];
    for value in values {
        let talk: &[&str] = &["run", "--model", MODEL, "hello"];
        for arguments in [talk, &["models", "test", MODEL]] {
            let mut command = myclaw(&home, arguments);
            command.current_dir(home.path());
            RunningChild::run(command.env("ANTHROPIC_API_KEY", value)).assert_code(0);
            assert_eq!(server.last_request().header("x-api-key"), Some(value));
        }
    }
    assert!(!home.path().join("pwned").exists() && !home.workspace().join("pwned").exists());
}

#[test]
fn the_key_of_a_session_names_the_agent_that_answers() {
    let server =
        ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("Yes.")));
    let home = TempHome::new();
    home.write_config(&json!({
        "agents": {"defaults": {"model": "lab/first"}, "list": [
            {"id": "main", "default": true}, {"id": "ops", "model": "lab/second"},
        ]},
        "models": {"providers": {"lab": {"baseUrl": server.url(), "api": "anthropic-messages"}}},
    }));
    run(&home, &["run", "--session", "agent:ops:main", "hello"]).assert_code(0);
    assert_eq!(server.last_request().json()["model"], "second");
    run(&home, &["run", "--session", "agent:ops:main", "--agent", "main", "hello"]).assert_code(0);
    assert_eq!(server.last_request().json()["model"], "first");

    let file = home.write("saved.json", r#"[{"role": "user", "content": "hello"}]"#);
    let file = file.to_string_lossy();
    for refused in [
        &["run", "--session", "agent:opps:main", "hello"][..],
        &["sessions", "fork", "agent:ops:main", "agent:opps:main"],
        &["sessions", "import", &file, "--agent", "opps"],
        &["sessions", "import", &file, "--session", "agent:opps:main"],
    ] {
        let output = run(&home, refused);
        output.assert_code(2);
        let stderr = output.stderr();
        assert!(
            stderr.contains("there is no agent `opps`; known: `main`, `ops`"),
            "{refused:?}: {stderr}"
        );
    }
    run(&home, &["sessions", "import", &file, "--agent", "ops"]).assert_code(0);
}

#[test]
fn the_list_says_which_keys_come_from_variables() {
    let home = TempHome::new();
    let mut listing = myclaw(&home, &["auth", "list", "anthropic"]);
    let listed =
        RunningChild::run(listing.env("ANTHROPIC_API_KEY", "sk-ant-0123456789-abcd")).stdout();
    let row = listed.lines().nth(1).unwrap_or_default();
    assert!(row.contains("  variable  env:ANTHROPIC_API_KEY  "), "{listed}");
}
