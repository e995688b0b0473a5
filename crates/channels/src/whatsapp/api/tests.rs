use super::*;

fn api(base: &str) -> Option<Api> {
    Api::new(base, "v26.0", "1", SecretString::from("token")).ok()
}

#[test]
fn the_token_goes_to_the_vendor_only() {
    for (base, url, expected) in [
        ("https://graph.facebook.com", "https://lookaside.fbsbx.com/whatsapp?mid=1", true),
        ("https://graph.facebook.com", "https://graph.facebook.com/x", true),
        ("https://graph.facebook.com", "http://lookaside.fbsbx.com/x", false),
        ("https://graph.facebook.com", "https://lookaside.fbsbx.com:8443/x", false),
        ("https://graph.facebook.com", "https://lookaside.fbsbx.com.evil.org/x", false),
        ("https://graph.facebook.com", "https://lookaside.fbsbx.com@evil.org/x", false),
        ("http://127.0.0.1:9", "http://127.0.0.1:9/file", true),
        ("http://127.0.0.1:9", "http://127.0.0.1:8/file", false),
        ("http://127.0.0.1:9", "https://lookaside.fbsbx.com/x", false),
    ] {
        let may = Url::parse(url).ok().zip(api(base)).map(|(url, api)| api.may_have_token(&url));
        assert_eq!(may, Some(expected), "{base} {url}");
    }
}
