//! Answers that are longer than a window, and calls that a model writes as text.

use std::process::Command;

use myclaw_testkit::{
    ChildOutput, ModelServer, RecordedRequest, Reply, RunningChild, Script, Step, TempHome,
    WireFormat,
};
use serde_json::{Value, json};

use crate::rpc::{Client, prompt};
use crate::{change_config, myclaw, run};

/// Tokens of the window, and the bytes that the server takes for them.
const WINDOW: usize = 128_000;
const MOST_BYTES: usize = WINDOW * 4;

/// 3.4 MB.
fn much() -> String {
    "word ".repeat(680_000)
}

/// A server whose model answers a question that contains `BIG` with `big`, and refuses requests that are too long.
fn narrow_server(big: impl Fn() -> Reply + Send + Sync + 'static) -> ModelServer {
    let answer = move |request: &RecordedRequest, _: usize| -> Step {
        if request.body_text().len() > MOST_BYTES {
            let message = "prompt is too long: 851217 tokens > 128000 maximum";
            let error = json!({"type": "invalid_request_error", "message": message});
            let body = json!({"type": "error", "error": error}).to_string();
            return Step::status(400, &[], body);
        }
        let last = request.messages().last().map(Value::to_string).unwrap_or_default();
        match last.contains("BIG") {
            true => big().step(),
            false => Reply::anthropic().text("Small.").step(),
        }
    };
    ModelServer::spawn_blocking_thread(Script::answer_with(answer))
}

fn narrow_home(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.use_server(server, WireFormat::AnthropicMessages);
    change_config(&home, |config| {
        let model = json!({"id": "claude-sonnet-4-20250514", "contextWindow": WINDOW});
        config["models"]["providers"]["anthropic"] = json!({"models": [model]});
    });
    home
}

fn say(home: &TempHome, message: &str) -> ChildOutput {
    run(home, &["run", "--session", "s", message])
}

/// The requests after the first, none of which may have been refused.
fn assert_none_is_too_long(server: &ModelServer, what: &str) {
    for request in server.requests() {
        let bytes = request.body_text().len();
        assert!(bytes <= MOST_BYTES, "{what}: a request has {bytes} bytes");
    }
}

#[test]
fn an_answer_larger_than_the_window_leaves_the_session_usable() {
    let text = || Reply::anthropic().text(much()).in_deltas(20);
    let thinking = || Reply::anthropic().thinking(much(), "sig").in_deltas(20).text("Thought.");
    let both = || Reply::anthropic().thinking(much(), "sig").in_deltas(20).text(much());
    type Big = Box<dyn Fn() -> Reply + Send + Sync>;
    let cases: [(&str, Big); 3] =
        [("text", Box::new(text)), ("thinking", Box::new(thinking)), ("both", Box::new(both))];
    for (what, big) in cases {
        let server = narrow_server(big);
        let home = narrow_home(&server);
        say(&home, "BIG please").assert_code(0);
        for message in ["Second.", "Third."] {
            let output = say(&home, message);
            output.assert_code(0);
            assert_eq!(output.stdout(), "Small.\n", "{what}");
        }
        assert_none_is_too_long(&server, what);
        // The beginning of the answer is still known.
        if what == "text" {
            let last = server.last_request().body_text();
            assert!(last.contains("word word") && last.contains("chars left out"), "{what}");
        }
    }
}

#[test]
fn arguments_larger_than_the_window_do_not_end_their_turn() {
    let big = || {
        let arguments = json!({"path": "big.txt", "content": much()});
        Reply::anthropic().tool_call("c1", "write", arguments).in_deltas(20)
    };
    let server = narrow_server(big);
    let home = narrow_home(&server);
    let output = say(&home, "BIG please");
    output.assert_code(0);
    assert_eq!(output.stdout(), "Small.\n");
    let written = home.workspace().join("big.txt");
    assert_eq!(std::fs::metadata(written).expect("the file").len(), 3_400_000);
    say(&home, "Second.").assert_code(0);
    assert_none_is_too_long(&server, "arguments");
}

