//! HTTPS, addresses beyond this machine, and proxies.
//!
//! The clients are `curl` and `openssl`, which know nothing of this program; `openssl` also makes the certificates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::*;

/// The programs that these tests need.
pub(super) fn are_installed() -> bool {
    let is_there = |program: &str| Command::new(program).arg("version").output().is_ok();
    let are_there = is_there("openssl") && is_there("curl");
    if !are_there {
        myclaw_testkit::skip_without("openssl or curl is not installed");
    }
    are_there
}

fn openssl(arguments: &[&str]) {
    let made = Command::new("openssl").args(arguments).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

impl Bench {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Makes a certificate `NAME.pem` and its key `NAME.key`.
    pub(super) fn make_certificate(&self, name: &str) {
        let file = |kind: &str| self.file(&format!("{name}.{kind}")).display().to_string();
        let names = "subjectAltName=DNS:localhost,DNS:claw.example.org,IP:127.0.0.1";
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "30",
            "-subj",
            &format!("/CN={name}"),
            "-addext",
            names,
            "-keyout",
            &file("key"),
            "-out",
            &file("pem"),
        ]);
    }

    pub(super) fn configure_tls(&self, cert: &str, key: &str) {
        let (cert, key) = (self.file(cert), self.file(key));
        self.configure(|config| {
            config["gateway"]["tls"] = json!({"cert": cert, "key": key});
            config["gateway"]["allowedHosts"] = json!(["claw.example.org"]);
        });
    }

    pub(super) fn start_tls(&self) -> Gateway {
        let child = self.command();
        child.wait_for_stderr(&format!("listening on https://127.0.0.1:{}", self.port));
        let token = std::fs::read_to_string(self.token_path()).unwrap().trim().to_owned();
        Gateway { child, client: Client { port: self.port, token } }
    }

    /// What curl gets, with the head of the answer: status and text. Status 0 stands for no answer.
    fn curl(&self, ca: &str, path: &str, arguments: &[&str]) -> (u16, String) {
        let mut command = Command::new("curl");
        command.args(["-sS", "-i", "--noproxy", "*", "--max-time", "30", "-w", "\n%{http_code}"]);
        command.arg("--cacert").arg(self.file(ca)).args(arguments);
        let answer =
            command.arg(format!("https://localhost:{}{path}", self.port)).output().unwrap();
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let (text, status) = text.rsplit_once('\n').unwrap();
        let failure = String::from_utf8_lossy(&answer.stderr);
        (status.parse().unwrap(), format!("{text}{failure}").to_lowercase())
    }

    fn run(&self, arguments: &[&str]) -> myclaw_testkit::ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(arguments))
    }
}

