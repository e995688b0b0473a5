use myclaw_config::{CommandRule, ProgramRule, SandboxMode};

use super::*;

const MAIN: SessionFacts<'_> =
    SessionFacts { key: "main", main_keys: &[], host_says_main: false, is_open_project: false };
const OTHER: SessionFacts<'_> =
    SessionFacts { key: "x", main_keys: &[], host_says_main: false, is_open_project: false };

fn resolve(name: &str) -> Option<ResolvedProgram> {
    let path =
        if name.starts_with('/') { PathBuf::from(name) } else { Path::new("/usr/bin").join(name) };
    Some(ResolvedProgram { real: path.clone(), path })
}

fn path(keys: &[&str]) -> ConfigPath {
    keys.iter().fold(ConfigPath::default(), |path, key| path.key(key))
}

fn rules(security: ExecSecurity, ask: Option<ExecAsk>, programs: &[&str]) -> ExecRules {
    let allowlist = programs.iter().map(|it| CommandRule::Program((*it).to_owned())).collect();
    ExecRules { security: Some(security), ask, allowlist: Some(allowlist) }
}

fn level(rules: ExecRules) -> ExecLevel {
    ExecLevel { level: Level::Global, place: path(&["tools", "exec"]), rules }
}

fn verdict_with(
    policy: &ExecPolicy,
    command: &str,
    variables: &[(&str, &str)],
    changed: &[&str],
) -> ExecVerdict {
    let environment =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    policy.check(&ExecRequest {
        command,
        directory: Path::new("/home/ann/work"),
        environment: &environment,
        changed_variables: changed,
        workspace: Path::new("/home/ann/work"),
        resolve: &resolve,
        real_path: &|_| None,
        repository: &|_| RepositoryPrograms::default(),
        inner_repository: &|_| None,
        start_place: &|_, _| None,
    })
}

fn policy(levels: &[ExecLevel]) -> ExecPolicy {
    ExecPolicy::for_session(levels, &SandboxRules::default(), &path(&["sandbox"]), MAIN).unwrap()
}

/// `allowed`, `ask CODE` or `denied CODE`.
fn shown(verdict: &ExecVerdict) -> String {
    match verdict {
        ExecVerdict::Allowed => "allowed".to_owned(),
        ExecVerdict::NeedsApproval(refusal) => format!("ask {}", refusal.kind.code()),
        ExecVerdict::Denied(refusal) => format!("denied {}", refusal.kind.code()),
    }
}

#[test]
fn security_and_ask_decide_together() {
    use ExecAsk::{Always, Off, OnMiss};
    use ExecSecurity::{Allowlist, Deny, Full};
    for (security, ask, listed, unlisted) in [
        (Full, None, "allowed", "allowed"),
        (Full, Some(Off), "allowed", "allowed"),
        (Full, Some(OnMiss), "allowed", "allowed"),
        (Full, Some(Always), "ask always-ask", "ask always-ask"),
        (Allowlist, None, "allowed", "ask unlisted"),
        (Allowlist, Some(Off), "allowed", "denied unlisted"),
        (Allowlist, Some(OnMiss), "allowed", "ask unlisted"),
        (Allowlist, Some(Always), "ask always-ask", "ask unlisted"),
        (Deny, None, "denied disabled", "denied disabled"),
        (Deny, Some(Always), "denied disabled", "denied disabled"),
    ] {
        let policy = policy(&[level(rules(security, ask, &["ls"]))]);
        let answer = |command| shown(&verdict_with(&policy, command, &[], &[]));
        assert_eq!(
            (answer("ls").as_str(), answer("rm x").as_str()),
            (listed, unlisted),
            "{security:?} {ask:?}"
        );
    }
}

#[test]
fn a_level_takes_what_it_leaves_out_from_the_one_above() {
    let above = level(rules(ExecSecurity::Allowlist, Some(ExecAsk::OnMiss), &["ls", "git"]));
    let never_ask = level(ExecRules { ask: Some(ExecAsk::Off), ..ExecRules::default() });
    let fewer = level(ExecRules {
        allowlist: Some(vec![
            CommandRule::Program("git".to_owned()),
            CommandRule::Program("rm".to_owned()),
        ]),
        ..ExecRules::default()
    });
    let full = level(ExecRules { security: Some(ExecSecurity::Full), ..ExecRules::default() });
    for (levels, command, expected) in [
        (vec![above.clone(), never_ask], "rm x", "denied unlisted"),
        (vec![above.clone(), fewer.clone()], "ls", "ask unlisted"),
        (vec![above.clone(), fewer.clone()], "git log", "allowed"),
        (vec![above.clone(), fewer], "rm x", "ask unlisted"),
        (vec![above, full], "rm x", "ask unlisted"),
    ] {
        assert_eq!(
            shown(&verdict_with(&policy(&levels), command, &[], &[])),
            expected,
            "{command}"
        );
    }
}

