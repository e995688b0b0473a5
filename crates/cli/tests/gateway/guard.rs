//! Who is let in.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn only_the_token_and_the_own_host_and_origin_are_let_in() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    let (port, token) = (client.port, client.token.clone());
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let ask = |path: &str, headers: &str| {
        client.raw(&format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).unwrap().0
    };
    let own = format!("{host}{bearer}");
    assert_eq!(ask("/api/status", &own), 200);
    assert_eq!(ask("/api/status", &format!("Host: localhost:{port}\r\n{bearer}")), 200);
    assert_eq!(ask("/api/status", &format!("{own}Origin: http://localhost:{port}\r\n")), 200);
    // Without a token only what says nothing.
    assert_eq!(ask("/health", &host), 200);
    assert_eq!(ask("/ready", &host), 200);
    for path in [
        "/api/status",
        "/v1/models",
        "/api/sessions/main/history",
        "/elsewhere",
        "/hooks",
        "/api/hooks/",
    ] {
        assert_eq!(ask(path, &host), 401, "{path}");
    }
    for wrong in ["wrong", &token[1..], &token[..token.len() - 1], &format!("{token}0"), ""] {
        let headers = format!("{host}Authorization: Bearer {wrong}\r\n");
        assert_eq!(ask("/api/status", &headers), 401, "{wrong}");
    }
    assert_eq!(ask("/api/status", &format!("{host}Authorization: Basic {token}\r\n")), 401);
    assert_eq!(ask(&format!("/api/status?token={token}"), &own), 400);
    // A page whose name was made to point to this machine, and a page of another site.
    for name in ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80"] {
        let headers = format!("Host: {name}\r\n{bearer}");
        assert_eq!(ask("/api/status", &headers), 421, "{name}");
        assert_eq!(ask("/health", &headers), 421, "{name}");
    }
    // A target that names a host counts for the header.
    for target in
        ["http://evil.example", "ftp://127.0.0.1:1", "http://127.0.0.1:1", "http://a@localhost"]
    {
        assert_eq!(ask(&format!("{target}/api/status"), &own), 421, "{target}");
        assert_eq!(ask(&format!("{target}/health"), &host), 421, "{target}");
    }
    assert_eq!(ask(&format!("http://127.0.0.1:{port}/api/status"), &own), 200);
    assert_eq!(ask(&format!("http://127.0.0.1:{port}/api/status"), &host), 401);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"] {
        let headers = format!("{own}Origin: {origin}\r\n");
        assert_eq!(ask("/api/status", &headers), 403, "{origin}");
    }
    gateway.stop();
}

#[test]
fn wrong_tokens_do_not_lock_the_owner_out() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let wrong = Client { token: "w".repeat(64), ..gateway.client };
    let mut statuses: Vec<u16> = (0..25).map(|_| wrong.get("/api/status").unwrap().0).collect();
    assert_eq!(statuses.split_off(20), [429; 5]);
    assert_eq!(statuses, [401; 20]);
    assert_eq!(gateway.client.get("/api/status").unwrap().0, 200);
    gateway.stop();
}

#[test]
fn the_token_is_private_and_stays_the_same() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let token = gateway.client.token.clone();
    assert_eq!(token.len(), 64);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&bench.token_path()) & 0o777, 0o600);
    assert_eq!(mode(bench.token_path().parent().unwrap()) & 0o777, 0o700);
    gateway.stop();
    let gateway = bench.start();
    assert_eq!(gateway.client.token, token);
    gateway.stop();
}

#[test]
fn large_requests_are_refused() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    let head = client.head("POST", "/api/messages");
    let request =
        format!("{head}Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{{");
    assert_eq!(client.raw(&request).unwrap().0, 413);
    let long = format!("{}X-Long: {}\r\n\r\n", client.head("GET", "/health"), "x".repeat(100_000));
    // The answer may be lost, because the client still writes.
    assert!(client.raw(&long).map_or(431, |(status, _)| status) == 431);
    assert_eq!(client.get("/health").unwrap().0, 200);
    gateway.stop();
}

#[test]
fn the_page_needs_no_token_holds_none_and_may_do_little() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let (port, token) = (gateway.client.port, &gateway.client.token);
    let ask = |method: &str, path: &str, headers: &str| -> (u16, String, Vec<u8>) {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Connection: close\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    };
    for path in ["/", "/app.js", "/app.css", "/manifest.webmanifest", "/icon.svg"] {
        let (status, head, body) = ask("GET", path, "");
        assert_eq!(status, 200, "{path}");
        assert!(!String::from_utf8_lossy(&body).contains(token.as_str()), "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(header), "{path} lacks {header}: {head}");
        }
        assert!(!head.contains("unsafe"), "{head}");
        let tag = |head: &str| {
            let line = head.lines().find(|line| line.starts_with("etag: ")).unwrap().to_owned();
            line["etag: ".len()..].to_owned()
        };
        let (_, packed, small) = ask("GET", path, "Accept-Encoding: gzip, br\r\n");
        assert!(packed.contains("content-encoding: gzip"), "{packed}");
        assert!(small.starts_with(&[0x1f, 0x8b]), "{path} is not compressed");
        assert_ne!(tag(&head), tag(&packed), "two forms have one tag");
        let known = format!("If-None-Match: {}\r\n", tag(&head));
        assert_eq!(ask("GET", path, &known).0, 304, "{path}");
        assert_eq!(ask("HEAD", path, "").2, b"");
        assert_eq!(ask("POST", path, "").0, 401, "{path}");
    }
    // Another name for this machine gets not even the page.
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    gateway.stop();
}
