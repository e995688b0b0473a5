use std::fs;
use std::sync::Arc;

use myclaw_config::{Config, Environment};
use myclaw_testkit::TempHome;
use serde_json::json;

use super::*;
use crate::{Home, SessionOptions};

#[test]
fn what_decides_about_a_session_is_closed_wherever_it_is() {
    let directory = TempHome::new();
    let root = directory.path().canonicalize().unwrap();
    let paths = Paths::in_state_dir(root.join("state"));
    for name in ["ops", "keys", "hooks", "state/skills/one", "state/sessions"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let files =
        ["keys/model", "keys/seal", "keys/tls.key", "hooks/guard.sh", "hooks/speak.sh", "other"];
    for name in files {
        fs::write(root.join(name), "x").unwrap();
    }
    let place = |name: &str| root.join(name).display().to_string();
    let mut config: Config = serde_json::from_value(json!({
        "provider": {"name": "lab", "model": "m", "authProfiles": [
            {"id": "k", "apiKey": format!("file:{}", place("keys/model"))},
        ]},
        "gateway": {"tls": {"cert": place("other"), "key": place("keys/tls.key")}},
        "agents": {"list": [{"id": "main"}, {"id": "ops", "agentDir": place("ops")}]},
        "hooks": {"tool_call": [{"command": [place("hooks/guard.sh"), "--strict"]}],
            "agent_end": [{"command": format!("sh '{}' done;", place("hooks/speak.sh"))}]},
    }))
    .unwrap();
    config.paths = Some(paths.clone());
    let seal = format!("file:{}", place("keys/seal"));
    let home = Home::new(
        Environment::new([(variables::STORE_KEY, seal)], Some(root.clone()), None),
        paths,
    );
    let options = SessionOptions { session: Some("trip".to_owned()), ..SessionOptions::default() };
    let session = SessionConfig::new(home, Arc::new(config), &options).unwrap();
    let artifacts = session.home.side_files().artifact_directory(&session.session_key);

    let closed = session.closed_paths();

    let is_open = |path: &Path, wanted| closed.refusing(path, wanted).is_none();
    for (name, read, change) in [
        ("state/myclaw.json", false, false),
        ("state/myclaw.json.bak", false, false),
        ("state/.env", false, false),
        ("state/approvals.json", false, false),
        ("state/sessions/other.jsonl", false, false),
        ("keys/model", false, false),
        ("keys/seal", false, false),
        ("keys/tls.key", false, false),
        ("ops", false, false),
        ("ops/auth-profiles.json", false, false),
        ("ops/anything", false, false),
        // The programs of the owner's commands are read like others.
        ("hooks/guard.sh", true, false),
        ("hooks/speak.sh", true, false),
        ("state/skills/one/SKILL.md", true, false),
        ("state/workspace/notes.md", true, true),
        ("state/workspaces/somebody/notes.md", true, true),
        ("other", true, true),
        ("keys/another", true, true),
    ] {
        let path = root.join(name);
        assert_eq!(
            (is_open(&path, PathUse::Read), is_open(&path, PathUse::Change)),
            (read, change),
            "{name}"
        );
    }
    let output = artifacts.join("1.txt");
    assert!(is_open(&output, PathUse::Read) && !is_open(&output, PathUse::Change));
}
