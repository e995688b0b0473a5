use super::*;

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
    let Ok(folder) = tempfile::tempdir() else { panic!("a folder") };
    let count = folder.path().join("count");
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
    assert!(matches!(
        resolver().resolve(&profile, 10, &cancel).await,
        Err(KeyError::Expired { .. })
    ));
}
