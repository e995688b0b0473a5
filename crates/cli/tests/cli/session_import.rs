//! `myclaw sessions import`: files of other programs, and what they become.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use myclaw_testkit::{Reply, RunningChild, Signal, TempHome, validate_pairing};
use serde_json::{Value, json};

use crate::{myclaw, run, serve};

/// What an import of `long.jsonl` writes before it is done.
const UNFINISHED: &str =
    "agent__main__channel__cli__account__default__peer__direct__long.jsonl.new";

/// A file of `tests/data`.
fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    path.to_str().expect("a path of text").to_owned()
}

const PI_1: &str = "pi/v1.jsonl";
const PI_3: &str = "pi/v3.jsonl";
const CLAWDBOT: &str = "clawdbot/agents/ops/sessions/b7300bff-a214-4c11-97ae-eab26883c67a.jsonl";
const CLAWDBOT_JSON: &str = "clawdbot/agents/ops/sessions/4f1d.json";
const STINGYCLAW: &str = "stingyclaw/0b8f7a52-6a54-4e5f-9a43-3f6d7a0c9d11.json";

/// Imports a file under the name `it`. Gives the rows and what was said about them.
fn imported(home: &TempHome, file: &str) -> (Vec<Value>, String) {
    let output = run(home, &["sessions", "import", &data(file), "--session", "it"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "it\n");
    let rows = TempHome::read_lines(&home.transcript_path("it"));
    let reported = output.stderr();
    let (_, left_out) = reported.trim_end().split_once("; left out: ").unwrap_or_default();
    (rows, left_out.to_owned())
}

/// Role (or type) and text of each row.
fn gist(rows: &[Value]) -> Vec<(&str, &str)> {
    rows.iter()
        .map(|row| {
            let kind = row["role"].as_str().or(row["type"].as_str()).unwrap_or("");
            let text = ["content", "summary", "title", "sessionKey"];
            (kind, text.iter().find_map(|name| row[*name].as_str()).unwrap_or(""))
        })
        .collect()
}

fn blocks(row: &Value) -> &Value {
    &row["meta"]["contentBlocks"]
}

#[test]
fn pi_before_it_had_ids() {
    let (rows, left_out) = imported(&TempHome::new(), PI_1);
    assert_eq!(
        gist(&rows)[1..],
        [
            ("user", "Read the notes."),
            ("assistant", ""),
            ("tool", "Milk and bread."),
            ("assistant", "A shopping list."),
            ("user", "Add eggs."),
            ("compaction", "They read a shopping list."),
            ("assistant", "Eggs added."),
        ]
    );
    assert_eq!(left_out, "1 × entry of the type `thinking_level_change`, 1 × field `attachments`");
    let call = json!([{"type": "toolCall", "id": "toolu_01", "name": "read", "arguments": {"path": "notes.md"}}]);
    assert_eq!(blocks(&rows[2]), &call);
    assert_eq!(rows[2]["meta"]["usage"]["cost"]["total"], 0.003);
    assert_eq!(rows[2]["ts"], 1_765_241_582_000_u64);
    assert_eq!(
        (&rows[3]["toolCallId"], &rows[3]["meta"]["toolName"]),
        (&json!("toolu_01"), &json!("read"))
    );
    // The sixth line, the change of the level, is what was kept first: so the next message is.
    assert_eq!(rows[6]["firstKeptId"], rows[5]["id"]);
}

#[test]
fn pi_as_a_tree() {
    let home = TempHome::new();
    let (rows, left_out) = imported(&home, PI_3);
    assert_eq!(
        gist(&rows)[1..],
        [
            ("user", "What is in the picture?"),
            ("assistant", "A heron."),
            ("user", "Summary of another part of this conversation:\n\nThey tried another way."),
            ("user", "I ran this command:\nls\n\nIt printed:\nheron.png"),
            ("user", "Birds only, please."),
            ("assistant", ""),
            ("tool", "PNG image"),
            ("compaction", "A heron was seen."),
            ("assistant", "It is a PNG image."),
            ("about", "The heron"),
        ]
    );
    assert_eq!(
        left_out,
        "2 × entry of other branches, 1 × entry of the type `custom`, 1 × entry of the type `label`, \
         1 × entry of the type `model_change`, 1 × entry of the type `thinking_level_change`, 1 × half a last line"
    );
    assert_eq!(rows[1]["id"], "a0000001");
    assert_eq!(
        blocks(&rows[1])[1],
        json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
    );
    let thinking =
        json!({"type": "thinking", "thinking": "A heron, I think.", "thinkingSignature": "c2ln"});
    assert_eq!(blocks(&rows[2])[0], thinking);
    assert_eq!(
        (&rows[8]["firstKeptId"], &rows[8]["tokensBefore"]),
        (&json!("c0000005"), &json!(5000))
    );
    let list = run(&home, &["sessions", "list", "--json"]).stdout();
    let listed: Value = serde_json::from_str(&list).expect("one line of JSON");
    assert_eq!(
        (&listed["title"], &listed["model"], &listed["totalTokens"]),
        (&json!("The heron"), &json!("anthropic/claude-opus-4-5"), &json!(470))
    );
}

#[test]
fn pi_begun_anew_and_with_parents_that_are_nowhere() {
    let home = TempHome::new();
    let line = |id: &str, parent: Value| {
        let message = json!({"role": "user", "content": id});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2025-12-09T00:53:00Z", "message": message})
    };
    let header =
        json!({"type": "session", "version": 3, "id": "x", "timestamp": "2025-12-09T00:53:00Z"});
    let begun_anew = [
        header.clone(),
        line("first", Value::Null),
        line("again", Value::Null),
        line("on", json!("again")),
    ];
    let lost = [header, line("first", json!("lost")), line("self", json!("self"))];
    for (name, lines, expected) in
        [("anew", &begun_anew[..], &["again", "on"][..]), ("lost", &lost, &["self"])]
    {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        home.write(format!("{name}.jsonl"), text);
        let output = run(&home, &["sessions", "import", &format!("{name}.jsonl")]);
        output.assert_code(0);
        assert!(
            output.stderr().contains("left out: 1 × entry of other branches"),
            "{}",
            output.stderr()
        );
        let rows = TempHome::read_lines(&home.transcript_path(name));
        let ids: Vec<&str> =
            rows[1..].iter().map(|row| row["id"].as_str().expect("an id")).collect();
        assert_eq!(ids, expected);
    }
}

#[test]
fn clawdbot_is_pi_with_another_name() {
    let (rows, left_out) = imported(&TempHome::new(), CLAWDBOT);
    assert_eq!(
        gist(&rows)[1..],
        [
            ("user", "[Telegram Ann] What is the weather?"),
            ("assistant", "Rain."),
            ("user", "Check the calendar."),
            ("assistant", "Nothing today."),
        ]
    );
    assert_eq!(left_out, "");
    assert_eq!(rows[2]["meta"]["usage"]["cost"]["total"], 0.5);
    assert_eq!(rows[2]["meta"]["provider"], "siliconflow");
}

#[test]
fn a_document_of_openai_messages() {
    let (rows, left_out) = imported(&TempHome::new(), STINGYCLAW);
    assert_eq!(
        gist(&rows)[1..],
        [
            ("user", "What is the weather?"),
            ("assistant", ""),
            ("tool", "Rain, 9 degrees"),
            ("tool", "Error: bad arguments"),
            ("assistant", "It rains."),
            ("user", "And here?"),
            ("assistant", "Sunny."),
        ]
    );
    assert_eq!(
        left_out,
        "1 × content block of the type `input_audio`, 1 × field `reasoning_details`"
    );
    assert_eq!(
        blocks(&rows[2]),
        &json!([
            {"type": "thinking", "thinking": "I should look."},
            {"type": "toolCall", "id": "call_1", "name": "WebFetch", "arguments": {"url": "https://weather.example"}},
            {"type": "toolCall", "id": "call_2", "name": "Bash", "arguments": {}, "invalidArguments": "{\"command\": "},
        ])
    );
    assert_eq!(rows[3]["meta"]["toolName"], "WebFetch");
    assert_eq!(
        blocks(&rows[6])[1],
        json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
    );
    // The file has no times; its own is nearer than none.
    assert!(rows[1]["ts"].as_u64() > Some(1_700_000_000_000), "{}", rows[1]);
}

#[test]
fn a_document_of_anthropic_messages() {
    let (rows, left_out) = imported(&TempHome::new(), CLAWDBOT_JSON);
    assert_eq!(
        gist(&rows)[1..],
        [
            ("user", "List my files"),
            ("assistant", ""),
            ("tool", "a.txt"),
            ("user", "And hidden ones?"),
            ("assistant", "None."),
            ("tool", "left over"),
        ]
    );
    assert_eq!(
        left_out,
        "1 × content block of the type `server_tool_use`, 1 × signature of reasoning"
    );
    assert_eq!(
        (&rows[3]["toolCallId"], &rows[3]["meta"]["toolName"]),
        (&json!("toolu_03"), &json!("ls"))
    );
}

#[test]
fn whatever_was_imported_can_be_continued() {
    for file in [PI_1, PI_3, CLAWDBOT, CLAWDBOT_JSON, STINGYCLAW] {
        let (server, home) = serve(Reply::anthropic().text("Yes."));
        imported(&home, file);
        let output = run(&home, &["run", "--session", "it", "Go on?"]);
        output.assert_code(0);
        assert_eq!(output.stdout().trim(), "Yes.", "{file}");
        let request = server.last_request();
        validate_pairing(&request).unwrap_or_else(|violation| panic!("{file}: {violation}"));
        assert!(request.messages().len() >= 3, "{file}: {:?}", request.messages());
    }
}

#[test]
fn the_file_names_the_session_if_the_caller_does_not() {
    let home = TempHome::new();
    let files = [PI_3, CLAWDBOT, CLAWDBOT_JSON].map(data);
    let mut arguments = vec!["sessions", "import"];
    arguments.extend(files.iter().map(String::as_str));
    let output = run(&home, &arguments);
    output.assert_code(0);
    assert_eq!(
        output.stdout(),
        "v3\n\
         agent:ops:channel:telegram:account:default:peer:group:99\n\
         agent:ops:channel:cli:account:default:peer:direct:4f1d\n"
    );
    let output = run(&home, &["sessions", "import", &files[0], "--agent", "ops"]);
    assert_eq!(output.stdout(), "agent:ops:channel:cli:account:default:peer:direct:v3\n");
}

#[test]
fn nothing_is_written_over() {
    let home = TempHome::new();
    imported(&home, PI_1);
    let before = fs::read(home.transcript_path("it")).expect("a transcript");
    let output = run(&home, &["sessions", "import", &data(PI_3), "--session", "it"]);
    output.assert_code(1);
    assert!(output.stderr().contains("already"), "{}", output.stderr());
    assert_eq!(fs::read(home.transcript_path("it")).expect("a transcript"), before);
}

#[test]
fn bad_files_are_reported_one_by_one_and_the_good_ones_are_taken() {
    let home = TempHome::new();
    let bad = [
        ("empty.jsonl", "", "not a known session file"),
        ("notes.txt", "Dear diary", "not a known session file"),
        ("other.json", "{\"a\": 1}", "not a known session file"),
        (
            "cut.json",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"ro",
            "EOF while parsing",
        ),
        ("list.json", "{\n\"sessions\": []\n}", "missing field `messages`"),
        ("none.json", "{\"messages\": []}", "holds no messages"),
        (
            "odd.json",
            "{\"messages\": [{\"role\": \"ghost\"}, 7]}",
            "1 × message of the role `ghost`, 1 × message that is not an object",
        ),
        ("header.jsonl", "{\"type\":\"session\",\"id\":\"x\"}\n", "holds no messages"),
        (
            "newer.jsonl",
            "{\"type\":\"session\",\"version\":9,\"sessionKey\":\"agent:main:main\"}\n",
            "Install the newer version",
        ),
    ];
    for (name, text, message) in bad {
        home.write(name, text);
        let output = run(&home, &["sessions", "import", name, "--session", "it"]);
        output.assert_code(1);
        assert!(output.stderr().contains(message), "{name}: {}", output.stderr());
        assert!(output.stderr().contains(name), "{name}: {}", output.stderr());
    }
    let output = run(&home, &["sessions", "import", "missing.jsonl"]);
    output.assert_code(1);
    assert!(output.stderr().contains("No such file"), "{}", output.stderr());
    let output = run(&home, &["sessions", "import", "a", "b", "--session", "it"]);
    output.assert_code(2);
    let good = data(PI_1);
    let output = run(&home, &["sessions", "import", "missing.jsonl", &good, "notes.txt"]);
    output.assert_code(1);
    assert_eq!(output.stdout(), "v1\n");
    assert!(output.stderr().ends_with("2 of 3 files were not imported\n"), "{}", output.stderr());
    let mut names: Vec<String> = fs::read_dir(home.sessions_directory())
        .expect("a directory")
        .map(|found| found.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "one session and the index: {names:?}");
}

#[test]
fn lines_of_messages_and_rows_without_a_header_are_known_too() {
    let home = TempHome::new();
    home.write(
        "chat.jsonl",
        "{\"role\":\"system\",\"content\":\"Be brief.\"}\n\n{\"role\":\"user\",\"content\":\"hi\"}\nnonsense\n\
         {\"role\":\"assistant\",\"content\":\"ho\",\"finish_reason\":\"length\"}\n{\"role\":\"us",
    );
    let output = run(&home, &["sessions", "import", "chat.jsonl"]);
    output.assert_code(0);
    assert!(
        output.stderr().ends_with("left out: 1 × damaged line, 1 × half a last line\n"),
        "{}",
        output.stderr()
    );
    let rows = TempHome::read_lines(&home.transcript_path("chat"));
    assert_eq!(gist(&rows)[1..], [("system", "Be brief."), ("user", "hi"), ("assistant", "ho")]);
    assert_eq!(rows[3]["meta"]["stopReason"], "length");

    // Its first line is longer than the part that decides what kind of file it is.
    let long = json!({"role": "user", "content": "x".repeat(100_000)});
    home.write("long.jsonl", format!("{long}\n{{\"role\":\"assistant\",\"content\":\"ho\"}}\n"));
    run(&home, &["sessions", "import", "long.jsonl"]).assert_code(0);
    assert_eq!(TempHome::read_lines(&home.transcript_path("long")).len(), 3);

    home.write("old.jsonl", "{\"role\":\"user\",\"content\":\"hi\",\"ts\":7}\n");
    run(&home, &["sessions", "import", "old.jsonl"]).assert_code(0);
    let rows = TempHome::read_lines(&home.transcript_path("old"));
    assert_eq!((gist(&rows)[1], &rows[1]["ts"]), (("user", "hi"), &json!(7)));
}

#[test]
fn a_killed_import_leaves_no_session() {
    let home = TempHome::new();
    let message = json!({"role": "user", "content": "x".repeat(1000)}).to_string();
    home.write("long.jsonl", format!("{message}\n").repeat(20_000));
    let import = ["sessions", "import", "long.jsonl"];
    let child = RunningChild::spawn(&mut myclaw(&home, &import));
    // Killed while it writes.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !home.sessions_directory().join(UNFINISHED).exists() {
        assert!(Instant::now() < deadline, "the import does not begin");
        std::thread::yield_now();
    }
    child.signal(Signal::Kill);
    child.wait(Duration::from_secs(20));
    assert!(
        home.sessions_directory().join(UNFINISHED).exists(),
        "the kill came too late to show anything"
    );
    let listed = run(&home, &["sessions", "list", "--json"]);
    listed.assert_code(0);
    assert_eq!(listed.stdout(), "");
    run(&home, &import).assert_code(0);
    assert_eq!(TempHome::read_lines(&home.transcript_path("long")).len(), 20_001);
    assert!(!home.sessions_directory().join(UNFINISHED).exists());
}

