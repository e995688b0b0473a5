use reqwest::Url;

use super::{Rules, is_excepted, is_this_machine};

#[test]
fn the_exceptions_are_those_of_curl() {
    for (list, host, port, expected) in [
        ("*.internal", "api.internal", 443, true),
        ("*.internal", "internal", 443, true),
        ("*.internal", "notinternal", 443, false),
        (".internal", "a.b.INTERNAL", 443, true),
        ("internal", "api.internal.", 443, true),
        ("internal.", "api.internal", 443, true),
        ("internal", "api.internal.com", 443, false),
        ("*", "example.com", 80, true),
        ("", "example.com", 80, false),
        (" , ,", "example.com", 80, false),
        ("a.com b.com,c.com", "b.com", 80, true),
        ("192.168.0.0/16", "192.168.7.9", 80, true),
        ("192.168.0.0/16", "192.169.0.1", 80, false),
        ("10.0.0.1", "10.0.0.1", 80, true),
        ("10.0.0.1", "10.0.0.10", 80, false),
        ("0.0.0.0/0", "8.8.8.8", 80, true),
        ("10.0.0.0/33", "10.0.0.0", 80, false),
        ("fd00::/8", "[fd12::1]", 80, true),
        ("[fd00::]/8", "[fd12::1]", 80, true),
        ("fd00::/8", "[2001:db8::1]", 80, false),
        ("[fd00::/8]", "[fd12::1]", 80, true),
        ("FD00:0:0:0::9", "[fd00::9]", 80, true),
        ("[fd00::9]", "[fd00::9]", 80, true),
        ("[fd00::9]", "[fd00::91]", 80, false),
        ("fd00::9", "[fd00::9]", 80, true),
        ("[fd00::9]:x", "[fd00::9]", 80, false),
        ("10.0.0.0/8", "[::ffff:10.1.2.3]", 80, true),
        ("::ffff:10.1.2.3", "[::ffff:10.1.2.3]", 80, true),
        ("::1", "[::1]", 80, true),
        ("[::1]:8080", "[::1]", 8080, true),
        ("[::1]:8080", "[::1]", 80, false),
        ("example.com:8080", "example.com", 8080, true),
        ("example.com:8080", "sub.example.com", 8080, true),
        ("example.com:8080", "example.com", 443, false),
        ("*.example.com:8443", "a.example.com", 8443, true),
        ("10.0.0.0/8", "ten.example", 80, false),
    ] {
        assert_eq!(is_excepted(list, host, Some(port)), expected, "{list} {host}:{port}");
    }
}

fn proxy(variables: &[(&str, &str)], url: &str) -> Option<String> {
    let variable = |name: &str| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    let url = Url::parse(url).expect("an address");
    Rules::new(variable)?.proxy_for(&url).map(String::from)
}

#[test]
fn each_scheme_has_its_variable() {
    let all =
        [("ALL_PROXY", "all:1"), ("https_proxy", "http://u:p@tls:2"), ("HTTP_PROXY", "plain:3")];
    assert_eq!(proxy(&all, "http://a.com/"), Some("http://plain:3/".to_owned()));
    assert_eq!(proxy(&all, "https://a.com/"), Some("http://u:p@tls:2/".to_owned()));
    assert_eq!(proxy(&all[..1], "https://a.com/"), Some("http://all:1/".to_owned()));
    assert_eq!(proxy(&[("HTTPS_PROXY", "tls:2")], "http://a.com/"), None);
    assert_eq!(
        proxy(&[("http_proxy", ""), ("HTTP_PROXY", "p:3")], "http://a.com/"),
        Some("http://p:3/".to_owned())
    );
    let cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "plain:3")];
    assert_eq!(proxy(&cgi, "http://a.com/"), None);
    let with_exceptions = [("ALL_PROXY", "all:1"), ("NO_PROXY", "*.internal,10.0.0.0/8")];
    assert_eq!(proxy(&with_exceptions, "https://llm.internal/v1"), None);
    assert_eq!(proxy(&with_exceptions, "http://10.1.2.3:8080/"), None);
    assert!(proxy(&with_exceptions, "https://example.com/").is_some());
    assert_eq!(proxy(&[("NO_PROXY", "*")], "http://a.com/"), None);
}

#[test]
fn the_servers_of_this_machine_are_known_by_their_whole_name() {
    for (address, expected) in [
        ("http://127.0.0.1:8080/v1", true),
        ("http://localhost/", true),
        ("http://[::1]:9/", true),
        ("http://[::ffff:127.0.0.1]:9/", true),
        ("http://[fd00::1]:9/", false),
        ("http://127.0.0.1.example.com/", false),
        ("http://localhost.example.com/", false),
        ("https://api.example.com/", false),
    ] {
        let url = Url::parse(address).expect("an address");
        assert_eq!(is_this_machine(&url), expected, "{address}");
    }
}
