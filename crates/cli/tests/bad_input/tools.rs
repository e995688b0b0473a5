//! Calls that cannot run, and tools that do not behave.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use myclaw_testkit::{Reply, RunningChild, Script, Signal, TempHome, WireFormat, wait_until_gone};
use serde_json::{Value, json};

use crate::{
    assert_fit_for_people, assert_goes_on, config, count, home_for, myclaw, rows, run, serve, valid,
};

/// Most memory of the program in these tests, in bytes. Tests run unoptimised, and pages of the program count; the point is
/// that it does not grow with what a tool prints, which is 100 MB.
const MEMORY_LIMIT: u64 = 80 * 1024 * 1024;

/// Text of the one result in a request.
fn result_in(body: &Value) -> String {
    let messages = ["messages", "input", "contents"];
    let items = messages.into_iter().filter_map(|name| body[name].as_array()).flatten();
    let results: Vec<String> = items.flat_map(results_of).collect();
    let [result] = results.as_slice() else { panic!("expected one result: {results:?}") };
    result.clone()
}

/// The results in one item of a request, in whatever format.
fn results_of(item: &Value) -> Vec<String> {
    if item["role"] == "tool" {
        return vec![item["content"].to_string()];
    }
    if item["type"] == "function_call_output" {
        return vec![item["output"].to_string()];
    }
    let blocks = ["content", "parts"].into_iter().filter_map(|name| item[name].as_array());
    let is_result = |block: &&Value| {
        block["type"] == "tool_result"
            || block.get("toolResult").is_some()
            || block.get("functionResponse").is_some()
    };
    blocks.flatten().filter(is_result).map(Value::to_string).collect()
}

