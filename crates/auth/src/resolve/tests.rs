use std::time::Duration;

use super::*;
use crate::{AuthStore, Renewal, RenewalAnswer, RenewedLogin};

fn resolver() -> KeyResolver {
    let path = std::env::var("PATH").unwrap_or_default();
    KeyResolver::new([("KEY", " in a variable "), ("BLANK", "  "), ("PATH", path.as_str())])
}

async fn fetch(resolver: &KeyResolver, source: KeySource) -> Result<String, String> {
    let profile = AuthProfile::new("p", Some(source));
    match resolver.resolve(&profile, 0, &CancellationToken::new()).await {
        Ok(key) => Ok(key.map(|key| key.expose_secret().to_owned()).unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    }
}

fn command(text: &str) -> KeySource {
    KeySource::Command(text.to_owned())
}

#[tokio::test]
async fn variables_are_trimmed_and_a_blank_one_is_none() {
    let resolver = resolver();
    let variable = |name: &str| KeySource::Environment(name.to_owned());
    assert_eq!(fetch(&resolver, variable("KEY")).await, Ok("in a variable".to_owned()));
    for name in ["BLANK", "ABSENT"] {
        let error = fetch(&resolver, variable(name)).await.err().unwrap_or_default();
        assert!(error.contains(name), "{error}");
    }
}

#[tokio::test]
async fn a_command_sees_the_variables_runs_once_and_again_when_forgotten() {
    let Ok(directory) = tempfile::tempdir() else { panic!("a directory") };
    let count = directory.path().join("count");
    let text = format!("echo x >> '{}'; echo \"key $KEY\"", count.display());
    let resolver = resolver();
    let runs = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    for _ in 0..2 {
        assert_eq!(fetch(&resolver, command(&text)).await, Ok("key  in a variable".to_owned()));
    }
    assert_eq!(runs(), 1);
    resolver.forget(&AuthProfile::new("p", Some(command(&text))));
    assert!(fetch(&resolver, command(&text)).await.is_ok());
    assert_eq!(runs(), 2);
}

#[tokio::test]
async fn a_command_that_fails_says_why_and_never_the_key() {
    let resolver = resolver();
    for (text, expected) in [
        ("echo precious; echo 'no: precious' >&2; exit 3", "ended with code 3: no: [redacted]"),
        ("exit 4", "ended with code 4 and said nothing"),
        ("true", "holds no key"),
        ("no-such-program-here", "ended with code 127"),
        ("kill -9 $$", "signal 9"),
    ] {
        let error = fetch(&resolver, command(text)).await.err().unwrap_or_default();
        let shown = error.replace(text, "");
        assert!(shown.contains(expected), "{text}: {error}");
        assert!(!shown.contains("precious"), "{shown}");
    }
}

#[tokio::test]
async fn an_abort_ends_a_command() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let profile = AuthProfile::new("p", Some(command("sleep 60; echo k")));
    let outcome = resolver().resolve(&profile, 0, &cancel).await;
    assert!(matches!(outcome, Err(KeyError::Aborted)));
}

#[tokio::test]
async fn an_expired_login_is_not_used() {
    let mut profile = AuthProfile::with_key("p", SecretString::from("k"));
    profile.expires_at = Some(10);
    let cancel = CancellationToken::new();
    assert!(resolver().resolve(&profile, 9, &cancel).await.is_ok());
    for (id, command) in
        [("p", "`myclaw auth add`"), ("lab:me", "`myclaw auth add lab --profile me --replace`")]
    {
        profile.id = id.to_owned();
        let error = resolver().resolve(&profile, 10, &cancel).await.err();
        assert!(matches!(error, Some(KeyError::Expired { .. })), "{error:?}");
        assert!(error.is_some_and(|error| error.to_string().contains(command)), "{command}");
    }
}

/// Stands for the program of the desktop's keyring, which the tests cannot have.
#[tokio::test]
async fn a_keyring_is_asked_through_the_program_of_the_system() {
    let directory = tempfile::tempdir().unwrap();
    let name = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };
    let program = directory.path().join(name);
    // Written by another process: a child that another test starts meanwhile would hold the file open for writing, and the
    // system runs no such file.
    let script = r##"printf '#!/bin/sh\necho "$@"\n' > "$1" && chmod 700 "$1""##;
    let written =
        std::process::Command::new("sh").args(["-c", script, "sh"]).arg(&program).status().unwrap();
    assert!(written.success());
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let resolver = KeyResolver::new([("PATH", path)]);
    let source = KeySource::Keyring { service: "my service".into(), account: "me".into() };
    let expected = if cfg!(target_os = "macos") {
        "find-generic-password -s my service -a me -w"
    } else {
        "lookup service my service account me"
    };
    assert_eq!(fetch(&resolver, source).await, Ok(expected.to_owned()));
}

/// Returns a new token each time, after calling a function on the store's directory.
#[derive(Debug)]
struct Giver {
    meanwhile: fn(&Path),
    directory: PathBuf,
    asked: Mutex<usize>,
}

