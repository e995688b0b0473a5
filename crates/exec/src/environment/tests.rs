use super::*;

fn filtered(variables: &[(&str, &str)], also_pass: &[&str]) -> Vec<(String, String)> {
    let variables =
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let policy = EnvironmentPolicy::filtered(variables, also_pass);
    let fixed: Vec<&str> = FIXED.iter().map(|(name, _)| *name).collect();
    policy
        .iter()
        .map(|(name, value)| {
            (name.to_str().unwrap().to_owned(), value.to_str().unwrap().to_owned())
        })
        .filter(|(name, _)| !fixed.contains(&name.as_str()) && !name.starts_with("GIT_CONFIG_"))
        .collect()
}

#[test]
fn only_listed_names_pass() {
    let kept = filtered(
        &[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run"),
            ("HOME", "/home/a"),
            ("SOMETHING", "x"),
        ],
        &[],
    );
    let expected =
        [("HOME", "/home/a"), ("LC_ALL", "C"), ("PATH", "/bin"), ("XDG_RUNTIME_DIR", "/run")];
    assert_eq!(kept, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn nothing_that_looks_like_a_secret_passes() {
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "DB_PASSWORD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "npm_config__authToken",
        "XDG_SECRET",
        "LC_KEY",
        "PYENV_TOKEN",
        "my_private_thing",
    ] {
        assert_eq!(filtered(&[(name, "value")], &[name]), [], "{name}");
    }
}

#[test]
fn every_part_of_the_secret_list_counts_on_its_own() {
    for part in [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "COOKIE",
        "PRIVATE",
        "BEARER",
        "AUTH",
        "SIGNATURE",
        "WEBHOOK",
    ] {
        for name in
            [part.to_owned(), format!("XDG_MY_{part}S"), format!("lc_{}", part.to_lowercase())]
        {
            assert_eq!(filtered(&[(&name, "value")], &[&name]), [], "{name}");
        }
    }
    assert_eq!(SECRET_PARTS.len(), 13, "a part without a line above");
}

#[test]
fn more_names_can_be_passed() {
    assert_eq!(filtered(&[("MINE", "1")], &["MINE"]), [("MINE".to_owned(), "1".to_owned())]);
}

#[test]
fn addresses_with_a_password_do_not_pass() {
    for (value, passes) in [
        ("http://proxy:3128", true),
        ("http://user@proxy:3128", true),
        ("http://user:pass@proxy:3128", false),
        ("socks5://u:p%40ss@proxy", false),
        ("https://a.example,https://u:p@b.example", false),
        ("https://proxy/path:with@sign", true),
    ] {
        assert_eq!(filtered(&[("HTTPS_PROXY", value)], &[]).len(), usize::from(passes), "{value}");
    }
}

#[test]
fn what_everyday_work_needs_is_no_secret() {
    for name in PASSED_NAMES {
        assert!(!looks_secret(name), "{name} is on the list but would be removed");
    }
    for name in ["SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL"] {
        assert_eq!(filtered(&[(name, "x")], &[]).len(), 1, "{name}");
    }
}

#[test]
fn the_callers_own_variables_win() {
    let policy =
        EnvironmentPolicy::empty().with("PAGER", "less").with("SERVICE_TOKEN", "given on purpose");
    assert_eq!(policy.get("PAGER"), Some(OsStr::new("less")));
    assert_eq!(policy.get("SERVICE_TOKEN"), Some(OsStr::new("given on purpose")));
    assert_eq!(policy.iter().count(), 2);
}

#[test]
fn nobody_is_asked_and_nothing_is_paged() {
    let policy = EnvironmentPolicy::filtered([("PAGER".into(), "less".into())], &["PAGER"]);
    assert_eq!(policy.get("PAGER"), Some(OsStr::new("cat")));
    assert_eq!(policy.get("GIT_TERMINAL_PROMPT"), Some(OsStr::new("0")));
}

#[test]
fn git_takes_a_repository_without_a_name_only_where_the_user_says_so() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let set = |others: &[(&str, &str)]| {
        let home = home.path().to_str().unwrap();
        let variables = [("HOME", home), ("GIT_CONFIG_COUNT", "7")];
        let variables = variables.iter().chain(others);
        let variables =
            variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let policy = EnvironmentPolicy::filtered(variables, &[]);
        ["COUNT", "KEY_0", "VALUE_0"].map(|name| {
            let value = policy.get(&format!("GIT_CONFIG_{name}"))?;
            Some(value.to_str().unwrap().to_owned())
        })
    };
    let explicit = ["1", "safe.bareRepository", "explicit"].map(|value| Some(value.to_owned()));
    assert_eq!(set(&[]), explicit);
    file(".gitconfig", "[user]\nname = x\n");
    assert_eq!(set(&[]), explicit);
    for name in [".gitconfig", ".config/git/config", "xdg/git/config"] {
        file(name, "[safe]\n\tbareRepository = all\n");
        let xdg = home.path().join("xdg");
        let others = [("XDG_CONFIG_HOME", xdg.to_str().unwrap())];
        let others = if name.starts_with("xdg") { &others[..] } else { &[] };
        assert_eq!(set(others), [None, None, None], "{name}");
        std::fs::remove_file(home.path().join(name)).unwrap();
    }
    // A trap in its place holds nothing up.
    let made = std::process::Command::new("mkfifo").arg(home.path().join(".gitconfig")).status();
    assert!(made.unwrap().success());
    assert_eq!(set(&[]), explicit);
}

#[test]
fn a_repository_among_files_starts_no_program_of_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let script = "git init -q --bare . && git config core.bare false && git config core.worktree . && git config \
                  core.fsmonitor 'touch started; false'";
    let run = |script: &str, variables: &EnvironmentPolicy| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]).current_dir(directory.path()).env_clear();
        shell.envs(variables.iter()).env("HOME", directory.path()).output().unwrap()
    };
    let path = std::env::var_os("PATH").unwrap();
    let variables = EnvironmentPolicy::filtered([("PATH".into(), path)], &[]);
    if !run("git version", &variables).status.success() {
        myclaw_testkit::skip_without("git is not installed");
        return;
    }
    // What is named is taken.
    let plain = EnvironmentPolicy::empty().with("PATH", variables.get("PATH").unwrap());
    assert!(run(script, &plain).status.success());
    assert!(run("git --git-dir=. rev-parse", &variables).status.success());
    assert!(!run("git status", &variables).status.success());
    assert!(!directory.path().join("started").exists());
    run("git status", &plain);
    assert!(directory.path().join("started").exists(), "the attack is real");
}
