use super::*;

fn answer(inner: &str) -> String {
    format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n<AssumeRoleResult>\n<AssumedRoleUser><AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser><Credentials>{inner}</Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
}

#[test]
fn the_keys_of_an_answer_are_read() {
    let whole = "\n  <SessionToken>\n a&amp;lt;b+/= \n</SessionToken><SecretAccessKey>s&quot;k</SecretAccessKey>\n<Expiration>2030-01-02T03:04:05Z</Expiration><AccessKeyId>ASIA1</AccessKeyId>";
    let keys = credentials(&answer(whole)).unwrap();
    assert_eq!(keys.access_key_id, "ASIA1");
    assert_eq!(keys.secret_access_key.expose_secret(), "s\"k");
    assert_eq!(keys.session_token.unwrap().expose_secret(), "a&lt;b+/=");
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_553_445);
    assert_eq!(keys.expires, Some(end));
    for missing in ["SessionToken", "SecretAccessKey", "Expiration", "AccessKeyId"] {
        let without = whole.replace(&format!("<{missing}>"), "<Other>");
        assert!(credentials(&answer(&without)).is_none(), "{missing}");
    }
    for odd in ["", "<html></html>", "<Credentials>", "</Credentials><Credentials>", "{}"] {
        assert!(credentials(odd).is_none(), "{odd}");
    }
}

proptest::proptest! {
    #[test]
    fn no_answer_is_too_odd(text in "(<|>|/|&|;|Credentials|AccessKeyId|[a-z]|é){0,60}") {
        credentials(&text);
        unescaped(&text);
    }
}
