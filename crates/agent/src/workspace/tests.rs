use std::sync::Arc;

use myclaw_config::{Config, Environment, Paths};
use myclaw_testkit::TempHome;
use serde_json::{Value, json};

use super::*;
use crate::{Home, SessionOptions};

/// A session in a new home whose state directory is `state`.
pub(crate) fn session(config: Value, key: &str) -> (TempHome, SessionConfig) {
    let directory = TempHome::new();
    let paths = Paths::in_state_dir(directory.path().join("state"));
    let mut config: Config = serde_json::from_value(config).unwrap();
    config.paths = Some(paths.clone());
    let home = Home::new(Environment::default(), paths);
    let options = SessionOptions { session: Some(key.to_owned()), ..SessionOptions::default() };
    let session = SessionConfig::new(home, Arc::new(config), &options).unwrap();
    (directory, session)
}

fn key(channel: &str, peer: &str) -> String {
    format!("agent:main:channel:{channel}:account:default:peer:direct:{peer}")
}

fn with_access(access: &str) -> Value {
    json!({"agents": {"defaults": {"sandbox": {"confinement": {"workspaceAccess": access}}}}})
}

#[test]
fn the_key_of_a_session_says_whose_it_is() {
    for (key, party) in [
        ("main".to_owned(), Party::Owner),
        ("trip".to_owned(), Party::Owner),
        (key("cron", "job-1"), Party::Owner),
        (key("web", "owner"), Party::Owner),
        (key("telegram", "42"), Party::Others),
        (key("person", "ann"), Party::Others),
        (key("webhook", "x"), Party::Others),
        (key("unknown", "x"), Party::Others),
        ("agent:main:channel:telegram:account:default:peer:group:-5".to_owned(), Party::Others),
        // Nobody is known who has given it its work.
        (key("subagent", "1"), Party::Others),
    ] {
        let (directory, session) = session(json!({}), &key);
        let state = directory.path().join("state");
        let own = state.join("workspaces").join(session.session_key.slug());
        let expected = match party {
            Party::Owner => state.join("workspace"),
            Party::Others => own,
        };
        assert_eq!((session.party(), session.working_directory()), (party, &*expected), "{key}");
    }
}

#[test]
fn a_chat_that_begins_anew_keeps_its_files_and_no_other_has_them() {
    let (_directory, first) = session(json!({}), &key("telegram", "42"));
    let place = |peer: &str| {
        let key = SessionKey::parse(&key("telegram", peer)).unwrap();
        first.for_session(key).working_directory().to_owned()
    };
    assert_eq!(place("42:new:2"), first.working_directory());
    for other in ["43", "42:thread:1", "42:new:x", "4", "42_", "..", "../42", "42/../43"] {
        let other = place(other);
        assert_ne!(other, first.working_directory());
        assert_eq!(other.parent(), first.working_directory().parent(), "{}", other.display());
    }
}

#[test]
fn a_sub_agent_works_where_those_above_it_work() {
    let (_directory, child) = session(json!({}), &key("subagent", "1"));
    let above = |keys: &[String]| -> SessionConfig {
        let principal = |key: &String| Principal {
            session: SessionKey::parse(key).unwrap(),
            senders: Vec::new(),
        };
        child.clone().on_behalf_of(keys.iter().map(principal).collect()).unwrap()
    };
    let telegram = key("telegram", "42");
    let of_stranger = child.for_session(SessionKey::parse(&telegram).unwrap());
    for keys in [vec![telegram.clone()], vec![telegram, key("subagent", "0")]] {
        let child = above(&keys);
        assert_eq!(child.working_directory(), of_stranger.working_directory());
        assert_eq!(child.party(), Party::Others);
    }
    let of_owner = above(&["main".to_owned()]);
    assert_eq!(of_owner.working_directory(), of_owner.agent.workspace);
}

#[test]
fn the_config_says_what_others_may_do_in_the_agents_workspace() {
    for (config, access, is_own) in [
        (json!({}), WorkspaceAccess::None, true),
        (with_access("none"), WorkspaceAccess::None, true),
        (with_access("ro"), WorkspaceAccess::Ro, true),
        (with_access("rw"), WorkspaceAccess::Rw, false),
    ] {
        let (_directory, session) = session(config, &key("telegram", "42"));
        assert_eq!(session.agent_workspace_access(), access);
        assert_eq!(session.own_workspace().is_some(), is_own);
        assert_eq!(session.protected(&Level::Bubblewrap).is_empty(), is_own);
        let names: Vec<&str> = session.prompt_files().names().collect();
        match is_own {
            true => {
                assert_eq!(names, ["SYSTEM.md", "AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"]);
                let state = session.home.paths.state_dir();
                assert_eq!(session.start_directory(), state);
            }
            false => assert_eq!(names, BOOTSTRAP_NAMES),
        }
    }
}

