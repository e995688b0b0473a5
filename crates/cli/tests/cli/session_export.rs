//! `myclaw sessions export`, and the way back.

use std::fs;

use myclaw_testkit::{TempHome, Terminal, WireFormat};
use serde_json::json;

use crate::{myclaw, run};

/// A session whose texts try to be something else.
fn home_with_hostile_session() -> TempHome {
    let home = TempHome::new();
    let blocks = json!([
        {"type": "thinking", "thinking": "</pre><script>think()</script>"},
        {"type": "text", "text": "<b>bold</b> \u{1b}[2J &amp; \"quoted\""},
        {"type": "toolCall", "id": "c1", "name": "<img src=x onerror=a()>", "arguments": {"path": "</details><script>"}},
    ]);
    let images = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
        {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
        {"type": "image", "mimeType": "image/png", "data": "\"><script>x()</script>"},
    ]);
    let rows = [
        json!({"type": "session", "version": 1, "sessionKey": "agent:main:channel:cli:account:default:peer:direct:bad", "createdAt": 5}),
        json!({"id": "m1", "role": "user", "content": "<script>alert(1)</script>\u{1b}[2J\u{9b}2J\u{202e}turned", "ts": 1000}),
        json!({"id": "m2", "role": "assistant", "content": "<b>bold</b>", "ts": 2000, "meta": {"contentBlocks": blocks}}),
        json!({"id": "m3", "role": "tool", "content": "look", "ts": 3000, "toolCallId": "c1", "meta": {"toolName": "read", "contentBlocks": images}}),
        json!({"type": "compaction", "id": "s", "ts": 4000, "summary": "<i>sum</i>", "firstKeptId": "m2", "tokensBefore": 1, "oldCount": 3, "newCount": 2}),
        json!({"type": "about", "id": "t", "ts": 5000, "title": "<title> & co", "labels": ["a"]}),
        json!({"type": "later", "id": "l", "what": "a line of a later version"}),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::create_dir_all(home.sessions_directory()).expect("a directory");
    fs::write(home.transcript_path("bad"), text).expect("written");
    home
}

