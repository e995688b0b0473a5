//! The lines of `myclaw run --json` fit the schema that the docs name.

use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use myclaw_testkit::{RecordedRequest, Reply, Script, Step, TempHome, Terminal};
use serde_json::{Value, json};

use crate::rpc::{Client, prompt};
use crate::{change_config, run, serve};

struct Schema(Schemas, SchemaIndex);

impl Schema {
    fn read() -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/develop/run-events.schema.json");
        let schema = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("events.json", schema).expect("a schema");
        let index = compiler.compile("events.json", &mut schemas).expect("a schema");
        Self(schemas, index)
    }

    /// The types of the lines, each of which fits.
    fn check(&self, output: &str) -> Vec<String> {
        let lines = output.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        self.check_all(lines)
    }

    fn check_all(&self, lines: impl Iterator<Item = Value>) -> Vec<String> {
        let check = |line: Value| {
            if let Err(error) = self.0.validate(&line, self.1) {
                panic!("{line}\n{error:#}");
            }
            line["type"].as_str().expect("a type").to_owned()
        };
        lines.map(check).collect()
    }
}

#[test]
fn every_line_of_real_runs_fits_the_schema() {
    let call =
        |id: &str, tool: &str, arguments: Value| Reply::anthropic().tool_call(id, tool, arguments);
    let steps: Vec<Step> = vec![
        Reply::anthropic()
            .thinking("let me see", "signature")
            .text("Looking.")
            .tool_call("call_1", "bash", json!({"command": "echo one"}))
            .step(),
        call("call_2", "write", json!({"path": "a.txt", "content": "one"})).step(),
        call("call_3", "read", json!({"path": "missing.txt"})).step(),
        Step::status(
            529,
            &[],
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        Reply::anthropic().text("{\"n\": 1}").step(),
    ];
    let (server, home) = serve(steps);
    let mut seen = Vec::new();
    let schema = Schema::read();
    let form = home.write("form.json", r#"{"type": "object", "required": ["n"]}"#);
    let output =
        run(&home, &["run", "--json", "--output-schema", form.to_str().expect("UTF-8"), "go"]);
    output.assert_code(0);
    seen.extend(schema.check(&output.stdout()));
    // A refused call, a bound, and no answer.
    server.push(call("call_4", "bash", json!({"command": "echo two"})));
    server.push(Reply::anthropic().text("Not finished."));
    let bounded = run(&home, &["run", "--json", "--mode", "ask", "--max-turns", "1", "go"]);
    bounded.assert_code(1);
    seen.extend(schema.check(&bounded.stdout()));
    server.push(Step::status(401, &[], "{}"));
    let failed = run(&home, &["run", "--json", "go"]);
    failed.assert_code(4);
    seen.extend(schema.check(&failed.stdout()));
    let missing = run(&TempHome::new(), &["run", "--json", "--agent", "nobody", "go"]);
    seen.extend(schema.check(&missing.stdout()));
    for kind in [
        "run_start",
        "run_end",
        "llm_start",
        "llm_stream",
        "llm_end",
        "llm_usage",
        "tool_start",
        "tool_end",
        "retry",
        "bound_reached",
        "done",
        "output",
        "error",
    ] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind} was not seen: {seen:?}");
    }
}

/// Two calls for `slow`, a plan for `plan it`, and else an answer.
fn answer(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    let (first, second) = (format!("call_{number}a"), format!("call_{number}b"));
    let reply = Reply::anthropic();
    let reply = if last.contains("slow") {
        let slow = "echo begun; until test -e go || ! test -e \"$PWD\"; do sleep 0.02; done";
        let slow = json!({"command": slow});
        reply.tool_call(first, "bash", slow).tool_call(
            second,
            "bash",
            json!({"command": "echo two"}),
        )
    } else if last.contains("plan it") {
        reply.tool_call(first, "update_plan", json!({"steps": [{"text": "Look"}]}))
    } else {
        reply.text("They spoke of tests.")
    };
    reply.step()
}

