//! The tools, one call each.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;

use myclaw_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::{Bench, SECRET, files};

#[test]
fn files_are_read_written_and_edited_in_the_group_only() {
    let bench = Bench::new(Script::from([
        Reply::openai()
            .tool_call(
                "1",
                "Write",
                json!({"file_path": "notes/a.txt", "content": "one\ntwo\nthree\nfour\n"}),
            )
            .tool_call("2", "Read", json!({"file_path": "notes/a.txt", "offset": 2, "limit": 2}))
            .tool_call(
                "3",
                "Edit",
                json!({"file_path": "notes/a.txt", "old_string": "two", "new_string": "2"}),
            )
            .tool_call("4", "Glob", json!({"pattern": "*.txt"}))
            .tool_call("5", "Grep", json!({"pattern": "thr.e"})),
        Reply::openai()
            .tool_call("6", "Read", json!({"file_path": "../../secret"}))
            .tool_call("7", "Read", json!({"file_path": "link"}))
            .tool_call("8", "Write", json!({"file_path": "link2/new", "content": "x"}))
            .tool_call("9", "Write", json!({"file_path": bench_secret(), "content": "x"}))
            .tool_call(
                "10",
                "Edit",
                json!({"file_path": "link", "old_string": "hidden", "new_string": "x"}),
            )
            .tool_call("11", "Grep", json!({"pattern": "hidden", "path": "../.."}))
            .tool_call("12", "Glob", json!({"pattern": "*", "path": "/etc"})),
        Reply::openai().text("Done."),
    ]));
    bench.write("secret", "hidden words");
    symlink(bench.path("secret"), bench.path("w/group/link")).unwrap();
    symlink(bench.path("h"), bench.path("w/group/link2")).unwrap();
    bench.run(bench.job("Do it", json!({})), &[]).assert_code(0);
    assert_eq!(
        fs::read_to_string(bench.path("w/group/notes/a.txt")).unwrap(),
        "one\n2\nthree\nfour\n"
    );
    let last = bench.server.last_request();
    let results: Vec<&Value> =
        last.messages().iter().filter(|message| message["role"] == "tool").collect();
    let text = |place: usize| results[place]["content"].as_str().unwrap();
    assert!(text(1).contains("two") && text(1).contains("three"), "{}", text(1));
    assert!(!text(1).contains("one") && !text(1).contains("four\n"), "{}", text(1));
    assert!(text(3).contains("notes/a.txt"), "{}", text(3));
    assert!(text(4).contains("three"), "{}", text(4));
    for place in 5..12 {
        assert!(!text(place).contains("hidden words"), "{place}: {}", text(place));
        assert!(text(place).contains("outside"), "{place}: {}", text(place));
    }
    assert!(!bench.path("h/new").exists());
    assert_eq!(fs::read_to_string(bench.path("secret")).unwrap(), "hidden words");
}

#[test]
fn a_message_under_a_wrong_name_is_not_sent_and_the_model_learns_the_right_one() {
    for tool in ["send_message", "send_voice", "ask_boss"] {
        let output = Bench::call(tool, json!({"question": "May I?"}), |_| {}, &[]);
        assert!(output.contains("`question`: not known here"), "{tool}: {output}");
        assert!(output.contains("`text` is missing"), "{tool}: {output}");
    }
}

/// A path that no group has.
fn bench_secret() -> &'static str {
    "/etc/myclaw-runner-test"
}

#[test]
fn a_command_has_its_home_no_secret_a_time_limit_and_bounded_output() {
    let output = Bench::call("Bash", json!({"command": "env; pwd; exit 3"}), |_| {}, &[]);
    assert!(output.contains("/h\n") && output.contains("/w/group\n"), "{output}");
    assert!(!output.contains(SECRET) && output.contains("[exit code 3]"), "{output}");

    let output = Bench::call(
        "Bash",
        json!({"command": "echo begun; sleep 50"}),
        |_| {},
        &["--command-limit", "1s"],
    );
    assert!(output.starts_with("begun\n["), "{output}");

    let long = json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo end"});
    let output = Bench::call("Bash", long, |_| {}, &[]);
    assert!(output.len() <= 1024 * 1024 && output.contains("xend"), "{}", output.len());
}

