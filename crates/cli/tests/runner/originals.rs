//! Sessions that the original program wrote, jobs that end at a bound, and answers that are too long.

use std::fs;

use myclaw_testkit::{RecordedRequest, Reply, Script, Step};
use serde_json::{Value, json};

use crate::{Bench, blocks};

const ID: &str = "0b6ad29c-3c5e-4d8c-9f4c-2b8f0c0f7e11";

/// A session as the original program keeps it: messages as the model's server sent them.
fn original() -> Value {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}});
    json!({
        "id": ID,
        "createdAt": "2026-02-01T10:00:00.000Z",
        "updatedAt": "2026-02-01T10:05:00.000Z",
        "messages": [
            {"role": "user", "content": "Which files are there?"},
            {"role": "assistant", "content": null, "refusal": null, "reasoning": "I look.",
             "reasoning_details": [{"type": "reasoning.text", "text": "I look."}],
             "tool_calls": [call("call_a", "{\"command\":\"ls\"}"), call("call_b", "{\"command\":\"pwd\"}")]},
            {"role": "tool", "tool_call_id": "call_a", "content": "notes.txt"},
            {"role": "tool", "tool_call_id": "call_b", "content": "/workspace/group"},
            {"role": "assistant", "content": "There is notes.txt.", "refusal": null},
            {"role": "user", "content": "And now?"},
            {"role": "assistant", "content": "", "tool_calls": [call("call_c", "{\"command\":\"date\"}")]},
            {"role": "tool", "tool_call_id": "call_c", "content": "Sunday"},
            {"role": "assistant", "content": null},
        ],
    })
}

fn with_session(bench: &Bench, session: &Value) {
    fs::create_dir_all(bench.path("h/.stingyclaw/sessions")).unwrap();
    bench.write(&format!("h/.stingyclaw/sessions/{ID}.json"), &session.to_string());
}

#[test]
fn calls_and_results_of_the_original_program_are_sent_again() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    with_session(&bench, &original());
    let output = bench.run(bench.job("Go on", json!({"sessionId": ID})), &[]);
    output.assert_code(0);
    assert_eq!(blocks(&output)[0]["newSessionId"], ID);
    let requests = bench.server.requests();
    let messages = requests[0].messages();
    let said: Vec<String> = messages[1..].iter().map(Value::to_string).collect();
    let roles: Vec<&str> =
        messages[1..].iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool", "user"],
        "{said:?}"
    );
    assert_eq!(messages[2]["tool_calls"][0]["id"], "call_a");
    assert_eq!(messages[2]["tool_calls"][1]["function"]["arguments"], "{\"command\":\"pwd\"}");
    assert_eq!(messages[3]["content"], "notes.txt");
    assert_eq!(messages[4]["tool_call_id"], "call_b");
    for message in messages.iter().filter(|message| message["role"] == "assistant") {
        let fields: Vec<&String> = message.as_object().unwrap().keys().collect();
        assert!(
            fields.iter().all(|name| ["role", "content", "tool_calls"].contains(&name.as_str())),
            "{fields:?}"
        );
        assert_ne!(message.get("content"), Some(&json!("")), "empty content");
    }
    // What the original wrote stays as it is.
    let kept = fs::read(bench.path(&format!("h/.stingyclaw/sessions/{ID}.json"))).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["messages"][1], original()["messages"][1]);
}

/// Siblings: content in parts, arguments that are no JSON, a call without its result, a name on the result.
#[test]
fn unusual_rows_of_the_original_program_are_sent_too() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}});
    with_session(
        &bench,
        &json!({"id": ID, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "In parts."}]},
            {"role": "assistant", "content": "I try.", "tool_calls": [
                call("a", json!("ls -la")), call("b", json!({"command": "pwd"})), call("c", json!(""))]},
            {"role": "tool", "tool_call_id": "a", "name": "Bash", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
        ]}),
    );
    bench.run(bench.job("Go on", json!({"sessionId": ID})), &[]).assert_code(0);
    let requests = bench.server.requests();
    let messages = requests[0].messages();
    assert_eq!(messages[1]["content"], "In parts.");
    assert_eq!(messages[2]["content"], "I try.");
    assert_eq!(messages[2]["tool_calls"].as_array().unwrap().len(), 3);
    let results: Vec<&Value> =
        messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 3);
    assert_eq!((&results[0]["content"], &results[1]["content"]), (&json!("one"), &json!("two")));
}