/// A server of this machine that speaks OpenAI's protocol, with one model.
fn compatible(script: impl Into<Script>) -> (ModelServer, TempHome) {
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::OpenAiCompletions);
    (server, home)
}

const MARKED: &str =
    "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}\n</tool_call>";

#[test]
fn a_call_in_the_text_is_corrected_once() {
    for text in [
        MARKED,
        "{\"name\": \"bash\", \"arguments\": {\"command\": \"echo found\"}}",
        "[TOOL_CALLS]bash[ARGS]{\"command\": \"echo found\"}",
        "<function=bash><parameter=command>echo found</parameter></function>",
        "<|channel|>commentary to=functions.bash <|message|>{\"command\": \"echo found\"}",
        "```json\n{\"name\": \"bash\", \"parameters\": {\"command\": \"echo found\"}}\n```",
    ] {
        let (server, home) = compatible(Script::from([
            Reply::openai().text(text),
            Reply::openai().tool_call("c1", "bash", json!({"command": "echo found"})),
            Reply::openai().text("It says found."),
        ]));
        let output = run(&home, &["run", "--session", "s", "--json", "Look."]);
        output.assert_code(0);
        let stdout = output.stdout();
        assert!(stdout.contains("call_written_as_text"), "{text}: {stdout}");
        assert!(stdout.contains("needs a tool parser"), "{text}");
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{text}");
        let told = requests[1].messages().last().expect("a message").to_string();
        assert!(told.contains("call of the tool `bash` as text"), "{told}");
        assert!(stdout.contains("It says found."), "{text}");
    }
}

/// Marks are no answer in a terminal. `channels/failures.rs` has the chats.
#[test]
fn a_model_that_goes_on_writing_calls_as_text_is_reported() {
    let (server, home) = compatible(Script::repeat(Reply::openai().text(MARKED)));
    let output = run(&home, &["run", "Look."]);
    assert_ne!(output.code(), Some(0));
    assert!(output.stderr().contains("--tool-call-parser"), "{}", output.stderr());
    assert_eq!(server.requests().len(), 2);
    let tested = run(&home, &["models", "test", "openai/gpt-4o"]);
    assert!(tested.stdout().contains("tool parser"), "another tool: {}", tested.stdout());
}

#[test]
fn models_test_tells_of_a_server_without_a_tool_parser() {
    let text =
        "<tool_call>{\"name\": \"report\", \"arguments\": {\"word\": \"ready\"}}</tool_call>";
    let (_server, home) = compatible(Script::repeat(Reply::openai().text(text)));
    let tested = run(&home, &["models", "test", "openai/gpt-4o"]);
    assert!(tested.stdout().contains("needs a tool parser"), "{}", tested.stdout());
}

