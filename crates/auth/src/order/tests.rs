use std::time::Duration;

use secrecy::SecretString;

use super::*;
use crate::{CooldownRules, CredentialType, Failure, StoredProfile};

fn stored(profiles: &[(&str, CredentialType)]) -> AuthFile {
    let mut file = AuthFile::default();
    for (name, kind) in profiles {
        let key = SecretString::from(format!("key of {name}"));
        file.put(name, StoredProfile::with_key("p", *kind, key));
    }
    file
}

fn configured(ids: &[&str]) -> Vec<AuthProfile> {
    let key = |id: &str| SecretString::from(format!("config key of {id}"));
    ids.iter().map(|id| AuthProfile::with_key(*id, key(id))).collect()
}

fn order(given: &[AuthProfile], file: &AuthFile, pinned: Option<&str>) -> Vec<String> {
    let rules = OrderRules { provider: "p", model: "m", pinned, now_ms: 1_000 };
    arrange(given, file, &rules).into_iter().map(|entry| entry.profile.id).collect()
}

fn fail(file: &mut AuthFile, name: &str, model: &str, seconds: u64) {
    let rules = CooldownRules::from(&myclaw_config::CooldownConfig::default());
    let failure = Failure {
        model,
        reason: FailureReason::RateLimit,
        retry_after: Some(Duration::from_secs(seconds)),
        at_ms: 0,
    };
    file.record_failure(name, &failure, &rules);
}

const MIXED: [(&str, CredentialType); 4] = [
    ("p:key", CredentialType::ApiKey),
    ("p:token", CredentialType::Token),
    ("p:login", CredentialType::Oauth),
    ("p:key2", CredentialType::ApiKey),
];

#[test]
fn without_more_the_type_decides_and_then_who_was_used_longest_ago() {
    let mut file = stored(&MIXED);
    file.record_success("p:key", "m", 500);
    file.record_success("p:key2", "m", 400);
    assert_eq!(order(&[], &file, None), ["p:login", "p:token", "p:key2", "p:key"]);
    file.record_success("p:key2", "m", 600);
    assert_eq!(order(&[], &file, None), ["p:login", "p:token", "p:key", "p:key2"]);
}

#[test]
fn the_settings_keep_their_order_and_go_before_the_store() {
    let file = stored(&MIXED[..2]);
    assert_eq!(order(&configured(&["z", "a"]), &file, None), ["z", "a", "p:token", "p:key"]);
}

#[test]
fn an_explicit_order_goes_first_and_the_preferred_one_before_it() {
    let mut file = stored(&MIXED);
    file.order.insert("p".to_owned(), vec!["p:key2".to_owned(), "p:z".to_owned()]);
    let given = configured(&["a", "z"]);
    assert_eq!(order(&given, &file, None), ["p:key2", "z", "a", "p:login", "p:token", "p:key"]);
    file.preferred.insert("p".to_owned(), "p:key".to_owned());
    assert_eq!(order(&given, &file, None)[..2], ["p:key", "p:key2"]);
}

#[test]
fn those_that_rest_come_last_the_soonest_first_and_only_for_that_model() {
    let mut file = stored(&MIXED);
    fail(&mut file, "p:login", "m", 9);
    fail(&mut file, "p:token", "m", 5);
    fail(&mut file, "p:key", "another", 5);
    fail(&mut file, "p:key2", "m", 1);
    assert_eq!(order(&[], &file, None), ["p:key", "p:key2", "p:token", "p:login"]);
}

#[test]
fn a_pinned_profile_stands_alone_even_while_it_rests() {
    let mut file = stored(&MIXED);
    file.pinned.insert("p".to_owned(), "p:token".to_owned());
    fail(&mut file, "p:token", "m", 9);
    assert_eq!(order(&configured(&["a"]), &file, None), ["p:token"]);
    assert_eq!(order(&configured(&["a"]), &file, Some("a")), ["a"], "the caller goes first");
    assert_eq!(order(&configured(&["a"]), &file, Some("nobody")), [""; 0]);
    file.pinned.insert("p".to_owned(), "p:gone".to_owned());
    assert_eq!(order(&[], &file, None).len(), 4, "a pin to nowhere locks nobody out");
}

#[test]
fn the_same_profile_and_the_same_key_count_once() {
    let mut file = stored(&[("p:a", CredentialType::Oauth)]);
    let same = SecretString::from("config key of a");
    file.put("p:copy", StoredProfile::with_key("p", CredentialType::ApiKey, same));
    assert_eq!(order(&configured(&["a"]), &file, None), ["a"]);
}

#[test]
fn keys_of_other_providers_stay_out_and_no_key_gives_way_to_one() {
    let file = stored(&[("p:a", CredentialType::ApiKey)]);
    assert_eq!(order(&[AuthProfile::keyless()], &file, None), ["p:a"]);
    assert_eq!(order(&[AuthProfile::keyless()], &AuthFile::default(), None), ["default"]);
    let rules = OrderRules { provider: "q", model: "m", pinned: None, now_ms: 0 };
    assert_eq!(arrange(&[], &file, &rules).len(), 0);
}

#[test]
fn secrets_are_in_no_debug_form() {
    let mut file = stored(&MIXED);
    let foreign = r#"{"version": 1, "profiles": {"x": {"type": "new", "secret": "precious"}}}"#;
    let foreign: AuthFile = serde_json::from_str(foreign).unwrap_or_default();
    assert_eq!(foreign.profiles().count(), 0);
    let shown = format!("{foreign:?}");
    assert!(shown.contains("secret") && !shown.contains("precious"), "{shown}");
    file.preferred.insert("p".to_owned(), "p:key".to_owned());
    assert!(!format!("{file:?}").contains("key of"), "{file:?}");
}