#[test]
fn messages_and_tasks_are_whole_files_for_the_host() {
    let bench = Bench::new(Script::from([
        Reply::openai()
            .tool_call("1", "send_message", json!({"text": "Half done"}))
            .tool_call("2", "send_voice", json!({"text": "Good morning", "voice": "Ryan"}))
            .tool_call("3", "schedule_task", json!({"prompt": "Report", "schedule_type": "cron", "schedule_value": "0 9 * * 1-5"}))
            .tool_call("4", "list_tasks", json!({}))
            .tool_call("5", "pause_task", json!({"task_id": "t1"}))
            .tool_call("6", "resume_task", json!({"task_id": "t1"}))
            .tool_call("7", "cancel_task", json!({"task_id": "t1"})),
        Reply::openai()
            .tool_call("8", "schedule_task", json!({"prompt": "x", "schedule_type": "once", "schedule_value": "2030-01-01T10:00:00Z"}))
            .tool_call("9", "schedule_task", json!({"prompt": "x", "schedule_type": "interval", "schedule_value": "0"}))
            .tool_call("10", "schedule_task", json!({"prompt": "x", "schedule_type": "cron", "schedule_value": "daily"}))
            .tool_call("11", "schedule_task", json!({"prompt": "x", "schedule_type": "once", "schedule_value": "2030-01-01T10:00:00", "target_group_jid": "other"}))
            .tool_call("12", "send_message", json!({"text": " "})),
        Reply::openai().text("Done."),
    ]));
    let tasks = json!([{"id": "t1", "schedule_type": "once", "schedule_value": "x", "status": "active", "prompt": "Old"}]);
    bench.write("w/ipc/current_tasks.json", &tasks.to_string());
    bench.run(bench.job("Do it", json!({})), &[]).assert_code(0);
    let without_time = |directory: &str| -> Vec<Value> {
        let mut sent = bench.sent(directory);
        for file in &mut sent {
            let time = file.as_object_mut().unwrap().remove("timestamp").unwrap();
            let time = time.as_str().unwrap().to_owned();
            assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        }
        sent
    };
    let (chat, group) = ("123@g.us", "family");
    assert_eq!(
        without_time("messages"),
        [json!({"type": "message", "chatJid": chat, "text": "Half done", "groupFolder": group})]
    );
    assert_eq!(
        without_time("voice"),
        [
            json!({"type": "voice_message", "chatJid": chat, "text": "Good morning", "voice": "Ryan", "groupFolder": group})
        ]
    );
    let tasks = without_time("tasks");
    assert!(tasks.contains(&json!({
        "type": "schedule_task", "prompt": "Report", "schedule_type": "cron", "schedule_value": "0 9 * * 1-5",
        "context_mode": "group", "targetJid": chat, "createdBy": group,
    })));
    for kind in ["pause_task", "resume_task", "cancel_task"] {
        assert!(tasks.contains(&json!({"type": kind, "taskId": "t1", "groupFolder": group})));
    }
    assert_eq!(tasks.len(), 4);
    for directory in ["messages", "voice", "tasks"] {
        let directory = bench.path("w/ipc").join(directory);
        assert!(files(&directory, "tmp").is_empty());
        for file in files(&directory, "json") {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let (time, random) = name.split_once('-').unwrap();
            assert!(time.len() == 13 && time.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
            assert!(
                random.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
                "{name}"
            );
        }
    }
    let last = bench.server.last_request();
    let results: Vec<&str> = last
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(results[3], "- t1: once x, active: Old");
    for (result, reason) in results[7..].iter().zip([
        "a local time",
        "milliseconds",
        "five fields",
        "only the main group",
        "is missing or empty",
    ]) {
        assert!(result.contains(reason), "{result}");
    }
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let bench = Bench::new(
        Script::answer_with(|request, number| {
            let page = format!("http://{}/page", request.header("host").unwrap());
            match number {
                0 => Reply::openai().tool_call("1", "WebFetch", json!({"url": page})).step(),
                _ => Reply::openai().text("Done.").step(),
            }
        })
        .document("/page", json!({"weather": "sunny"})),
    );
    let address = bench.server.address().to_string();
    bench.run(bench.job("Go", json!({})), &["--allow-host", &address]).assert_code(0);
    assert!(bench.result(1).contains("sunny"), "{}", bench.result(1));
    let call = |tool: &str, arguments: Value| Bench::call(tool, arguments, |_| {}, &[]);
    let refused = call("WebFetch", json!({"url": "http://127.0.0.1/"}));
    assert!(
        refused.contains("127.0.0.1") && refused.contains("an address of this machine"),
        "{refused}"
    );
    assert!(refused.ends_with("in the runner's option --allow-host"), "{refused}");
    let missing = call("agent-browser", json!({"action": "snapshot"}));
    assert!(missing.contains("open"), "{missing}");
    bench.run("", &["--allow-host", "not a host"]).assert_code(2);
}

#[test]
fn a_voice_message_that_is_spoken_here_is_a_file_beside_its_text() {
    let bench = Bench::new(Script::from([
        Reply::openai()
            .tool_call("1", "send_voice", json!({"text": "Good morning", "voice": "Ryan"}))
            .tool_call("2", "send_voice", json!({"text": "fail"})),
        Reply::openai().text("Done."),
    ]));
    let speak = "read -r text; [ \"$text\" != fail ] || { echo 'no voice today' >&2; exit 1; }; \
                 printf 'OggS%024dOpusHead%s by %s' 0 \"$text\" \"$MYCLAW_VOICE\"";
    let options = ["--speech-command", speak, "--speech-voice", "Vivian"];
    bench.run(bench.job("Do it", json!({})), &options).assert_code(0);
    let spoken = bench.sent("voice");
    assert_eq!(spoken.len(), 1, "{spoken:?}");
    assert_eq!(
        (&spoken[0]["text"], &spoken[0]["voice"]),
        (&json!("Good morning"), &json!("Ryan")),
        "a host that knows no audio has the text"
    );
    let audio = bench.path("w/ipc/voice").join(spoken[0]["audio"].as_str().unwrap());
    assert_eq!(audio.extension().unwrap(), "ogg");
    assert!(fs::read_to_string(audio).unwrap().ends_with("OpusHeadGood morning by Ryan"));
    assert_eq!(bench.sent("messages")[0]["text"], "fail");
    let result = bench.result(1);
    assert!(
        result.contains("sent as text, because it could not be spoken")
            && result.contains("no voice today"),
        "{result}"
    );
}

#[test]
fn a_server_that_speaks_gets_the_key_of_the_job() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        // The request ends with its body.
        while !asked.ends_with(b"}") {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            asked.extend_from_slice(&bytes[..count]);
        }
        stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(asked).unwrap()
    });
    let bench = Bench::new(Script::from([
        Reply::openai().tool_call("1", "send_voice", json!({"text": "Good morning"})),
        Reply::openai().text("Done."),
    ]));
    let mut job: Value = serde_json::from_str(&bench.job("Do it", json!({}))).unwrap();
    job["secrets"]["SPEECH_API_KEY"] = json!("sk-speech-0123456789");
    bench.run(job.to_string(), &["--speech-url", &url]).assert_code(0);
    let asked = server.join().unwrap();
    assert!(asked.starts_with("POST /v1/audio/speech "), "{asked}");
    assert!(asked.contains("authorization: Bearer sk-speech-0123456789"), "{asked}");
    assert!(asked.contains("\"model\":\"tts-1\""), "{asked}");
    assert_eq!(bench.sent("messages")[0]["text"], "Good morning");
}

#[test]
fn options_for_speech_that_make_no_sense_are_refused() {
    let bench = Bench::new(Script::from([Reply::openai().text("unused")]));
    for (options, words) in [
        (&["--speech-voice", "x"][..], "give --speech-command or --speech-url too"),
        (&["--speech-url", "host/v1"], "begins with http:// or https://"),
        (&["--speech-command", "x", "--speech-url", "http://h"], "cannot be used with"),
    ] {
        let output = bench.run(bench.job("x", json!({})), options);
        output.assert_code(2);
        assert!(output.stderr().contains(words), "{}", output.stderr());
    }
}
