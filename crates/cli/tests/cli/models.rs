//! `myclaw models`: what is listed, what is known about one model, and whether it works.

use std::net::TcpListener;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{myclaw, run, serve};

const CLAUDE: &str = "anthropic/claude-haiku-4-5";

/// A server that answers `step`, and a home that knows it.
fn tested(step: impl Into<Step>) -> (ModelServer, TempHome) {
    let (server, home) = serve(step.into());
    (server, home)
}

#[test]
fn a_search_finds_names_and_a_provider_is_an_option_too() {
    let home = TempHome::new();
    let output = run(&home, &["models", "list", "--provider", "anthropic", "--search", "HAIKU"]);
    output.assert_code(0);
    let stdout = output.stdout();
    let names: Vec<&str> =
        stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&CLAUDE), "{stdout}");
    assert!(names.iter().all(|name| name.starts_with("anthropic/claude-haiku")), "{stdout}");

    let output = run(&home, &["models", "list", "--search", "no such model"]);
    output.assert_code(2);
    assert!(output.stderr().contains("no known model has `no such model`"), "{}", output.stderr());
}

#[test]
fn all_that_is_known_about_a_model_is_shown_with_its_source() {
    let home = TempHome::new();
    home.write_config(&json!({"models": {"providers": {"anthropic": {
        "headers": {"x-team": "very-secret"},
        "models": [{"id": "claude-haiku-4-5", "maxOutput": 1000}],
    }}}}));
    let output = RunningChild::run(
        myclaw(&home, &["models", "show", CLAUDE]).env("ANTHROPIC_API_KEY", "sk-very-secret"),
    );
    output.assert_code(0);
    let stdout = output.stdout();
    let expected = "\
model           anthropic/claude-haiku-4-5
wire format     anthropic-messages                                                      catalog
base URL        https://api.anthropic.com                                               catalog
context window  200000 tokens                                                           catalog
output limit    1000 tokens                                                             config
input           text, image                                                             catalog
price           $1 in, $5 out, $0.1 cache read, $1.25 cache write per million tokens    catalog
thinking        off, minimal, low, medium, high                                         catalog
thinking form   budget                                                                  catalog
key             the variable ANTHROPIC_API_KEY
headers         x-team                                                                  config
";
    let squeezed = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(squeezed(&stdout), squeezed(expected));
    assert!(!stdout.contains("very-secret"), "{stdout}");

    let output = run(&home, &["models", "show", "anthropic/claude-unheard-of", "--json"]);
    output.assert_code(0);
    let shown: Value = serde_json::from_str(&output.stdout()).expect("JSON");
    assert_eq!(shown["contextWindow"], 200_000);
    assert_eq!(shown["key"], "missing");
    assert_eq!(
        (&shown["origins"]["contextWindow"], &shown["origins"]["baseUrl"]),
        (&json!("guess"), &json!("catalog"))
    );

    let output = run(&home, &["models", "show", "anthropc/x"]);
    output.assert_code(2);
    assert!(output.stderr().contains("did you mean `anthropic`?"), "{}", output.stderr());
}

