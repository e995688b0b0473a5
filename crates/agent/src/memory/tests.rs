use myclaw_tools::Recall as _;
use serde_json::{Value, json};

use super::*;
use crate::workspace::tests::session;

const DIRECT: &str = "agent:main:channel:telegram:account:default:peer:direct:42";
const OTHER: &str = "agent:main:channel:telegram:account:default:peer:direct:43";
const GROUP: &str = "agent:main:channel:telegram:account:default:peer:group:-5";

/// The sessions of the terminal, of two people and of a group, in one home.
fn sessions(config: Value) -> (myclaw_testkit::TempHome, [SessionConfig; 4]) {
    let (directory, owner) = session(config, "main");
    let of = |key: &str| owner.for_session(myclaw_session::SessionKey::parse(key).unwrap());
    let all = [of(DIRECT), of(OTHER), of(GROUP)];
    let [direct, other, group] = all;
    (directory, [owner, direct, other, group])
}

fn texts(session: &SessionConfig) -> Vec<String> {
    session.facts().unwrap().facts().unwrap().into_iter().map(|fact| fact.text).collect()
}

fn with_access(access: &str) -> Value {
    json!({"agents": {"defaults": {"sandbox": {"confinement": {"workspaceAccess": access}}}}})
}

#[test]
fn what_one_person_says_is_not_known_to_others() {
    for access in ["none", "ro", "rw"] {
        let (_directory, [owner, direct, other, group]) = sessions(with_access(access));
        direct.remember("Pays with a green card.", None).unwrap();
        assert_eq!(texts(&direct), ["Pays with a green card."]);
        let origin = direct.facts().unwrap().facts().unwrap().remove(0).origin.unwrap();
        assert_eq!(origin.person, "telegram:42");
        for session in [&other, &group] {
            assert_eq!(texts(session), [""; 0], "{access}");
        }
        assert!(
            owner.notebook().is_none_or(|notebook| notebook.facts().unwrap().is_empty()),
            "{access}"
        );
    }
}

#[test]
fn the_owner_may_share_what_is_remembered() {
    let (_directory, sessions) = sessions(json!({"memory": {"share": true}}));
    let [owner, direct, other, group] = &sessions;
    direct.remember("Pays with a green card.", None).unwrap();
    for session in [owner, other, group] {
        assert_eq!(texts(session), ["Pays with a green card."]);
    }
}

/// The sessions that a search in `session` finds.
fn found(session: &SessionConfig) -> Vec<String> {
    let (recalled, _) = session.recall().recall("kumquat", 10).unwrap();
    recalled
        .into_iter()
        .map(|passage| passage.place.split(' ').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn a_session_of_others_searches_its_own_messages_alone() {
    for share in [false, true] {
        let (_directory, sessions) = sessions(json!({"memory": {"share": share}}));
        for session in &sessions {
            let mut log = session
                .home
                .sessions()
                .open(&session.session_key, myclaw_session::LockWait::Fail)
                .unwrap();
            let message = myclaw_session::TranscriptMessage::new(
                myclaw_session::Role::User,
                "a kumquat",
                1_000,
            );
            log.append(log.end(), &[myclaw_session::Entry::Message(message)]).unwrap();
            let patch = myclaw_session::MetaPatch::default();
            session.home.catalog().update(&session.session_key, patch).unwrap();
        }
        for session in &sessions {
            let expected = if share { 4 } else { 1 };
            let keys = found(session);
            assert_eq!(keys.len(), expected, "{keys:?}");
            assert!(keys.contains(&session.session_key.to_string()), "{keys:?}");
        }
    }
}

#[test]
fn facts_of_a_session_that_may_not_see_the_workspace_are_out_of_reach() {
    let (_directory, [owner, ..]) = sessions(with_access("none"));
    assert!(
        owner.notebook().is_none()
            && owner.memory().is_none()
            && owner.memory_write_tool().is_none()
    );
    let (_directory, [owner, direct, ..]) = sessions(with_access("ro"));
    assert!(owner.memory().is_some() && owner.memory_write_tool().is_none());
    assert!(direct.memory_write_tool().is_some());
}

#[test]
fn what_is_forgotten_in_memory_leaves_no_file_in_the_state_directory() {
    let (directory, mut session) = session(json!({}), "main");
    let scratch = directory.path().join("scratch");
    let stores = crate::Stores::in_memory(&scratch);
    session.home = session.home.clone().with_stores(stores.clone());
    session.remember("Pays with a green card.", None).unwrap();
    let fact = session.facts().unwrap().facts().unwrap().remove(0);
    let no_store = |_: &std::path::Path, _: &mut dyn FnMut(&mut [u8]) -> bool| Ok(());
    session.forget(Some(&fact), &Redaction::Nothing, &no_store).unwrap();
    assert_eq!(texts(&session), [""; 0]);
    assert!(session.forgotten().has_fact(&fact.text));
    let again = stores.memory.of_agent("main", std::path::Path::new("/nowhere")).documents;
    let kept = again.read("forgotten.json").unwrap().expect("it belongs to the agent's id").text;
    assert!(kept.contains(&myclaw_memory::digest_of_fact(&fact.text)), "{kept}");
    let other = stores.memory.of_agent("other", std::path::Path::new("/nowhere")).documents;
    assert_eq!(other.read("forgotten.json").unwrap(), None);
    let own = session.own_agent_directory().join("memory");
    let state = session.home.paths.state_dir();
    for path in [own, state.join("forget.json"), state.join("forget.lock")] {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(!session.home.has_to_forget());
}
