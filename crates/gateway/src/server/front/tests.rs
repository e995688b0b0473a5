use axum::http::HeaderValue;

use super::*;

fn front() -> Front {
    Front {
        certificate: None,
        files: None,
        proxies: ["127.0.0.1", "10.0.0.0/8"].map(|text| text.parse().unwrap()).to_vec(),
        hosts: vec!["claw.example.org".parse().unwrap()],
        origins: vec!["https://home.example.org".parse().unwrap()],
    }
}

fn link(peer: &str) -> Link {
    let local = "192.168.1.5:18789".parse().unwrap();
    Link { peer: peer.parse().unwrap(), local, is_encrypted: false }
}

fn headers(entries: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in entries {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn only_a_trusted_proxy_says_who_asks() {
    let front = front();
    let said = headers(&[
        ("host", "127.0.0.1:18789"),
        ("x-forwarded-for", "1.1.1.1, 203.0.113.7"),
        ("x-forwarded-for", "10.1.1.1"),
        ("x-forwarded-host", "claw.example.org"),
        ("x-forwarded-proto", "https"),
    ]);
    let believed = front.caller(&link("127.0.0.1"), &said);
    // The first entry is what the client wrote itself.
    assert_eq!(believed.address, "203.0.113.7".parse::<IpAddr>().unwrap());
    assert_eq!(believed.host.as_deref(), Some("claw.example.org"));
    assert!(believed.is_encrypted && believed.owns_name());
    let ignored = front.caller(&link("203.0.113.9"), &said);
    assert_eq!(ignored.address, "203.0.113.9".parse::<IpAddr>().unwrap());
    assert_eq!(ignored.host.as_deref(), Some("127.0.0.1:18789"));
    assert!(!ignored.is_encrypted);
}

#[test]
fn forged_and_broken_entries_end_the_search() {
    let front = front();
    for (entries, expected) in [
        ("", "127.0.0.1"),
        ("nonsense", "127.0.0.1"),
        ("203.0.113.7, nonsense, 10.0.0.2", "10.0.0.2"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
    ] {
        let caller = front.caller(&link("127.0.0.1"), &headers(&[("x-forwarded-for", entries)]));
        assert_eq!(caller.address, expected.parse::<IpAddr>().unwrap(), "{entries}");
    }
}

#[test]
fn own_hosts_are_this_machine_and_the_allowed_names() {
    let front = front();
    let link = link("203.0.113.9");
    for own in [
        "127.0.0.1:18789",
        "localhost:18789",
        "[::1]:18789",
        "192.168.1.5:18789",
        "claw.example.org",
        "claw.example.org:8443",
    ] {
        assert!(front.is_own_host(own, &link, Scheme::Http), "{own}");
    }
    for other in [
        "evil.example:18789",
        "192.168.1.6:18789",
        "192.168.1.5",
        "192.168.1.5:80",
        "localhost",
        "localhost:18789.evil.example",
        "claw.example.org.evil.example",
        "",
    ] {
        assert!(!front.is_own_host(other, &link, Scheme::Http), "{other}");
    }
    let web = Link { local: "192.168.1.5:443".parse().unwrap(), ..link };
    assert!(front.is_own_host("192.168.1.5", &web, Scheme::Https));
    assert!(!front.is_own_host("192.168.1.5", &web, Scheme::Http));
}

#[test]
fn a_page_that_came_unencrypted_may_not_use_an_encrypted_gateway() {
    let front = front();
    let link = link("203.0.113.9");
    let plain = Caller { address: link.peer, host: None, is_encrypted: false };
    let encrypted = Caller { is_encrypted: true, ..plain.clone() };
    for origin in ["https://claw.example.org", "https://home.example.org"] {
        assert!(front.is_own_origin(origin, &link, &plain), "{origin}");
        assert!(front.is_own_origin(origin, &link, &encrypted), "{origin}");
    }
    for origin in ["http://claw.example.org", "http://localhost:18789"] {
        assert!(front.is_own_origin(origin, &link, &plain), "{origin}");
        assert!(!front.is_own_origin(origin, &link, &encrypted), "{origin}");
    }
    for origin in ["null", "https://evil.example", "http://home.example.org", "claw.example.org"] {
        assert!(!front.is_own_origin(origin, &link, &plain), "{origin}");
    }
}

#[test]
fn a_household_of_ipv6_is_one_client() {
    let of = |text: &str| household(text.parse().unwrap());
    assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:1.2.3.4"), of("1.2.3.4"));
    assert_ne!(of("1.2.3.4"), of("1.2.3.5"));
    assert!(of("::1").is_loopback());
}
