//! `myclaw rpc`: a program that embeds MyClaw.

use std::time::Duration;

use myclaw_testkit::{
    ChildOutput, ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
    WireFormat,
};
use serde_json::{Value, json};

use crate::{myclaw, serve};

const PATIENCE: Duration = Duration::from_secs(30);

/// A program's end of the protocol.
pub(crate) struct Client {
    pub(crate) child: RunningChild,
}

impl Client {
    pub(crate) fn start(home: &TempHome) -> Self {
        Self::of(&mut myclaw(home, &["rpc"]))
    }

    pub(crate) fn of(command: &mut std::process::Command) -> Self {
        Self { child: RunningChild::spawn_piped(command) }
    }

    pub(crate) fn send(&mut self, line: &Value) {
        self.child.send(&format!("{line}\n"));
    }

    /// Sends a command and waits for its reply.
    pub(crate) fn ask(&mut self, mut command: Value, id: u64) -> Value {
        command["id"] = json!(id);
        self.send(&command);
        let begin = format!("{{\"type\":\"response\",\"id\":{id},");
        self.wait_for(&begin)
    }

    /// Waits for a line with `text` in it, and gives that line.
    pub(crate) fn wait_for(&self, text: &str) -> Value {
        loop {
            let output = self.child.wait_for_stdout(text);
            let at = output.find(text).expect("it was waited for");
            let begin = output[..at].rfind('\n').map_or(0, |end| end + 1);
            // The end of the line may still be on its way.
            if let Some((line, _)) = output[begin..].split_once('\n') {
                return serde_json::from_str(line).expect("JSON");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes standard input, and gives all lines.
    pub(crate) fn finish(mut self) -> (ChildOutput, Vec<Value>) {
        self.child.close_stdin();
        let output = self.child.wait(PATIENCE);
        let lines = lines(&output);
        (output, lines)
    }
}

fn lines(output: &ChildOutput) -> Vec<Value> {
    output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub(crate) fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

pub(crate) fn prompt(text: &str) -> Value {
    json!({"type": "prompt", "message": text})
}

/// Answers that name what was said last.
fn echo(request: &RecordedRequest, _number: usize) -> Step {
    let said = request.messages().last().map(|message| message["content"].to_string());
    Reply::anthropic().text(format!("heard {}", said.unwrap_or_default())).step()
}

/// One call of a tool that takes as long as a file is missing, and then echoes.
fn slow_tool(request: &RecordedRequest, number: usize) -> Step {
    match number {
        0 => Reply::anthropic()
            .tool_call(
                "a",
                "bash",
                json!({"command": "until test -e go || ! test -e \"$PWD\"; do sleep 0.01; done"}),
            )
            .step(),
        number => echo(request, number),
    }
}

#[test]
fn a_script_gets_all_its_answers_before_the_end() {
    let (_server, home) = serve(Script::answer_with(echo));
    let input = "{\"id\":\"a\",\"type\":\"prompt\",\"message\":\"one\"}\n\n\
                 {\"id\":\"b\",\"type\":\"prompt\",\"message\":\"two\"}\n";
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["rpc"]), input);
    output.assert_code(0);
    let lines = lines(&output);
    assert_eq!(lines[0]["type"], "ready");
    let replies = of_type(&lines, "response");
    assert_eq!(replies.len(), 2);
    assert_eq!((&replies[0]["id"], &replies[1]["id"]), (&json!("a"), &json!("b")));
    assert_eq!(replies[0]["data"]["state"], "started");
    let ends = of_type(&lines, "run_end");
    assert_eq!(ends.last().expect("an end")["idle"], true);
    let taken: Vec<Value> = of_type(&lines, "taken")
        .iter()
        .flat_map(|line| line["ids"].as_array().expect("ids").clone())
        .collect();
    let ids: Vec<Value> = replies.iter().map(|reply| reply["data"]["messageId"].clone()).collect();
    assert_eq!(taken, ids, "each message is taken once, in order");
    let rows = home.only_transcript();
    assert_eq!(rows.iter().filter(|row| row["role"] == "user").count(), 2);
    assert_eq!(rows.last().expect("a row")["role"], "assistant");
}

#[test]
fn steering_reaches_the_turn_and_a_follow_up_comes_behind_it() {
    let (server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    let later = client.ask(json!({"type": "follow_up", "content": "then this"}), 2);
    // The documents that the protocol comes from write it in this form.
    let steer = client.ask(json!({"type": "steer", "content": "look here"}), 3);
    assert_eq!((&later["success"], &steer["success"]), (&json!(true), &json!(true)));
    let state = client.ask(json!({"type": "get_state"}), 4);
    assert_eq!(state["data"]["work"], "turn");
    assert_eq!(state["data"]["waiting"].as_array().map(Vec::len), Some(2));
    home.write_in_workspace("go", "");
    client.wait_for("\"idle\":true");
    let (output, lines) = client.finish();
    output.assert_code(0);
    let texts: Vec<&Value> = of_type(&lines, "taken").iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["work", "look here", "then this"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_prompt_for_a_busy_session_goes_where_its_mode_says() {
    let (_server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    let mut interrupting = prompt("stop that");
    interrupting["mode"] = json!("interrupt");
    let reply = client.ask(interrupting, 2);
    assert_eq!(reply["data"]["state"], "interrupting");
    client.wait_for("\"idle\":true");
    let (_, lines) = client.finish();
    let ends: Vec<(&Value, &Value)> =
        of_type(&lines, "run_end").iter().map(|line| (&line["outcome"], &line["idle"])).collect();
    let expected = [(json!("aborted"), json!(false)), (json!("answered"), json!(true))];
    assert_eq!(ends, expected.iter().map(|(outcome, idle)| (outcome, idle)).collect::<Vec<_>>());
}

#[test]
fn an_abort_ends_the_turn_and_the_next_prompt_goes_on() {
    let (server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    assert_eq!(client.ask(json!({"type": "abort"}), 2)["data"]["aborted"], true);
    let end = client.wait_for("\"type\":\"run_end\"");
    assert_eq!((&end["outcome"], &end["class"]), (&json!("aborted"), &json!("aborted")));
    assert_eq!(client.ask(json!({"type": "abort"}), 3)["data"]["aborted"], false);
    client.ask(prompt("again"), 4);
    client.wait_for("\"outcome\":\"answered\"");
    client.finish().0.assert_code(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn whatever_is_wrong_gets_one_reply_and_the_next_line_is_read() {
    let (_server, home) = serve(Script::answer_with(echo));
    let mut client = Client::start(&home);
    client.child.send("nonsense\n");
    let bad = client.wait_for("\"class\":\"parse\"");
    assert_eq!(bad["success"], false);
    let cases = [
        (json!({"type": "dance"}), "unknown_command", "There are: prompt"),
        (
            json!({"type": "steer", "content": "now"}),
            "not_running",
            "send the message as a new one",
        ),
        (json!({"type": "follow_up", "message": "now"}), "not_running", "as a new one"),
        (prompt("  "), "usage", "empty"),
        (json!({"type": "set_model", "model": "nobody/x"}), "usage", "nobody"),
        (json!({"type": "set_thinking", "level": "deep"}), "usage", "deep"),
        (json!({"type": "fork"}), "session", "no"),
        (json!({"type": "switch_session", "name": "nowhere"}), "session", "nowhere"),
        (json!({"type": "new_session", "name": ""}), "usage", "empty"),
        (json!({"type": "get_messages", "before": "none"}), "usage", "before"),
        (json!({"type": "list_models", "search": "no such model"}), "usage", "no such model"),
        (
            json!({"type": "prompt", "message": "see", "images": [{"data": "aGVsbG8="}]}),
            "usage",
            "not a PNG",
        ),
    ];
    for (number, (command, class, words)) in cases.into_iter().enumerate() {
        let reply = client.ask(command.clone(), number as u64 + 10);
        assert_eq!(reply["success"], false, "{command}");
        assert_eq!(reply["class"], class, "{command}: {reply}");
        let error = reply["error"].as_str().expect("text");
        assert!(error.contains(words), "{command}: {error}");
    }
    client.ask(prompt("still there?"), 99);
    client.wait_for("\"outcome\":\"answered\"");
    client.finish().0.assert_code(0);
}

#[test]
fn sessions_are_begun_forked_and_spoken_to_side_by_side() {
    let (_server, home) = serve(Script::answer_with(echo));
    let mut client = Client::start(&home);
    client.ask(prompt("first"), 1);
    client.wait_for("\"idle\":true");
    let messages = client.ask(json!({"type": "get_messages"}), 2);
    let rows = messages["data"]["messages"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    let fork = json!({"type": "fork", "at": rows[0]["id"], "name": "branch"});
    let forked = client.ask(fork, 3);
    assert_eq!(forked["data"]["at"], rows[0]["id"]);
    let branch = client.ask(json!({"type": "get_messages"}), 4);
    assert_eq!(branch["data"]["messages"].as_array().map(Vec::len), Some(1));
    // Another session is spoken to without leaving this one.
    let mut elsewhere = prompt("elsewhere");
    elsewhere["session"] = json!("other");
    client.ask(elsewhere, 5);
    client.wait_for("peer:direct:other\"}");
    let current = client.ask(json!({"type": "get_state"}), 6);
    assert!(current["data"]["session"].as_str().expect("text").ends_with("branch"));
    let begun = client.ask(json!({"type": "new_session"}), 7);
    assert_eq!(begun["success"], true);
    let back = client.ask(json!({"type": "switch_session", "name": "main"}), 8);
    assert!(back["data"]["session"].as_str().expect("text").ends_with("main"));
    let before = client.ask(json!({"type": "get_messages", "before": rows[1]["id"]}), 9);
    assert_eq!(before["data"]["messages"][0]["id"], rows[0]["id"]);
    client.finish().0.assert_code(0);
    let names: Vec<_> = home.transcripts();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn models_and_thinking_are_changed_between_turns() {
    let (server, home) = serve(Script::answer_with(echo));
    let mut client = Client::start(&home);
    let models = client.ask(json!({"type": "list_models", "provider": "builtin"}), 1);
    assert_eq!(models["data"]["models"][0]["id"], "demo");
    let chosen = client.ask(json!({"type": "set_model", "model": "builtin/demo"}), 2);
    assert_eq!(chosen["data"]["model"], "builtin/demo");
    let thinking = client.ask(json!({"type": "set_thinking", "level": "low"}), 3);
    assert_eq!(
        (&thinking["data"]["asked"], &thinking["data"]["level"]),
        (&json!("low"), &json!("off"))
    );
    client.ask(prompt("List the files in my workspace"), 4);
    client.wait_for("\"idle\":true");
    client.finish().0.assert_code(0);
    assert_eq!(server.requests().len(), 0, "the demo model answered");
}

#[test]
fn a_compaction_is_reported_when_it_is_done() {
    let script = Script::answer_with(|_, number| {
        Reply::anthropic().text(format!("answer {number}.")).step()
    });
    let (server, home) = serve(script);
    let mut client = Client::start(&home);
    for number in 0..8 {
        client.ask(prompt(&"a long message ".repeat(100)), number);
        client.wait_for(&format!("\"reply\":\"answer {number}.\""));
    }
    let nothing = client.ask(json!({"type": "compact", "session": "other"}), 40);
    assert_eq!(nothing["data"]["outcome"], "nothing_older", "{nothing}");
    // The first program has ended its turns when it ends.
    client.finish().0.assert_code(0);
    let mut client = Client::start(&home);
    let report = client.ask(json!({"type": "compact", "focus": "numbers"}), 50);
    assert_eq!(report["success"], true, "{report}");
    assert_eq!(report["data"]["outcome"], "done");
    assert!(report["data"]["tokensAfter"].as_u64() < report["data"]["tokensBefore"].as_u64());
    assert_eq!(
        (&report["data"]["oldCount"], &report["data"]["newCount"]),
        (&json!(16), &json!(11))
    );
    let asked = server.last_request().json().to_string();
    assert!(asked.contains("numbers"), "the focus is passed on");
    let (output, lines) = client.finish();
    output.assert_code(0);
    let end = of_type(&lines, "run_end").pop().expect("an end");
    assert_eq!((&end["outcome"], &end["report"]), (&json!("compacted"), &report["data"]));
}

#[test]
fn what_was_acknowledged_is_answered_by_the_next_program() {
    let (_server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    client.ask(json!({"type": "steer", "content": "do not forget"}), 2);
    client.child.signal(Signal::Kill);
    client.child.wait(PATIENCE);
    home.write_in_workspace("go", "");
    let mut client = Client::start(&home);
    let state = client.ask(json!({"type": "get_state"}), 1);
    assert_eq!(state["data"]["waiting"][0]["text"], "do not forget");
    client.ask(prompt("go on"), 2);
    client.wait_for("\"idle\":true");
    let (_, lines) = client.finish();
    let texts: Vec<&Value> = of_type(&lines, "taken").iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["do not forget", "go on"]);
}

#[test]
fn a_signal_aborts_the_turns_and_ends_the_program() {
    let (_server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    client.child.signal(Signal::Interrupt);
    let output = client.child.wait(PATIENCE);
    output.assert_code(130);
    let lines = lines(&output);
    assert_eq!(lines.last().expect("a line")["outcome"], "aborted");
    let rows = home.only_transcript();
    assert_eq!(rows.last().expect("a row")["role"], "tool", "the call has its result");
}

#[test]
fn another_model_takes_over_at_the_next_call_of_the_turn_that_runs() {
    let (server, home) = serve(Script::answer_with(slow_tool));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"type\":\"tool_start\"");
    let first = server.requests()[0].json()["model"].clone();
    let provider = client.wait_for("\"type\":\"llm_start\"")["provider"].clone();
    let wanted = json!({"type": "set_model", "provider": provider, "modelId": "another-model"});
    assert_eq!(client.ask(wanted, 2)["success"], true);
    home.write_in_workspace("go", "");
    client.wait_for("\"idle\":true");
    let (output, lines) = client.finish();
    output.assert_code(0);
    let models: Vec<Value> =
        server.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models, [first, json!("another-model")]);
    let done = of_type(&lines, "done");
    assert_eq!(done.len(), 1, "it is one run");
    assert_eq!(
        (&done[0]["result"]["iterations"], &done[0]["result"]["model"]),
        (&json!(2), &json!("another-model"))
    );
    assert_eq!(of_type(&lines, "run_end").len(), 1);
}

#[test]
fn the_model_of_the_command_line_answers_in_every_session() {
    let (_server, home) = serve(Script::answer_with(echo));
    let input = "{\"type\":\"new_session\"}\n{\"type\":\"get_state\"}\n";
    let mut command = myclaw(&home, &["rpc", "--model", "builtin/demo"]);
    let output = RunningChild::run_with_input(&mut command, input);
    output.assert_code(0);
    assert_eq!(lines(&output).last().expect("a line")["data"]["model"], "builtin/demo");
}

#[test]
fn messages_that_a_full_queue_drops_are_reported() {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(slow_tool));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["messages"]["queue"] = json!({"mode": "followup", "cap": 2, "drop": "old"});
    home.write_config(&config);
    let mut client = Client::start(&home);
    client.ask(prompt("begin"), 0);
    client.wait_for("\"tool_start\"");
    for number in 1..=4 {
        let reply = client.ask(prompt(&format!("message {number}")), number);
        assert_eq!(reply["data"]["state"], "queued", "{reply}");
    }
    home.write_in_workspace("go", "");
    let (_, lines) = client.finish();

    let notices: Vec<String> =
        of_type(&lines, "notice").iter().map(|notice| notice["message"].to_string()).collect();
    let dropped = notices.iter().filter(|notice| notice.contains("was dropped"));
    let dropped: Vec<_> = dropped.collect();
    assert!(
        dropped.len() == 2 && dropped[0].contains("message 1") && dropped[1].contains("message 2"),
        "{notices:?}"
    );
    assert_eq!(of_type(&lines, "queued").len(), 5, "each that was acknowledged");
}

#[test]
fn a_session_that_another_process_runs_is_busy_elsewhere() {
    let (_server, home) = serve(Script::answer_with(slow_tool));
    let mut working = Client::start(&home);
    working.ask(prompt("work"), 1);
    working.wait_for("\"tool_start\"");
    let mut client = Client::start(&home);
    let state = client.ask(json!({"type": "get_state"}), 1);
    assert_eq!(
        (&state["data"]["idle"], &state["data"]["busyElsewhere"]),
        (&json!(true), &json!(true)),
        "{state}"
    );
    let aborted = client.ask(json!({"type": "abort"}), 2);
    assert_eq!(aborted["data"], json!({"aborted": false, "busyElsewhere": true}));
    let own = working.ask(json!({"type": "get_state"}), 2);
    assert_eq!(own["data"]["busyElsewhere"], false, "{own}");
    home.write_in_workspace("go", "");
    working.wait_for("\"run_end\"");
    let state = client.ask(json!({"type": "get_state"}), 3);
    assert_eq!(state["data"]["busyElsewhere"], false, "{state}");
    working.finish().0.assert_code(0);
    client.finish().0.assert_code(0);
}

#[test]
fn unknown_fields_are_refused_and_every_reply_names_its_command() {
    let (server, home) = serve(Script::answer_with(echo));
    let input = "{\"id\":1,\"type\":\"prompt\",\"message\":\"x\",\"modes\":\"steer\"}\n{\"id\":2,\"type\":\"prompts\"}\n\
                 nonsense\n{\"id\":3,\"type\":\"get_commands\"}\n";
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["rpc"]), input);
    output.assert_code(0);
    let lines = lines(&output);
    let replies = of_type(&lines, "response");
    let commands: Vec<&Value> = replies.iter().map(|reply| &reply["command"]).collect();
    assert_eq!(commands, ["prompt", "prompts", "parse", "get_commands"]);
    assert!(replies[0]["error"].as_str().unwrap().contains("did you mean `mode`?"), "{replies:?}");
    let described = replies[3]["data"]["commands"].as_array().unwrap();
    let bash = described.iter().find(|command| command["name"] == "bash").unwrap();
    assert_eq!(bash["fields"], json!(["command", "timeoutSeconds", "forModel"]));
    assert!(server.requests().is_empty(), "a misspelt prompt was sent");
}

#[test]
fn a_command_of_the_program_runs_and_the_model_reads_it_if_asked() {
    let (server, home) = serve(Script::answer_with(echo));
    let mut client = Client::start(&home);
    let run = json!({"type": "bash", "command": "echo hidden-$((40 + 2)); exit 3"});
    let ran = client.ask(run, 1);
    assert_eq!((&ran["success"], &ran["data"]["failed"]), (&json!(true), &json!(true)), "{ran}");
    assert!(ran["data"]["output"].as_str().unwrap().contains("hidden-42"), "{ran}");
    assert_eq!(ran["data"]["details"]["exitCode"], 3);
    let shown = client.ask(json!({"type": "bash", "command": "echo shown", "forModel": true}), 2);
    assert_eq!(shown["data"]["failed"], false, "{shown}");
    let slow = json!({"type": "bash", "command": "sleep 600", "timeoutSeconds": 1});
    let ended = client.ask(slow, 3);
    assert_eq!(ended["data"]["details"]["timedOut"], true, "{ended}");
    let empty = client.ask(json!({"type": "bash", "command": " "}), 4);
    assert_eq!(empty["class"], "usage", "{empty}");
    client.ask(prompt("what did I run?"), 5);
    client.wait_for("\"idle\":true");
    client.finish().0.assert_code(0);
    let asked = server.requests()[0].body_text();
    assert!(asked.contains("$ echo shown\\nshown") && !asked.contains("hidden-42"), "{asked}");
}

#[test]
fn a_session_is_counted_renamed_exported_and_deleted() {
    let (_server, home) = serve(Script::answer_with(echo));
    let mut client = Client::start(&home);
    let before = client.ask(json!({"type": "get_session_stats"}), 1);
    assert_eq!(before["data"]["messages"]["user"], 0, "{before}");
    client.ask(prompt("hello"), 2);
    client.wait_for("\"idle\":true");
    let stats = client.ask(json!({"type": "get_session_stats"}), 3)["data"].clone();
    assert_eq!(
        (&stats["messages"]["user"], &stats["messages"]["assistant"]),
        (&json!(1), &json!(1))
    );
    assert!(stats["tokens"]["total"].as_u64().unwrap() > 0, "{stats}");
    let renamed = client.ask(json!({"type": "rename", "title": " The first one "}), 4);
    assert_eq!(renamed["data"]["title"], "The first one");
    assert_eq!(client.ask(json!({"type": "rename", "title": "a\nb"}), 5)["class"], "usage");
    let path = home.path().join("session.md");
    let exported = client.ask(json!({"type": "export", "path": path}), 6);
    assert_eq!(exported["success"], true, "{exported}");
    let document = std::fs::read_to_string(&path).unwrap();
    assert!(document.contains("The first one") && document.contains("hello"), "{document}");
    let again = client.ask(json!({"type": "export", "path": path}), 7);
    assert!(again["error"].as_str().unwrap().contains("exists already"), "{again}");
    let nameless = client.ask(json!({"type": "export", "path": home.path().join("x")}), 8);
    assert_eq!(nameless["class"], "usage", "{nameless}");

    let current = client.ask(json!({"type": "delete"}), 9);
    assert!(current["error"].as_str().unwrap().contains("the current session"), "{current}");
    let old = stats["session"].clone();
    client.ask(json!({"type": "new_session", "name": "other"}), 10);
    let deleted = client.ask(json!({"type": "delete", "session": old}), 11);
    assert_eq!(deleted["data"]["session"], old, "{deleted}");
    let gone = client.ask(json!({"type": "switch_session", "name": old}), 12);
    assert_eq!(gone["class"], "session", "{gone}");
    let listed = client.ask(json!({"type": "list_sessions"}), 13);
    assert_eq!(listed["data"]["total"], 0, "{listed}");
    client.finish().0.assert_code(0);
}

#[test]
fn a_broken_config_is_reported_in_the_protocol() {
    let home = TempHome::new();
    home.write_config(&json!({"agent": {"maxIterations": "many"}}));
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["rpc"]), "");
    assert_ne!(output.code(), Some(0));
    let lines = lines(&output);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["type"], &lines[0]["class"]), (&json!("not_ready"), &json!("config")));
    let error = lines[0]["error"].as_str().unwrap();
    assert!(error.contains("maxIterations"), "{error}");
    assert!(output.stderr().contains("maxIterations"), "people read standard error");
}