#[test]
fn a_key_that_is_kept_counts() {
    let home = TempHome::new();
    let key_of = |model: &str| {
        let listed = run(&home, &["models", "list", "--search", model, "--json"]);
        listed.assert_code(0);
        let listed: Vec<Value> =
            listed.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let shown = run(&home, &["models", "show", model]);
        shown.assert_code(0);
        let shown = shown.stdout();
        let line = shown.lines().find(|line| line.starts_with("key ")).expect("a line on the key");
        (listed[0]["key"].clone(), line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (model, cloud) = ("groq/openai/gpt-oss-120b", "amazon-bedrock/us.anthropic.claude-opus-5");
    let advice = "key missing: `myclaw auth add groq`, or set GROQ_API_KEY";
    assert_eq!(key_of(model), (json!("missing"), advice.to_owned()));
    assert_eq!(key_of(cloud).0, "cloud");
    for provider in ["groq", "amazon-bedrock"] {
        let mut add = myclaw(&home, &["auth", "add", provider, "--profile", "work"]);
        RunningChild::run_with_input(&mut add, "key-0123456789").assert_code(0);
    }
    let kept = "key kept by `myclaw auth` (groq:work)";
    assert_eq!(key_of(model), (json!("set"), kept.to_owned()));
    assert_eq!(key_of(cloud).0, "set");
    let other = key_of("anthropic/claude-haiku-4-5");
    assert_eq!(other.0, "missing");
}

#[test]
fn a_model_that_works_is_said_to_work() {
    let reply = Reply::anthropic()
        .text("Hello there.")
        .tool_call("call_1", "report", json!({"word": "ready"}))
        .usage(200, 30);
    let (server, home) = tested(reply);
    let output = run(&home, &["models", "test", CLAUDE]);
    output.assert_code(0);
    let stdout = output.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].contains("answers (anthropic-messages at http://127.0.0.1"), "{stdout}");
    for (line, words) in lines[1..].iter().zip([
        ["text", "ok", "Hello there."],
        ["tool call", "ok", r#"report {"word":"ready"}"#],
        ["streaming", "ok", "pieces, the first after"],
        ["usage", "ok", "200 tokens in, 30 out"],
        ["latency", "ok", "ms"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {stdout}");
    }
    assert_eq!(lines.len(), 6, "{stdout}");
    let request = server.last_request();
    assert_eq!(request.json()["tools"][0]["name"], "report");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_does_not_work_is_said_too() {
    let (_server, home) = tested(Reply::anthropic().text("Hello.").in_deltas(1));
    let output = run(&home, &["models", "test", CLAUDE]);
    output.assert_code(0);
    let stdout = output.stdout();
    for words in ["tool call   no  the model was asked", "streaming   no"] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&stdout).contains(&squeezed(words)), "{words}: {stdout}");
    }
}

#[test]
fn failures_say_what_to_mend() {
    let unknown_key = json!({"type": "error", "error": {
        "type": "authentication_error", "message": "invalid x-api-key"
    }});
    let unknown_model = json!({"type": "error", "error": {
        "type": "not_found_error", "message": "model: claude-haiku-4-5"
    }});
    let page = "<!doctype html><html><head><title>Sign in</title></head><body></body></html>";
    for (step, words) in [
        (Step::status(401, &[], unknown_key.to_string()), ["does not work", "invalid x-api-key"]),
        (Step::status(404, &[], unknown_model.to_string()), ["does not work", "model: claude"]),
        (Step::status(404, &[], "404 page not found"), ["does not work", "404"]),
        (Step::html(page), ["web page", "Sign in"]),
    ] {
        let (_server, home) = tested(step);
        let output = run(&home, &["models", "test", CLAUDE]);
        output.assert_code(4);
        let stderr = output.stderr();
        assert_eq!(output.stdout(), "");
        assert!(words.iter().all(|word| stderr.contains(word)), "{words:?}: {stderr}");
        assert!(!stderr.contains("test-key"), "{stderr}");
    }
}

#[test]
fn a_server_that_is_not_there_and_a_key_that_is_missing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let home = TempHome::new();
    home.write_config(&TempHome::config_for(
        &format!("http://{address}"),
        WireFormat::AnthropicMessages,
    ));
    let output = run(&home, &["models", "test", CLAUDE]);
    output.assert_code(4);
    assert!(output.stderr().contains("nothing listens"), "{}", output.stderr());

    let output = run(&home, &["models", "test", "openai/gpt-5.1"]);
    output.assert_code(2);
    assert!(output.stderr().contains("OPENAI_API_KEY"), "{}", output.stderr());

    let output = run(&home, &["models", "test", "azure-openai/gpt-5"]);
    output.assert_code(2);
    assert!(
        output.stderr().contains("models.providers.azure-openai.baseUrl"),
        "{}",
        output.stderr()
    );
}

#[test]
fn a_model_that_the_settings_exclude_is_refused() {
    let (server, home) = tested(Reply::anthropic().text("Hello."));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"] = json!({"defaults": {"models": ["anthropic/claude-sonnet-4-20250514"]}});
    home.write_config(&config);
    let output = run(&home, &["run", "--model", CLAUDE, "hello"]);
    output.assert_code(2);
    let stderr = output.stderr();
    assert!(stderr.contains("agents.defaults.models"), "{stderr}");
    assert!(server.requests().is_empty());
    run(&home, &["run", "hello"]).assert_code(0);
}

