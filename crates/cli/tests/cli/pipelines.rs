//! `myclaw run` in scripts and pipelines: bounds of one run, and answers for programs.

use std::path::{Path, PathBuf};

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{run, serve};

/// The names of the tools that the model got in a run with these options.
fn offered(options: &[&str]) -> Vec<String> {
    let (server, home) = serve(Reply::anthropic().text("Hi."));
    run(&home, &[&["run"], options, &["hello"]].concat()).assert_code(0);
    let request = server.last_request();
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_command_allows_and_denies_tools() {
    assert_eq!(offered(&["--allow-tool", "read,grep"]), ["read", "grep"]);
    assert_eq!(offered(&["--allow-tool", "read", "--allow-tool", "l*"]), ["read", "ls"]);
    assert_eq!(offered(&["--allow-tool", "group:fs", "--deny-tool", "group:fs"]), [""; 0]);
    let rest = offered(&["--deny-tool", "Bash", "--deny-tool", "group:web"]);
    assert!(rest.iter().any(|name| name == "read"), "{rest:?}");
    assert!(!rest.iter().any(|name| ["bash", "web_fetch"].contains(&name.as_str())), "{rest:?}");
}

#[test]
fn a_command_gives_no_tool_back_that_the_config_denies() {
    let server = ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Hi.")));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"]["deny"] = json!(["bash"]);
    home.write_config(&config);
    run(&home, &["run", "--allow-tool", "bash,read", "hello"]).assert_code(0);
    let tools = server.last_request().json()["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{tools}");
}

#[test]
fn a_call_of_a_denied_tool_names_the_option() {
    let call = Reply::anthropic().tool_call("call_1", "bash", json!({"command": "touch made"}));
    let (server, home) = serve(vec![call.step(), Reply::anthropic().text("Done.").step()]);
    run(&home, &["run", "--deny-tool", "bash", "hello"]).assert_code(0);
    let sent = server.last_request().json().to_string();
    assert!(sent.contains("--deny-tool"), "{sent}");
    assert!(!home.workspace().join("made").exists());
}

#[test]
fn bounds_end_a_run_and_are_named() {
    let call = |id: usize| {
        let command = json!({"command": format!("echo {id}")});
        Reply::anthropic()
            .tool_call(format!("call_{id}"), "bash", command)
            .usage(900_000, 10)
            .step()
    };
    // One more call asks for a closing summary.
    let steps = || (0..6).map(call).collect::<Vec<_>>();
    for (option, value, calls) in [("--max-turns", "2", 3), ("--max-cost", "0.01", 2)] {
        let (server, home) = serve(steps());
        let output = run(&home, &["run", option, value, "go on"]);
        output.assert_code(1);
        assert!(output.stderr().contains(option), "{option}: {}", output.stderr());
        let last = output.stderr().lines().last().unwrap_or_default().to_owned();
        assert!(last.ends_with(&format!("raise {option}")), "{option}: {last}");
        assert_eq!(server.requests().len(), calls, "{option}");
    }
}

