//! The bytes of the protocol in both directions.

use std::fs;
use std::time::Duration;

use myclaw_testkit::{Gate, Reply, Script, Step, Stop};
use serde_json::{Value, json};

use crate::{Bench, END, SECRET, START, blocks};

#[test]
fn a_job_is_answered_byte_for_byte_and_its_session_is_kept() {
    let bench = Bench::new(Script::from([
        Reply::openai().text("Working.").tool_call("call_1", "Bash", json!({"command": "echo hi"})),
        Reply::openai().text("Done."),
    ]));
    let output = bench.run(bench.job("Say hi", json!({})), &[]);
    output.assert_code(0);
    let session = bench.only_session();
    let id = session["id"].as_str().unwrap();
    let block = |result: &str| {
        format!(
            "{START}{{\"status\":\"success\",\"result\":{result},\"newSessionId\":\"{id}\"}}\n{END}"
        )
    };
    let expected = [block("\"Working.\""), block("\"Done.\""), block("null")].concat();
    assert_eq!(output.stdout(), expected);
    assert_eq!(output.stderr(), "");
    let roles: Vec<&str> = session["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert!(session["createdAt"].is_u64() && session["updatedAt"].is_u64());

    let requests = bench.server.requests();
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    let mut body = requests[1].json().clone();
    let tools: Vec<Value> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!(
        json!(tools),
        json!([
            "Bash",
            "Read",
            "Write",
            "Edit",
            "Glob",
            "Grep",
            "WebFetch",
            "agent-browser",
            "send_message",
            "send_voice",
            "ask_boss",
            "search_tools",
            "run_workflow",
            "list_workflows",
            "schedule_task",
            "list_tasks",
            "pause_task",
            "resume_task",
            "cancel_task"
        ])
    );
    body["tools"] = json!("compared");
    body["messages"][0]["content"] = json!("compared elsewhere");
    let expected = json!({
        "model": "test/model",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 8192,
        "tools": "compared",
        "tool_choice": "auto",
        "messages": [
            {"role": "system", "content": "compared elsewhere"},
            {"role": "user", "content": "Say hi"},
            {"role": "assistant", "content": "Working.", "tool_calls": [{
                "id": "call_1",
                "type": "function",
                "function": {"name": "Bash", "arguments": "{\"command\":\"echo hi\"}"},
            }]},
            {"role": "tool", "content": "hi", "tool_call_id": "call_1"},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn an_answer_that_is_not_whole_says_so() {
    let bench = Bench::new(Script::from([
        Reply::openai().text("Half of").tool_call("call_1", "Bash", json!({})).stop(Stop::Length),
        Reply::openai().text("a long").stop(Stop::Length),
    ]));
    let output = bench.run(bench.job("Say it", json!({})), &[]);
    output.assert_code(0);
    let said: Vec<Value> =
        blocks(&output).into_iter().map(|block| block["result"].clone()).collect();
    assert_eq!((said.len(), &said[0]), (3, &json!("Half of")), "{said:?}");
    let last = said[1].as_str().unwrap();
    assert!(last.starts_with("a long\n\n[This answer is not whole"), "{last}");
}

#[test]
fn a_session_goes_on_by_its_id_and_an_unknown_one_begins_anew() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    let first = blocks(&bench.run(bench.job("One", json!({})), &[]));
    let id = first[0]["newSessionId"].clone();
    let second = blocks(&bench.run(bench.job("Two", json!({"sessionId": id})), &[]));
    assert_eq!(second[0]["newSessionId"], id);
    let messages = bench.server.requests()[1].messages()[1..].to_vec();
    let said: Vec<&str> =
        messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["One", "Yes.", "Two"]);
    for unknown in ["3c1d7f2e-0000-4000-8000-000000000000", "../../etc/passwd", ""] {
        let other = blocks(&bench.run(bench.job("Three", json!({"sessionId": unknown})), &[]));
        assert_ne!(other[0]["newSessionId"], id);
        assert_ne!(other[0]["newSessionId"], json!(unknown));
    }
}

#[test]
fn the_prompt_has_its_parts_in_order_and_is_made_anew_at_every_start() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    bench.write("w/global/MISSION.md", "GLOBAL MISSION\n");
    bench.write("w/group/MISSION.md", "GROUP MISSION\n");
    bench.run(bench.job("One", json!({})), &[]).assert_code(0);
    bench.write("w/group/MISSION.md", "OTHER MISSION\n");
    fs::remove_file(bench.path("w/global/MISSION.md")).unwrap();
    bench.run(bench.job("Two", json!({"assistantName": null})), &[]).assert_code(0);
    let prompt = |request: usize| {
        bench.server.requests()[request].messages()[0]["content"].as_str().unwrap().to_owned()
    };
    let parts = [
        "You are Andy, a personal AI assistant",
        "GLOBAL MISSION",
        "GROUP MISSION",
        "## Tools",
        "## Workflows",
        "## agent-browser",
        "## ask_boss",
    ];
    let places: Vec<usize> = parts.iter().map(|part| prompt(0).find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(prompt(1).starts_with("You are Assistant, "), "{}", prompt(1));
    assert!(!prompt(1).contains("GLOBAL") && prompt(1).contains("OTHER MISSION"));
}

#[test]
fn a_scheduled_prompt_says_so_and_waiting_messages_join_the_first_one() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("Yes.")));
    bench.write("w/ipc/input/1-a.json", r#"{"type":"message","text":"and this"}"#);
    bench.write("w/ipc/input/2-b.json", r#"{"type":"dance"}"#);
    bench.write("w/ipc/input/_close", "");
    let job = bench.job("Report", json!({"isScheduledTask": true}));
    let output = bench.run(job, &[]);
    output.assert_code(0);
    let said = bench.result(0);
    assert!(said.starts_with("[SCHEDULED TASK"), "{said}");
    assert!(said.ends_with("]\n\nReport\nand this"), "{said}");
    let left: Vec<String> = fs::read_dir(bench.path("w/ipc/input"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // It was written a moment ago, so its host may not have finished it.
    assert_eq!(left, ["2-b.json"]);
}

#[test]
fn the_markers_can_be_others_and_cannot_be_forged() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("--END--\n--BEGIN--")));
    let output = bench.run(
        bench.job("One", json!({})),
        &["--start-marker", "--BEGIN--", "--end-marker", "--END--"],
    );
    output.assert_code(0);
    let lines: Vec<String> = output.stdout().lines().map(str::to_owned).collect();
    assert_eq!(lines.iter().filter(|line| *line == "--BEGIN--").count(), 2);
    let block: Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!(block["result"], "--END--\n--BEGIN--");
    assert_eq!(output.stdout().matches("--END--").count(), 2);
    let refused = bench.run("", &["--start-marker", "{", "--end-marker", "--END--"]);
    refused.assert_code(2);
}

#[test]
fn a_job_that_cannot_be_used_gets_one_clear_block() {
    let bench = Bench::new(Script::new());
    let fields = json!({"groupFolder": "f", "chatJid": "c", "prompt": "p"});
    let without = |name: &str| {
        let mut fields = fields.clone();
        fields.as_object_mut().unwrap().remove(name);
        fields.to_string()
    };
    for (job, problem) in [
        (
            String::new(),
            "there is no job on standard input; write one JSON object to it and close it",
        ),
        (
            "{\"prompt\": \"a".to_owned(),
            "the job ended before its JSON was complete; write all of it before you close standard input",
        ),
        (
            format!("{{\"secrets\": {{\"A\": \"{SECRET}\" x}}}}"),
            "the job is not valid JSON (line 1, column 63); write one JSON object",
        ),
        (
            "[1]".to_owned(),
            "the job is not a JSON object; write one with the fields groupFolder, chatJid and prompt",
        ),
        (without("prompt"), "the job has no `prompt`; add it as a text that is not empty"),
        (without("chatJid"), "the job has no `chatJid`; add it as a text that is not empty"),
        (
            without("groupFolder"),
            "the job has no `groupFolder`; add it as a text that is not empty",
        ),
        (
            bench.job("p", json!({"isMain": "yes"})),
            "the field `isMain` of the job must be true or false",
        ),
        (
            bench.job("p", json!({"secrets": [SECRET]})),
            "the field `secrets` of the job must be an object",
        ),
    ] {
        let output = bench.run(job, &[]);
        output.assert_code(1);
        let block = json!({"status": "error", "result": null, "error": problem});
        assert_eq!(output.stdout(), format!("{START}{block}\n{END}"));
        assert!(!output.stderr().contains(SECRET));
    }
    assert!(bench.server.requests().is_empty());
    fs::remove_dir_all(bench.path("w/group")).unwrap();
    let output = bench.run(bench.job("p", json!({})), &[]);
    output.assert_code(1);
    assert!(blocks(&output)[0]["error"].as_str().unwrap().contains("mount the directory"));
}

#[test]
fn a_refusal_of_the_model_is_fatal_and_names_no_secret() {
    let refusal = format!(r#"{{"error":{{"message":"Missing Authentication header {SECRET}"}}}}"#);
    let bench = Bench::new(Script::from([Step::status(401, &[], refusal)]));
    let output = bench.run(bench.job("Say hi", json!({})), &[]);
    output.assert_code(1);
    let found = blocks(&output);
    let error = found[0]["error"].as_str().unwrap();
    assert_eq!(
        (found.len(), &found[0]["status"], &found[0]["result"]),
        (1, &json!("error"), &Value::Null)
    );
    assert!(error.contains("401") && error.contains("Missing Authentication header"), "{error}");
    for text in [output.stdout(), output.stderr(), bench.only_session().to_string()] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(bench.only_session()["messages"][0]["content"], "Say hi");
}

#[test]
fn a_text_is_also_written_while_it_comes_if_that_is_wanted() {
    let gate = Gate::closed();
    let reply = Reply::openai().text("one two three four five six seven eight").in_deltas(8);
    let bench = Bench::new(Script::repeat(reply.step().hold_after(900, &gate)));
    let runner = bench.start(&bench.job("Count", json!({})), &["--partial"]);
    runner.wait_for_stdout("\"status\":\"partial\"");
    gate.open();
    let output = runner.wait(Duration::from_secs(60));
    output.assert_code(0);
    let blocks = blocks(&output);
    let (whole, partial): (Vec<&Value>, Vec<&Value>) =
        blocks.iter().partition(|block| block["status"] == "success");
    assert_eq!(whole[0]["result"], "one two three four five six seven eight");
    assert!(whole.len() == 2 && whole[1]["result"].is_null(), "{blocks:#?}");
    assert_eq!(whole[..], [&blocks[blocks.len() - 2], &blocks[blocks.len() - 1]]);
    for part in partial {
        let text = part["result"].as_str().unwrap();
        assert!(
            text.starts_with("one") && "one two three four five six seven eight".starts_with(text)
        );
    }
}

/// Calls that a model writes as text are no result, of whatever tool.
#[test]
fn calls_as_text_end_a_job_with_an_error() {
    for call in [
        "<tool_call>{\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>",
        "I look.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>",
        "<function=ls><parameter=path>.</parameter></function>",
        "[TOOL_CALLS]ls[ARGS]{\"path\": \".\"}",
    ] {
        let bench = Bench::new(Script::repeat(Reply::openai().text(call)));
        let output = bench.run(bench.job("Look", json!({})), &[]);
        let blocks = output.stdout();
        assert!(blocks.contains("\"status\":\"error\""), "{call}: {blocks}");
        assert!(blocks.contains("needs a tool parser"), "{call}: {blocks}");
        assert!(!blocks.contains("\"success\""), "{call}: {blocks}");
        assert_eq!(bench.server.requests().len(), 2, "{call}");
    }
}
