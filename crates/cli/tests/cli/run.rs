//! `myclaw run`.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Step, Stop, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{always, home_with, myclaw, run, serve};

fn lines_of_json(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

fn turn_with_a_tool() -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().text("Let me look.").tool_call(
            "call_1",
            "bash",
            json!({"command": "echo found"}),
        ),
        Reply::anthropic().text("It says found.").usage(120, 30).cache_usage(70, 0),
    ]))
}

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let server = turn_with_a_tool();
    let home = home_with(&server);
    let output = run(&home, &["run", "look", "around"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Let me look.\nIt says found.\n");
    let stderr = output.stderr();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert_eq!(lines[0], "tool start bash echo found");
    assert!(lines[1].starts_with("tool ok bash ") && lines[1].ends_with(" ms"), "{stderr}");
    assert!(
        lines[2].contains(" s, 2 iterations, ") && lines[2].contains(", 70 from cache, "),
        "{stderr}"
    );
    assert!(lines[2].ends_with(", anthropic/claude-sonnet-4-20250514"), "{stderr}");
    let said = server.requests()[0].messages()[0]["content"].to_string();
    assert!(said.contains("look around"), "{said}");
    server.assert_finished();
}

#[test]
fn a_failed_tool_is_reported_with_its_reason() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "read", json!({"path": "nowhere.txt"})),
        Reply::anthropic().text("There is no such file."),
    ]));
    let output = run(&home_with(&server), &["run", "read it"]);
    output.assert_code(0);
    let stderr = output.stderr();
    let line = stderr
        .lines()
        .find(|line| line.starts_with("tool error read "))
        .unwrap_or_else(|| panic!("{stderr}"));
    assert!(line.contains("nowhere.txt"), "{line}");
}

#[test]
fn quiet_leaves_the_answer_alone() {
    let server = turn_with_a_tool();
    let output = run(&home_with(&server), &["agent", "--quiet", "look"]);
    output.assert_code(0);
    assert_eq!(
        (output.stdout().as_str(), output.stderr().as_str()),
        ("Let me look.\nIt says found.\n", "")
    );
}

#[test]
fn json_is_one_event_per_line_and_nothing_else() {
    let server = turn_with_a_tool();
    let output = run(&home_with(&server), &["run", "--json", "look"]);
    output.assert_code(0);
    let events = lines_of_json(&output.stdout());
    let others: Vec<&str> =
        types(&events).into_iter().filter(|kind| *kind != "llm_stream").collect();
    assert_eq!(
        others,
        [
            "run_start",
            "llm_start",
            "llm_usage",
            "llm_end",
            "tool_start",
            "tool_end",
            "llm_start",
            "llm_usage",
            "llm_end",
            "done",
            "run_end"
        ]
    );
    let run = &events[0]["run"];
    assert!(run.is_string(), "{}", events[0]);
    let session = "agent:main:channel:cli:account:default:peer:direct:main";
    assert!(events.iter().all(|event| event["run"] == *run && event["session"] == session));
    let start = events.iter().find(|event| event["type"] == "tool_start").expect("a start");
    assert_eq!(
        *start,
        json!({
            "type": "tool_start", "toolName": "bash", "toolCallId": "call_1", "arguments": {"command": "echo found"},
            "session": session, "run": run, "mode": "auto"
        })
    );
    let [.., done, end] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(done["result"]["reply"], "It says found.");
    assert_eq!(done["result"]["iterations"], 2);
    assert_eq!(
        *end,
        json!({"type": "run_end", "outcome": "answered", "session": session, "run": run, "mode": "auto"})
    );
    assert_eq!(output.stderr(), "");
}

#[test]
fn a_refusal_of_the_provider_is_exit_code_4_and_the_last_line_of_json() {
    let refusal = || {
        Step::status(
            401,
            &[],
            json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
                .to_string(),
        )
    };
    let (_server, home) = serve(Script::repeat(refusal()));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(4);
    assert_eq!(output.stdout(), "");
    let stderr = output.stderr();
    let last = stderr.lines().last().expect("a line");
    assert!(last.starts_with("myclaw: anthropic/claude-sonnet-4-20250514: "), "{stderr}");
    assert!(!stderr.contains("test-key"), "{stderr}");

    let output = run(&home, &["run", "--json", "hello"]);
    output.assert_code(4);
    let events = lines_of_json(&output.stdout());
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["class"]), (&json!("error"), &json!("auth")));
    assert!(last["message"].as_str().expect("a message").contains("anthropic/"), "{last}");
}