#[test]
fn a_sandboxed_session_does_not_change_what_sessions_outside_obey() {
    let protected = |mode: &str, key: &str, directory: bool| -> Vec<PathBuf> {
        let config = json!({"agents": {"defaults": {"sandbox": {
            "mode": mode, "confinement": {"workspaceAccess": "rw"},
        }}}});
        let (home, mut session) = session(config, key);
        session.directory = directory.then(|| home.path().to_owned());
        session.protected(&Level::Landlock)
    };
    let has = |paths: &[PathBuf], name: &str| paths.contains(&PathBuf::from(name));
    let owners = protected("non-main", "trip", false);
    assert!(BOOTSTRAP_NAMES.iter().all(|name| has(&owners, name)) && has(&owners, "skills"));
    assert!(!has(&owners, ".git") && !has(&owners, "Makefile"));
    // All sessions of the owner are confined alike, or it is no workspace of the agent.
    assert_eq!(protected("all", "trip", false), Vec::<PathBuf>::new());
    assert_eq!(protected("non-main", "trip", true), Vec::<PathBuf>::new());
    for (mode, directory) in [("non-main", false), ("all", false), ("non-main", true)] {
        let others = protected(mode, &key("telegram", "42"), directory);
        let covers = |path: &PathBuf| others.iter().any(|other| path.starts_with(other));
        assert!(owners.iter().all(covers), "{mode}");
        assert!(has(&others, ".git") && has(&others, ".envrc") && has(&others, "Makefile"));
    }
}

