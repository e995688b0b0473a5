use super::*;

#[test]
fn addresses_of_push_services_are_known_and_no_others() {
    for address in [
        "https://fcm.googleapis.com/fcm/send/abc:def",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
        "https://web.push.apple.com/QGuQyavXutnMH9",
        "https://wns2-par02p.notify.windows.com/w/?token=BQYAAA",
        "https://FCM.googleapis.com:443/fcm/send/abc",
    ] {
        assert!(Endpoint::parse(address, None).is_ok(), "{address}");
    }
    for address in [
        "http://fcm.googleapis.com/fcm/send/abc",
        "https://fcm.googleapis.com.example.org/x",
        "https://example.org/fcm.googleapis.com",
        "https://notfcm.googleapis.com/x",
        "https://web.push.apple.com.example.org/x",
        "https://evilpush.apple.com@example.org/x",
        "https://user@fcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "http://127.0.0.1:18789/api/status",
        "https://[::1]/x",
        "file:///etc/passwd",
        "/relative",
        "",
    ] {
        assert!(Endpoint::parse(address, None).is_err(), "{address}");
    }
}

#[test]
fn a_further_service_is_the_one_that_the_owner_names() {
    let further = Some("http://127.0.0.1");
    let endpoint = Endpoint::parse("http://127.0.0.1:4000/push/1", further).unwrap();
    assert_eq!(endpoint.origin, "http://127.0.0.1:4000");
    assert!(Endpoint::parse("http://127.0.0.2:4000/push/1", further).is_err());
    assert!(Endpoint::parse("https://127.0.0.1/push/1", further).is_err());
    let further = Some("https://push.example.org:8443/");
    assert!(Endpoint::parse("https://push.example.org:8443/1", further).is_ok());
    assert!(Endpoint::parse("https://push.example.org/1", further).is_err());
}