#[test]
fn a_certificate_makes_it_speak_https_only() {
    if !are_installed() {
        return;
    }
    let bench = Bench::new(answering("never"));
    bench.make_certificate("own");
    bench.make_certificate("other");
    bench.configure_tls("own.pem", "own.key");
    let gateway = bench.start_tls();
    // Clients that begin and go no further keep no place from others.
    let silent: Vec<_> = (0..60)
        .map(|number| {
            let mut stream = TcpStream::connect(("127.0.0.1", bench.port)).unwrap();
            if number % 2 == 0 {
                stream.write_all(&[0x16]).unwrap();
            }
            stream
        })
        .collect();
    let bearer = format!("Authorization: Bearer {}", gateway.client.token);
    let ask = |headers: &[&str]| {
        let headers: Vec<_> = headers.iter().flat_map(|header| ["-H", header]).collect();
        bench.curl("own.pem", "/api/status", &headers)
    };
    let (status, answer) = ask(&[&bearer]);
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.contains("strict-transport-security"), "{answer}");
    assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
    assert_eq!(ask(&[]).0, 401);
    // A name of its own, on which no other service depends.
    let (status, answer) = ask(&[&bearer, "Host: claw.example.org"]);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("strict-transport-security: max-age=31536000"), "{answer}");
    // A name of the certificate, with the port.
    assert_eq!(ask(&[&bearer, &format!("Host: claw.example.org:{}", bench.port)]).0, 200);
    let (status, answer) = ask(&[&bearer, "Host: evil.example"]);
    assert_eq!((status, answer.contains("strict-transport")), (421, false), "{answer}");
    let own_page = format!("Origin: https://localhost:{}", bench.port);
    let plain_page = format!("Origin: http://localhost:{}", bench.port);
    assert_eq!(ask(&[&bearer, &own_page]).0, 200);
    for origin in [plain_page.as_str(), "Origin: https://evil.example", "Origin: null"] {
        assert_eq!(ask(&[&bearer, origin]).0, 403, "{origin}");
    }
    // A client that trusts another authority, and one that speaks no TLS.
    let (status, answer) = bench.curl("other.pem", "/health", &[]);
    assert_eq!(status, 0, "{answer}");
    let (status, answer) = gateway.client.raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(status, 400);
    assert!(answer.contains("this gateway speaks HTTPS only"), "{answer}");
    // The commands of this user find it, and recognise it by its certificate alone.
    let shown = bench.run(&["gateway", "status"]);
    shown.assert_code(0);
    assert!(shown.stdout().contains(&format!("https://127.0.0.1:{}", bench.port)), "{shown:?}");
    assert!(shown.stdout().contains("certificate valid until 20"), "{shown:?}");
    // What else listens there does not get the token.
    let file = bench.home.state_directory().join("gateway/running.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut running: Value = serde_json::from_str(&text).unwrap();
    running["certificates"] = json!(["0".repeat(64)]);
    std::fs::write(&file, running.to_string()).unwrap();
    let refused = bench.run(&["gateway", "status"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("is not the gateway of this state directory"), "{refused:?}");
    drop(silent);
    gateway.stop();
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    if !are_installed() {
        return;
    }
    let bench = Bench::new(answering("never"));
    bench.make_certificate("own");
    bench.make_certificate("other");
    let file = |name: &str| bench.file(name).display().to_string();
    openssl(&["req", "-new", "-key", &file("own.key"), "-subj", "/CN=x", "-out", &file("request")]);
    bench.home.write("names", "subjectAltName=DNS:localhost");
    let signing =
        ["x509", "-req", "-days", "-1", "-in", &file("request"), "-extfile", &file("names")];
    openssl(
        &[&signing[..], &["-signkey", &file("own.key"), "-out", &file("expired.pem")]].concat(),
    );
    openssl(&[
        "pkey",
        "-in",
        &file("own.key"),
        "-aes256",
        "-passout",
        "pass:x",
        "-out",
        &file("locked.key"),
    ]);
    for (cert, key, words) in [
        ("expired.pem", "own.key", "was valid until 20"),
        ("absent.pem", "own.key", "gateway.tls.cert: "),
        ("own.pem", "absent.key", "gateway.tls.key: "),
        ("own.key", "own.key", "holds no certificate in PEM form"),
        ("own.pem", "own.pem", "holds no private key in PEM form"),
        ("own.pem", "locked.key", "protected with a password"),
        ("own.pem", "other.key", "does not belong to the certificate"),
    ] {
        bench.configure_tls(cert, key);
        let refused = bench.run(&["gateway"]);
        refused.assert_code(3);
        let said = refused.stderr();
        assert!(said.contains(words) && said.lines().count() == 1, "{cert} {key}: {said}");
    }
    // `doctor` says the same, as a warning: turns in the terminal need no certificate.
    let shown = bench.run(&["doctor"]).stdout();
    assert!(shown.contains("warn  gateway    gateway.tls: the key in"), "{shown}");
    bench.configure_tls("own.pem", "own.key");
    let shown = bench.run(&["doctor"]).stdout();
    assert!(shown.contains("ok    gateway    the certificate is valid until 20"), "{shown}");
}

#[test]
fn a_renewed_certificate_is_taken_over_without_ending_connections() {
    if !are_installed() {
        return;
    }
    let bench = Bench::new(answering("never"));
    for name in ["old", "new", "other"] {
        bench.make_certificate(name);
    }
    let replace = |name: &str| {
        std::fs::copy(bench.file(&format!("{name}.key")), bench.file("live.key")).unwrap();
        std::fs::copy(bench.file(&format!("{name}.pem")), bench.file("live.pem")).unwrap();
    };
    replace("old");
    bench.configure_tls("live.pem", "live.key");
    let gateway = bench.start_tls();
    let address = format!("127.0.0.1:{}", bench.port);
    let mut open = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-connect", &address, "-CAfile"])
        .arg(bench.file("old.pem"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut output) =
        (open.stdin.take().unwrap(), BufReader::new(open.stdout.take().unwrap()));
    let mut ask = || {
        write!(input, "GET /health HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", bench.port).unwrap();
        let (mut status, mut length, mut line) = (String::new(), 0, String::new());
        output.read_line(&mut status).unwrap();
        while line != "\r\n" {
            line.clear();
            output.read_line(&mut line).unwrap();
            let value = line.strip_prefix("content-length: ");
            length = value.map_or(length, |value| value.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        output.read_exact(&mut body).unwrap();
        status
    };
    assert!(ask().contains("200"), "before");
    replace("new");
    gateway.child.wait_for_stderr("new connections get the certificate that is valid until 20");
    assert_eq!(bench.curl("new.pem", "/health", &[]).0, 200);
    assert_eq!(bench.curl("old.pem", "/health", &[]).0, 0);
    assert!(ask().contains("200"), "an open connection ended");
    bench.run(&["gateway", "status"]).assert_code(0);
    // A renewal that went wrong changes nothing.
    std::fs::copy(bench.file("other.key"), bench.file("live.key")).unwrap();
    gateway.child.wait_for_stderr("does not belong to the certificate");
    assert_eq!(bench.curl("new.pem", "/health", &[]).0, 200);
    replace("other");
    while bench.curl("other.pem", "/health", &[]).0 != 200 {}
    let shown = bench.run(&["gateway", "status"]);
    shown.assert_code(0);
    open.kill().unwrap();
    open.wait().unwrap();
    gateway.stop();
}

#[test]
fn only_a_trusted_proxy_may_say_who_asks() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let host = format!("Host: 127.0.0.1:{}", bench.port);
    let ask = |gateway: &Gateway, token: &str, headers: &[&str]| {
        let headers = headers.join("\r\n");
        let request = format!(
            "GET /api/status HTTP/1.1\r\n{headers}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        gateway.client.raw(&request).unwrap().0
    };
    // From anybody else the headers are ignored: a name is not accepted, and an address is not blamed.
    let token = gateway.client.token.clone();
    let (far, near) = ("X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 203.0.113.8");
    let name = [host.as_str(), "X-Forwarded-Host: claw.example.org"];
    let passed_on = ["Host: evil.example", "X-Forwarded-Host: claw.example.org"];
    assert_eq!(ask(&gateway, &token, &name), 200);
    assert_eq!(ask(&gateway, &token, &passed_on), 421);
    for _ in 0..20 {
        assert_eq!(ask(&gateway, "wrong-token-of-some-length", &[&host, far]), 401);
    }
    assert_eq!(ask(&gateway, "wrong-token-of-some-length", &[&host, near]), 429);
    assert_eq!(ask(&gateway, &token, &[&host, far]), 200);
    gateway.stop();
    bench.configure(|config| {
        config["gateway"]["trustedProxies"] = json!(["127.0.0.0/8"]);
        config["gateway"]["allowedHosts"] = json!(["claw.example.org"]);
        config["gateway"]["allowedOrigins"] = json!(["https://home.example.org"]);
    });
    let gateway = bench.start();
    assert_eq!(ask(&gateway, &token, &name), 200);
    assert_eq!(ask(&gateway, &token, &["Host: claw.example.org", "X-Forwarded-Host: evil"]), 421);
    // A proxy may pass on what a page in a browser wrote.
    assert_eq!(ask(&gateway, &token, &passed_on), 421);
    let origins = [
        ("https://claw.example.org", 200),
        ("https://home.example.org", 200),
        ("http://claw.example.org", 403),
        ("https://evil.example", 403),
    ];
    for (origin, expected) in origins {
        let origin = format!("Origin: {origin}");
        let headers = ["Host: claw.example.org", "X-Forwarded-Proto: https", &origin];
        assert_eq!(ask(&gateway, &token, &headers), expected, "{origin}");
    }
    // Each client is counted on its own; what it adds in front does not make it another one.
    for number in 0..20 {
        let forged = format!("X-Forwarded-For: 10.9.8.{number}, 203.0.113.7");
        assert_eq!(ask(&gateway, "wrong-token-of-some-length", &[&host, &forged]), 401);
    }
    assert_eq!(ask(&gateway, &token, &[&host, far]), 429);
    assert_eq!(ask(&gateway, &token, &[&host, near]), 200);
    gateway.stop();
}

#[test]
fn beyond_this_machine_it_wants_encryption_or_a_word_of_its_owner() {
    let bench = Bench::new(answering("never"));
    for bind in ["lan", "0.0.0.0", "192.0.2.1"] {
        bench.configure(|config| config["gateway"]["bind"] = json!(bind));
        let refused = bench.run(&["gateway"]);
        refused.assert_code(3);
        assert!(refused.stderr().contains("anybody in between could read the token"), "{bind}");
    }
    bench.configure(|config| {
        config["gateway"]["bind"] = json!("192.0.2.1");
        config["gateway"]["protectedLink"] = json!(true);
    });
    let refused = bench.run(&["gateway"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("cannot listen on 192.0.2.1:"), "{}", refused.stderr());
    bench.configure(|config| {
        config["gateway"]["bind"] = json!("lan");
        config["gateway"]["protectedLink"] = json!(true);
    });
    let gateway = bench.start();
    gateway.child.wait_for_stderr("other machines reach it at every address of this one");
    assert_eq!(gateway.client.get("/api/status").unwrap().0, 200);
    let other =
        format!("GET /health HTTP/1.1\r\nHost: [::1]:{}\r\nConnection: close\r\n\r\n", bench.port);
    assert_eq!(gateway.client.raw(&other).unwrap().0, 200);
    bench.run(&["gateway", "status"]).assert_code(0);
    gateway.stop();
}
