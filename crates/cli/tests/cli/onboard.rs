//! `myclaw onboard`: every step tries before it writes.

use std::fs;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, Step, TelegramServer, TempHome, Terminal,
};

use crate::{myclaw, run};

const KEY: &str = "sk-ant-right-0123456789-abcd";

/// A server that knows one key.
fn server() -> ModelServer {
    let script = Script::answer_with(|request, _| match request.header("x-api-key") {
        Some(KEY) => Reply::anthropic().text("ok").step(),
        _ => Step::status(
            401,
            &[],
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        ),
    });
    ModelServer::spawn_blocking_thread(script)
}

fn with_input(home: &TempHome, arguments: &[&str], input: &str) -> ChildOutput {
    let arguments: Vec<&str> = ["onboard"].iter().chain(arguments).copied().collect();
    RunningChild::run_with_input(&mut myclaw(home, &arguments), input)
}

fn text(home: &TempHome) -> String {
    fs::read_to_string(home.config_path()).expect("the config")
}

fn has_keys(home: &TempHome) -> bool {
    home.state_directory().join("agents/main/agent/auth-profiles.json").exists()
}

#[test]
fn options_set_everything_up_and_a_second_time_changes_nothing() {
    let (home, server) = (TempHome::new(), server());
    let place = home.path().join("work/here");
    let place = place.to_str().expect("UTF-8");
    let model = ["--yes", "--provider", "anthropic", "--base-url", server.url(), "--key-stdin"];
    let options: Vec<&str> = model.iter().chain(&["--workspace", place]).copied().collect();
    let output = with_input(&home, &options, &format!("{KEY}\n"));
    output.assert_code(0);
    assert!(
        output.stderr().contains("model       anthropic/claude-sonnet-4-6, answered in"),
        "{}",
        output.stderr()
    );
    let first = text(&home);
    assert!(first.contains("// All keys: docs/use/config.md") && !first.contains(KEY), "{first}");
    assert!(fs::metadata(place).expect("the workspace").is_dir());
    run(&home, &["config", "check"]).assert_code(0);
    let answer = run(&home, &["run", "hello"]);
    answer.assert_code(0);
    assert_eq!(answer.stdout(), "ok\n");
    with_input(&home, &options, KEY).assert_code(0);
    assert_eq!(text(&home), first);
    // What works stays as it is, also without the options.
    let output = with_input(&home, &["--yes"], "");
    output.assert_code(0);
    assert!(
        output.stderr().contains("anthropic/claude-sonnet-4-6, as before"),
        "{}",
        output.stderr()
    );
    assert_eq!(text(&home), first);
}

#[test]
fn a_step_that_fails_has_changed_nothing() {
    let (home, server) = (TempHome::new(), server());
    let options = ["--yes", "--provider", "anthropic", "--base-url", server.url(), "--key-stdin"];
    let output = with_input(&home, &options, "wrong-key");
    output.assert_code(4);
    let said = output.stderr();
    assert!(
        said.contains("anthropic/claude-sonnet-4-6 does not answer:")
            && !said.contains("wrong-key"),
        "{said}"
    );
    assert!(!home.config_path().exists() && !has_keys(&home));
    // Nobody can be asked, and nothing says which model.
    let output = with_input(&home, &["--yes"], "");
    output.assert_code(2);
    assert!(output.stderr().contains("name one with --provider"), "{}", output.stderr());
    let output = with_input(&home, &["--yes", "--provider", "nobody", "--model", "x"], "");
    assert!(output.stderr().contains("nobody"), "{}", output.stderr());
    let output = with_input(&home, &["--yes", "--provider", "ollama"], "");
    assert!(output.stderr().contains("`--model ID`"), "{}", output.stderr());
    // A working set-up survives a wrong key.
    with_input(&home, &options, KEY).assert_code(0);
    let before = text(&home);
    assert_ne!(with_input(&home, &options, "wrong-key").code(), Some(0));
    assert_eq!(text(&home), before);
    run(&home, &["run", "hello"]).assert_code(0);
    // A file with mistakes is not touched.
    home.write_config_text("{ agent: { maxIterations: 'x' } }");
    with_input(&home, &options, KEY).assert_code(3);
    assert_eq!(text(&home), "{ agent: { maxIterations: 'x' } }");
}

#[test]
fn a_channel_is_tried_with_its_vendor() {
    let (home, server, bot) = (TempHome::new(), server(), TelegramServer::start());
    let model = ["--yes", "--provider", "anthropic", "--base-url", server.url(), "--key-stdin"];
    with_input(&home, &model, KEY).assert_code(0);
    let before = text(&home);
    let url = bot.url();
    let options = ["onboard", "--yes", "--channel", "telegram", "--channel-url", &url];
    let output = run(&home, &options);
    output.assert_code(2);
    assert!(output.stderr().contains("TELEGRAM_BOT_TOKEN is not set"), "{}", output.stderr());
    let with_token =
        |token: &str| RunningChild::run(myclaw(&home, &options).env("TELEGRAM_BOT_TOKEN", token));
    let output = with_token("1:wrong");
    assert_ne!(output.code(), Some(0));
    assert!(output.stderr().contains("Nothing was written"), "{}", output.stderr());
    assert_eq!(text(&home), before);
    with_token(bot.token()).assert_code(0);
    assert!(
        text(&home).contains("\"${TELEGRAM_BOT_TOKEN}\"") && !text(&home).contains(bot.token())
    );
    // Typed, the token goes into `.env`.
    home.write_config_text(&before);
    let answers = format!("y\n\ntelegram\n{}\nn\n", bot.token());
    let output = with_input(
        &home,
        &["--channel-url", &url, "--channel", "telegram"],
        &answers.replace("telegram\n", ""),
    );
    output.assert_code(0);
    let variables = fs::read_to_string(home.state_directory().join(".env")).expect("the variables");
    assert_eq!(variables, format!("TELEGRAM_BOT_TOKEN={}\n", bot.token()));
    run(&home, &["channels", "probe"]).assert_code(0);
}

