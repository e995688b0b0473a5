use myclaw_config::CooldownConfig;
use secrecy::SecretString;
use tempfile::TempDir;

use super::*;
use crate::{CooldownRules, CredentialType, Failure, FailureReason, StoredProfile};

fn store() -> (TempDir, AuthStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = AuthStore::in_agent_dir(directory.path());
    (directory, store)
}

fn api_key(key: &str) -> StoredProfile {
    StoredProfile::with_key("p", CredentialType::ApiKey, SecretString::from(key))
}

fn fail(file: &mut AuthFile, name: &str) {
    let rules = CooldownRules::from(&CooldownConfig::default());
    let failure =
        Failure { model: "m", reason: FailureReason::Auth, retry_after: None, at_ms: 1_000 };
    file.record_failure(name, &failure, &rules);
}

#[test]
fn a_file_is_private_if_nobody_else_can_read_or_write_it() {
    let (_directory, store) = store();
    assert!(is_private(store.file().unwrap()), "no file is private");
    fs::write(store.file().unwrap(), "{}").unwrap();
    for (mode, expected) in [(0o600, true), (0o400, true), (0o640, false), (0o602, false)] {
        fs::set_permissions(store.file().unwrap(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_private(store.file().unwrap()), expected, "{mode:o}");
    }
}

#[test]
fn a_store_is_private_from_its_first_write() {
    let (_directory, store) = store();
    assert!(!store.exists());
    store.change(|file| file.put("p:a", api_key("k"))).unwrap();
    assert!(store.exists() && is_private(store.file().unwrap()));
}

#[test]
fn a_file_up_to_the_limit_is_read_and_a_larger_one_is_not() {
    let (_directory, store) = store();
    let mut text = r#"{"version": 1}"#.to_owned();
    text.push_str(&" ".repeat(MAX_BYTES as usize - text.len()));
    fs::write(store.file().unwrap(), &text).unwrap();
    assert!(store.load().is_ok());
    text.push(' ');
    fs::write(store.file().unwrap(), &text).unwrap();
    assert!(matches!(store.load(), Err(AuthStoreError::TooLarge { limit: MAX_BYTES, .. })));
}

#[test]
fn a_removed_profile_leaves_nothing_behind() {
    let mut file = AuthFile::default();
    for name in ["p:a", "p:b"] {
        file.put(name, api_key(name));
        fail(&mut file, name);
    }
    file.order.insert("p".to_owned(), vec!["p:a".to_owned(), "p:b".to_owned()]);
    file.preferred.insert("p".to_owned(), "p:a".to_owned());
    file.pinned.insert("p".to_owned(), "p:b".to_owned());
    assert!(file.remove("p:a"));
    assert!(!file.remove("p:a"), "it is gone already");
    assert_eq!(file.order["p"], ["p:b"]);
    assert_eq!((file.preferred.len(), file.pinned.len()), (0, 1));
    assert_eq!(file.usage_stats.keys().collect::<Vec<_>>(), ["p:b"]);
    assert!(file.remove("p:b"));
    assert_eq!(file, AuthFile::default());
}

#[test]
fn marks_say_nothing_about_keys() {
    let key = SecretString::from("a key");
    let salts = [crate::mark::new_salt().unwrap(), crate::mark::new_salt().unwrap()];
    let marks = salts.each_ref().map(|salt| crate::mark::mark(salt, &key));
    assert_ne!(salts[0], salts[1]);
    assert_ne!(marks[0], marks[1]);
    assert_eq!((salts[0].len(), marks[0].len()), (32, 8));
}

#[test]
fn a_record_does_not_replace_a_file_that_is_no_store() {
    let (_directory, store) = store();
    fs::write(store.file().unwrap(), "no store").unwrap();
    let outcome = store.record(|file| fail(file, "p:a"));
    assert!(matches!(outcome, Err(AuthStoreError::Corrupt { .. })));
    assert_eq!(fs::read_to_string(store.file().unwrap()).unwrap(), "no store");
}

#[test]
fn a_login_ends_when_it_says_and_a_copilot_login_does_not() {
    let expiry = |provider: &str, extra: &str| {
        let text = format!(
            r#"{{"version": 1, "profiles": {{"x": {{"type": "oauth", "provider": "{provider}",
            "access": "a", "expires": 1000 {extra}}}}}}}"#
        );
        let file: AuthFile = serde_json::from_str(&text).unwrap();
        file.profiles_of(provider)[0].expires_at
    };
    assert_eq!(expiry("lab", ""), Some(1000));
    assert_eq!(expiry("lab", r#", "refresh": "r""#), Some(1000));
    assert_eq!(expiry("github-copilot", ""), Some(1000));
    assert_eq!(expiry("github-copilot", r#", "refresh": "r""#), None);
    let token = r#"{"version": 1, "profiles": {"x": {"type": "token", "provider": "github-copilot",
        "token": "t", "refresh": "r", "expires": 1000}}}"#;
    let file: AuthFile = serde_json::from_str(token).unwrap();
    assert_eq!(file.profiles_of("github-copilot")[0].expires_at, Some(1000));
}
