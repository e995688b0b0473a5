//! Sessions of Claude Code and Codex.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_testkit::{TempHome, validate_pairing};
use serde_json::Value;

use crate::{always, run};

const CLAUDE: &str = "claude-3f1c9a52-0d2e-4f5a-9b6c-7d8e9f0a1b2c";
const CODEX: &str = "codex-019a2d7a-41c4-78b1-b7cc-a45d62a89cd5";

/// Copies the files of a program below `home`, with the directory of a project in them.
fn copied(home: &TempHome, program: &str) -> PathBuf {
    fn copy(from: &Path, to: &Path, project: &str) {
        fs::create_dir_all(to).expect("a directory");
        for entry in fs::read_dir(from).expect("a directory") {
            let entry = entry.expect("an entry").path();
            let target = to.join(entry.file_name().expect("a name"));
            if entry.is_dir() {
                copy(&entry, &target, project);
            } else {
                let text = fs::read_to_string(&entry).expect("a file");
                fs::write(target, text.replace("@CWD@", project)).expect("a file");
            }
        }
    }
    home.write("thing/AGENTS.md", "Use tabs.\n");
    let project = home.path().join("thing");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(program);
    let to = home.path().join(program);
    copy(&from, &to, project.to_str().expect("text"));
    to
}

/// Role (or type) and text of each row, with the calls.
fn gist(rows: &[Value]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let kind = row["role"].as_str().or(row["type"].as_str()).unwrap_or("");
            let text = ["content", "summary", "title"].iter().find_map(|name| row[*name].as_str());
            let blocks = row["meta"]["contentBlocks"].as_array().into_iter().flatten();
            let calls: Vec<&str> = blocks
                .filter(|block| block["type"] == "toolCall")
                .filter_map(|block| block["name"].as_str())
                .collect();
            format!("{kind} {}{}", text.unwrap_or_default(), calls.join("+")).trim_end().to_owned()
        })
        .collect()
}

#[test]
fn a_session_of_claude_code() {
    let home = TempHome::new();
    let files = copied(&home, "claude");
    let output = run(&home, &["sessions", "import", files.to_str().expect("text")]);
    output.assert_code(0);
    assert_eq!(output.stdout(), format!("{CLAUDE}\n"));
    let rows = TempHome::read_lines(&home.transcript_path(CLAUDE));
    assert_eq!(
        gist(&rows)[1..],
        [
            "user Please read both files. Then say what differs.",
            "assistant Read+Read",
            "tool one",
            "tool two",
            "assistant One word differs.",
            "user Fix it",
            "assistant Bash",
            "tool The result of this call is not in the file that this session was imported from.",
            "about Comparing two files",
        ]
    );
    assert_eq!(rows[0]["directory"], home.path().join("thing").to_str().expect("text"));
    assert_eq!(rows[4]["meta"]["isError"], true);
    let stderr = output.stderr();
    for part in [
        "1 × note of the program",
        "1 × message of a sub-agent",
        "1 × message of other branches",
        "1 × line of the type `future-kind`",
        "1 × line of the type `mode`",
        "1 × line of the type `file-history-snapshot`",
        "1 × damaged line",
        "calls without a result in the file: 1",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn a_session_of_codex() {
    let home = TempHome::new();
    let files = copied(&home, "codex");
    let output = run(&home, &["sessions", "import", files.to_str().expect("text")]);
    output.assert_code(0);
    assert_eq!(output.stdout(), format!("{CODEX}\n"));
    let rows = TempHome::read_lines(&home.transcript_path(CODEX));
    assert_eq!(
        gist(&rows)[1..],
        [
            "user count the files",
            "assistant shell_command",
            "tool 7",
            "assistant There are 7.",
            "user patch it",
            "assistant apply_patch",
            "tool The result of this call is not in the file that this session was imported from.",
        ]
    );
    let answer = rows[2].to_string();
    assert!(answer.contains("**Counting**") && answer.contains("gpt-5-codex"), "{answer}");
    let stderr = output.stderr();
    for part in [
        "2 × context of the program",
        "1 × encrypted reasoning",
        "2 × line that was rolled back",
        "1 × item of the type `ghost_snapshot`",
        "1 × line of the type `future_line`",
        "1 × result without its call",
        "calls without a result in the file: 1",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn a_second_import_adds_nothing_and_the_session_goes_on_in_its_directory() {
    let (server, home) = always("Yes.");
    for (program, name) in [("claude", CLAUDE), ("codex", CODEX)] {
        let files = copied(&home, program);
        let path = files.to_str().expect("text");
        run(&home, &["sessions", "import", path]).assert_code(0);
        let before = fs::read(home.transcript_path(name)).expect("a session");
        let output = run(&home, &["sessions", "import", path]);
        output.assert_code(0);
        assert_eq!(output.stdout(), "");
        assert!(output.stderr().contains("was imported before; nothing was added"));
        assert_eq!(fs::read(home.transcript_path(name)).expect("a session"), before);
        run(&home, &["run", "-s", name, "Where were we?"]).assert_code(0);
        let requests = server.requests();
        let request = requests.last().expect("a request");
        validate_pairing(request).unwrap_or_else(|violation| panic!("{name}: {violation}"));
        assert!(request.body_text().contains("Use tabs."), "{name}");
    }
    // The files are as they were.
    let file = "claude/projects/-home-me-thing/3f1c9a52-0d2e-4f5a-9b6c-7d8e9f0a1b2c.jsonl";
    let text = fs::read_to_string(home.path().join(file)).expect("the file");
    assert_eq!(text.lines().count(), 17);
}
