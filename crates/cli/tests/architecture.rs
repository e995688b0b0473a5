//! Which crate may use which, and which names a crate must not use: the table of `ARCHITECTURE.md`.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates from top to bottom, each with those that it may use. The test kit is for tests of all of them.
const CRATES: [(&str, &[&str]); 26] = [
    ("cli", &["gateway", "host", "runner", "agent"]),
    ("gateway", &["agent", "host", "channels", "store", "schedule"]),
    ("host", &["store", "schedule", "sandbox", "exec", "llm", "speech", "files"]),
    (
        "runner",
        &[
            "agent", "browser", "web", "tools", "engine", "session", "llm", "auth", "exec",
            "config", "embed", "speech", "files",
        ],
    ),
    (
        "agent",
        &[
            "browser",
            "web",
            "tools",
            "hooks",
            "executor",
            "engine",
            "session",
            "llm-cloud",
            "llm",
            "auth",
            "policy",
            "sandbox",
            "exec",
            "config",
            "skills",
            "speech",
            "embed",
            "files",
        ],
    ),
    ("browser", &["web", "tools", "engine", "llm", "exec", "files"]),
    ("web", &["tools", "engine", "llm", "exec"]),
    ("tools", &["engine", "llm", "sandbox", "exec", "files"]),
    ("executor", &["engine", "llm", "sandbox", "exec"]),
    ("hooks", &["engine", "llm", "policy", "exec", "config"]),
    ("engine", &["session", "llm", "auth", "config", "files"]),
    ("session", &["files"]),
    ("llm-cloud", &["llm"]),
    ("llm", &[]),
    ("auth", &["exec", "config", "files"]),
    ("policy", &["config"]),
    ("sandbox", &["exec"]),
    ("speech", &["exec"]),
    ("exec", &[]),
    ("config", &["schedule", "files"]),
    ("skills", &[]),
    ("channels", &[]),
    ("store", &["files"]),
    ("schedule", &[]),
    ("embed", &["files"]),
    ("files", &[]),
];

/// Words that must not stand in the sources of a crate, outside comments and tests: the crate, the word, and why.
const FORBIDDEN: [(&str, &str, &str); 26] = [
    ("cli", "Api", "wire formats are the model layer's"),
    ("cli", "KeyResolver", "the agent looks keys up"),
    ("cli", "builtin_tools", "the agent builds the tools of a run"),
    ("cli", "command_hooks", "the agent builds the hooks of a run"),
    ("agent", "clap", "the command line is the binary's"),
    ("agent", "ExitCode", "failures have a class; the binary maps it to an exit code"),
    ("agent", "println", "front-ends print"),
    ("agent", "eprintln", "front-ends print"),
    ("gateway", "clap", "the command line is the binary's"),
    ("gateway", "println", "front-ends print"),
    ("gateway", "rusqlite", "the database is behind the trait `Store`"),
    ("runner", "clap", "the command line is the binary's"),
    ("runner", "println", "what is printed is a block of the protocol"),
    ("runner", "Config", "the runner takes values"),
    ("host", "clap", "the command line is the binary's"),
    ("host", "println", "front-ends print"),
    ("host", "rusqlite", "the database is behind the trait `Store`"),
    ("channels", "SessionKey", "which session a message belongs to is decided elsewhere"),
    ("channels", "Config", "a channel takes values"),
    ("channels", "Model", "what answers is decided elsewhere"),
    ("channels", "Store", "the intake makes messages durable"),
    ("store", "Config", "the store takes values"),
    ("engine", "Config", "the engine takes values"),
    ("engine", "ResolvedAgent", "the engine takes values"),
    ("engine", "Environment", "the engine takes values"),
    ("engine", "HttpProvider", "who stands behind a model is passed in"),
];

#[test]
fn a_crate_uses_only_what_the_table_allows() {
    for (name, allowed) in CRATES {
        for used in crates_used_by(&crates().join(name).join("Cargo.toml")) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn the_table_points_down_only() {
    for (level, (name, allowed)) in CRATES.iter().enumerate() {
        for other in *allowed {
            let below = CRATES.iter().position(|(name, _)| name == other);
            assert!(below.is_some_and(|below| below > level), "{other} is not below {name}");
        }
    }
}

#[test]
fn every_crate_is_in_the_table_or_the_test_kit() {
    let mut names: Vec<String> = fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut known: Vec<&str> = CRATES.iter().map(|(name, _)| *name).chain(["testkit"]).collect();
    known.sort_unstable();
    assert_eq!(names, known, "add the new crate to ARCHITECTURE.md and to this test");
}

#[test]
fn no_crate_uses_a_name_that_is_not_its_own_business() {
    let mut found = Vec::new();
    for (name, word, reason) in FORBIDDEN {
        for file in sources(&crates().join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                if holds_word(line.split("//").next().unwrap_or_default(), word) {
                    found.push(format!("{}:{number}: `{word}`: {reason}", file.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_whole_words_count() {
    assert!(holds_word("fn f(config: &Config) {}", "Config"));
    assert!(holds_word("Config", "Config"));
    assert!(!holds_word("fn f(config: &QueueConfig) {}", "Config"));
    assert!(!holds_word("ConfigError", "Config"));
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
    })
}

/// The Rust files below `directory` that are no tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            files.push(path);
        }
    }
    files
}

/// The crates of this workspace among the normal dependencies of a manifest. The test kit among them would ship it to
/// users.
fn crates_used_by(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    text.lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("myclaw-"))
        .map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_owned())
        .collect()
}
