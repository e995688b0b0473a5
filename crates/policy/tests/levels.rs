//! No level can widen what a higher one permits, for tools and for commands.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use myclaw_config::{
    CommandRule, ConfigPath, ExecAsk, ExecRules, ExecSecurity, SandboxMode, SandboxRules,
    ToolProfile, ToolRules,
};
use myclaw_policy::{
    ExecLevel, ExecPolicy, ExecRequest, ExecVerdict, Level, LevelRules, RepositoryPrograms,
    ResolvedProgram, SessionFacts, ToolPolicy, known_tools,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const SESSION: SessionFacts<'_> =
    SessionFacts { key: "x", main_keys: &[], host_says_main: false, is_open_project: false };

fn path(key: &str) -> ConfigPath {
    ConfigPath::default().key(key)
}

fn entries() -> impl Strategy<Value = Option<Vec<String>>> {
    let names = vec![
        "read",
        "BASH",
        "exec",
        "web_fetch",
        "group:fs",
        "group:runtime",
        "group:web",
        "*",
        "sessions_*",
        "cron",
        "browser",
        "*_search",
    ];
    option::of(vec(select(names).prop_map(str::to_owned), 0..4))
}

fn tool_rules() -> impl Strategy<Value = ToolRules> {
    use ToolProfile::{Coding, Full, Messaging, Minimal};
    let profile = option::of(select(vec![Minimal, Coding, Messaging, Full]));
    (profile, entries(), entries()).prop_map(|(profile, allow, deny)| ToolRules {
        profile,
        allow,
        deny,
        ask: None,
    })
}

fn sandbox() -> impl Strategy<Value = SandboxRules> {
    let mode = select(vec![SandboxMode::Off, SandboxMode::NonMain, SandboxMode::All]);
    (mode, entries(), entries(), exec_rules()).prop_map(|(mode, allowlist, denylist, exec)| {
        SandboxRules { mode, allowlist, denylist, exec, ..SandboxRules::default() }
    })
}

fn exec_rules() -> impl Strategy<Value = ExecRules> {
    let security =
        option::of(select(vec![ExecSecurity::Full, ExecSecurity::Allowlist, ExecSecurity::Deny]));
    let ask = option::of(select(vec![ExecAsk::Off, ExecAsk::OnMiss, ExecAsk::Always]));
    let program = select(vec!["ls", "git", "*", "/usr/bin/*", "/opt/x"]);
    let rule = program.prop_map(|program| CommandRule::Program(program.to_owned()));
    (security, ask, option::of(vec(rule, 0..3))).prop_map(|(security, ask, allowlist)| ExecRules {
        security,
        ask,
        allowlist,
    })
}

fn permitted(levels: &[LevelRules], sandbox: &SandboxRules) -> Vec<&'static str> {
    let policy = ToolPolicy::for_session(levels, sandbox, &path("sandbox"), SESSION, &[]).unwrap();
    known_tools().iter().copied().filter(|tool| policy.decide(tool).allowed).collect()
}

/// 0 for a command that may run, 1 for one that is asked about, 2 for one that is denied.
fn strictness(levels: &[ExecLevel], sandbox: &SandboxRules, command: &str) -> u8 {
    let resolve = |name: &str| {
        let path = PathBuf::from("/usr/bin").join(name);
        Some(ResolvedProgram { real: path.clone(), path })
    };
    let policy = ExecPolicy::for_session(levels, sandbox, &path("sandbox"), SESSION).unwrap();
    let request = ExecRequest {
        command,
        directory: Path::new("/home/ann/work"),
        environment: &BTreeMap::new(),
        changed_variables: &[],
        resolve: &resolve,
        workspace: Path::new("/home/ann/work"),
        real_path: &|_| None,
        repository: &|_| RepositoryPrograms::default(),
        inner_repository: &|_| None,
        start_place: &|_, _| None,
    };
    match policy.check(&request) {
        ExecVerdict::Allowed => 0,
        ExecVerdict::NeedsApproval(_) => 1,
        ExecVerdict::Denied(_) => 2,
    }
}

proptest! {
    #[test]
    fn a_further_level_permits_no_more_tools(
        rules in vec(tool_rules(), 1..6),
        sandbox in sandbox(),
    ) {
        let levels: Vec<LevelRules> = rules
            .into_iter()
            .map(|rules| LevelRules { level: Level::Global, place: path("tools"), rules })
            .collect();
        let mut before: Vec<&str> = known_tools().to_vec();
        for count in 1..=levels.len() {
            let after = permitted(&levels[..count], &SandboxRules { mode: SandboxMode::Off, ..sandbox.clone() });
            prop_assert!(after.iter().all(|tool| before.contains(tool)));
            before = after;
        }
        let after = permitted(&levels, &sandbox);
        prop_assert!(after.iter().all(|tool| before.contains(tool)));
    }

    #[test]
    fn a_further_level_permits_no_more_commands(
        rules in vec(exec_rules(), 1..6),
        sandbox in sandbox(),
        command in select(vec!["ls", "git status", "rm x", "ls && rm x", "echo $(id)", "ls > x", "bash x"]),
    ) {
        let levels: Vec<ExecLevel> = rules
            .into_iter()
            .map(|rules| ExecLevel { level: Level::Global, place: path("exec"), rules })
            .collect();
        let mut before = 0;
        for count in 1..=levels.len() {
            let off = SandboxRules { mode: SandboxMode::Off, ..sandbox.clone() };
            let after = strictness(&levels[..count], &off, command);
            prop_assert!(after >= before);
            before = after;
        }
        prop_assert!(strictness(&levels, &sandbox, command) >= before);
    }
}
