//! Odd command lines and input, readers that go away, and two processes that want one session.

use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use myclaw_testkit::{Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat};

use crate::{
    assert_fails, assert_fit_for_people, assert_goes_on, count, home_for, myclaw, rows, run, said,
    serve, serve_text, valid,
};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_session_name_may_be_odd_and_never_leaves_its_directory() {
    let format = WireFormat::AnthropicMessages;
    let long = "n".repeat(128);
    for name in ["../../x", "/etc/passwd", "die 🦞", "a b\tc", "x\\y", "CON", ".hidden", &long] {
        let home = TempHome::new();
        let server = serve_text(format, "Fine.");
        home.write_config(&crate::config(server.url(), format));
        run(&home, &["run", "--session", name, "hello"]).assert_code(0);
        let transcripts = home.transcripts();
        let [transcript] = transcripts.as_slice() else { panic!("{name}: {transcripts:?}") };
        assert_eq!(transcript.parent(), Some(home.sessions_directory().as_path()));
        let mut top: Vec<_> = std::fs::read_dir(home.path())
            .expect("the home")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        top.sort();
        assert_eq!(top, [".myclaw"], "{name}");
        // The same name is the same session.
        let request = assert_goes_on(&home, format, name);
        assert_eq!(count(&request, "hello"), 1, "{name}");
        let shown = run(&home, &["sessions", "show", name]);
        shown.assert_code(0);
        assert!(shown.stdout().contains("Going on."), "{name}: {}", shown.stdout());
    }
}

#[test]
fn a_session_name_that_is_none() {
    let home = TempHome::new();
    let long = "n".repeat(300);
    let cases: [(&str, &[&str]); 7] = [
        ("", &["session name must not be empty"]),
        ("  ", &["session name must not be empty"]),
        ("a:b:c:d:e:f", &["`a:b:c:d:e:f` is not a session key"]),
        // These would all be one session.
        ("🦞🦞", &["`🦞🦞`", "letter", "such as `work`"]),
        ("..", &["`..`", "letter"]),
        ("::", &["`::` is not a session key"]),
        (&long, &["at most 128 characters", "300", "shorter"]),
    ];
    for (name, words) in cases {
        assert_fails(&run(&home, &["run", "--session", name, "hello"]), 2, words);
    }
    assert_eq!(home.transcripts(), Vec::<PathBuf>::new());
}

#[test]
fn a_directory_that_is_none() {
    let home = TempHome::new();
    let file = home.write("a-file", "text").display().to_string();
    for directory in [file.as_str(), "nowhere", "a-file/below"] {
        assert_fails(
            &run(&home, &["run", "-C", directory, "hello"]),
            2,
            &["cannot work in", directory, "give -C a directory that exists"],
        );
    }
    assert_eq!(home.transcripts(), Vec::<PathBuf>::new());
}

#[test]
fn the_longest_message_is_sent_whole_and_a_longer_one_is_refused() {
    const LARGEST: usize = 10 * 1024 * 1024;
    let format = WireFormat::AnthropicMessages;
    let overflow = serde_json::json!({
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 2600000 tokens > 200000 maximum"}
    });
    let server = serve(Script::repeat(Step::status(400, &[], overflow.to_string())));
    let home = home_for(&server, format);
    let output =
        RunningChild::run_with_input(&mut myclaw(&home, &["run", "-"]), vec![b'x'; LARGEST]);
    let message = assert_fails(&output, 4, &["context window", "Start a new session"]);
    assert!(message.len() < 1000, "{} bytes of message", message.len());
    assert!(server.requests().len() < 10, "{} requests", server.requests().len());

    let output =
        RunningChild::run_with_input(&mut myclaw(&home, &["run", "-"]), vec![b'x'; LARGEST + 1]);
    assert_fails(&output, 2, &["larger than 10 MiB", "save it to a file"]);
    // A new session, as the message says, is free of it.
    let request = assert_goes_on(&home, format, "another");
    assert!(request.to_string().len() < 100_000);
}