#[test]
fn input_for_a_job_is_free_only_where_every_command_is() {
    use ExecAsk::{Always, Off, OnMiss};
    use ExecSecurity::{Allowlist, Deny, Full};
    let checked = |levels: &[(ExecSecurity, ExecAsk)]| {
        let levels: Vec<ExecLevel> = levels
            .iter()
            .map(|(security, ask)| level(rules(*security, Some(*ask), &["cat"])))
            .collect();
        match policy(&levels).check_input() {
            InputVerdict::Allowed => "allowed".to_owned(),
            InputVerdict::NeedsApproval(refusal) => format!("ask {}", refusal.kind.code()),
            InputVerdict::Denied(refusal) => format!("denied {}", refusal.kind.code()),
        }
    };
    for (levels, expected) in [
        (&[][..], "allowed"),
        (&[(Full, Off)], "allowed"),
        (&[(Full, OnMiss)], "allowed"),
        (&[(Full, Always)], "ask always-ask"),
        // A program on the list may read commands from its input.
        (&[(Allowlist, Off)], "denied input"),
        (&[(Allowlist, OnMiss)], "ask input"),
        (&[(Allowlist, Always)], "ask input"),
        (&[(Deny, Off)], "denied disabled"),
        (&[(Deny, Always)], "denied disabled"),
        // The strictest level decides, in any order.
        (&[(Full, Always), (Full, Off)], "ask always-ask"),
        (&[(Allowlist, OnMiss), (Deny, Off)], "denied disabled"),
        (&[(Deny, Off), (Full, Off)], "denied disabled"),
        (&[(Full, Off), (Allowlist, OnMiss)], "ask input"),
    ] {
        assert_eq!(checked(levels), expected, "{levels:?}");
    }
}

#[test]
fn the_sandbox_has_rules_for_its_own_sessions() {
    let sandbox = SandboxRules {
        mode: SandboxMode::NonMain,
        exec: rules(ExecSecurity::Allowlist, Some(ExecAsk::Off), &["ls"]),
        ..SandboxRules::default()
    };
    for (session, expected) in [(MAIN, "allowed"), (OTHER, "denied unlisted")] {
        let policy = ExecPolicy::for_session(&[], &sandbox, &path(&["sandbox"]), session).unwrap();
        assert_eq!(shown(&verdict_with(&policy, "rm x", &[], &[])), expected);
    }
}

#[test]
fn variables_do_not_change_what_an_allowed_command_does() {
    let policy = policy(&[level(rules(ExecSecurity::Allowlist, Some(ExecAsk::Off), &["ls"]))]);
    for (variables, changed, expected) in [
        ([("HOME", "/h")].as_slice(), [].as_slice(), "allowed"),
        (&[("LD_PRELOAD", "x")], &["LD_PRELOAD"], "denied changed-variable"),
        (&[("X", "x")], &["X"], "denied changed-variable"),
        (&[("BASH_ENV", "/tmp/x")], &[], "denied shell-variable"),
        (&[("BASH_FUNC_ls%%", "() { rm x; }")], &[], "denied shell-variable"),
    ] {
        assert_eq!(shown(&verdict_with(&policy, "ls", variables, changed)), expected);
    }
}

#[test]
fn arguments_are_matched_one_by_one() {
    let entry = |program: &str, args: &[&str]| {
        CommandRule::WithArguments(ProgramRule {
            program: program.to_owned(),
            args: Some(args.iter().map(|arg| (*arg).to_owned()).collect()),
        })
    };
    let allowlist = vec![
        entry("git", &["log", "..."]),
        entry("git", &["show", "*"]),
        entry("bash", &["-c", "make test"]),
        entry("sh", &["..."]),
        entry("find", &[".", "-name", "*", "-delete"]),
        entry("pwd", &[]),
    ];
    let rules = ExecRules {
        security: Some(ExecSecurity::Allowlist),
        ask: Some(ExecAsk::Off),
        allowlist: Some(allowlist),
    };
    let policy = policy(&[level(rules)]);
    for (command, expected) in [
        ("git log", "allowed"),
        ("git log -p HEAD", "allowed"),
        ("git log --ext-diff", "denied not-harmless"),
        ("git log $X", "denied expanded-argument"),
        ("git status", "denied arguments"),
        ("git show HEAD", "allowed"),
        ("git show --ext-diff", "denied arguments"),
        ("git show a b", "denied arguments"),
        ("git show $X", "denied arguments"),
        ("bash -c 'make test'", "allowed"),
        ("bash -c 'make test; id'", "denied arguments"),
        ("sh script", "denied launcher"),
        ("find . -name x -delete", "allowed"),
        ("find . -name -exec -delete", "denied arguments"),
        ("pwd", "allowed"),
        ("pwd -P", "denied arguments"),
    ] {
        assert_eq!(shown(&verdict_with(&policy, command, &[], &[])), expected, "{command}");
    }
}

#[test]
fn a_refusal_names_the_command_and_the_rules() {
    let policy = policy(&[level(rules(ExecSecurity::Allowlist, Some(ExecAsk::Off), &["ls"]))]);
    let shown = |command| match verdict_with(&policy, command, &[], &[]) {
        ExecVerdict::Denied(refusal) => refusal.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        shown("ls && rm 'a\nb'"),
        "`rm a\\nb`: `/usr/bin/rm` is not in the allowlist (`tools.exec`, for all agents)"
    );
    assert_eq!(
        shown("ls $(id)"),
        "the command is not plain enough to be checked: it has a command substitution; run the inner command first and \
         use its output (`tools.exec`, for all agents)"
    );
}

#[test]
fn entries_that_match_nothing_are_errors() {
    let allowlist = vec![
        CommandRule::Program("./x".to_owned()),
        CommandRule::Program(" ".to_owned()),
        CommandRule::WithArguments(ProgramRule {
            program: "git".to_owned(),
            args: Some(vec!["...".to_owned(), "log".to_owned()]),
        }),
    ];
    let level = level(ExecRules { allowlist: Some(allowlist), ..ExecRules::default() });
    let errors =
        ExecPolicy::for_session(&[level], &SandboxRules::default(), &path(&["sandbox"]), MAIN)
            .unwrap_err();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "`tools.exec.allowlist[0]`: `./x` is neither a program's name nor an absolute path; write `git` or `/usr/bin/git`",
            "`tools.exec.allowlist[1]`: the entry is empty; remove it, or name a tool or program",
            "`tools.exec.allowlist[2]`: `...` stands for all further arguments of `git`, so it must be the last pattern",
        ]
    );
}
