//! The bare loop does the whole loop, in both formats; otherwise a comparison with it would mean nothing.

use myclaw_testkit::{ModelServer, Reply, RunningChild, TempHome, WireFormat, validate_pairing};
use serde_json::json;

/// Two calls in one message, a third in the next, then the answer.
fn script(format: WireFormat) -> Vec<Reply> {
    let reply = || Reply::new(format);
    vec![
        reply()
            .text("Both at once.")
            .tool_call("call_1", "bash", json!({"command": "echo one; echo err >&2"}))
            .in_deltas(9)
            .tool_call("call_2", "bash", json!({"command": "true"})),
        reply().tool_call("call_3", "bash", json!({"command": "exit 3"})),
        reply().text("Done: “ü”."),
    ]
}

#[test]
fn it_runs_tools_sends_their_results_and_keeps_what_was_said() {
    for (format, model, base) in [
        (WireFormat::AnthropicMessages, "claude-x", ""),
        (WireFormat::OpenAiCompletions, "gpt-x", "/v1"),
    ] {
        let home = TempHome::new();
        let transcript = home.path().join("transcript.jsonl");
        let run = |replies: Vec<Reply>| {
            let server = ModelServer::spawn_blocking_thread(replies);
            let mut command = home.command(env!("CARGO_BIN_EXE_bare"));
            command
                .arg(format!("{}{base}", server.url()))
                .args([model, "Do three things."])
                .arg(&transcript);
            let output = RunningChild::run(&mut command);
            output.assert_code(0);
            server.assert_finished();
            assert_eq!(server.connections(), 1);
            for request in server.requests() {
                assert_eq!(validate_pairing(&request), Ok(()), "{format:?}");
            }
            (output.stdout(), server.requests())
        };
        let (said, requests) = run(script(format));
        assert_eq!(said, "Done: “ü”.\n");
        assert_eq!(requests.len(), 3);
        let roles: Vec<String> = TempHome::read_lines(&transcript)
            .iter()
            .map(|row| row["role"].as_str().unwrap_or("-").to_owned())
            .collect();
        assert_eq!(
            roles,
            ["-", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
        );
        let rows = TempHome::read_lines(&transcript);
        assert_eq!(
            (&rows[3]["content"], &rows[3]["toolCallId"]),
            (&json!("one\nerr\n"), &json!("call_1"))
        );
        assert_eq!(rows[2]["meta"]["contentBlocks"].as_array().map(Vec::len), Some(3));

        // A second turn sends what the first request of a third would: the history read back is the history sent.
        let (_, again) = run(vec![Reply::new(format).text("Again.")]);
        let sent = requests.last().unwrap().messages();
        assert_eq!(&again[0].messages()[..sent.len()], sent, "{format:?}");
        assert_eq!(again[0].messages().len(), sent.len() + 2);
    }
}

#[test]
fn it_reads_lines_of_a_file() {
    let home = TempHome::new();
    home.write("lines.txt", "one\ntwo\nthree\nfour\n");
    let arguments = json!({"path": "lines.txt", "startLine": 2, "endLine": 3});
    let replies = [
        Reply::anthropic().tool_call("call_1", "read", arguments),
        Reply::anthropic().text("Read."),
    ];
    let server = ModelServer::spawn_blocking_thread(Vec::from(replies));
    let transcript = home.path().join("t.jsonl");
    let mut command = home.command(env!("CARGO_BIN_EXE_bare"));
    command.args([server.url(), "claude-x", "Hi"]).arg(&transcript);
    RunningChild::run(&mut command).assert_code(0);
    let rows = TempHome::read_lines(&transcript);
    assert_eq!(rows[3]["content"], json!("two\nthree\n(4 lines)"));
}

#[test]
fn a_stream_that_is_cut_is_a_failure() {
    let server =
        ModelServer::spawn_blocking_thread(Reply::anthropic().text("Hello").step().cut_after(300));
    let home = TempHome::new();
    let mut command = home.command(env!("CARGO_BIN_EXE_bare"));
    command.args([server.url(), "claude-x", "Hi"]).arg(home.path().join("t.jsonl"));
    let output = RunningChild::run(&mut command);
    output.assert_code(1);
    assert_eq!(output.stderr(), "bare: the connection closed within an answer\n");
}