#[test]
fn nothing_of_a_session_becomes_markup() {
    let home = home_with_hostile_session();
    run(&home, &["sessions", "export", "bad", "--format", "html", "-o", "bad.html"]).assert_code(0);
    let page = fs::read_to_string(home.path().join("bad.html")).expect("a page");
    // Every tag in it is one of the page's own.
    let mut tags: Vec<&str> = page
        .split('<')
        .skip(1)
        .map(|rest| rest.split(|end: char| end == '>' || end.is_whitespace()).next().unwrap_or(""))
        .filter(|tag| !tag.starts_with('/'))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    let own = [
        "!doctype", "body", "details", "div", "h1", "h2", "head", "html", "img", "meta", "p",
        "pre", "section", "small", "style", "summary", "title",
    ];
    assert_eq!(tags, own);
    assert!(page.contains("<title>&lt;title&gt; &amp; co</title>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(
        page.contains("<details><summary>Calls &lt;img src=x onerror=a()&gt;</summary>"),
        "{page}"
    );
    assert_eq!(page.matches("<img ").count(), 1, "only the image that is one");
    assert!(page.contains("src=\"data:image/png;base64,iVBORw0KGgo=\""), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");
    assert!(!page.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{page}");
    assert!(page.contains("\\u{202e}turned"), "{page}");
}

#[test]
fn a_terminal_gets_no_controls_and_a_file_gets_the_text() {
    let home = home_with_hostile_session();
    for arguments in [
        &["sessions", "show", "bad", "--all"][..],
        &["sessions", "export", "bad", "--format", "markdown"],
    ] {
        let mut command = myclaw(&home, arguments);
        command.env("NO_COLOR", "1");
        let mut terminal = Terminal::spawn(&command);
        terminal.wait();
        let screen = String::from_utf8_lossy(&terminal.raw()).into_owned();
        assert!(screen.contains("\\x1b[2J"), "{arguments:?}: {screen:?}");
        assert!(!screen.contains(['\u{1b}', '\u{9b}']), "{arguments:?}: {screen:?}");
    }
    let export = run(&home, &["sessions", "export", "bad", "--format", "jsonl"]).stdout();
    assert_eq!(export, fs::read_to_string(home.transcript_path("bad")).expect("a transcript"));
}

#[test]
fn an_export_comes_back_as_the_same_session() {
    let home = home_with_hostile_session();
    run(&home, &["sessions", "export", "bad", "-o", "bad.jsonl"]).assert_code(0);
    let other = TempHome::new();
    let file = home.path().join("bad.jsonl");
    let output = run(&other, &["sessions", "import", file.to_str().expect("a path")]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "bad\n");
    let rows = |home: &TempHome, arguments: &[&str]| {
        let output = run(home, arguments);
        output.assert_code(0);
        output.stdout()
    };
    let show = ["sessions", "show", "bad", "--json", "--all"];
    assert_eq!(rows(&other, &show), rows(&home, &show));
    let lines = TempHome::read_lines(&other.transcript_path("bad"));
    let header = |home: &TempHome| {
        let mut header = TempHome::read_lines(&home.transcript_path("bad")).swap_remove(0);
        // The imported session is another one, with an id of its own.
        header.as_object_mut().expect("an object").remove("sessionId");
        header
    };
    assert_eq!(header(&other), header(&home));
    assert!(lines.iter().any(|line| line["type"] == "later"), "{lines:?}");
    let list = rows(&other, &["sessions", "list", "--json"]);
    assert!(list.contains("\"title\":\"<title> & co\",\"labels\":[\"a\"]"), "{list}");
}

#[test]
fn an_exported_fork_needs_its_parent_no_longer() {
    let home = home_with_hostile_session();
    run(&home, &["sessions", "fork", "bad", "other", "--at", "m1"]).assert_code(0);
    run(&home, &["sessions", "title", "other", "Another"]).assert_code(0);
    run(&home, &["sessions", "export", "other", "-o", "other.jsonl"]).assert_code(0);
    let lines = TempHome::read_lines(&home.path().join("other.jsonl"));
    let reported: Vec<String> = lines
        .iter()
        .map(|line| line["id"].as_str().map_or_else(|| line["version"].to_string(), str::to_owned))
        .collect();
    assert_eq!((reported[0].as_str(), reported[1].as_str(), reported.len()), ("1", "m1", 3));
    assert_eq!(lines[2]["title"], "Another");
    run(&home, &["sessions", "import", "other.jsonl", "--session", "again"]).assert_code(0);
    let show = |name: &str| run(&home, &["sessions", "show", name, "--json"]).stdout();
    assert_eq!(show("again"), show("other"));
}

/// Written in the config.
const OWN_KEY: &str = "a-key-of-the-config-that-looks-like-words";
/// Looks like a key.
const OTHER_KEY: &str = "ghp_0123456789abcdefABCD0123456789abcdef";

/// A session in which keys were said: in messages, in a call and its result, in a thought, in a summary and in the title.
fn home_with_keys() -> TempHome {
    let home = TempHome::new();
    let mut config = TempHome::config_for("http://127.0.0.1:9", WireFormat::AnthropicMessages);
    config["tools"]["web"]["search"] = json!({"provider": "brave", "apiKey": OWN_KEY});
    home.write_config(&config);
    let said = format!("mine is {OWN_KEY}, theirs {OTHER_KEY}.");
    let blocks = json!([
        {"type": "thinking", "thinking": said, "thinkingSignature": OTHER_KEY},
        {"type": "text", "text": said},
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": format!("curl -u x:{OWN_KEY}")}},
    ]);
    let rows = [
        json!({"type": "session", "version": 1, "sessionKey": "agent:main:channel:cli:account:default:peer:direct:keys", "createdAt": 5}),
        json!({"id": "m1", "role": "user", "content": said, "ts": 1000}),
        json!({"id": "m2", "role": "assistant", "content": said, "ts": 2000, "meta": {"contentBlocks": blocks}}),
        json!({"id": "m3", "role": "tool", "content": said, "ts": 3000, "toolCallId": "c1", "meta": {"toolName": "bash"}}),
        json!({"type": "compaction", "id": "s", "ts": 4000, "summary": said, "firstKeptId": "m2", "tokensBefore": 1, "oldCount": 3, "newCount": 2}),
        json!({"type": "about", "id": "t", "ts": 5000, "title": said, "labels": [OTHER_KEY]}),
        json!({"type": "later", "id": "l", "what": said, "n": 1}),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::create_dir_all(home.sessions_directory()).expect("a directory");
    fs::write(home.transcript_path("keys"), text).expect("written");
    home
}

#[test]
fn keys_are_left_out_of_every_document_which_says_so() {
    let home = home_with_keys();
    for (format, note) in [
        ("markdown", "were replaced by [redacted] in 11 places."),
        ("html", "were replaced by [redacted] in 13 places."),
        ("jsonl", "{\"type\":\"redaction\",\"places\":18}\n"),
    ] {
        let output = run(&home, &["sessions", "export", "keys", "--format", format]);
        output.assert_code(0);
        let text = output.stdout().replace(&format!("\"thinkingSignature\":\"{OTHER_KEY}\""), "");
        for key in [OWN_KEY, OTHER_KEY] {
            assert!(!text.contains(key), "{format}: {text}");
        }
        assert!(text.contains("mine is [redacted], theirs [redacted]."), "{format}: {text}");
        assert!(text.contains(note), "{format}: {text}");
        assert!(output.stderr().contains("--no-redact"), "{}", output.stderr());
        let whole = run(&home, &["sessions", "export", "keys", "--format", format, "--no-redact"]);
        whole.assert_code(0);
        assert!(whole.stdout().contains(&format!("mine is {OWN_KEY}, theirs {OTHER_KEY}.")));
        assert!(!whole.stdout().contains("redact"), "{}", whole.stdout());
        assert!(whole.stderr().contains("keep it to yourself"), "{}", whole.stderr());
    }
    let log = fs::read_to_string(home.transcript_path("keys")).expect("a log");
    assert!(log.contains(OWN_KEY) && !log.contains("[redacted]"), "{log}");
}

#[test]
fn the_title_of_a_fork_and_the_directory_of_a_session_have_no_key() {
    let home = home_with_keys();
    let path = home.transcript_path("keys");
    let log = fs::read_to_string(&path).expect("a log");
    let directory = format!("\"createdAt\":5,\"directory\":\"/home/ann/{OTHER_KEY}\"");
    fs::write(path, log.replace("\"createdAt\":5", &directory)).expect("written");
    run(&home, &["sessions", "fork", "keys", "child"]).assert_code(0);
    run(&home, &["sessions", "title", "child", &format!("title {OWN_KEY}")]).assert_code(0);
    for (name, shown) in [("child", "title [redacted]"), ("keys", "/home/ann/[redacted]")] {
        let output = run(&home, &["sessions", "export", name]);
        output.assert_code(0);
        let text = output.stdout().replace(&format!("\"thinkingSignature\":\"{OTHER_KEY}\""), "");
        assert!(!text.contains(OWN_KEY) && !text.contains(OTHER_KEY), "{name}: {text}");
        assert!(text.contains(shown), "{name}: {text}");
    }
}

#[test]
fn an_import_leaves_keys_out_and_says_so() {
    let home = home_with_keys();
    let whole = ["sessions", "export", "keys", "--no-redact", "-o", "whole.jsonl"];
    run(&home, &whole).assert_code(0);
    let clean = ["sessions", "export", "keys", "-o", "clean.jsonl"];
    run(&home, &clean).assert_code(0);
    for (name, file, more, redacts) in [
        ("one", "whole.jsonl", None, true),
        ("two", "whole.jsonl", Some("--no-redact"), false),
        ("three", "clean.jsonl", None, false),
    ] {
        let mut arguments = vec!["sessions", "import", file, "--session", name];
        arguments.extend(more);
        let output = run(&home, &arguments);
        output.assert_code(0);
        let said = output.stderr();
        assert_eq!(said.contains("were replaced by [redacted] in 18 places"), redacts, "{said}");
        let log = fs::read_to_string(home.transcript_path(name)).expect("a log");
        assert_eq!(log.contains(OWN_KEY), more.is_some(), "{name}: {log}");
        assert_eq!(log.lines().filter(|line| line.contains("\"role\"")).count(), 3, "{log}");
    }
}