#[test]
fn a_wrong_token_does_not_end_the_wizard() {
    let (home, server, bot) = (TempHome::new(), server(), TelegramServer::start());
    let model = ["--yes", "--provider", "anthropic", "--base-url", server.url(), "--key-stdin"];
    with_input(&home, &model, KEY).assert_code(0);
    let before = text(&home);
    // Without the channel it continues.
    let output = with_input(
        &home,
        &["--channel-url", &bot.url(), "--channel", "telegram"],
        "y\n\n1:wrong\nn\nn\n",
    );
    output.assert_code(0);
    let said = output.stderr();
    assert_eq!(said.matches("telegram cannot be used: ").count(), 1, "{said}");
    assert!(said.contains("@BotFather") && said.contains("next        myclaw"), "{said}");
    assert!(!said.contains("1:wrong"), "{said}");
    assert_eq!(text(&home), before);
    assert!(!home.state_directory().join(".env").exists());
    // Or the next one is right.
    let url = bot.url();
    let mut terminal = Terminal::spawn(&myclaw(
        &home,
        &["onboard", "--channel", "telegram", "--channel-url", &url],
    ));
    terminal.expect("Keep it?");
    terminal.send("y\r");
    terminal.expect("Directory in which it works");
    terminal.send("\r");
    terminal.expect("TELEGRAM_BOT_TOKEN (not shown)");
    terminal.send("1:wrong\r");
    terminal.expect("telegram cannot be used: ");
    terminal.expect("Try the channel again?");
    terminal.send("\r");
    terminal.expect("TELEGRAM_BOT_TOKEN (not shown)");
    terminal.send(&format!("{}\r", bot.token()));
    terminal.expect("channel     telegram: @");
    terminal.expect("Start the gateway with your session");
    terminal.send("\r");
    terminal.expect("myclaw gateway");
    assert!(terminal.wait().success());
    assert!(!String::from_utf8_lossy(&terminal.raw()).contains(bot.token()));
    run(&home, &["channels", "probe"]).assert_code(0);
}

#[test]
fn a_secret_among_the_values_is_kept_beside_the_config() {
    let (home, server) = (TempHome::new(), server());
    let model = ["--yes", "--provider", "anthropic", "--base-url", server.url(), "--key-stdin"];
    with_input(&home, &model, KEY).assert_code(0);
    let secret = r#"a"b#c'd\e$f`0123456789abcdef0123456789"#;
    let (set, url) = (format!("secret={secret}"), server.url());
    let options =
        ["onboard", "--yes", "--channel", "webhook", "--channel-url", url, "--channel-set", &set];
    // A variable of this name would hide it.
    let hidden = RunningChild::run(myclaw(&home, &options).env("WEBHOOK_SECRET", "other"));
    hidden.assert_code(2);
    assert!(hidden.stderr().contains("WEBHOOK_SECRET is set already"), "{}", hidden.stderr());
    let kept = run(&home, &options);
    kept.assert_code(0);
    assert!(
        kept.stderr().contains("channel     webhook: the program at url answers"),
        "{}",
        kept.stderr()
    );
    assert!(text(&home).contains("\"${WEBHOOK_SECRET}\"") && !text(&home).contains("a\\\"b"));
    let variables = fs::read_to_string(home.state_directory().join(".env")).expect("the variables");
    assert_eq!(
        variables,
        concat!(r#"WEBHOOK_SECRET="a\"b#c'd\\e$f`0123456789abcdef0123456789""#, "\n")
    );
    // It is read as it was given.
    run(&home, &["channels", "list"]).assert_code(0);
    // What is no value may be a secret, so it is not repeated.
    let bad = run(&home, &["onboard", "--yes", "--channel", "irc", "--channel-set", "hunter2"]);
    bad.assert_code(2);
    assert!(
        bad.stderr().contains("KEY=VALUE") && !bad.stderr().contains("hunter2"),
        "{}",
        bad.stderr()
    );
}

#[test]
fn a_person_is_asked_and_asked_again() {
    let (home, server) = (TempHome::new(), server());
    let url = server.url();
    home.write_config_text(&format!(
        "{{ models: {{ providers: {{ anthropic: {{ baseUrl: \"{url}\" }} }} }} }}"
    ));
    let mut terminal = Terminal::spawn(&myclaw(&home, &["onboard"]));
    terminal.expect("No model can be used yet.");
    terminal.expect("Provider of the model");
    terminal.send("\r");
    terminal.expect("Model [claude-sonnet-4-6]");
    terminal.send("\r");
    terminal.expect("Key for anthropic (not shown)");
    terminal.send("wrong-key\r");
    terminal.expect("does not answer");
    terminal.expect("Provider of the model");
    terminal.send("\r");
    terminal.expect("Model [claude-sonnet-4-6]");
    terminal.send("\r");
    terminal.expect("Key for anthropic (not shown)");
    terminal.send(&format!("{KEY}\r"));
    terminal.expect("answered in");
    terminal.expect("Directory in which it works");
    terminal.send("\r");
    terminal.expect("A channel to reach it");
    terminal.send("\r");
    terminal.expect("Start the gateway with your session");
    terminal.send("\r");
    terminal.expect("myclaw gateway");
    assert!(terminal.wait().success());
    assert!(!String::from_utf8_lossy(&terminal.raw()).contains(KEY));
}