#[test]
fn a_reader_that_goes_away_ends_the_turn_quietly() {
    for format in WireFormat::ALL {
        let server = serve(Reply::new(format).repeated_text("many words ", 20_000));
        let home = home_for(&server, format);
        let mut child = myclaw(&home, &["run", "--quiet", "hello"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0; 16]).expect("the first words");
        drop(stdout);
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(141));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "hello"), 1);
    }
}

#[test]
fn closed_standard_streams_do_no_harm() {
    let format = WireFormat::AnthropicMessages;
    for (redirection, code) in
        [("<&-", 0), ("2>&-", 0), (">&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1)]
    {
        let server = serve_text(format, "Fine.");
        let home = home_for(&server, format);
        let mut command = home.command("sh");
        let script = format!("\"$@\" {redirection}");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_myclaw"), "run", "hello"]);
        let output = RunningChild::run(&mut command);
        assert_eq!(output.code(), Some(code), "{redirection}: {}", output.stderr());
        assert_fit_for_people(&output);
        if code == 1 {
            assert_fails(&output, 1, &["cannot write to standard output"]);
        }
        let said_so_far = rows(&home, "main");
        assert_eq!(said_so_far[0], ("user".to_owned(), "hello".to_owned()), "{redirection}");
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn the_second_process_on_one_session_leaves_its_message_to_the_next_run() {
    let format = WireFormat::AnthropicMessages;
    let reply = Reply::new(format).text("Slowly said.");
    let half = reply.stream_body("a-model").len() / 2;
    let server = serve(reply.step().stall_after(half));
    let home = home_for(&server, format);
    let first = RunningChild::spawn(&mut myclaw(&home, &["run", "the first"]));
    server.wait_for_requests_blocking(1);
    let second = run(&home, &["run", "the second"]);
    let process = first.id().to_string();
    assert_fails(&second, 1, &["in use", &process, "waits"]);
    let elsewhere = serve_text(format, "Here.");
    home.write_config(&crate::config(elsewhere.url(), format));
    run(&home, &["run", "--session", "other", "the third"]).assert_code(0);
    // Reading needs no lock.
    let shown = run(&home, &["sessions", "show", "main"]);
    shown.assert_code(0);
    assert!(shown.stdout().contains("the first"), "{}", shown.stdout());

    first.signal(Signal::Interrupt);
    first.wait(PATIENCE).assert_code(130);
    let server = serve(Script::repeat(Reply::new(format).text("Going on.")));
    home.write_config(&crate::config(server.url(), format));
    run(&home, &["run", "go on"]).assert_code(0);
    let request = crate::valid(&server.last_request());
    assert_eq!((count(&request, "the first"), count(&request, "the second")), (1, 1));
}

#[test]
fn many_processes_at_once_are_served_one_by_one_or_get_a_message() {
    const PROCESSES: usize = 6;
    let format = WireFormat::AnthropicMessages;
    let server = serve(Script::repeat(Reply::new(format).text("Fine.")));
    let home = home_for(&server, format);
    let children: Vec<RunningChild> = (0..PROCESSES)
        .map(|number| {
            RunningChild::spawn(&mut myclaw(&home, &["run", &format!("message {number}")]))
        })
        .collect();
    let mut answered = 0;
    for child in children {
        let output = child.wait(PATIENCE);
        match output.code() {
            Some(0) => answered += 1,
            _ => drop(assert_fails(&output, 1, &["session is in use"])),
        }
    }
    assert!(answered > 0);
    let rows = rows(&home, "main");
    assert_eq!(rows.len(), answered * 2, "{rows:?}");
    for turn in rows.chunks(2) {
        assert_eq!((turn[0].0.as_str(), &turn[1]), ("user", &said(&[("assistant", "Fine.")])[0]));
    }
    let all: Vec<_> = server.requests().iter().map(|request| valid(request)).collect();
    assert_eq!(all.len(), answered);
    assert_goes_on(&home, format, "main");
}