impl RenewLogin for Giver {
    fn renew<'a>(&'a self, _: &'a Renewal) -> RenewalAnswer<'a> {
        (self.meanwhile)(&self.directory);
        let mut asked = self.asked.lock();
        *asked += 1;
        let renewed = RenewedLogin {
            access: SecretString::from(format!("access {asked}")),
            refresh: Some(SecretString::from(format!("refresh {asked}"))),
            expires_in: Some(Duration::from_secs(3600)),
        };
        Box::pin(async { Ok(renewed) })
    }
}

/// A store with an expired login, a resolver that uses a `Giver`, and the `Giver`.
fn renewing(directory: &Path, meanwhile: fn(&Path)) -> (AuthStore, KeyResolver, Arc<Giver>) {
    let store = AuthStore::in_agent_dir(directory);
    let login = r#"{"version": 1, "profiles": {"lab:me": {"type": "oauth", "provider": "lab",
        "access": "old", "refresh": "first", "expires": 1, "tokenUrl": "u", "clientId": "c"}}}"#;
    assert!(std::fs::write(store.file().unwrap(), login).is_ok());
    let giver = Giver { meanwhile, directory: directory.to_path_buf(), asked: Mutex::default() };
    let giver = Arc::new(giver);
    (store, resolver().with_renewer(Arc::<Giver>::clone(&giver)), giver)
}

async fn token(store: &AuthStore, resolver: &KeyResolver, now_ms: u64) -> Result<String, String> {
    let profiles = store.load().map(|file| file.profiles_of("lab")).unwrap_or_default();
    let [profile] = profiles.as_slice() else { panic!("one login: {profiles:?}") };
    match resolver.resolve(profile, now_ms, &CancellationToken::new()).await {
        Ok(key) => Ok(key.map(|key| key.expose_secret().to_owned()).unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn room_for_new_tokens_is_taken_before_they_are_asked_for_and_given_back() {
    let Ok(directory) = tempfile::tempdir() else { panic!("a directory") };
    let names = |directory: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let (store, resolver, giver) = renewing(directory.path(), |directory| {
        let room = std::fs::metadata(directory.join(".auth-profiles.json.renewed"));
        assert!(room.is_ok_and(|room| room.len() > 64 * 1024));
    });
    // A file left by a killed process does not stop the renewal.
    assert!(std::fs::write(directory.path().join(".auth-profiles.json.renewed"), "left").is_ok());
    for _ in 0..2 {
        assert_eq!(token(&store, &resolver, 10).await, Ok("access 1".to_owned()));
    }
    assert_eq!(token(&store, &resolver, 4_000_000).await, Ok("access 2".to_owned()));
    assert_eq!(*giver.asked.lock(), 2);
    let expected =
        ["auth-profiles.json", "auth-profiles.json.lock", "auth-profiles.json.login.lock"];
    assert_eq!(names(directory.path()), expected);
}

#[tokio::test]
async fn a_refused_token_is_renewed_before_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (store, resolver, _) = renewing(directory.path(), |_| {});
    assert_eq!(token(&store, &resolver, 10).await, Ok("access 1".to_owned()));
    let profile = &store.load().unwrap().profiles_of("lab")[0];
    let without_renewer = self::resolver();
    assert!(!without_renewer.refuse_login(profile));
    assert!(!resolver.refuse_login(&AuthProfile::keyless()), "it is no login");
    assert!(resolver.refuse_login(profile));
    assert_eq!(token(&store, &resolver, 10).await, Ok("access 2".to_owned()));
}

/// A later version of the program may write the store during the request.
#[tokio::test]
async fn new_tokens_that_could_not_be_kept_are_reported_and_used_by_this_process() {
    let Ok(directory) = tempfile::tempdir() else { panic!("a directory") };
    let (store, resolver, giver) = renewing(directory.path(), |directory| {
        let path = directory.join(crate::STORE_FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(std::fs::write(path, text.replace("\"version\": 1", "\"version\": 2")).is_ok());
    });
    let reported = token(&store, &resolver, 10).await.err().unwrap_or_default();
    assert!(reported.contains("Install the newer version"), "{reported}");
    assert_eq!(token(&store, &resolver, 10).await, Ok("access 1".to_owned()));
    // The server is not asked again if the answer cannot be stored.
    assert!(token(&store, &resolver, 4_000_000).await.is_err());
    assert_eq!(*giver.asked.lock(), 1);
}

/// Two agents may share one store by a link; only one process at a time renews its logins too.
#[cfg(unix)]
#[tokio::test]
async fn a_linked_store_has_the_locks_of_the_file_that_it_links_to() {
    let Ok(directory) = tempfile::tempdir() else { panic!("a directory") };
    let (store, resolver, _) = renewing(directory.path(), |_| {});
    let linked = directory.path().join("linked");
    assert!(std::fs::create_dir(&linked).is_ok());
    assert!(
        std::os::unix::fs::symlink(store.file().unwrap(), linked.join(crate::STORE_FILE)).is_ok()
    );
    let other = AuthStore::in_agent_dir(&linked);
    assert_eq!(token(&other, &resolver, 10).await, Ok("access 1".to_owned()));
    assert_eq!(std::fs::read_dir(&linked).map(Iterator::count).unwrap_or_default(), 1);
    assert_eq!(token(&store, &resolver, 10).await, Ok("access 1".to_owned()));
}
