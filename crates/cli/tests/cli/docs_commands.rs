//! The command lines of the docs: each is one that the program understands.

use std::fs;
use std::path::PathBuf;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome};
use serde_json::json;

use crate::{docs_links, myclaw, run};

/// Where a line of the docs is.
struct Shown {
    place: String,
    words: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    docs_links::pages().into_iter().filter(|page| !page.ends_with("CHANGELOG.md")).collect()
}

/// The lines of the code blocks for a shell, each with the lines that continue it.
fn lines_of_code(page: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut is_code, mut open) = (false, String::new());
    for (number, line) in page.lines().enumerate() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_code = !is_code && ["sh", "bash", "console"].contains(&kind.trim());
            continue;
        }
        if !is_code {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(begun) => open.push_str(begun),
            None => {
                open.push_str(line);
                lines.push((number + 1, std::mem::take(&mut open)));
            }
        }
    }
    lines
}

/// The words of the first command of a line that is this program's; without a pipe, redirections and comments.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut has_word, mut quote) = (String::new(), false, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (Some('"'), '\\') => word.extend(letters.next()),
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, has_word) = (Some(letter), true),
            (None, '#') if !has_word => break,
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, letter) if letter.is_whitespace() => {
                if std::mem::take(&mut has_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, letter) => {
                word.push(letter);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let mut words: Vec<String> =
        words.into_iter().skip_while(|word| word == "$" || is_variable(word)).collect();
    (words.first().is_some_and(|word| word == "myclaw")).then(|| words.split_off(1))
}

fn shown() -> Vec<Shown> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (number, line) in lines_of_code(&text) {
            if let Some(words) = words(&line) {
                found.push(Shown { place: format!("{name}:{number}"), words });
            }
        }
    }
    found
}

/// Each line is parsed by the program itself, which prints its help instead of doing it.
#[test]
fn every_command_line_of_the_docs_is_understood() {
    let home = TempHome::new();
    let lines = shown();
    assert!(lines.len() > 100, "{} lines were found", lines.len());
    let mut wrong = Vec::new();
    for Shown { place, mut words } in lines {
        // What is an argument of another program stands behind two hyphens.
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.truncate(end);
        words.push("--help".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&home, &words);
        let is_help = output.code() == Some(0) && output.stdout().contains("Usage:");
        if !is_help {
            let why = output.stderr().lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{place}: myclaw {}: {why}", words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How lines begin that are not run here, and why. They are parsed like all others.
const NOT_RUN: [(&str, &[&str]); 9] = [
    ("works in a script that the agent runs", &["mcp call"]),
    ("changes a copy that install.sh has installed", &["update"]),
    ("needs a schema, and a model that keeps to it", &["run --output-schema"]),
    (
        "goes on until somebody ends it",
        &[
            "attach",
            "run --url",
            "gateway",
            "node --url",
            "host --",
            "config edit",
            "gateway logs",
            "sessions watch",
        ],
    ),
    (
        "is a conversation at a terminal",
        &["-c", "--resume", "-C", "chat", "Why does", "onboard", "init"],
    ),
    (
        "needs an account, its key or a program of somebody else",
        &[
            "auth add",
            "auth login",
            "auth test",
            "channels add",
            "channels probe",
            "models test",
            "groups add",
            "mcp add",
            "mcp approve",
            "mcp login",
            "packages add",
            "mcp test files",
            "runner --download-weights",
            "cluster",
            "store",
        ],
    ),
    (
        "names something that only that machine has",
        &[
            "approvals revoke 3f9a",
            "auth clear-cooldown",
            "auth order",
            "auth pin",
            "auth prefer",
            "auth remove",
            "auth unpin",
            "cron runs",
            "devices approve",
            "mcp logout",
            "mcp logs",
            "mcp remove",
            "mcp tools",
            "nodes approve",
            "packages remove",
            "packages show",
            "packages update",
            "pairing approve",
            "review",
            "run -C",
            "sessions fork",
            "sessions import ~",
            "sessions answer",
            "sessions stop",
            "skills show",
            "sessions undo",
            "run --session trip --model",
            "--worktree",
        ],
    ),
    ("needs a gateway that runs", &["channels status", "devices code", "gateway status"]),
    ("tries to leave the sandbox of this machine, which has tests of its own", &["sandbox test"]),
];

/// Lines that end with 1 in such a home, because they have something to report.
const REPORTS: [&str; 3] = ["doctor", "skills check", "pairing list"];

/// Lines that change what the others read, so they come last, in this order.
const LAST: [&str; 6] = [
    "memory forget",
    "config set",
    "config get",
    "config unset",
    "sessions prune",
    "sessions delete",
];

/// A home with a model, a session `trip` and a transcript to import.
fn lived_in() -> (ModelServer, TempHome) {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(
        Reply::anthropic().text("The train to Rome leaves at nine."),
    ));
    let home = TempHome::new();
    home.write_in_workspace(
        "memory/facts.md",
        "- Allergic to peanuts. <!-- k3f9q; 2026-11-29 -->\n",
    );
    home.write_config(&json!({
        "provider": {"name": "anthropic", "model": "claude-sonnet-4-6", "baseUrl": server.url(),
            "authProfiles": [{"id": "work", "apiKey": "key-0123456789"}]},
    }));
    for message in ["The train to Rome", "And back?", "Thanks"] {
        run(&home, &["run", "--session", "trip", message]).assert_code(0);
    }
    let exported = run(&home, &["sessions", "export", "trip"]);
    exported.assert_code(0);
    home.write("trip.jsonl", exported.stdout());
    (server, home)
}

/// Every line that needs no network, account or terminal does what it says in a home that has been used a little.
#[test]
fn the_command_lines_of_the_docs_work() {
    let (_server, home) = lived_in();
    let begins = |line: &str, starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    let mut unused: Vec<&str> = NOT_RUN.iter().flat_map(|(_, starts)| *starts).copied().collect();
    let mut lines: Vec<(String, Shown)> =
        shown().into_iter().map(|shown| (shown.words.join(" "), shown)).collect();
    lines.sort_by_key(|(line, _)| {
        LAST.iter().position(|start| line.starts_with(start)).map_or(0, |at| at + 1)
    });
    lines.dedup_by(|one, other| one.0 == other.0);
    let (mut count, mut wrong) = (0, Vec::new());
    for (line, Shown { place, words }) in lines {
        if NOT_RUN.iter().any(|(_, starts)| begins(&line, starts)) {
            unused.retain(|start| !line.starts_with(start));
            continue;
        }
        count += 1;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = myclaw(&home, &words);
        command.current_dir(home.path()).stdin(std::process::Stdio::null());
        let output = RunningChild::run(&mut command);
        let is_right = match output.code() {
            Some(0) => true,
            Some(1) => begins(&line, &REPORTS),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{place}: myclaw {line}: {:?}: {}", output.code(), output.stderr()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "{count} lines were run");
    assert!(unused.is_empty(), "the docs have no such lines: {unused:?}");
}
