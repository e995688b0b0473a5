//! What every store of keys does.

use std::collections::HashSet;
use std::time::Duration;

use myclaw_config::CooldownConfig;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::login::{NewLogin, Renewal, RenewalAnswer, RenewedLogin};
use crate::{
    AuthProfile, CooldownRules, CredentialType, Failure, FailureReason, KeyResolver, RenewLogin,
    StoredProfile,
};

fn of_each(check: impl Fn(AuthStore)) {
    let directory = tempfile::tempdir().unwrap();
    check(AuthStore::in_agent_dir(&directory.path().join("agent")));
    check(AuthStore::in_memory());
}

fn key(text: &str) -> StoredProfile {
    StoredProfile::with_key("p", CredentialType::ApiKey, SecretString::from(text))
}

#[test]
fn what_is_changed_is_stored_and_clones_share_it() {
    of_each(|store| {
        assert!(!store.exists());
        assert_eq!(store.load().unwrap().profiles().count(), 0);
        let sharing = store.clone();
        let (removed, backup) = sharing
            .change(|file| {
                file.put("p:a", key("one"));
                file.put("p:b", key("two"));
                file.remove("p:b")
            })
            .unwrap();
        assert_eq!((removed, backup), (true, None));
        assert!(store.exists());
        let names: Vec<String> =
            store.load().unwrap().profiles().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["p:a"]);
        assert_eq!(store, store.clone());
    });
}

#[test]
fn stores_are_told_apart() {
    let mut places = HashSet::new();
    let home = tempfile::tempdir().unwrap();
    let in_files = ["a", "b"].map(|name| AuthStore::in_agent_dir(&home.path().join(name)));
    for store in in_files.into_iter().chain([AuthStore::in_memory(), AuthStore::in_memory()]) {
        store.change(|file| file.put("p:a", key("one"))).unwrap();
        assert!(places.insert(store.describe()), "{}", store.describe());
    }
    assert!(!AuthStore::in_memory().exists());
}

fn fail(file: &mut AuthFile) {
    let rules = CooldownRules::from(&CooldownConfig::default());
    let reason = FailureReason::Auth;
    let failure = Failure { model: "m", reason, retry_after: None, at_ms: 1_000 };
    file.record_failure("p:a", &failure, &rules);
}

#[test]
fn a_record_is_kept_and_belongs_to_one_key() {
    of_each(|store| {
        store.change(|file| file.put("p:a", key("the first key"))).unwrap();
        let usage_now = |key: &str| {
            let file = store.load().unwrap();
            let profile = AuthProfile::with_key("a", SecretString::from(key));
            file.note_keys("p", std::slice::from_ref(&profile));
            file.usage_now("p", &profile).cloned()
        };
        assert_eq!(usage_now("the first key"), None);
        store.record(fail).unwrap();
        let failures = |key| usage_now(key).map(|usage| usage.error_count);
        assert_eq!(failures("the first key"), Some(1));
        assert_eq!(failures("another key"), None, "failures of the first key");
        // The next failure is the first one of the other key.
        store.record(fail).unwrap();
        assert_eq!(failures("another key"), Some(1));
        assert_eq!(failures("the first key"), None);
    });
}

/// Gives a new token for each refresh token, once.
#[derive(Debug, Default)]
struct Once(Mutex<HashSet<String>>);

impl RenewLogin for Once {
    fn renew<'a>(&'a self, renewal: &'a Renewal) -> RenewalAnswer<'a> {
        let token = renewal.refresh_token.expose_secret().to_owned();
        let is_new = self.0.lock().insert(token.clone());
        Box::pin(async move {
            // The other resolver gets its chance meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(is_new, "the token {token} is used twice");
            let access = SecretString::from(format!("access after {token}"));
            let refresh = Some(SecretString::from(format!("{token}+")));
            Ok(RenewedLogin { access, refresh, expires_in: Some(Duration::from_secs(3600)) })
        })
    }
}

#[test]
fn a_login_is_renewed_by_one_at_a_time_and_the_others_take_its_token() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    of_each(|store| {
        let renewal = Renewal {
            token_url: "https://example.org/token".to_owned(),
            client_id: "client".to_owned(),
            client_secret: None,
            secret_in_header: false,
            scope: None,
            resource: None,
            refresh_token: SecretString::from("first"),
        };
        let login = NewLogin {
            access: SecretString::from("old"),
            expires: Some(1),
            issuer: "https://example.org".to_owned(),
            granted: None,
            renewal,
        };
        let profile = StoredProfile::with_login("p", login);
        store.change(|file| file.put("p:a", profile.clone())).unwrap();
        let giver = Arc::new(Once::default());
        let fetch = || {
            let profile = store.load().unwrap().profiles_of("p").pop().unwrap();
            let resolver = KeyResolver::new([("", "")]).with_renewer(Arc::<Once>::clone(&giver));
            async move {
                let cancel = CancellationToken::new();
                let found = resolver.resolve(&profile, 10_000, &cancel).await.unwrap().unwrap();
                found.expose_secret().to_owned()
            }
        };
        let both = runtime.block_on(async { tokio::join!(fetch(), fetch()) });
        assert_eq!(both, ("access after first".to_owned(), "access after first".to_owned()));
        assert_eq!(giver.0.lock().len(), 1);
    });
}
