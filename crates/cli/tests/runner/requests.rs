//! What is sent to the model: cleaned messages, and fewer of them after a refusal.

use myclaw_testkit::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::{Bench, SECRET, blocks};

const ID: &str = "0b9d8f7e-1111-4222-8333-444455556666";

/// Puts a session in place, and returns the job that continues with it.
fn with_session(bench: &Bench, messages: &Value) -> String {
    std::fs::create_dir_all(bench.path("h/.stingyclaw/sessions")).unwrap();
    let session = json!({"messages": messages}).to_string();
    bench.write(&format!("h/.stingyclaw/sessions/{ID}.json"), &session);
    bench.job("Now", json!({"sessionId": ID}))
}

#[test]
fn only_the_copy_that_is_sent_is_cleaned() {
    let thinking = Reply::openai().thinking("deep thoughts", "").tool_call(
        "call_1",
        "Bash",
        json!({"command": "true"}),
    );
    let bench = Bench::new(Script::from([thinking, Reply::openai().text("Done.")]));
    bench.run(bench.job("Think", json!({})), &[]).assert_code(0);
    let requests = bench.server.requests();
    let expected = json!({"role": "assistant", "tool_calls": [{
        "id": "call_1",
        "type": "function",
        "function": {"name": "Bash", "arguments": "{\"command\":\"true\"}"},
    }]});
    assert_eq!(requests[1].messages()[2], expected);
    assert!(bench.only_session().to_string().contains("deep thoughts"));
}

#[test]
fn after_a_refusal_the_newest_messages_are_kept_and_the_request_is_made_once_more() {
    let call = json!({"contentBlocks": [
        {"type": "toolCall", "id": "a", "name": "Bash", "arguments": {}},
        {"type": "toolCall", "id": "b", "name": "Bash", "arguments": {}},
    ]});
    let mut rows = vec![
        json!({"role": "user", "content": "old 1"}),
        json!({"role": "assistant", "content": "", "meta": call}),
        json!({"role": "tool", "content": "result a", "toolCallId": "a"}),
        json!({"role": "tool", "content": "result b", "toolCallId": "b"}),
        json!({"role": "assistant", "content": "old 2"}),
    ];
    for number in 0..3 {
        rows.push(json!({"role": "user", "content": format!("question {number}")}));
        rows.push(json!({"role": "assistant", "content": format!("answer {number}")}));
    }
    let refusal = || Step::status(400, &[], r#"{"error":{"message":"bad request"}}"#);
    let bench = Bench::new(
        Script::from([
            refusal(),
            Reply::openai().text("Done.").step(),
            Reply::openai().text("Again.").step(),
        ])
        .then(refusal())
        .then(refusal()),
    );
    // With the new message there are twelve: the newest ten begin with a result, which goes too.
    let job = with_session(&bench, &json!(rows));
    let output = bench.run(job.clone(), &[]);
    output.assert_code(0);
    let said = |request: usize| -> Vec<Value> {
        bench.server.requests()[request].messages()[1..]
            .iter()
            .map(|message| message["content"].clone())
            .collect()
    };
    assert_eq!(said(0).len(), 12);
    let kept =
        ["question 0", "answer 0", "question 1", "answer 1", "question 2", "answer 2", "Now"];
    assert_eq!(json!(said(1)), json!(kept));
    // The file keeps everything, and the next run sends what was kept.
    assert!(bench.only_session().to_string().contains("result a"));
    bench.run(job.clone(), &[]).assert_code(0);
    assert_eq!(json!(said(2)[..7]), json!(kept));
    // There are few messages now: the refusal is fatal at once.
    let output = bench.run(job, &[]);
    output.assert_code(1);
    assert!(blocks(&output)[0]["error"].as_str().unwrap().contains("bad request"));
}

#[test]
fn a_long_turn_keeps_its_message_after_a_refusal_and_a_second_refusal_ends_it() {
    let call = |number: usize| {
        Reply::openai()
            .tool_call(
                format!("call_{number}"),
                "Bash",
                json!({"command": format!("echo {number}")}),
            )
            .step()
    };
    let refusal = || Step::status(400, &[], r#"{"error":{"message":"bad request"}}"#);
    let bench = Bench::new(Script::from([
        call(1),
        call(2),
        call(3),
        call(4),
        call(5),
        call(6),
        refusal(),
        refusal(),
    ]));
    let output = bench.run(bench.job("The task", json!({})), &[]);
    output.assert_code(1);
    assert_eq!(bench.server.requests().len(), 8);
    let last = bench.server.last_request();
    assert!(
        last.messages()[1]["content"].as_str().unwrap().ends_with("The task"),
        "{:?}",
        last.messages()[1]
    );
    assert_eq!(last.messages().len(), 12);
}

#[test]
fn the_number_of_calls_is_limited_and_the_last_one_asks_for_a_summary() {
    let answer = |request: &myclaw_testkit::RecordedRequest, _: usize| {
        let number = request.messages().len();
        match request.json()["tool_choice"] == "none" {
            true => Reply::openai().text("So far."),
            false => Reply::openai().tool_call(
                format!("c{number}"),
                "Bash",
                json!({"command": format!("echo {number}")}),
            ),
        }
        .step()
    };
    let bench = Bench::new(Script::answer_with(answer));
    let output = bench.run(bench.job("Go", json!({})), &["--max-turns", "4"]);
    output.assert_code(0);
    assert_eq!(bench.server.requests().len(), 4);
    assert_eq!(blocks(&output)[0]["result"], "So far.");
}

#[test]
fn the_key_decides_which_server_is_asked() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    let url = format!("{}/v1", bench.server.url());
    let secrets = json!({"OPENROUTER_API_KEY": "ollama", "OPENROUTER_BASE_URL": url});
    bench.run(bench.job("Hi", json!({"secrets": secrets})), &[]).assert_code(0);
    let secrets = json!({"OPENROUTER_BASE_URL": url});
    bench.run(bench.job("Hi", json!({"secrets": secrets})), &[]).assert_code(0);
    let requests = bench.server.requests();
    assert_eq!(requests[0].json()["model"], "llama3.2");
    assert_eq!(requests[1].json()["model"], "liquid/lfm-2.5");
    assert_eq!(requests[1].header("authorization"), None);
    assert!(!requests.iter().any(|request| request.body_text().contains(SECRET)));
}

#[test]
fn arguments_of_bash_that_are_no_json_are_the_command() {
    let bench = Bench::new(Script::from([
        Reply::openai().tool_call_with_raw_arguments("call_1", "Bash", "echo raw"),
        Reply::openai().text("Done."),
    ]));
    bench.run(bench.job("Do it", json!({})), &[]).assert_code(0);
    assert_eq!(bench.result(1), "raw");
}
