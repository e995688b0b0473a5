//! What the parser reads, real shells run: the same programs with the same words, and nothing else.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_policy::{Script, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

/// A directory with two programs, `pa` and `pb`, which write down how they were called.
struct Shells {
    directory: PathBuf,
}

/// One line for each call: the number of words, then the words, each ended by a NUL.
const RECORDER: &str =
    "#!/bin/sh\nname=${0##*/}\nprintf '%s\\0' \"$#\" \"$name\" \"$@\" >>\"$CALLS\"\n";

impl Shells {
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("shells-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("bin")).unwrap();
        fs::create_dir_all(directory.join("work")).unwrap();
        for name in ["pa", "pb"] {
            let path = directory.join("bin").join(name);
            fs::write(&path, RECORDER).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { directory }
    }

    /// The calls that `shell` makes when it runs the line, sorted.
    fn calls(&self, shell: &str, line: &str) -> Vec<Vec<String>> {
        let calls = self.directory.join("calls");
        fs::write(&calls, "").unwrap();
        // Waits for what runs in the background.
        let script = format!("{line}\nwait");
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let program =
            std::env::split_paths(&paths).map(|path| path.join(shell)).find(|path| path.exists());
        Command::new(program.expect("bash and sh are installed"))
            .args(["-c", &script])
            .current_dir(self.directory.join("work"))
            .env_clear()
            .env("PATH", self.directory.join("bin"))
            .env("CALLS", &calls)
            .env("LC_ALL", "C.UTF-8")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = fs::read(&calls).unwrap();
        let mut fields =
            text.split(|byte| *byte == 0).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let mut found = Vec::new();
        while let Some(count) = fields.next().filter(|field| !field.is_empty()) {
            let count: usize = count.parse().unwrap();
            found.push(fields.by_ref().take(count + 1).collect());
        }
        found.sort();
        found
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The calls that the parser saw, sorted; `None` if the shell may change a word.
fn expected(script: &Script) -> Option<Vec<Vec<String>>> {
    let mut calls = Vec::new();
    for command in &script.commands {
        if !command.words.iter().all(|word| word.is_literal()) {
            return None;
        }
        let command = command.clone().without_time();
        calls.push(command.words.iter().map(|word| word.text.clone()).collect());
    }
    calls.sort();
    Some(calls)
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "pa",
        "pb",
        "pa",
        "pb",
        " ",
        " ",
        " ",
        " ",
        "\t",
        "\n",
        "x",
        "y1",
        "2",
        ";",
        "&",
        "|",
        "&&",
        "||",
        "'",
        "'",
        "\"",
        "\"",
        "\\",
        "\\\n",
        " \\\n",
        "#",
        " #",
        "$",
        "~",
        "=",
        ":",
        "*",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "`",
        "!",
        "%",
        "^",
        ",",
        "-",
        "--x",
        ">/dev/null",
        " 2>/dev/null",
        "2>&1",
        ">&2",
        "</dev/null",
        "<",
        ">",
        "<<",
        "é",
        "'a b'",
        "\"c d\"",
        "\\ ",
        "\\'",
        "\\\"",
        "\\\\",
        "' '",
        "$X",
        "if",
        "time",
    ];
    vec(select(pieces), 1..14).prop_map(|pieces| pieces.concat())
}

#[test]
fn shells_run_what_the_parser_read() {
    let shells = Shells::new("agree");
    let compared = Cell::new(0);
    let mut runner =
        TestRunner::new(Config { cases: 1_500, failure_persistence: None, ..Config::default() });
    // A line that begins with a program is more often one that is accepted.
    let lines = ("(pa|pb)( x| 'y z'|)", pieces()).prop_map(|(start, rest)| start + &rest);
    let outcome = runner.run(&lines, |line| {
        let Some(expected) = parse(&line).ok().as_ref().and_then(expected) else { return Ok(()) };
        let only_ours = expected.iter().all(|call| call[0] == "pa" || call[0] == "pb");
        compared.set(compared.get() + 1);
        for shell in ["bash", "sh"] {
            let actual = shells.calls(shell, &line);
            // A program that does not exist, or succeeds in front of `||`, keeps the next one from running.
            if only_ours && !line.contains("||") {
                prop_assert_eq!(&actual, &expected, "{} runs {:?}", shell, line);
            } else {
                let mut left = expected.clone();
                for call in &actual {
                    let at = left.iter().position(|other| other == call);
                    prop_assert!(at.is_some(), "{} runs {:?} of {:?}", shell, call, line);
                    left.remove(at.unwrap());
                }
            }
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(compared.get() > 150, "only {} lines were accepted", compared.get());
}

#[test]
fn nothing_is_left_behind_by_accepted_lines() {
    let shells = Shells::new("clean");
    for line in ["pa >/dev/null 2>&1; pb </dev/null # x > y", "pa 'a > b' | pb \"> c\""] {
        let script = parse(line).unwrap();
        assert_eq!(shells.calls("bash", line), expected(&script).unwrap());
    }
    assert_eq!(fs::read_dir(shells.directory.join("work")).unwrap().count(), 0);
}