/// One turn in which the model makes `call` and then answers. Returns what the model read as the call's result.
fn result_of(home: &TempHome, format: WireFormat, call: Reply) -> String {
    let server = serve(Script::from([call, Reply::new(format).text("I see.")]));
    home.write_config(&config(server.url(), format));
    let output = run(home, &["run", "go on"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "I see.\n");
    assert_fit_for_people(&output);
    server.assert_finished();
    result_in(&valid(&server.last_request()))
}

#[test]
fn a_call_that_cannot_run_is_a_result_that_says_what_to_do() {
    let calls: [(&str, &str, &[&str]); 9] = [
        ("bash", r#"{"command": "echo hi"#, &["not a JSON object", "valid JSON"]),
        ("bash", "echo hi", &["not a JSON object", "echo hi"]),
        ("bash", r#"["echo hi"]"#, &["not a JSON object"]),
        ("bash", "{}", &["command"]),
        ("read", r#"{"path": 7, "startLine": "three"}"#, &["startLine", "integer"]),
        ("edit", r#"{"path": "a.txt"}"#, &["edit", "corrected"]),
        ("no_such_tool", "{}", &["Unknown tool: no_such_tool", "bash", "apply_patch"]),
        ("Bsh ", r#"{"command": "echo hi"}"#, &["Unknown tool", "bash"]),
        ("read", r#"{"path": "nowhere.txt"}"#, &["nowhere.txt"]),
    ];
    for format in WireFormat::ALL {
        for (tool, arguments, words) in calls {
            // Google's arguments come as JSON within JSON, so they cannot be anything else.
            let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|a| a.is_object());
            if format == WireFormat::GoogleGenerativeAi && !is_object {
                continue;
            }
            let home = TempHome::new();
            let call = Reply::new(format).tool_call_with_raw_arguments("call_1", tool, arguments);
            let result = result_of(&home, format, call);
            for word in words {
                assert!(result.contains(word), "{tool} {arguments}: no `{word}` in {result}");
            }
            assert_goes_on(&home, format, "main");
        }
    }
}

#[test]
fn a_file_that_is_not_utf8() {
    let latin = b"caf\xe9 one\r\ncaf\xe9 two\r\n";
    for format in WireFormat::ALL {
        let home = TempHome::new();
        let path = home.write_in_workspace("latin.txt", latin);
        let read = |arguments: Value| Reply::new(format).tool_call("call_1", "read", arguments);
        let result = result_of(&home, format, read(json!({"path": "latin.txt"})));
        assert!(result.contains("one") && result.contains("two"), "{result}");
        fs::remove_dir_all(home.sessions_directory()).expect("the sessions");

        // What is not edited keeps its bytes.
        let edit = Reply::new(format).tool_call(
            "call_1",
            "edit",
            json!({"path": "latin.txt", "oldText": "two", "newText": "three"}),
        );
        result_of(&home, format, edit);
        assert_eq!(fs::read(&path).expect("the file"), b"caf\xe9 one\r\ncaf\xe9 three\r\n");
        fs::remove_dir_all(home.sessions_directory()).expect("the sessions");

        home.write_in_workspace("program", b"\x7fELF\0\0\0\x01\x02\x03\0\0");
        let result = result_of(&home, format, read(json!({"path": "program"})));
        assert!(result.contains("ELF program") && result.contains("not text"), "{result}");
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_tool_that_prints_a_hundred_megabytes() {
    const LINES: usize = 1_638_400;
    // 64 bytes a line, and a last one to be kept.
    let command = format!("yes {} | head -n {LINES}; echo the very end", "x".repeat(63));
    let bytes = (LINES * 64 + "the very end\n".len()) as u64;
    let format = WireFormat::AnthropicMessages;
    let server = serve(Script::from([
        Reply::new(format).tool_call("call_1", "bash", json!({"command": command})),
        Reply::new(format).text("A lot."),
    ]));
    let home = home_for(&server, format);
    // Without optimisation, looking for secrets in so much takes half a minute of an idle processor.
    let output = RunningChild::spawn(&mut myclaw(&home, &["run", "print it"]));
    let output = output.wait(Duration::from_secs(300));
    output.assert_code(0);
    let result = result_in(&valid(&server.last_request()));
    assert!(result.contains("the very end"), "the end is shown");
    assert!(result.len() < 64 * 1024, "{} bytes", result.len());

    let side_file = side_files(&home).pop().expect("a side file");
    assert!(result.contains(&side_file.display().to_string()), "the result names it");
    assert_eq!(fs::metadata(&side_file).expect("the side file").len(), bytes);
    let transcript = fs::metadata(home.transcript_path("main")).expect("a transcript").len();
    assert!(transcript < 128 * 1024, "the transcript has {transcript} bytes");
    if let Some(peak) = output.peak_memory {
        assert!(peak < MEMORY_LIMIT, "{peak} bytes");
    }
    assert_goes_on(&home, format, "main");
}

/// Every file in which the output of a command was kept.
fn side_files(home: &TempHome) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![home.sessions_directory()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("bash-"))
            {
                found.push(path);
            }
        }
    }
    found
}

/// A command whose processes write their ids to `pids`, one of them in a session of its own, and then sleep.
const ENDLESS: &str = "setsid sh -c 'echo $$ >> pids; exec sleep 1000' & echo $$ >> pids; while :; do sleep 1000; done";

/// The processes of [`ENDLESS`], once both run.
fn processes(home: &TempHome) -> Vec<u32> {
    let file = home.workspace().join("pids");
    loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let ids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if ids.len() == 2 && text.ends_with('\n') {
            return ids;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_tool_that_never_ends_is_stopped_when_its_time_is_up() {
    for format in WireFormat::ALL {
        let server = serve(Script::from([
            Reply::new(format).tool_call("call_1", "bash", json!({"command": ENDLESS})),
            Reply::new(format).text("Too slow."),
        ]));
        let home = TempHome::new();
        let mut config = config(server.url(), format);
        config["tools"] = json!({"bash": {"timeoutSeconds": 1}});
        home.write_config(&config);
        let output = run(&home, &["run", "wait for it"]);
        output.assert_code(0);
        assert_eq!(output.stdout(), "Too slow.\n");
        processes(&home).into_iter().for_each(wait_until_gone);
        let result = result_in(&valid(&server.last_request()));
        assert!(result.contains("1 s") && result.contains("timeout"), "{result}");
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_tool_that_never_ends_goes_with_the_run() {
    for format in WireFormat::ALL {
        let server = serve(Reply::new(format).text("Waiting.").tool_call(
            "call_1",
            "bash",
            json!({"command": ENDLESS}),
        ));
        let home = home_for(&server, format);
        let child = RunningChild::spawn(&mut myclaw(&home, &["run", "wait for it"]));
        let processes = processes(&home);
        child.signal(Signal::Interrupt);
        let output = child.wait(Duration::from_secs(30));
        crate::assert_fails(&output, 130, &["aborted", "the next message continues"]);
        processes.into_iter().for_each(wait_until_gone);
        let roles: Vec<String> = rows(&home, "main").into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "[aborted; ended with everything"), 1, "{request:#}");
    }
}
