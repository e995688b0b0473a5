use super::*;

#[test]
fn a_bind_is_a_word_or_an_address() {
    for (text, address, is_loopback) in [
        ("loopback", Some("127.0.0.1"), true),
        ("lan", None, false),
        ("all", None, false),
        ("0.0.0.0", None, false),
        ("::", None, false),
        ("127.0.0.2", Some("127.0.0.2"), true),
        ("::1", Some("::1"), true),
        ("::ffff:127.0.0.1", Some("::ffff:127.0.0.1"), true),
        ("192.168.1.5", Some("192.168.1.5"), false),
    ] {
        let bind: Bind = text.parse().unwrap();
        assert_eq!(bind.address(), address.map(|address| address.parse().unwrap()), "{text}");
        assert_eq!(bind.is_loopback(), is_loopback, "{text}");
        assert_eq!(bind.to_string().parse(), Ok(bind), "{text}");
    }
    for text in ["", "tailnet", "192.168.1.5:80", "localhost", "LAN"] {
        assert!(text.parse::<Bind>().is_err(), "{text}");
    }
}

#[test]
fn a_host_name_is_for_every_port_or_for_its_own() {
    let name: HostName = "Claw.example.org".parse().unwrap();
    assert!(name.is("claw.example.org") && name.is("CLAW.example.org:8443"));
    assert!(!name.is("claw.example.org.evil.example") && !name.is("evil.claw.example.org"));
    assert!(!name.is("claw.example.org:80:80") && !name.is("claw.example.org:x"));
    let with_port: HostName = "claw.example.org:8443".parse().unwrap();
    assert!(with_port.is("claw.example.org:8443"));
    assert!(!with_port.is("claw.example.org") && !with_port.is("claw.example.org:80"));
    for text in ["", "*", "*.example.org", "https://claw.example.org", "claw.example.org/"] {
        assert!(text.parse::<HostName>().is_err(), "{text}");
    }
}

#[test]
fn networks_and_origins_are_compared_as_a_whole() {
    let network: Network = "10.0.0.0/8".parse().unwrap();
    assert!(network.contains("10.9.8.7".parse().unwrap()));
    assert!(network.contains("::ffff:10.9.8.7".parse().unwrap()));
    assert!(!network.contains("11.0.0.1".parse().unwrap()));
    let one: Network = "127.0.0.1".parse().unwrap();
    assert!(!one.contains("127.0.0.2".parse().unwrap()));
    assert!("10.0.0.0/33".parse::<Network>().is_err() && "proxy".parse::<Network>().is_err());
    let origin: PageOrigin = "https://home.example.org:443/".parse().unwrap();
    assert!(origin.is("https://home.example.org") && !origin.is("http://home.example.org"));
    for text in ["home.example.org", "https://home.example.org/x", "null", "*", "ftp://a"] {
        assert!(text.parse::<PageOrigin>().is_err(), "{text}");
    }
}