#[test]
fn a_new_workspace_is_a_copy_of_the_template() {
    let (directory, session) = session(json!({}), &key("telegram", "42"));
    let template = session.agent.workspace.join("workspace-template");
    std::fs::create_dir_all(template.join("forms")).unwrap();
    std::fs::write(template.join("forms/order.txt"), "order").unwrap();
    std::fs::write(directory.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(directory.path().join("secret"), template.join("link")).unwrap();
    session.make_working_directory().unwrap();
    let own = session.working_directory();
    let order = own.join("forms/order.txt");
    assert_eq!(std::fs::read_to_string(&order).unwrap(), "order");
    assert!(own.join("link").symlink_metadata().is_err(), "a link was copied");
    // It is made once.
    std::fs::remove_file(&order).unwrap();
    session.make_working_directory().unwrap();
    assert!(!order.exists());
}

#[test]
fn one_stranger_among_those_it_works_for_is_enough() {
    let (_directory, child) = session(json!({}), &key("subagent", "1"));
    let telegram = key("telegram", "42");
    let of_stranger = child.for_session(SessionKey::parse(&telegram).unwrap());
    for keys in [
        vec!["main".to_owned(), telegram.clone()],
        vec![telegram.clone(), "main".to_owned()],
        vec!["main".to_owned(), key("subagent", "0"), telegram],
    ] {
        let principal = |key: &String| Principal {
            session: SessionKey::parse(key).unwrap(),
            senders: Vec::new(),
        };
        let child = child.clone().on_behalf_of(keys.iter().map(principal).collect()).unwrap();
        assert_eq!(child.party(), Party::Others, "{keys:?}");
        assert_eq!(child.working_directory(), of_stranger.working_directory(), "{keys:?}");
    }
}

#[test]
fn others_in_a_directory_of_the_owner_do_not_change_what_is_obeyed_there() {
    let (directory, first) = session(json!({}), &key("telegram", "42"));
    let project = directory.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let options = SessionOptions {
        session: Some(key("telegram", "42")),
        directory: Some(project),
        ..SessionOptions::default()
    };
    let session =
        SessionConfig::new(first.home.clone(), Arc::clone(&first.config), &options).unwrap();
    let protected = session.protected(&Level::Bubblewrap);
    let names = session.protected_names(&Level::Bubblewrap);
    for name in [".git", ".envrc", "Makefile", "AGENTS.md", "skills"] {
        assert!(protected.iter().any(|path| path == Path::new(name)), "{name}");
    }
    for name in [
        ".travis.yml",
        "Jenkinsfile",
        "mise.toml",
        "Cargo.toml",
        "build.rs",
        "flake.nix",
        "opencode.json",
    ] {
        assert!(protected.iter().any(|path| path == Path::new(name)), "{name}");
    }
    for name in ["Dockerfile", "compose.yaml", "tox.ini", "setup.py", "Procfile"] {
        assert!(!protected.iter().any(|path| path == Path::new(name)), "{name}");
    }
    for name in [
        ".git",
        ".envrc",
        ".vscode",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        ".travis.yml",
        ".nvim.lua",
        ".gemini",
        ".cursorrules",
        ".aider.conf.yml",
        ".forgejo",
        ".drone.yml",
        ".envrc.local",
        "*.code-workspace",
    ] {
        assert!(names.iter().any(|other| other == name), "{name}");
    }
    for name in
        ["Makefile", "package.json", "skills", "commands", "Cargo.toml", "Jenkinsfile", "SOUL.md"]
    {
        assert!(!names.iter().any(|other| other == name), "{name}");
    }
    assert_eq!(first.protected_names(&Level::Landlock), Vec::<String>::new());
}

#[test]
fn the_config_says_what_the_owners_own_sandboxed_sessions_may_do() {
    for (config, expected) in [
        (json!({}), WorkspaceAccess::Rw),
        (with_access("none"), WorkspaceAccess::None),
        (with_access("ro"), WorkspaceAccess::Ro),
        (with_access("rw"), WorkspaceAccess::Rw),
    ] {
        let (_directory, session) = session(config, "trip");
        assert_eq!((session.agent_workspace_access(), session.own_workspace()), (expected, None));
    }
}

#[test]
fn zero_is_no_limit() {
    let limits = |bytes: u64, files: u64| {
        let limits = json!({"workspaceMb": bytes, "workspaceFiles": files});
        json!({"agents": {"defaults": {"sandbox": {"confinement": {"limits": limits}}}}})
    };
    for (config, expected) in [
        (limits(0, 0), Quota { bytes: None, files: None }),
        (limits(2, 0), Quota { bytes: Some(2 << 20), files: None }),
        (limits(0, 7), Quota { bytes: None, files: Some(7) }),
    ] {
        let (_directory, session) = session(config.clone(), &key("telegram", "42"));
        assert_eq!(session.quota(), Some(expected), "{config}");
    }
}

#[test]
fn a_session_that_worked_elsewhere_is_named_until_its_note_is_removed() {
    let (directory, first) = session(json!({}), &key("telegram", "42"));
    let paths = first.home.paths.clone();
    let before = first.for_session(SessionKey::parse(&key("telegram", "7")).unwrap());
    let log = paths.sessions_dir().join(format!("{}.jsonl", before.session_key.slug()));
    std::fs::create_dir_all(paths.sessions_dir()).unwrap();
    std::fs::write(log, "{}\n").unwrap();
    for session in [&first, &before] {
        session.make_working_directory().unwrap();
    }
    let moved = moved_sessions(&paths);
    let keys: Vec<&str> = moved.iter().map(|one| one.session.as_str()).collect();
    assert_eq!(keys, [before.session_key.as_str()], "a new chat has not moved");
    assert_eq!(moved[0].workspace, before.working_directory());
    // What a link leads to is no note.
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    std::fs::remove_file(&moved[0].note).unwrap();
    std::os::unix::fs::symlink(secret, &moved[0].note).unwrap();
    let shown = moved_sessions(&paths);
    assert_eq!(shown, []);
}

#[test]
fn a_workspace_that_is_made_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["main".to_owned(), key("telegram", "42")] {
        let (_directory, session) = session(json!({}), &name);
        session.make_working_directory().unwrap();
        let mode = session.working_directory().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn a_template_that_is_too_large_is_not_copied_endlessly() {
    let (_directory, session) = session(json!({}), &key("telegram", "42"));
    let template = session.agent.workspace.join("workspace-template");
    let deep = (0..40).fold(template, |path, _| path.join("d"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("file"), "x").unwrap();
    session.make_working_directory().unwrap();
    let copied = (0..40).fold(session.working_directory().to_owned(), |path, _| path.join("d"));
    assert!(!copied.exists());
    assert!(copy_template(&session.agent.workspace, session.working_directory()).is_err());
}