#[test]
fn a_byte_order_mark_is_passed_over_and_an_empty_message_counted() {
    let home = TempHome::new();
    for (name, text) in [
        (
            "list.json",
            "[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"user\", \"content\": \"\"}]",
        ),
        (
            "lines.jsonl",
            "{\"role\": \"user\", \"content\": \"hi\"}\n{\"role\": \"user\", \"content\": \"\"}\n",
        ),
    ] {
        let file = home.write(name, format!("\u{feff}{text}"));
        let output = run(&home, &["sessions", "import", &file.to_string_lossy()]);
        output.assert_code(0);
        let reported = output.stderr();
        assert!(
            reported.contains("1 message") && reported.contains("; left out: 1 × empty message\n"),
            "{reported}"
        );
    }
}

#[test]
fn an_answer_that_is_not_whole_says_so() {
    let home = TempHome::new();
    let message = |stop: &str| {
        json!({"role": "assistant", "content": format!("half {stop}"), "ts": 1, "id": stop,
            "meta": {"stopReason": stop}})
    };
    let lines: Vec<String> = ["error", "aborted", "length", "refusal", "stop"]
        .map(|stop| message(stop).to_string())
        .into();
    let file = home.write("cut.jsonl", lines.join("\n") + "\n");
    run(&home, &["sessions", "import", &file.to_string_lossy(), "--session", "cut"]).assert_code(0);
    for arguments in [
        &["sessions", "show", "cut"][..],
        &["sessions", "export", "cut", "--format", "markdown"],
        &["sessions", "export", "cut", "--format", "html"],
    ] {
        let shown = run(&home, arguments).stdout();
        for mark in ["(broke off)", "(aborted)", "(cut at the output limit)", "(refused)"] {
            assert_eq!(shown.matches(mark).count(), 1, "{mark}: {shown}");
        }
    }
}
