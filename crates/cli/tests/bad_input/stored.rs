//! What lies in the sessions directory is damaged, from the future, somebody else's, or no file at all.

use std::fs;
use std::io::Write;

use myclaw_testkit::{TempHome, WireFormat};

use crate::{assert_fails, assert_goes_on, config, count, home_for, rows, run, said, serve_text};

/// A home with one whole turn in `main`.
fn home_with_a_turn(format: WireFormat) -> TempHome {
    let server = serve_text(format, "Hello yourself.");
    let home = home_for(&server, format);
    run(&home, &["run", "hello"]).assert_code(0);
    assert_eq!(rows(&home, "main"), said(&[("user", "hello"), ("assistant", "Hello yourself.")]));
    home
}

fn append(home: &TempHome, bytes: &[u8]) {
    let path = home.transcript_path("main");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a transcript");
    file.write_all(bytes).expect("appends");
}

#[test]
fn a_corrupt_line_is_passed_over_told_and_kept() {
    let corrupt: [&[u8]; 6] = [
        b"{\"role\":\"assistant\",\"cont\n",
        b"\0\0\0\0\0\0\0\0\n",
        b"\xff\xfe\xfd garbage\n",
        b"[1, 2, 3]\n",
        b"{\"role\":\"user\"}\n",
        b"{\"role\":\"assistant\",\"content\":7,\"ts\":\"yesterday\"}\n",
    ];
    for format in WireFormat::ALL {
        for line in corrupt {
            let home = home_with_a_turn(format);
            append(&home, line);
            let before = fs::read(home.transcript_path("main")).expect("a transcript");
            let server = serve_text(format, "Still here.");
            home.write_config(&config(server.url(), format));
            let output = run(&home, &["run", "are you there?"]);
            output.assert_code(0);
            let stderr = output.stderr();
            let shown = String::from_utf8_lossy(line).into_owned();
            assert!(stderr.contains("1 unreadable line"), "{shown}: {stderr}");
            assert_eq!(count(server.last_request().json(), "Hello yourself."), 1, "{shown}");
            let after = fs::read(home.transcript_path("main")).expect("a transcript");
            assert!(after.starts_with(&before), "{shown}: nothing is thrown away");
            let request = assert_goes_on(&home, format, "main");
            assert_eq!(count(&request, "Still here."), 1, "{shown}");
        }
    }
}

#[test]
fn a_torn_last_line_is_put_aside() {
    for format in WireFormat::ALL {
        let home = home_with_a_turn(format);
        append(&home, b"{\"role\":\"assistant\",\"content\":\"half a sen");
        for command in ["show", "export"] {
            let read = run(&home, &["sessions", command, "main"]);
            read.assert_code(0);
            assert!(
                read.stderr().contains("the last 41 bytes of "),
                "{command}: {}",
                read.stderr()
            );
        }
        let server = serve_text(format, "Still here.");
        home.write_config(&config(server.url(), format));
        let reported = run(&home, &["run", "are you there?"]);
        reported.assert_code(0);
        assert!(
            reported.stderr().contains("was incomplete; its 41 bytes were moved to"),
            "{}",
            reported.stderr()
        );
        let shown = run(&home, &["sessions", "show", "main"]).stderr();
        assert!(shown.contains("41 bytes at a damaged end"), "{shown}");
        let examined = run(&home, &["doctor"]).stdout();
        assert!(
            examined.contains("damaged ends of transcripts were moved aside, 41 bytes"),
            "{examined}"
        );
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "half a sen"), 0);
        let kept = fs::read_dir(home.sessions_directory())
            .expect("the directory")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.to_string_lossy().contains(".torn-"))
            .expect("the torn line, put aside");
        assert!(fs::read_to_string(kept).expect("text").contains("half a sen"));
        assert_eq!(rows(&home, "main").len(), 6);
    }
}

#[test]
fn damaged_totals_of_the_day_are_reported_and_kept() {
    let home = home_with_a_turn(WireFormat::AnthropicMessages);
    fs::write(home.state_directory().join("usage.json"), "{\"day\":").expect("written");
    let server = serve_text(WireFormat::AnthropicMessages, "Still here.");
    home.write_config(&config(server.url(), WireFormat::AnthropicMessages));
    let output = run(&home, &["run", "are you there?"]);
    output.assert_code(0);
    let stderr = output.stderr();
    assert!(stderr.contains("the totals of the day begin at zero"), "{stderr}");
    assert_eq!(stderr.matches("usage.json.bak.").count(), 1, "{stderr}");
}

#[test]
fn a_copied_transcript_is_not_continued() {
    let home = home_with_a_turn(WireFormat::AnthropicMessages);
    fs::copy(home.transcript_path("main"), home.transcript_path("copy")).expect("copied");
    let output = run(&home, &["run", "--session", "copy", "whose is this?"]);
    assert_ne!(output.code(), Some(0));
    assert!(output.stderr().contains("myclaw sessions import"), "{}", output.stderr());
}

#[test]
fn names_that_are_no_names_are_refused() {
    let home = home_with_a_turn(WireFormat::AnthropicMessages);
    for name in ["..", ".", "-", "::", "main:", "main::"] {
        let output = run(&home, &["run", &format!("--session={name}"), "hello"]);
        output.assert_code(2);
        assert!(output.stderr().contains(name), "{name}: {}", output.stderr());
    }
}