#[test]
fn a_level_of_thinking_goes_to_the_model_and_a_missing_one_is_reported_once() {
    let (server, home) = serve(myclaw_testkit::Script::repeat(Reply::anthropic().text("Well.")));
    let thinking = || server.last_request().json()["thinking"].clone();
    let output = run(&home, &["run", "--model", CLAUDE, "--thinking", "low", "hello"]);
    output.assert_code(0);
    assert_eq!(thinking()["budget_tokens"], 4_096);
    assert!(!output.stderr().contains("thinking level"), "{}", output.stderr());

    let output = run(&home, &["run", "--model", CLAUDE, "--thinking", "xhigh", "hello"]);
    output.assert_code(0);
    assert_eq!(thinking()["budget_tokens"], 20_480);
    let stderr = output.stderr();
    assert_eq!(stderr.matches("thinking level xhigh").count(), 1, "{stderr}");
    assert!(stderr.contains("off, minimal, low, medium, high; high is used"), "{stderr}");

    // The default is not the user's wish, so nothing is said of it.
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(thinking()["budget_tokens"], 20_480, "the catalog knows that the model can think");
    assert!(!output.stderr().contains("thinking"), "{}", output.stderr());

    let output = run(&home, &["run", "--thinking", "more", "hello"]);
    output.assert_code(2);
    assert!(output.stderr().contains("not a thinking level"), "{}", output.stderr());
}

#[test]
fn a_chat_changes_the_model_and_how_much_it_thinks() {
    let (server, home) = serve(myclaw_testkit::Script::repeat(Reply::anthropic().text("Well.")));
    let input = format!(
        "/model\n/model {CLAUDE}\n/thinking\n/thinking medium\none\n/thinking xhigh\ntwo\nthree\n/thinking more\n/quit\n"
    );
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["chat"]), input);
    output.assert_code(0);
    let stdout = output.stdout();
    for words in [
        "anthropic/claude-sonnet-4-20250514 answers; /model",
        "anthropic/claude-haiku-4-5 answers from now on",
        "the thinking level is high; anthropic/claude-haiku-4-5 offers off, minimal, low, medium, high",
        "the thinking level is medium from now on",
        "does not offer the thinking level xhigh but off, minimal, low, medium, high; high is used",
        "\"more\" is not a thinking level",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    assert!(!output.stderr().contains("thinking level"), "said once: {}", output.stderr());
    let budgets: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| request.json()["thinking"]["budget_tokens"].clone())
        .collect();
    assert_eq!(budgets, [json!(10_240), json!(20_480), json!(20_480)]);
}

#[test]
fn the_password_in_an_address_is_not_shown() {
    let server =
        ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text("Hello.")));
    let home = TempHome::new();
    let base_url = server.url().replace("http://", "http://user:SECRET@PASS@");
    home.write_config(&json!({
        "agents": {"defaults": {"model": "lab/m"}},
        "models": {"providers": {"lab": {
            "baseUrl": base_url, "api": "anthropic-messages", "models": [{"id": "m"}],
        }}},
    }));
    let shown = server.url().replace("http://", "http://…@");
    for arguments in [
        &["models", "show", "lab/m"][..],
        &["models", "show", "lab/m", "--json"],
        &["models", "list", "lab", "--json"],
        &["models", "test", "lab/m"],
        &["models", "test", "lab/m", "--json"],
    ] {
        let output = run(&home, arguments);
        output.assert_code(0);
        let stdout = output.stdout();
        assert!(stdout.contains(&shown) && !stdout.contains("PASS"), "{arguments:?}: {stdout}");
    }
}

#[test]
fn no_value_of_an_addresss_query_is_printed() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::openai().text("Hi.")));
    let home = TempHome::new();
    let base_url = format!("{}/v1?key=QUERY-SECRET&plain", server.url());
    home.write_config(&json!({ "models": { "providers": { "mine": {
        "baseUrl": base_url, "models": [{ "id": "m" }],
    } } } }));
    for arguments in
        [&["models", "show", "mine/m"][..], &["models", "test", "mine/m"], &["models", "list"]]
    {
        for json in [false, true] {
            let mut arguments = arguments.to_vec();
            arguments.extend(json.then_some("--json"));
            let output = run(&home, &arguments);
            let shown = output.stdout() + &output.stderr();
            assert!(!shown.contains("QUERY-SECRET"), "{arguments:?}: {shown}");
        }
    }
    let output = run(&home, &["models", "show", "mine/m"]);
    assert!(output.stdout().contains("/v1?key=…&…"), "{}", output.stdout());
}