#[test]
fn a_job_that_ends_at_a_bound_says_so() {
    // The same call again and again, and nothing to say about it.
    let answer = |request: &RecordedRequest, number: usize| -> Step {
        match request.json()["tool_choice"] == "none" {
            true => Reply::openai().text("").step(),
            false => Reply::openai()
                .tool_call(format!("c{number}"), "Bash", json!({"command": "echo same"}))
                .step(),
        }
    };
    let bench = Bench::new(Script::answer_with(answer));
    let output = bench.run(bench.job("Go", json!({})), &[]);
    output.assert_code(0);
    let last = blocks(&output).pop().unwrap();
    let result = last["result"].as_str().unwrap_or_default();
    assert!(result.contains("the same calls gave the same results"), "{last}");
    assert!(!result.contains("--max-turns"), "{last}");
    assert!(!output.stderr().contains("--max-turns"), "{}", output.stderr());

    // The number of calls.
    let answer = |request: &RecordedRequest, number: usize| -> Step {
        match request.json()["tool_choice"] == "none" {
            true => Reply::openai().text("").step(),
            false => Reply::openai()
                .text("I look.")
                .tool_call(
                    format!("c{number}"),
                    "Bash",
                    json!({"command": format!("echo {number}")}),
                )
                .step(),
        }
    };
    let bench = Bench::new(Script::answer_with(answer));
    let output = bench.run(bench.job("Go", json!({})), &["--max-turns", "4"]);
    output.assert_code(0);
    let last = blocks(&output).pop().unwrap();
    assert!(last["result"].as_str().unwrap_or_default().contains("--max-turns"), "{last}");
}

#[test]
fn an_answer_larger_than_the_window_leaves_the_session_usable() {
    let answer = |request: &RecordedRequest, _: usize| -> Step {
        if request.body_text().len() > 512_000 {
            let message = "This model's maximum context length is 128000 tokens.";
            let error = json!({"message": message, "code": "context_length_exceeded"});
            return Step::status(400, &[], json!({"error": error}).to_string());
        }
        let last = request.messages().last().map(Value::to_string).unwrap_or_default();
        match last.contains("BIG") {
            true => Reply::openai().text("word ".repeat(680_000)).in_deltas(20).step(),
            false => Reply::openai().text("Small.").step(),
        }
    };
    let bench = Bench::new(Script::answer_with(answer));
    let output = bench.run(bench.job("BIG please", json!({})), &[]);
    output.assert_code(0);
    let id = blocks(&output)[0]["newSessionId"].clone();
    for prompt in ["Second", "Third"] {
        let output = bench.run(bench.job(prompt, json!({"sessionId": id})), &[]);
        output.assert_code(0);
        assert_eq!(blocks(&output)[0]["result"], "Small.", "{prompt}");
    }
}

#[test]
fn a_call_in_the_text_is_no_text_for_the_host() {
    let marked =
        "<tool_call>{\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>";
    let bench = Bench::new(Script::from([
        Reply::openai().text(marked),
        Reply::openai().tool_call("c1", "functions.Bash", json!({"command": "echo found"})),
        Reply::openai().text("Found."),
    ]));
    let output = bench.run(bench.job("Go", json!({})), &[]);
    output.assert_code(0);
    let results: Vec<Value> =
        blocks(&output).into_iter().map(|block| block["result"].clone()).collect();
    assert_eq!(results, [json!("Found."), Value::Null]);
    assert_eq!(bench.result(2), "found");
}
