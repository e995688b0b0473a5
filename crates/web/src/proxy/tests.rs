use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

use super::*;
use crate::{AddressRules, Lookup};

const OTHER_LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Answers lookups one after the other; the last answer stays.
struct Answers(Mutex<VecDeque<IpAddr>>);

impl Lookup for Answers {
    fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let address =
            if answers.len() > 1 { answers.pop_front() } else { answers.front().copied() };
        Box::pin(async move { Ok(vec![address.unwrap()]) })
    }
}

/// A server that answers every connection with one response, and shows what it got.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(response: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0
                {
                }
                seen.lock().unwrap().push(String::from_utf8(head).unwrap());
                stream.write_all(response).await.unwrap();
                // The client decides when it is over.
                let _ = stream.read(&mut [0; 1]).await;
            }
        });
        Self { port, requests, task }
    }

    async fn answering() -> Self {
        Self::start(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: X-Private\r\nX-Private: 1\r\n\r\nhello")
            .await
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Rules under which names resolve to `answers`, and the entries of `allowed` may be private.
fn rules(allowed: &[String], answers: &[IpAddr]) -> ProxyRules {
    let address_rules = AddressRules {
        allowed_hosts: allowed.iter().map(|entry| entry.parse().unwrap()).collect(),
        ..AddressRules::default()
    };
    let lookup = Answers(Mutex::new(answers.iter().copied().collect()));
    ProxyRules {
        guard: AddressGuard::with_lookup(address_rules, Arc::new(lookup)),
        hosts: ProxyHosts::Any,
        limits: ProxyLimits::default(),
    }
}

async fn connect(proxy: &Proxy) -> TcpStream {
    let ProxyAddress::Port(port) = proxy.address() else { panic!("not a port") };
    TcpStream::connect(("127.0.0.1", *port)).await.unwrap()
}

/// Sends a head and reads until the proxy closes the connection.
async fn exchange(proxy: &Proxy, head: &str) -> String {
    let mut stream = connect(proxy).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn get(proxy: &Proxy, url: &str) -> String {
    exchange(proxy, &format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
}

#[tokio::test]
async fn a_plain_request_is_passed_on_with_the_checked_host_and_without_the_proxys_headers() {
    let server = Server::answering().await;
    let host = format!("app.test:{}", server.port);
    let proxy = Proxy::start(rules(std::slice::from_ref(&host), &[LOOPBACK])).await.unwrap();
    let answer = exchange(
        &proxy,
        &format!(
            "GET http://user:pass@{host}/a?b=1 HTTP/1.1\r\nHost: other.test\r\nProxy-Connection: keep-alive\r\n\
             Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n"
        ),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(!answer.to_lowercase().contains("x-private"), "{answer}");
    let [request] = server.requests().try_into().unwrap();
    let mut lines: Vec<_> = request.lines().map(str::to_lowercase).collect();
    lines.sort();
    assert_eq!(lines, ["", "get /a?b=1 http/1.1", &format!("host: {host}"), "x-kept: 2"]);
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let server = Server::start(b"pong").await;
    let host = format!("app.test:{}", server.port);
    let proxy = Proxy::start(rules(std::slice::from_ref(&host), &[LOOPBACK])).await.unwrap();
    let mut stream = connect(&proxy).await;
    stream
        .write_all(format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"ping\r\n\r\n").await.unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"pong");
    assert_eq!(server.requests(), ["ping\r\n\r\n"]);
    drop(proxy);
    // The tunnel ends with the proxy, though the server keeps its end open.
    assert_eq!(stream.read(&mut answer).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling_and_the_reason_is_kept_once() {
    let server = Server::answering().await;
    let proxy = Proxy::start(rules(&[], &[LOOPBACK])).await.unwrap();
    let port = server.port;
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "name.test",
        "169.254.169.254",
    ] {
        let answer = get(&proxy, &format!("http://{host}:{port}/")).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {answer}");
        let answer = exchange(
            &proxy,
            &format!("CONNECT {host}:{port} HTTP/1.1\r\nConnection: close\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {answer}");
    }
    assert_eq!(server.requests(), [""; 0]);
    let refusals = proxy.take_refusals();
    // The first three are one address and one spelling once they are parsed.
    assert_eq!(refusals.len(), 5, "{refusals:#?}");
    assert!(refusals[0].contains("127.0.0.1 is an address of this machine"), "{refusals:#?}");
    assert_eq!(proxy.take_refusals(), [""; 0]);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_resolved_once_and_checked_each_time() {
    let server = Server::answering().await;
    let rules = rules(&["127.0.0.1".to_owned()], &[LOOPBACK, OTHER_LOOPBACK]);
    let proxy = Proxy::start(rules).await.unwrap();
    let url = format!("http://rebind.test:{}/", server.port);
    // A second lookup for the connection would lead to the other address, where nothing listens.
    let first = get(&proxy, &url).await;
    assert!(first.ends_with("hello"), "{first}");
    let second = get(&proxy, &url).await;
    assert!(second.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{second}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_list_of_hosts_lets_nothing_else_through_and_looks_nothing_else_up() {
    struct Counting(Mutex<Vec<String>>);
    impl Lookup for Counting {
        fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            self.0.lock().unwrap().push(name.to_owned());
            Box::pin(async { Ok(vec![LOOPBACK]) })
        }
    }
    let server = Server::answering().await;
    let port = server.port;
    let lookups = Arc::new(Counting(Mutex::new(Vec::new())));
    let allowed_hosts = vec!["*.crates.test".parse().unwrap()];
    let hosts = vec!["index.crates.test".parse().unwrap(), "*.other.test:1".parse().unwrap()];
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("proxy.sock");
    let rules = ProxyRules {
        guard: AddressGuard::with_lookup(
            AddressRules { allowed_hosts, ..AddressRules::default() },
            Arc::clone(&lookups) as Arc<dyn Lookup>,
        ),
        hosts: ProxyHosts::Only(hosts),
        limits: ProxyLimits::default(),
    };
    let proxy = Proxy::start_at(&socket, rules).unwrap();
    assert_eq!(*proxy.address(), ProxyAddress::Socket(socket.clone()));
    let get = async |host: &str| {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let head =
            format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(get("index.crates.test").await.ends_with("hello"));
    for host in ["static.crates.test", "index.crates.test.evil.test", "a.other.test", "127.0.0.1"] {
        let answer = get(host).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {answer}");
    }
    assert_eq!(*lookups.0.lock().unwrap(), ["index.crates.test"]);
}

#[tokio::test]
async fn a_silent_and_an_endless_server_are_cut_off() {
    let silent = Server::start(b"").await;
    let endless =
        Server::start(b"HTTP/1.1 200 OK\r\n\r\n0123456789012345678901234567890123456789").await;
    let hosts = [silent.port, endless.port].map(|port| format!("app.test:{port}"));
    let proxy = Proxy::start(ProxyRules {
        limits: ProxyLimits {
            idle: Duration::from_millis(20),
            bytes: 120,
            ..ProxyLimits::default()
        },
        ..rules(&hosts, &[LOOPBACK])
    })
    .await
    .unwrap();
    let answer = get(&proxy, &format!("http://{}/", hosts[0])).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    // A tunnel is cut off as well: this returns.
    let answer = exchange(&proxy, &format!("CONNECT {} HTTP/1.1\r\n\r\n", hosts[0])).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mut stream = connect(&proxy).await;
    let head = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", hosts[1]);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A body that was cut off must not look complete: its last chunk is missing.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_connection_carries_no_more_than_its_limit() {
    const LENGTH: usize = 4_000;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
    let server = Server::start((head + &"x".repeat(LENGTH)).leak().as_bytes()).await;
    let host = format!("app.test:{}", server.port);
    for (bytes, is_whole) in [(1_000, false), (10 * LENGTH as u64, true)] {
        let limits = ProxyLimits { bytes, ..ProxyLimits::default() };
        let rules = ProxyRules { limits, ..rules(std::slice::from_ref(&host), &[LOOPBACK]) };
        let proxy = Proxy::start(rules).await.unwrap();
        for head in [
            format!("GET http://{host}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            format!("CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        ] {
            let mut stream = connect(&proxy).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            // An end, or an error in place of it; a whole answer leaves the connection open.
            while answer.len() < LENGTH && stream.read_buf(&mut answer).await.is_ok_and(|n| n > 0) {
            }
            assert_eq!(answer.len() >= LENGTH, is_whole, "{bytes}: {} bytes", answer.len());
        }
    }
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_is_answered_as_such() {
    let proxy = Proxy::start(rules(&[], &[LOOPBACK])).await.unwrap();
    for head in [
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
        "CONNECT a.test HTTP/1.1\r\nConnection: close\r\n\r\n",
        "no HTTP at all\r\n\r\n",
    ] {
        let answer = exchange(&proxy, head).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}: {answer}");
    }
}