/// `rpc` has the same events. Those with which a turn begins and ends have more there.
#[test]
fn events_that_others_bring_about_fit_the_schema_too() {
    let (_server, home) = serve(Script::answer_with(answer));
    let mut client = Client::start(&home);
    client.ask(prompt("slow"), 1);
    client.wait_for("\"type\":\"tool_execution_update\"");
    client.ask(json!({"type": "steer", "message": "stop that"}), 2);
    client.ask(prompt("later"), 3);
    home.write_in_workspace("go", "");
    client.wait_for("\"idle\":true");
    client.ask(json!({"type": "set_mode", "mode": "plan"}), 4);
    client.ask(prompt("plan it"), 5);
    let question = client.wait_for("\"type\":\"approval_requested\",\"session\"");
    let id = question["toolCallId"].clone();
    client.ask(
        json!({"type": "approve", "toolCallId": id, "decision": "instead", "command": "Read"}),
        6,
    );
    let (_, lines) = client.finish();
    let is_event = |line: &Value| {
        let kind = line["type"].as_str().unwrap_or_default();
        let own = ["ready", "response", "run_start", "run_end", "approval_requested"];
        !own.contains(&kind)
    };
    let seen = Schema::read().check_all(lines.into_iter().filter(is_event));
    for kind in [
        "queued",
        "taken",
        "tool_skipped",
        "tool_execution_update",
        "approval_resolved",
        "mode_changed",
    ] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind} was not seen: {seen:?}");
    }
}

/// The question is on the terminal, and the events are in a file.
#[test]
fn questions_on_a_terminal_and_results_that_are_left_out_fit_the_schema_too() {
    let (server, home) = serve(Script::answer_with(|request, number| {
        let last = json!(request.messages().last()).to_string();
        let call = Reply::anthropic().tool_call(
            format!("c{number}"),
            "bash",
            json!({"command": "seq 9000"}),
        );
        let is_answered = last.contains("tool_result");
        (if is_answered { Reply::anthropic().text("Done.") } else { call }).step()
    }));
    let events = home.path().join("events.jsonl");
    let mut command = home.command("sh");
    command.args(["-c", "exec \"$0\" run --json --mode ask go > \"$1\""]);
    let mut terminal = Terminal::spawn(command.arg(env!("CARGO_BIN_EXE_myclaw")).arg(&events));
    terminal.expect("(n)o?");
    terminal.send_line("o");
    assert!(terminal.wait().success(), "{}", terminal.text());
    let schema = Schema::read();
    let mut seen = schema.check(&std::fs::read_to_string(&events).expect("events"));
    change_config(&home, |config| {
        config["agents"]["defaults"]["contextPruning"] = json!("aggressive");
    });
    for _ in 0..4 {
        let output = run(&home, &["run", "--json", "--mode", "auto", "go"]);
        seen.extend(schema.check(&output.stdout()));
    }
    drop(server);
    for kind in ["approval_requested", "approval_resolved", "pruning"] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind} was not seen: {seen:?}");
    }
}

#[test]
fn another_model_summaries_and_notices_fit_the_schema_too() {
    let (server, home) = serve(Script::answer_with(answer));
    change_config(&home, |config| {
        let models = json!([{"id": "x", "contextWindow": 32_000}]);
        config["models"]["providers"]["away"] = json!({
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k", "models": models,
        });
        let own = "anthropic/claude-sonnet-4-20250514";
        config["agents"]["defaults"]["model"] = json!({"primary": "away/x", "fallbacks": [own]});
    });
    let output = run(&home, &["run", "--json", "--mode", "read-only", "slow"]);
    let schema = Schema::read();
    let mut seen = schema.check(&output.stdout());
    // Messages that fill a small window.
    change_config(&home, |config| {
        let models = json!([{"id": "s", "contextWindow": 32_000}]);
        config["models"]["providers"]["small"] = json!({
            "baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "k", "models": models,
        });
        config["agents"]["defaults"]["model"] = json!("small/s");
    });
    for _ in 0..5 {
        let output = run(&home, &["run", "--json", "--session", "long", &"word ".repeat(7_000)]);
        seen.extend(schema.check(&output.stdout()));
    }
    for kind in ["fallback", "notice", "compaction"] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind} was not seen: {seen:?}");
    }
}
