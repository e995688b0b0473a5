use mail_parser::MessageParser;

use super::*;

fn checked(headers: &str) -> Result<(), String> {
    let raw = format!("{headers}From: ann@example.org\r\n\r\nhello");
    let mail = MessageParser::default().parse(raw.as_bytes()).unwrap();
    check(&mail, "mx.test", "example.org")
}

#[test]
fn only_what_the_named_server_found_counts() {
    for (headers, is_true) in [
        ("", false),
        ("Authentication-Results: mx.test; dmarc=pass header.from=example.org\r\n", true),
        (
            "Authentication-Results: MX.TEST 1;\r\n dmarc = pass (p=none dis=none) header.from=Example.org\r\n",
            true,
        ),
        ("Authentication-Results: mx.test; dmarc=pass header.from=evil.org\r\n", false),
        ("Authentication-Results: mx.evil; dmarc=pass header.from=example.org\r\n", false),
        ("Authentication-Results: mx.test; dmarc=fail; dkim=pass header.d=example.org\r\n", false),
        ("Authentication-Results: mx.test; dmarc=none; dkim=pass header.d=example.org\r\n", true),
        ("Authentication-Results: mx.test; dkim=pass header.i=@example.org\r\n", true),
        ("Authentication-Results: mx.test; dkim=pass header.d=evil.org\r\n", false),
        ("Authentication-Results: mx.test; dkim=fail header.d=example.org\r\n", false),
        ("Authentication-Results: mx.test; spf=pass smtp.mailfrom=ann@example.org\r\n", true),
        ("Authentication-Results: mx.test; spf=pass smtp.mailfrom=evil.org\r\n", false),
        ("Authentication-Results: mx.test; none\r\n", false),
        // What a sender chose is quoted or a comment, and says nothing.
        (
            "Authentication-Results: mx.test; spf=fail smtp.mailfrom=\"a;dmarc=pass header.from=example.org\"@evil.org\r\n",
            false,
        ),
        (
            "Authentication-Results: mx.test; spf=fail (helo=x; dmarc=pass header.from=example.org) smtp.mailfrom=evil.org\r\n",
            false,
        ),
        (
            "Authentication-Results: mx.test; spf=fail (a \\) ; dmarc=pass header.from=example.org\r\n",
            false,
        ),
        // Two fields of one server.
        (
            "Authentication-Results: mx.test; spf=pass smtp.mailfrom=evil.org\r\n\
          Authentication-Results: mx.test; dmarc=pass header.from=example.org\r\n",
            true,
        ),
        // What came with the mail is below what the server put there.
        (
            "Authentication-Results: mx.test; spf=fail smtp.mailfrom=evil.org\r\nReceived: from evil\r\n\
          Authentication-Results: mx.test; dmarc=pass header.from=example.org\r\n",
            false,
        ),
        (
            "Authentication-Results: mx.test; dmarc=fail header.from=example.org\r\n\
          Authentication-Results: mx.test; dmarc=pass header.from=example.org\r\n",
            false,
        ),
    ] {
        assert_eq!(checked(headers).is_ok(), is_true, "{headers}");
    }
}
