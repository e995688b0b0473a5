use std::fs;
use std::time::{Duration, SystemTime};

use myclaw_engine::AgentRunEvent;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::workspace::tests::session;

const STRANGER: &str = "agent:main:channel:telegram:account:default:peer:direct:42";

/// A front-end, and what it is told.
fn heard(config: &SessionConfig) -> (EventCallback, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let listener: EventCallback = Arc::new(move |event: RunEvent| {
        assert_eq!(event.run, None);
        if let AgentRunEvent::Notice(notice) = event.kind {
            into.lock().push(notice.to_string());
        }
    });
    config.subscribe_to_notices(&listener);
    (listener, heard)
}

fn taken(heard: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut heard.lock())
}

#[tokio::test]
async fn a_full_workspace_is_said_once_until_it_has_room_again() {
    let limits = json!({"workspaceMb": 1});
    let config = json!({"agents": {"defaults": {"sandbox": {"confinement": {"limits": limits}}}}});
    let (_home, config) = session(config, STRANGER);
    config.make_working_directory().unwrap();
    let (_listener, heard) = heard(&config);
    // A session that is made from it, as for each run, knows what was said.
    let other = config.clone();
    for one in [&config, &other] {
        assert!(one.refuses_file(2 << 20).is_some());
    }
    let told = taken(&heard);
    assert!(
        told.len() == 1 && told[0].contains("is full") && told[0].contains("workspaceMb"),
        "{told:?}"
    );
    assert_eq!(config.refuses_file(1), None);
    assert!(other.refuses_file(2 << 20).is_some());
    assert_eq!(taken(&heard).len(), 1);
}

#[test]
fn a_session_that_moves_says_so_in_its_first_run() {
    let (_home, config) = session(json!({}), STRANGER);
    let sessions = config.home.paths.sessions_dir();
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join(format!("{}.jsonl", config.session_key.slug())), "{}\n").unwrap();
    config.make_working_directory().unwrap();
    let (listener, said) = heard(&config);
    let told = taken(&said);
    assert!(told.len() == 1 && told[0].contains("a workspace of its own"), "{told:?}");
    config.make_working_directory().unwrap();
    assert_eq!(taken(&said), Vec::<String>::new());
    // What happens between two runs waits for the next.
    drop(listener);
    config.emit_notice(Notice::Files { text: "between".to_owned() });
    let (_listener, said) = heard(&config);
    assert_eq!(taken(&said), ["between"]);
}

#[tokio::test]
async fn removed_side_files_are_said() {
    let (_home, config) = session(json!({"sideFiles": {"sessionMb": 1}}), STRANGER);
    let directory = config.home.side_files().artifact_directory(&config.session_key);
    fs::create_dir_all(&directory).unwrap();
    for name in ["a.log", "b.log"] {
        let file = fs::File::create(directory.join(name)).unwrap();
        file.set_len(800 << 10).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7_200)).unwrap();
    }
    let (_listener, heard) = heard(&config);
    config.trim_side_files().await;
    let told = taken(&heard);
    assert!(told.len() == 1 && told[0].contains("sideFiles.sessionMb"), "{told:?}");
    assert!(!directory.join("a.log").exists() && directory.join("b.log").exists());
    config.trim_side_files().await;
    assert_eq!(taken(&heard), Vec::<String>::new());
}
