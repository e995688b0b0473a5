use std::sync::Arc;

use myclaw_config::{Config, Environment, Paths};
use myclaw_testkit::TempHome;
use serde_json::{Value, json};

use super::*;
use crate::{Home, SessionOptions};

fn session(config: Value, name: &str) -> (TempHome, SessionConfig) {
    let directory = TempHome::new();
    let paths = Paths::in_state_dir(directory.path().join("state"));
    let mut config: Config = serde_json::from_value(config).unwrap();
    config.paths = Some(paths.clone());
    let home = Home::new(Environment::default(), paths);
    let options = SessionOptions { session: Some(name.to_owned()), ..SessionOptions::default() };
    let session = SessionConfig::new(home, Arc::new(config), &options).unwrap();
    (directory, session)
}

#[test]
fn the_main_session_is_that_of_the_agent_in_the_terminal() {
    let config = json!({"agents": {"list": [{"id": "main"}, {"id": "ops"}]}});
    for (name, expected) in [
        ("main", SandboxScope::Unsandboxed),
        ("agent:ops:main", SandboxScope::Unsandboxed),
        ("trip", SandboxScope::Sandboxed),
        ("main:telegram:42", SandboxScope::Sandboxed),
        ("agent:main:channel:telegram:account:default:peer:direct:main", SandboxScope::Sandboxed),
    ] {
        assert_eq!(permissions::scope(&session(config.clone(), name).1), expected, "{name}");
    }
}

#[test]
fn the_mode_of_the_agent_replaces_the_default_mode() {
    let config = json!({"agents": {
        "defaults": {"sandbox": {"mode": "all"}},
        "list": [{"id": "main"}, {"id": "ops", "sandbox": {"mode": "off"}}],
    }});
    assert_eq!(permissions::scope(&session(config.clone(), "main").1), SandboxScope::Sandboxed);
    assert_eq!(
        permissions::scope(
            &session(config, "agent:ops:channel:telegram:account:a:peer:direct:1").1
        ),
        SandboxScope::Unsandboxed
    );
}

#[test]
fn the_values_of_the_agent_replace_the_defaults() {
    let (directory, session) = session(
        json!({"agents": {
            "defaults": {"sandbox": {"confinement": {
                "workspaceAccess": "ro", "network": "open", "limits": {"processes": 0, "memoryMb": 512},
            }}},
            "list": [{"id": "main", "sandbox": {"confinement": {
                "level": "bubblewrap", "workspaceAccess": "none", "limits": {"openFiles": 50},
            }}}],
        }}),
        "x",
    );
    std::fs::create_dir_all(directory.path().join("state/skills")).unwrap();
    let confinement = session.confinement().unwrap();
    let state = directory.path().canonicalize().unwrap().join("state");
    let expected = Confinement {
        access: WorkspaceAccess::None,
        network: Network::Open,
        read_only: vec![state.join("skills"), program().unwrap()],
        read_write: vec![session.artifacts()],
        limits: Limits {
            memory: Some(512 << 20),
            processes: None,
            open_files: Some(50),
            ..Limits::default()
        },
        ..Confinement::new(Level::Bubblewrap, session.working_directory())
    };
    assert_eq!(confinement, expected);
    assert!(session.artifacts().starts_with(state));
}

#[test]
fn a_container_needs_an_image() {
    for level in ["podman", "docker"] {
        let config =
            json!({"agents": {"defaults": {"sandbox": {"confinement": {"level": level}}}}});
        let error = session(config, "x").1.confinement().unwrap_err();
        assert!(error.class == FailureClass::Config && error.message.contains("image"), "{error}");
    }
}

#[test]
fn a_directory_with_keys_is_never_shared() {
    for (key, path) in [
        ("readOnly", "."),
        ("readWrite", ".."),
        ("readOnly", "myclaw.json"),
        ("readOnly", "agents"),
    ] {
        let config = json!({"agents": {"defaults": {"sandbox": {"confinement": {key: [path]}}}}});
        let (directory, session) = session(config, "x");
        let state = directory.path().join("state");
        std::fs::create_dir_all(state.join("agents/main/agent")).unwrap();
        std::fs::write(state.join("myclaw.json"), "{}").unwrap();
        let error = session.confinement().unwrap_err();
        assert_eq!(error.class, FailureClass::Sandbox, "{path}: {error}");
    }
}

