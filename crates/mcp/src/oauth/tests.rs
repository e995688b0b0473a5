use super::metadata::parameter;
use super::*;

#[test]
fn parameters_of_a_challenge_are_found() {
    let challenge = r#"Basic realm="x scope=no", Bearer error="invalid_token", resource_metadata="https://a/b", scope="one two", x=y"#;
    assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a/b"));
    assert_eq!(parameter(challenge, "scope").as_deref(), Some("one two"));
    assert_eq!(parameter(challenge, "x").as_deref(), Some("y"));
    assert_eq!(parameter(challenge, "missing"), None);
    assert_eq!(parameter("Bearer scope=a", "scope").as_deref(), Some("a"));
    assert_eq!(parameter("Bearer xscope=a", "scope"), None);
}

#[test]
fn secrets_go_over_encrypted_connections_only() {
    for (url, is_safe) in [
        ("https://x.example/token", true),
        ("http://127.0.0.1:7/token", true),
        ("http://localhost/token", true),
        ("http://x.example/token", false),
        ("file:///etc/passwd", false),
        ("token", false),
    ] {
        assert_eq!(safe(url, "it").is_ok(), is_safe, "{url}");
    }
}

#[test]
fn the_header_of_a_client_is_encoded() {
    let header = client_header("my client", &SecretString::from("a:b"));
    assert_eq!(
        header,
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("my+client:a%3Ab"))
    );
}