#[test]
fn options_that_cannot_be_used_are_refused_before_anything_is_sent() {
    let (server, home) = serve(Reply::anthropic().text("Hi."));
    home.write("list.json", "[1, 2");
    home.write("odd.json", "{\"type\": \"thing\"}");
    let cases: [(&[&str], &str); 10] = [
        (&["--allow-tool", "raed"], "read"),
        (&["--deny-tool", "Bash(rm:*)"], "--deny-tool"),
        (&["--allow-tool", "group:files"], "--allow-tool"),
        (&["--max-turns", "0"], "give a whole number from 1 to 4294967295"),
        (&["--max-turns", "-3"], "give a whole number from 1 to 4294967295"),
        (&["--max-cost", "-1"], "--max-cost"),
        (&["--max-cost", "NaN"], "--max-cost"),
        (&["--output-schema", "none.json"], "none.json"),
        (&["--output-schema", "list.json"], "not JSON"),
        (&["--output-schema", "odd.json"], "not a usable JSON Schema"),
    ];
    for (options, named) in cases {
        let output = run(&home, &[&["run"], options, &["hello"]].concat());
        output.assert_code(2);
        assert!(output.stderr().contains(named), "{options:?}: {}", output.stderr());
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_number_that_an_option_cannot_have_gets_the_message_of_the_option() {
    let home = TempHome::new();
    let cases: [(&[&str], &str); 6] = [
        (
            &["sessions", "list", "--limit", "-5"],
            "'-5' for '--limit <N>': give a whole number from 1",
        ),
        (&["memory", "search", "x", "--limit", "1.5"], "give a whole number from 1"),
        (&["cron", "runs", "x", "--limit", "99999999999999999999"], "a whole number from 1 to 42"),
        (
            &["mcp", "logs", "x", "--lines", "-5"],
            "'-5' for '--lines <COUNT>': give a whole number, 0 or more",
        ),
        (&["mcp", "logs", "x", "--lines", "99999999999999999999"], "the number is too large"),
        (&["host", "--containers", "-1"], "-1 is not in 1..=65535"),
    ];
    for (arguments, said) in cases {
        let output = run(&home, arguments);
        output.assert_code(2);
        assert!(output.stderr().contains(said), "{arguments:?}: {}", output.stderr());
    }
}

const SCHEMA: &str = r#"{"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}},
    "additionalProperties": false}"#;

/// A home with a schema, and a model that gives these answers.
fn with_schema(answers: &[&str]) -> (ModelServer, TempHome, PathBuf) {
    let steps: Vec<_> =
        answers.iter().map(|answer| Reply::anthropic().text(*answer).step()).collect();
    let (server, home) = serve(steps);
    let path = home.write("schema.json", SCHEMA);
    (server, home, path)
}

#[test]
fn an_answer_that_fits_the_schema_is_all_that_is_printed() {
    for answers in [
        &["{\"count\": 3}"][..],
        &["```json\n{\"count\": 3}\n```"],
        &["There are three.", "{\"count\": 3}"],
        &["{\"count\": \"three\"}", "{\"count\": 3, \"more\": 1}", "{\"count\": 3}"],
    ] {
        let (server, home, _) = with_schema(answers);
        let output = run(&home, &["run", "--output-schema", "schema.json", "count"]);
        output.assert_code(0);
        assert_eq!(output.stdout(), "{\"count\":3}\n");
        assert_eq!(server.requests().len(), answers.len());
        let first = server.requests()[0].json().to_string();
        assert!(first.contains("additionalProperties"), "the model gets the schema: {first}");
    }
}

#[test]
fn an_answer_that_never_fits_has_an_exit_code_of_its_own() {
    let wrong = "{\"count\": \"three\"}";
    let (server, home, _) = with_schema(&[wrong; 3]);
    let output = run(&home, &["run", "--output-schema", "schema.json", "count"]);
    output.assert_code(9);
    assert_eq!(output.stdout(), "");
    assert!(output.stderr().contains("/count"), "{}", output.stderr());
    assert_eq!(server.requests().len(), 3);
    // The model learned what was wrong.
    assert!(server.last_request().json().to_string().contains("/count"));
}

#[test]
fn with_events_the_value_or_the_failure_is_the_last_line() {
    for (answers, last) in [
        (&["{\"count\": 3}"; 1][..], json!({"type": "output", "value": {"count": 3}})),
        (&["three"; 3], json!({"type": "error", "class": "answer_form"})),
    ] {
        let (_server, home, _) = with_schema(answers);
        let output = run(&home, &["run", "--json", "--output-schema", "schema.json", "count"]);
        let mut line: Value =
            serde_json::from_str(output.stdout().lines().last().unwrap_or_default()).unwrap();
        if let Some(fields) = line.as_object_mut() {
            fields.remove("message");
        }
        assert_eq!(line, last);
    }
}

#[test]
fn a_run_without_a_session_leaves_nothing_of_it() {
    let large = json!({"command": "seq 1 200000"});
    let call = Reply::anthropic().tool_call("call_1", "bash", large);
    let (server, home) = serve(vec![call.step(), Reply::anthropic().text("A heron.").step()]);
    let temporary = home.write("tmp/mark", "");
    let mut command = crate::myclaw(&home, &["run", "--no-session", "what is a heron"]);
    command.env("TMPDIR", temporary.parent().unwrap());
    let output = RunningChild::run(&mut command);
    output.assert_code(0);
    assert_eq!(output.stdout(), "A heron.\n");
    assert_eq!(server.requests().len(), 2);
    assert!(!holds(home.path(), "heron"), "what was said is in a file");
    assert!(!holds(home.path(), "199999"), "an output is in a file");
    assert_eq!(std::fs::read_dir(temporary.parent().unwrap()).unwrap().count(), 1);
    run(&home, &["run", "--no-session", "-c", "hello"]).assert_code(2);
}

/// Whether a file below the directory holds the text.
fn holds(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).expect("a directory").flatten().any(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => holds(&path, text),
            false => std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes())),
        }
    })
}