#[test]
fn no_answer_is_no_success() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::anthropic().text(" ")));
    let output = run(&home_with(&server), &["run", "hello"]);
    output.assert_code(4);
    assert!(output.stderr().contains("without text"), "{}", output.stderr());
}

#[test]
fn a_refusal_is_reported_as_one() {
    let refusal = Reply::anthropic().text("").stop(Stop::Refusal);
    let server = ModelServer::spawn_blocking_thread(Script::repeat(refusal));
    let output = run(&home_with(&server), &["run", "hello"]);
    output.assert_code(4);
    assert!(output.stderr().contains("refused to answer"), "{}", output.stderr());
}

#[test]
fn an_answer_that_was_cut_says_so() {
    let cut = Reply::anthropic().text("The first half").stop(Stop::Length);
    let (_server, home) = serve(Script::repeat(cut));
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "The first half\n");
    assert!(output.stderr().contains("cut at the output limit of"), "{}", output.stderr());
    let output = run(&home, &["run", "--json", "hello"]);
    let events = lines_of_json(&output.stdout());
    let done = events.iter().find(|event| event["type"] == "done").expect("a result");
    assert_eq!(done["result"]["stopReason"], "length", "{done}");
}

#[test]
fn the_iteration_cap_is_reported_with_advice() {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(|_, number| {
        Reply::anthropic().tool_call(format!("call_{number}"), "ls", json!({"path": "."})).step()
    }));
    let home = TempHome::new();
    let mut config =
        TempHome::config_for(server.url(), myclaw_testkit::WireFormat::AnthropicMessages);
    config["agent"] = json!({"maxIterations": 2});
    home.write_config(&config);
    let output = run(&home, &["run", "--json", "for ever"]);
    output.assert_code(1);
    let events = lines_of_json(&output.stdout());
    let [.., done, _end, error] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(done["result"]["maxIterationsReached"], true);
    assert_eq!(error["class"], "max_iterations");
    assert!(output.stderr().contains("agent.maxIterations"), "{}", output.stderr());
}

#[test]
fn a_dash_reads_the_message_from_stdin() {
    let (server, home) = serve(Reply::anthropic().text("Got it."));
    let output = RunningChild::run_with_input(
        &mut myclaw(&home, &["run", "-"]),
        "first line\nsecond: Grüße\n\n",
    );
    output.assert_code(0);
    let said = server.last_request().messages()[0]["content"].to_string();
    assert!(said.contains("first line\\nsecond: Grüße"), "{said}");
}

#[test]
fn bad_input_is_exit_code_2_and_nothing_is_sent() {
    let (server, home) = serve(Script::new());
    for (input, expected) in [
        (b"".to_vec(), "the message is empty"),
        (b" \n\t\n".to_vec(), "the message is empty"),
        (b"abc\xff".to_vec(), "not UTF-8 (byte 4)"),
        (vec![b'x'; 10 * 1024 * 1024 + 1], "larger than 10 MiB"),
    ] {
        let output = RunningChild::run_with_input(&mut myclaw(&home, &["run", "-"]), input);
        output.assert_code(2);
        assert!(output.stderr().contains(expected), "{}", output.stderr());
    }
    let output = run(&home, &["run", ""]);
    output.assert_code(2);
    let output = run(&home, &["run"]);
    output.assert_code(2);
    let output = run(&home, &["run", "--session", "a:b:c:d:e:f", "hello"]);
    output.assert_code(2);
    let output = run(&home, &["run", "-C", "nowhere", "hello"]);
    output.assert_code(2);
    assert!(output.stderr().contains("cannot work in nowhere"), "{}", output.stderr());
    let output = run(&home, &["run", "--agent", "nobody", "hello"]);
    output.assert_code(2);
    assert!(output.stderr().contains("`nobody`"), "{}", output.stderr());
    let output = run(&home, &["run", "--session", "agent:mian:main", "hello"]);
    output.assert_code(2);
    assert!(output.stderr().contains("there is no agent `mian`"), "{}", output.stderr());
    assert_eq!(server.requests().len(), 0);
    assert_eq!(home.transcripts(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_mistake_in_the_config_file_is_exit_code_3_with_its_place() {
    let home = TempHome::new();
    home.write_config_text("{\n  agnet: { maxIterations: 3 },\n}\n");
    let output = run(&home, &["run", "--json", "hello"]);
    output.assert_code(3);
    assert!(output.stderr().contains("myclaw.json:2:3"), "{}", output.stderr());
    let events = lines_of_json(&output.stdout());
    assert_eq!(types(&events), ["error"]);
    assert_eq!(events[0]["class"], "config");
}

#[test]
fn another_directory_is_where_the_tools_work() {
    let (server, home) = serve([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "pwd"})),
        Reply::anthropic().text("There."),
    ]);
    home.write("project/a.txt", "a");
    run(&home, &["run", "-C", "project", "where are we?"]).assert_code(0);
    let result = server.last_request().messages().last().expect("a message").to_string();
    assert!(result.contains(&home.path().join("project").display().to_string()), "{result}");
}

