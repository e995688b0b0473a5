use super::*;

#[test]
fn tokens_are_exchanged_where_the_base_url_belongs() {
    for (base_url, url) in [
        (
            "https://api.individual.githubcopilot.com",
            "https://api.github.com/copilot_internal/v2/token",
        ),
        (
            "https://copilot-api.company.ghe.com",
            "https://api.company.ghe.com/copilot_internal/v2/token",
        ),
        ("http://127.0.0.1:8080/v1?a=b", "http://127.0.0.1:8080/copilot_internal/v2/token"),
    ] {
        assert_eq!(exchange_url(base_url).unwrap().as_str(), url);
    }
    assert_eq!(exchange_url("copilot").unwrap_err().class, ErrorClass::Unknown);
}

#[test]
fn a_session_names_the_host_to_call() {
    let api = |body: &str| read_session("gho_x", body.as_bytes()).unwrap().api;
    let token = "tid=1;exp=2;proxy-ep=proxy.business.githubcopilot.com;st=dotcom";
    assert_eq!(
        api(&format!(r#"{{"token":"{token}","expires_at":9}}"#)).as_deref(),
        Some("https://api.business.githubcopilot.com")
    );
    assert_eq!(
        api(&format!(
            r#"{{"token":"{token}","expires_at":9,"endpoints":{{"api":"https://copilot-api.c.ghe.com"}}}}"#
        ))
        .as_deref(),
        Some("https://copilot-api.c.ghe.com")
    );
    assert_eq!(api(r#"{"token":"tid=1","expires_at":9}"#), None);
    assert!(read_session("gho_x", b"<html>").is_none());
}

#[test]
fn only_copilots_own_base_url_is_replaced() {
    assert!(is_public("https://api.githubcopilot.com"));
    assert!(!is_public("https://githubcopilot.com.example"));
    assert!(!is_public("http://127.0.0.1:1"));
}
