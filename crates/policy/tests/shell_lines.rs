//! What the allowlist says about each line of `data/shell_lines.tsv`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use myclaw_config::{
    CommandRule, ConfigPath, ExecAsk, ExecRules, ExecSecurity, ProgramRule, SandboxMode,
    SandboxRules,
};
use myclaw_policy::{
    ExecLevel, ExecPolicy, ExecRequest, ExecVerdict, Level, RepositoryPrograms, ResolvedProgram,
    SessionFacts,
};

const LINES: &str = include_str!("data/shell_lines.tsv");

/// Programs that may run with any arguments. The last four run other programs, so that this is not enough for them.
const PERMITTED: [&str; 31] = [
    "ls",
    "cat",
    "echo",
    "grep",
    "rg",
    "git",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "jq",
    "find",
    "cd",
    "pwd",
    "printf",
    "test",
    "[",
    "true",
    "sed",
    "tar",
    "make",
    "/opt/tools/*",
    "/srv/bin/report",
    "tee",
    "bash",
    "env",
    "xargs",
    "awk",
];

/// Programs that exist besides those.
const OTHERS: [&str; 17] = [
    "rm", "curl", "touch", "id", "sh", "node", "perl", "ruby", "nice", "nohup", "sudo", "ssh",
    "python3", "timeout", "npm", "cargo", "gh",
];

fn policy() -> ExecPolicy {
    let with = |program: &str, args: &[&str]| {
        CommandRule::WithArguments(ProgramRule {
            program: program.to_owned(),
            args: Some(args.iter().map(|arg| (*arg).to_owned()).collect()),
        })
    };
    let mut allowlist: Vec<CommandRule> =
        PERMITTED.iter().map(|program| CommandRule::Program((*program).to_owned())).collect();
    allowlist.extend([
        with("python3", &["scripts/*.py", "..."]),
        with("npm", &["test"]),
        with("cargo", &["build", "..."]),
        with("timeout", &["10", "ls"]),
    ]);
    let rules = ExecRules {
        security: Some(ExecSecurity::Allowlist),
        ask: Some(ExecAsk::Off),
        allowlist: Some(allowlist),
    };
    let level = ExecLevel {
        level: Level::Global,
        place: ConfigPath::default().key("tools").key("exec"),
        rules,
    };
    let sandbox = SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() };
    let session =
        SessionFacts { key: "main", main_keys: &[], host_says_main: false, is_open_project: false };
    ExecPolicy::for_session(&[level], &sandbox, &ConfigPath::default().key("sandbox"), session)
        .unwrap()
}

/// A machine with all of these in /usr/bin, some of them links, and files of the same names elsewhere.
fn resolve(name: &str) -> Option<ResolvedProgram> {
    let path = match name {
        "bin/report" => PathBuf::from("/srv/bin/report"),
        _ if name.starts_with("./") => {
            Path::new("/home/ann/work").join(name.trim_start_matches("./"))
        }
        _ if name.starts_with('/') => PathBuf::from(name),
        _ if PERMITTED.contains(&name) || OTHERS.contains(&name) => {
            Path::new("/usr/bin").join(name)
        }
        _ => return None,
    };
    let real = match path.to_str()? {
        "/usr/bin/awk" => PathBuf::from("/usr/bin/mawk"),
        "/opt/tools/link" => PathBuf::from("/usr/bin/bash"),
        _ => path.clone(),
    };
    Some(ResolvedProgram { path, real })
}

fn verdict(policy: &ExecPolicy, line: &str) -> String {
    let request = ExecRequest {
        command: line,
        directory: Path::new("/home/ann/work"),
        environment: &BTreeMap::new(),
        changed_variables: &[],
        workspace: Path::new("/home/ann/work"),
        resolve: &resolve,
        real_path: &|_| None,
        repository: &|_| RepositoryPrograms::default(),
        inner_repository: &|_| None,
        start_place: &|_, _| None,
    };
    match policy.check(&request) {
        ExecVerdict::Allowed => "allowed".to_owned(),
        ExecVerdict::Denied(refusal) => refusal.kind.code().to_owned(),
        ExecVerdict::NeedsApproval(_) => panic!("nobody is asked here: {line}"),
    }
}

#[test]
fn each_line_gets_its_verdict() {
    let policy = policy();
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in LINES.lines().filter(|row| !row.starts_with('#') && !row.is_empty()) {
        let mut fields = row.split('\t');
        let (expected, line) = (fields.next().unwrap(), fields.next().unwrap());
        assert_eq!(fields.count(), 1, "a row has three fields: {row}");
        let line = line.replace('␤', "\n").replace('␍', "\r").replace('␉', "\t").replace('␀', "\0");
        let actual = verdict(&policy, &line);
        if actual != expected {
            wrong.push(format!("{line:?}: expected {expected}, got {actual}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 150, "{count} lines");
}