#[test]
fn a_corrupt_index_is_made_again_and_the_old_one_kept() {
    let format = WireFormat::AnthropicMessages;
    for damage in [&b""[..], b"{\"agent:main", b"\0\xff\xfe", b"[]", b"null", b"{\"a\": 3}"] {
        let home = home_with_a_turn(format);
        let index = home.sessions_directory().join("sessions.json");
        fs::write(&index, damage).expect("damages the index");
        let listed = run(&home, &["sessions", "list"]);
        listed.assert_code(0);
        assert!(listed.stdout().contains("main"), "{damage:?}: {}", listed.stdout());
        assert_goes_on(&home, format, "main");
        let text = fs::read_to_string(&index).expect("an index");
        let made: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let key = "agent:main:channel:cli:account:default:peer:direct:main";
        assert!(made[key]["sessionId"].is_string(), "{damage:?}: {text}");
    }
}

#[test]
fn an_index_that_is_a_directory_costs_no_turn() {
    let format = WireFormat::AnthropicMessages;
    let home = home_with_a_turn(format);
    let index = home.sessions_directory().join("sessions.json");
    fs::remove_file(&index).expect("an index");
    fs::create_dir(&index).expect("a directory");
    let server = serve_text(format, "Still here.");
    home.write_config(&config(server.url(), format));
    let output = run(&home, &["run", "are you there?"]);
    output.assert_code(0);
    assert!(output.stderr().contains("sessions.json"), "{}", output.stderr());
    fs::remove_dir(&index).expect("removes the directory");
    assert_goes_on(&home, format, "main");
}

#[test]
fn a_transcript_that_is_a_directory() {
    let format = WireFormat::AnthropicMessages;
    let server = serve_text(format, "never");
    let home = home_for(&server, format);
    let path = home.transcript_path("main");
    fs::create_dir_all(&path).expect("a directory");
    let shown = path.display().to_string();
    assert_fails(&run(&home, &["run", "hello"]), 1, &[&shown, "directory", "move away"]);
    assert_fails(&run(&home, &["sessions", "show", "main"]), 1, &["no session `main`"]);
    run(&home, &["sessions", "list"]).assert_code(0);
    assert_eq!(server.requests().len(), 0);
    fs::remove_dir(&path).expect("moves it away");
    assert_goes_on(&home, format, "main");
}

#[test]
fn a_transcript_of_a_newer_version_is_left_alone() {
    let format = WireFormat::AnthropicMessages;
    let home = home_with_a_turn(format);
    let path = home.transcript_path("main");
    let text = fs::read_to_string(&path).expect("a transcript");
    let (header, rest) = text.split_once('\n').expect("a header");
    let mut header: serde_json::Value = serde_json::from_str(header).expect("JSON");
    header["version"] = serde_json::json!(99);
    let newer = format!("{header}\n{rest}");
    fs::write(&path, &newer).expect("writes");
    let shown = path.display().to_string();
    assert_fails(
        &run(&home, &["run", "hello"]),
        1,
        &[&shown, "format 99", "Install the newer version"],
    );
    assert_eq!(fs::read_to_string(&path).expect("a transcript"), newer);
    assert_goes_on(&home, format, "other");
}

#[test]
fn a_transcript_of_another_session_is_left_alone() {
    let format = WireFormat::AnthropicMessages;
    // Names that are too long for a file are shortened, so two could meet in one file.
    let name = format!("agent:main:channel:{0}:account:{0}:peer:direct:x", "n".repeat(100));
    let server = serve_text(format, "Fine.");
    let home = home_for(&server, format);
    run(&home, &["run", "--session", &name, "hello"]).assert_code(0);
    let path = home.transcripts().pop().expect("a transcript");
    let text = fs::read_to_string(&path).expect("text");
    let foreign = text.replacen("direct:x", "direct:y", 1);
    assert_ne!(foreign, text);
    fs::write(&path, &foreign).expect("writes");
    let shown = path.display().to_string();
    let output = run(&home, &["run", "--session", &name, "hello"]);
    assert_fails(&output, 1, &[&shown, "belongs to session", "move that file away"]);
    assert_eq!(fs::read_to_string(&path).expect("text"), foreign);
    assert_goes_on(&home, format, "main");
}

#[test]
fn an_empty_or_headless_transcript() {
    let format = WireFormat::AnthropicMessages;
    for text in [
        "",
        "\n\n",
        "no header at all\n",
        "{\"role\":\"user\",\"content\":\"old words\",\"ts\":1}\n",
    ] {
        let home = TempHome::new();
        home.write(home.transcript_path("main"), text);
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "old words"), usize::from(text.contains("old words")));
        let after = fs::read_to_string(home.transcript_path("main")).expect("a transcript");
        assert!(after.starts_with(text), "{after}");
    }
}

#[test]
fn a_sessions_directory_that_is_a_file() {
    let format = WireFormat::AnthropicMessages;
    let server = serve_text(format, "never");
    let home = home_for(&server, format);
    fs::write(home.sessions_directory(), "not a directory").expect("a file");
    let shown = home.sessions_directory().display().to_string();
    assert_fails(&run(&home, &["run", "hello"]), 1, &[&shown, "move away"]);
    assert_eq!(server.requests().len(), 0);
    fs::remove_file(home.sessions_directory()).expect("removes");
    assert_goes_on(&home, format, "main");
}
