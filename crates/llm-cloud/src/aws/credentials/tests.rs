use secrecy::ExposeSecret;

use super::*;

fn shown(credentials: &Credentials) -> (&str, &str, Option<&str>) {
    (
        &credentials.access_key_id,
        credentials.secret_access_key.expose_secret(),
        credentials.session_token.as_ref().map(ExposeSecret::expose_secret),
    )
}

#[test]
fn a_key_of_the_settings_holds_two_or_three_parts() {
    for (key, expected) in [
        ("AKID:secret", ("AKID", "secret", None)),
        (" AKID : secret : ", ("AKID", "secret", None)),
        ("ASIA:secret:tok:en==", ("ASIA", "secret", Some("tok:en=="))),
    ] {
        assert_eq!(shown(&Credentials::from_key(key).unwrap()), expected);
    }
    for key in ["AKID:", ":secret", ":"] {
        let error = Credentials::from_key(key).unwrap_err();
        assert_eq!(
            error.message,
            "the key is not a pair of AWS access keys: write ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN appended for temporary ones"
        );
    }
}

#[test]
fn credentials_are_never_printed() {
    let credentials = Credentials::from_key("AKID:hidden-secret:hidden-token").unwrap();
    assert!(!format!("{credentials:?}").contains("hidden"));
}

#[test]
fn a_document_needs_both_halves_of_a_pair() {
    let read = |text: &str| serde_json::from_str::<Document>(text).unwrap().into_credentials();
    let temporary = read(
        r#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T","Expiration":"2030-01-02T03:04:05Z"}"#,
    )
    .unwrap();
    assert_eq!(shown(&temporary), ("A", "S", Some("T")));
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_553_445);
    assert_eq!(temporary.expires, Some(end));
    let lasting = read(r#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S"}"#).unwrap();
    assert_eq!((shown(&lasting), lasting.expires), (("A", "S", None), None));
    assert!(read(r#"{"AccessKeyId":"A"}"#).is_none());
}

#[test]
fn credentials_end_a_margin_before_they_do() {
    let margin = Duration::from_secs(60);
    let ending = |seconds| Credentials {
        expires: Some(SystemTime::now() + Duration::from_secs(seconds)),
        ..Credentials::from_key("A:S").unwrap()
    };
    assert!(ending(3600).lasts(margin));
    assert!(!ending(30).lasts(margin));
    assert!(Credentials::from_key("A:S").unwrap().lasts(margin));
}