#[test]
fn a_path_that_is_not_there_is_a_mistake_in_the_config() {
    let config =
        json!({"agents": {"defaults": {"sandbox": {"confinement": {"readOnly": ["no/such"]}}}}});
    let error = session(config, "x").1.confinement().unwrap_err();
    assert!(error.class == FailureClass::Config && error.message.contains("no/such"), "{error}");
}

#[test]
fn work_for_the_tools_of_a_sandboxed_session_touches_only_its_files() {
    if !myclaw_sandbox::can_confine_threads() {
        myclaw_testkit::skip_here("this kernel has no Landlock");
        return;
    }
    for (name, is_open) in [("main", true), ("x", false)] {
        let (directory, session) = session(json!({}), name);
        let outside = directory.path().join("outside");
        std::fs::create_dir_all(session.working_directory()).unwrap();
        let inside = session.working_directory().join("inside");
        let write = |path: &Path| session.as_its_tools(|| std::fs::write(path, "x")).unwrap();
        assert_eq!((write(&outside).is_ok(), write(&inside).is_ok()), (is_open, true), "{name}");
    }
}

#[test]
fn skills_of_the_workspace_show_nothing_outside_of_it() {
    let (directory, session) = session(json!({}), "x");
    let workspace = session.agent.workspace.clone();
    std::fs::create_dir_all(workspace.join("real-skills")).unwrap();
    std::fs::create_dir_all(workspace.join(".claude")).unwrap();
    std::os::unix::fs::symlink("real-skills", workspace.join("skills")).unwrap();
    std::os::unix::fs::symlink(directory.path(), workspace.join(".claude/skills")).unwrap();

    let shared = session.confinement().unwrap().read_only;

    let inside = workspace.canonicalize().unwrap().join("real-skills");
    assert_eq!(shared, [inside, program().unwrap()]);
}

const STRANGER: &str = "agent:main:channel:telegram:account:default:peer:direct:42";

#[test]
fn a_stranger_sees_the_agents_workspace_only_where_the_owner_says_so() {
    for (access, is_shown) in [("none", false), ("ro", true)] {
        let confinement = json!({"workspaceAccess": access, "limits": {"workspaceMb": 3}});
        let config = json!({"agents": {"defaults": {"sandbox": {"confinement": confinement}}}});
        let (_directory, session) = session(config, STRANGER);
        std::fs::create_dir_all(&session.agent.workspace).unwrap();
        session.make_working_directory().unwrap();
        let confinement = session.confinement().unwrap();
        let shared = real(&session.agent.workspace);
        assert_eq!(confinement.read_only.contains(&shared), is_shown, "{access}");
        // No single file may be larger than all of them together.
        assert_eq!(confinement.limits.file_size, Some(3 << 20));
    }
}

#[test]
fn file_tools_of_a_stranger_leave_alone_what_is_protected() {
    if !myclaw_sandbox::can_confine_threads() {
        myclaw_testkit::skip_here("this kernel has no Landlock");
        return;
    }
    let confinement = json!({"workspaceAccess": "rw"});
    let config = json!({"agents": {"defaults": {"sandbox": {"confinement": confinement}}}});
    let (_directory, session) = session(config, STRANGER);
    let workspace = session.agent.workspace.clone();
    std::fs::create_dir_all(workspace.join("sub")).unwrap();
    let write = |path: &str| {
        let path = workspace.join(path);
        session.as_its_tools(|| std::fs::write(&path, "x")).unwrap().is_ok()
    };
    for (path, is_open) in [
        ("notes.txt", true),
        ("sub/notes.txt", true),
        ("sub/Makefile", true),
        ("AGENTS.md", false),
        ("Makefile", false),
        (".envrc", false),
        ("sub/.envrc", false),
        ("sub/AGENTS.md", false),
        ("sub/.Npmrc", false),
    ] {
        assert_eq!(write(path), is_open, "{path}");
    }
}
