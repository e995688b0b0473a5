use myclaw_config::ExposeSecret as _;

use super::*;

#[test]
fn files_of_clients_are_read() {
    let fine = r#"{"installed": {"client_id": "me", "client_secret": "s"}}"#;
    let (id, secret) = read_client_file(fine).expect("a client");
    assert_eq!((id.as_str(), secret.expose_secret()), ("me", "s"));
    for (text, words) in [
        ("x", "not JSON"),
        (r#"{"web": {"client_id": "me", "client_secret": "s"}}"#, "Desktop app"),
        (r#"{"installed": {"client_id": "me"}}"#, "installed.client_secret"),
    ] {
        let error = read_client_file(text).expect_err("an error");
        assert!(error.contains(words), "{error}");
    }
}