#[test]
fn sessions_are_kept_apart_by_name() {
    let (server, home) = always("Yes.");
    run(&home, &["run", "one"]).assert_code(0);
    run(&home, &["run", "--session", "trip", "two"]).assert_code(0);
    run(&home, &["run", "--session", "Trip", "three"]).assert_code(0);
    let counts: Vec<usize> =
        server.requests().iter().map(|request| request.messages().len()).collect();
    assert_eq!(counts, [1, 1, 3]);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let (server, home) = serve([Reply::anthropic()
        .repeated_text("many words that fill the pipe and go on ", 100_000)
        .step()]);
    let mut child = myclaw(&home, &["run", "--quiet", "talk"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut head = [0; 10];
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut head).expect("some text");
    drop(stdout);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(&head, b"many words");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    server.wait_for_closed_connections_blocking(1);
    // What had arrived is in the session, and it continues.
    let next = ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Fine.")));
    home.use_server(&next, myclaw_testkit::WireFormat::AnthropicMessages);
    run(&home, &["run", "and now?"]).assert_code(0);
    assert!(next.last_request().messages().len() >= 3);
}

#[test]
fn a_pipe_gets_the_text_as_it_is() {
    let server = ModelServer::spawn_blocking_thread(Script::from(
        Reply::anthropic().text("\u{1b}[31mred\u{9b}0m\r\n"),
    ));
    let output = run(&home_with(&server), &["run", "--quiet", "colour"]);
    assert_eq!(output.stdout(), "\u{1b}[31mred\u{9b}0m\r\n");
}

#[test]
fn a_stream_of_many_pieces_arrives_whole() {
    let (_server, home) = serve([Reply::anthropic().repeated_text("piece ", 20_000).step()]);
    let output = RunningChild::spawn(&mut myclaw(&home, &["run", "--quiet", "go"]))
        .wait(Duration::from_secs(60));
    output.assert_code(0);
    assert_eq!(output.stdout(), "piece ".repeat(20_000) + "\n");
}

#[test]
fn a_slow_stream_is_shown_as_it_arrives() {
    let reply = Reply::anthropic().text("one two").in_deltas(2);
    let body = String::from_utf8(reply.stream_body("claude-sonnet-4-20250514")).expect("UTF-8");
    let first_delta = body.find("one").expect("the first delta");
    let its_end = first_delta + body[first_delta..].find("\n\n").expect("the end of its event") + 2;
    let (_server, home) = serve([reply.step().stall_after(its_end)]);
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "--quiet", "go"]));
    // The rest never comes, and what has come is not held back.
    assert_eq!(child.wait_for_stdout("one").trim_end(), "one");
    child.signal(myclaw_testkit::Signal::Interrupt);
    child.wait(Duration::from_secs(20)).assert_code(130);
}

#[test]
fn a_full_disk_behind_stdout_is_a_failure_that_says_so() {
    let server = turn_with_a_tool();
    let home = home_with(&server);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = myclaw(&home, &["run", "--quiet", "look"])
        .stdin(Stdio::null())
        .stdout(full)
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("myclaw: cannot write to standard output: No space left"),
        "{stderr}"
    );
}

#[test]
fn a_window_below_the_minimum_is_refused_unless_it_is_stated() {
    let server = ModelServer::spawn_blocking_thread(Script::from([Reply::openai().text("Yes.")]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::OpenAiCompletions);
    config["provider"]["model"] = json!("gpt-4");
    home.write_config(&config);
    let output = run(&home, &["run", "hi"]);
    output.assert_code(4);
    let stderr = output.stderr();
    assert!(stderr.contains("8192 tokens") && stderr.contains("16000"), "{stderr}");
    assert!(server.requests().is_empty());

    config["models"]["providers"]["openai"] =
        json!({"models": [{"id": "gpt-4", "contextWindow": 8_192}]});
    home.write_config(&config);
    let output = run(&home, &["run", "hi"]);
    output.assert_code(0);
    assert!(output.stderr().contains("8192"), "a warning: {}", output.stderr());
}