#[test]
fn an_answer_about_calls_is_an_answer() {
    let text = "A model of Qwen writes `<tool_call>{\"name\": \"bash\"}</tool_call>`.";
    let (server, home) = compatible(Script::repeat(Reply::openai().text(text)));
    let output = run(&home, &["run", "Tell me."]);
    output.assert_code(0);
    assert_eq!(output.stdout(), format!("{text}\n"));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn remains_of_a_template_in_a_name_do_not_hide_the_tool() {
    for name in
        ["functions.bash", "bash<|channel|>commentary", "functions.bash:0", "bash</tool_call>"]
    {
        let (server, home) = compatible(Script::from([
            Reply::openai().tool_call("c1", name, json!({"command": "echo found"})),
            Reply::openai().text("Done."),
        ]));
        let output = run(&home, &["run", "Look."]);
        output.assert_code(0);
        let messages = server.last_request().messages().to_vec();
        let text = messages.iter().map(Value::to_string).collect::<String>();
        assert!(text.contains("found") && !text.contains("Unknown tool"), "{name}: {text}");
        // The model reads the name that is right.
        assert!(text.contains("\"name\":\"bash\""), "{name}: {text}");
    }
}

/// What people read of a failure says what it is.
#[test]
fn a_failing_server_and_an_unknown_host_are_no_timeouts() {
    let failing = Step::status(500, &[], r#"{"error":{"message":"boom"}}"#);
    let (server, home) =
        compatible(Script::new().then(failing).then_repeat(Reply::openai().text("Yes.")));
    let output = run(&home, &["run", "Hi."]);
    output.assert_code(0);
    let stderr = output.stderr();
    assert!(stderr.contains("(server error)") && !stderr.contains("(timeout)"), "{stderr}");
    drop(server);

    change_config(&home, |config| {
        config["provider"]["baseUrl"] = json!("http://no-such-host.invalid/v1")
    });
    let mut command: Command = myclaw(&home, &["run", "Hi."]);
    let output = RunningChild::run(&mut command);
    assert_ne!(output.code(), Some(0));
    let stderr = output.stderr();
    assert!(!stderr.contains("(timeout)"), "{stderr}");
    assert!(stderr.matches("retry ").count() <= 1, "{stderr}");
    assert!(stderr.contains("cannot be found"), "{stderr}");
}

/// A failure has one name for programs, and no other for people.
#[test]
fn a_failure_is_named_as_what_it_is_wherever_it_is_shown() {
    let fails = |status: u16| {
        let body = r#"{"error":{"message":"boom"}}"#;
        (format!("status {status}"), Some(Step::status(status, &[], body)), None)
    };
    let reset = Reply::openai().text("half of it").step().reset_after(0);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = |what: &str, url: &str| (what.to_owned(), None, Some(url.to_owned()));
    let cases = [
        (fails(500), "server_error"),
        (fails(502), "server_error"),
        (fails(503), "server_error"),
        (fails(529), "server_error"),
        (fails(504), "timeout"),
        (fails(408), "timeout"),
        (("a reset".to_owned(), Some(reset), None), "network"),
        (nowhere("a refused connection", &format!("http://{closed}/v1")), "network"),
        (nowhere("an unknown host", "http://no-such-host.invalid/v1"), "network"),
        // It speaks no TLS.
        (("no TLS".to_owned(), Some(fails(500).1.unwrap()), Some("https".to_owned())), "network"),
    ];
    for ((what, step, url), name) in cases {
        let script = step.map_or_else(Script::new, Script::repeat);
        let (_server, home) = compatible(script);
        change_config(&home, |config| {
            config["agent"] = json!({"maxRetries": 0});
            let base = config["provider"]["baseUrl"].as_str().unwrap().to_owned();
            match url.as_deref() {
                Some("https") => {
                    config["provider"]["baseUrl"] = json!(base.replace("http:", "https:"));
                }
                Some(url) => config["provider"]["baseUrl"] = json!(url),
                None => {}
            }
        });
        let output = run(&home, &["run", "--json", "Hi."]);
        let stdout = output.stdout();
        let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last["type"], &last["class"]), (&json!("error"), &json!(name)), "{what}");
        let mut client = Client::start(&home);
        client.send(&prompt("Hi."));
        client.wait_for("\"run_end\"");
        let (_, lines) = client.finish();
        let classes: Vec<&str> = lines.iter().filter_map(|line| line["class"].as_str()).collect();
        assert!(
            classes.iter().all(|class| *class == name) && !classes.is_empty(),
            "{what}: {lines:#?}"
        );
        let is_timeout = name == "timeout";
        for arguments in
            [&["run", "Hi."][..], &["models", "test", "openai/gpt-4o"], &["auth", "list"]]
        {
            let output = run(&home, arguments);
            let said = output.stdout() + &output.stderr();
            assert!(is_timeout || !said.contains("timeout"), "{what} {arguments:?}: {said}");
        }
    }
}
