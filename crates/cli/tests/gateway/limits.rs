//! How much may wait for an answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::socket::{Socket, block_on};
use super::*;

/// Most messages without an answer.
const MOST_OPEN: usize = 10_000;
/// Sessions that share them. A session has room for 1,000.
const SESSIONS: usize = 20;
/// Clients that send them.
const CLIENTS: usize = 32;
/// What the messages may cost, in kilobytes.
const MOST_KB: u64 = 100_000;

/// A model that answers when the gate is open.
fn held(gate: &Gate) -> Bench {
    let gate = gate.clone();
    let bench = Bench::new(shared(move |request, _| echo(request).step().hold_after(0, &gate)));
    bench.configure(|config| config["messages"] = json!({"queue": {"cap": 1_000}}));
    bench
}

/// The memory of the gateway, in kilobytes.
fn memory(gateway: &Gateway) -> u64 {
    let path = format!("/proc/{}/status", gateway.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn refused((status, answer): (u16, Value)) {
    assert_eq!((status, &answer["error"]["class"]), (429, &json!("queue_full")), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("try again when some are answered"), "{message}");
}

/// Sends a message until it is accepted, and waits for its answer.
fn answered(client: &Client, body: &Value) {
    let mut accepted = Value::Null;
    let sent = std::cell::RefCell::new(&mut accepted);
    until("a place", || {
        let (status, answer) = client.post("/api/messages", body).unwrap();
        **sent.borrow_mut() = answer;
        status == 202
    });
    let outcome = client.outcome(accepted["messageId"].as_str().unwrap()).unwrap();
    assert_eq!(outcome["state"], "answered", "{outcome}");
}

/// A WebSocket that has sent `bytes` and no token.
fn stranger(client: &Client, bytes: &[u8]) -> std::io::Result<std::net::TcpStream> {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", client.port))?;
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        client.port
    );
    stream.write_all(head.as_bytes())?;
    // The connection may be closed before all of it is written.
    let _ = stream.write_all(bytes);
    Ok(stream)
}

#[test]
fn sockets_without_a_token_take_little_memory_and_no_place_of_the_owner() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let before = memory(&gateway);
    // A text of 5 MiB, of which all but the last byte is sent.
    let mut frame = vec![0x81, 0x80 | 127];
    frame.extend((5_u64 << 20).to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + (5 << 20) - 1, b'x');
    let large: Vec<_> = std::thread::scope(|scope| {
        let send = |_| scope.spawn(|| stranger(client, &frame).unwrap());
        let sending: Vec<_> = (0..60).map(send).collect();
        sending.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    let used = memory(&gateway).saturating_sub(before);
    assert!(used < 40_000, "{used} kB for 60 frames without a login");
    drop(large);
    // More than all places, from the address of the owner, who comes in all the same.
    let silent: Vec<_> = (0..2_200).map(|_| stranger(client, &[])).collect();
    let (status, _) = client.get("/api/status").unwrap();
    assert_eq!(status, 200);
    block_on(async {
        let mut socket = Socket::open(client).await;
        socket.ask("w", "watch", json!({"session": "main"})).await;
        // Further strangers do not end it.
        let more: Vec<_> = (0..500).map(|_| stranger(client, &[])).collect();
        let answer = socket.ask("s", "status", json!({})).await;
        assert!(answer.to_string().contains("version"), "{answer}");
        drop(more);
    });
    drop(silent);
    gateway.stop();
}

/// A posted request of `path` with `headers`, and a body of 5 MiB of which all but the last byte is sent. What is answered
/// before that, if anything.
fn posted(client: &Client, path: &str, headers: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n",
        client.port,
        5 << 20
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The connection may be closed before all of it is written.
    let _ = stream.write_all(&vec![b' '; (5 << 20) - 1]);
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = [0; 256];
    let read = stream.read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[test]
fn bodies_of_strangers_take_little_memory() {
    let bench = Bench::new(answering("fine"));
    let secret = "a-secret-of-at-least-16-characters";
    bench.configure(|config| {
        config["channels"] =
            json!({"webhook": {"mine": {"url": "http://127.0.0.1:9/", "secret": secret}}});
    });
    let gateway = bench.start();
    let client = &gateway.client;
    let before = memory(&gateway);
    // What a header or the path decides is answered before the body has come.
    let signed = "X-MyClaw-Timestamp: 1\r\nX-MyClaw-Signature: sha256=00\r\n";
    for (path, headers, status) in [
        ("/hooks/webhook/mine", "", "401"),
        ("/hooks/telegram/nobody", signed, "404"),
        ("/hooks/webhook", signed, "404"),
        ("/api/devices/pair", "", "413"),
        ("/health", "", "413"),
        ("/api/messages", "", "401"),
        ("/v1/responses", "Authorization: Bearer wrong\r\n", "401"),
    ] {
        let answer = posted(client, path, headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    // A signature covers the body, so that is read, as far as there is room for all of them.
    let answers: Vec<String> = std::thread::scope(|scope| {
        let post = |_| scope.spawn(|| posted(client, "/hooks/webhook/mine", signed));
        let posting: Vec<_> = (0..40).map(post).collect();
        let used = |_| {
            std::thread::sleep(Duration::from_millis(100));
            memory(&gateway).saturating_sub(before)
        };
        let most = (0..10).map(used).max().unwrap_or(0);
        assert!(most < 90_000, "{most} kB for 40 bodies of 5 MiB that nobody has signed");
        posting.into_iter().map(|posted| posted.join().unwrap()).collect()
    });
    assert!(answers.iter().any(|answer| answer.starts_with("HTTP/1.1 503")), "{answers:?}");
    // They are given back, and the owner is not disturbed.
    until("room", || client.get("/api/status").unwrap().0 == 200);
    gateway.stop();
}

#[test]
fn ten_thousand_messages_may_wait_and_the_next_one_is_refused() {
    let gate = Gate::closed();
    let bench = held(&gate);
    let gateway = bench.start();
    let before = memory(&gateway);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= MOST_OPEN {
                        return;
                    }
                    let session = format!("s{}", number % SESSIONS);
                    let (id, text) = (format!("id-{number}"), format!("<m{number}>"));
                    gateway.client.send(&session, &id, &text).unwrap();
                }
            });
        }
    });
    let more = json!({"session": "t", "id": "more", "text": "<m10000>"});
    refused(gateway.client.post("/api/messages", &more).unwrap());
    // What is known is no new message.
    gateway.client.send("s7", "id-7", "<m7>").unwrap();
    let cost = memory(&gateway).saturating_sub(before);
    eprintln!("{MOST_OPEN} messages cost {cost} KB");
    assert!(cost < MOST_KB, "{cost} KB");
    // All of them are there after a kill.
    gateway.kill();
    let gateway = bench.start();
    assert_eq!(gateway.client.get("/api/status").unwrap().1["openMessages"], MOST_OPEN);
    refused(gateway.client.post("/api/messages", &more).unwrap());
    gate.open();
    answered(&gateway.client, &more);
    gateway.kill();
}

#[test]
fn pictures_of_64_mib_may_wait() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC";
    // What stands behind the end of a picture belongs to the file: 4,194,412 bytes in base64.
    let picture = json!({"data": format!("{PNG}{}", "A".repeat(4 * 1024 * 1024))});
    let message = |number: usize| {
        let (id, session) = (format!("id-{number}"), format!("s{number}"));
        json!({"session": session, "id": id, "text": format!("<m{number}>"), "attachments": [picture]})
    };
    let gate = Gate::closed();
    let bench = held(&gate);
    let gateway = bench.start();
    for number in 0..15 {
        let (status, answer) = gateway.client.post("/api/messages", &message(number)).unwrap();
        assert_eq!(status, 202, "{answer}");
    }
    refused(gateway.client.post("/api/messages", &message(15)).unwrap());
    // Words are small.
    gateway.client.send("t", "words", "<m99>").unwrap();
    // They count in the next process too.
    gateway.kill();
    let gateway = bench.start();
    refused(gateway.client.post("/api/messages", &message(15)).unwrap());
    gate.open();
    answered(&gateway.client, &message(15));
    gateway.kill();
}
