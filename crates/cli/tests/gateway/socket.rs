//! The WebSocket.

use std::io::{Read, Write};

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::Message;

pub(super) use super::web_socket::{Socket, block_on};
use super::*;

#[test]
fn a_client_sends_watches_and_goes_on_after_a_gap() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let watched = socket.ask("w", "watch", json!({"session": "main"})).await;
        let (begin, stream) = (&watched["result"]["sequence"], &watched["result"]["stream"]);
        let sent = socket.ask("one", "send", json!({"session": "main", "text": "<m1>"})).await;
        assert_eq!(sent["ok"], true, "{sent}");
        let id = sent["result"]["messageId"].clone();
        let reply = socket.until(|frame| frame["event"]["type"] == "reply").await;
        assert_eq!(reply["event"]["messageIds"], json!([id]));
        assert_eq!(reply["event"]["text"], "re: <m1>");
        // The same request again is answered from the store.
        let again = socket.ask("one", "send", json!({"session": "main", "text": "<m1>"})).await;
        assert_eq!(again["result"]["reply"], "re: <m1>");

        // Another client reads the same events from the number of the first one, without a hole.
        let mut other = Socket::open(&gateway.client).await;
        let after = json!({"session": "main", "after": begin, "stream": stream});
        assert_eq!(other.ask("w", "watch", after).await["result"]["resumed"], true);
        let mut number = begin.as_u64().unwrap();
        loop {
            let frame = other.next().await;
            number = follows(number, &frame);
            if frame["event"] == reply["event"] {
                break;
            }
        }
        // Numbers of another process begin at the present.
        let after = json!({"session": "main", "after": begin, "stream": "another"});
        assert_eq!(other.ask("w2", "watch", after).await["result"]["resumed"], false);
        let history = other.ask("h", "history", json!({"session": "main"})).await;
        assert_eq!(history["result"]["messages"][1]["content"], "re: <m1>");
        assert!(history["result"]["sequence"].as_u64() >= Some(number), "{history}");
    });
    gateway.stop();
}

#[test]
fn strangers_are_closed() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    block_on(async {
        for (frame, says) in [
            (json!({"type": "auth", "token": "wrong"}), "the token is wrong"),
            (json!({"type": "request", "id": "1", "method": "status"}), "the first frame"),
            (json!({"type": "auth", "token": client.token, "protocol": 2}), "protocol 1"),
            (json!({"type": "auth", "token": "x".repeat(10_000)}), "the first frame"),
        ] {
            let mut socket = Socket::silent(client, &[]).await.unwrap();
            socket.send(&frame).await;
            let closed = socket.next().await;
            assert!(closed["closed"].as_str().unwrap_or_default().contains(says), "{closed}");
        }
        let foreign = [("Origin", "http://evil.example")];
        assert!(Socket::silent(client, &foreign).await.is_err(), "a foreign origin was let in");
        assert!(Socket::silent(client, &[("Authorization", "Bearer wrong")]).await.is_err());
        let bearer = format!("Bearer {}", client.token);
        let mut socket = Socket::silent(client, &[("Authorization", &bearer)]).await.unwrap();
        assert_eq!(socket.next().await["type"], "hello");
        let command = |params: &Value| json!({"type": "request", "id": "4", "method": "command", "params": params});
        // Bad requests are answered, and the connection stays.
        for (frame, class) in [
            (json!({"type": "request", "id": "1", "method": "fly"}), "usage"),
            (json!({"type": "request", "id": "2", "method": "send"}), "usage"),
            (json!({"type": "request", "id": "3", "method": "command"}), "usage"),
            (command(&json!({"session": "main"})), "usage"),
            (command(&json!({"text": "/todos"})), "usage"),
            (command(&json!({"session": "main", "text": "/fly"})), "usage"),
            (command(&json!({"session": "main", "text": "/thinking much"})), "usage"),
            (json!({"type": "request", "method": "send"}), "parse"),
            (json!("no object"), "parse"),
        ] {
            socket.send(&frame).await;
            let answer = socket.next().await;
            assert_eq!((&answer["ok"], &answer["error"]["class"]), (&json!(false), &json!(class)));
        }
        // A frame that is too large ends the connection, perhaps before all of it is written.
        let id = "x".repeat(8 * 1024 * 1024);
        let frame = json!({"type": "request", "id": id, "method": "send"});
        let _ = socket.0.send(Message::text(frame.to_string())).await;
        assert!(socket.next().await.get("closed").is_some());
    });
    gateway.stop();
}

#[test]
fn wrong_tokens_over_websockets_are_counted() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let wrong = Client { token: "w".repeat(64), ..gateway.client };
    block_on(async {
        for _ in 0..20 {
            let mut socket = Socket::silent(&wrong, &[]).await.unwrap();
            socket.send(&json!({"type": "auth", "token": wrong.token})).await;
            assert_eq!(socket.next().await["closed"], "the token is wrong");
        }
    });
    assert_eq!(wrong.get("/api/status").unwrap().0, 429);
    assert_eq!(gateway.client.get("/api/status").unwrap().0, 200);
    gateway.stop();
}

#[test]
fn a_frame_that_comes_too_slowly_ends_the_connection() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        client.port
    );
    // The beginning of a frame of 100 bytes, and nothing more.
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[0x81, 0x80 | 100, 0, 0, 0, 0, b'{']).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(answer.contains("the first frame must be"), "{answer}");
    gateway.stop();
}

#[test]
fn a_client_that_reads_nothing_delays_nobody() {
    let bench = Bench::new(answering(&"word ".repeat(50_000)));
    let gateway = bench.start();
    block_on(async {
        let mut slow = Socket::open(&gateway.client).await;
        slow.ask("w", "watch", json!({"session": "main"})).await;
        let mut fast = Socket::open(&gateway.client).await;
        fast.ask("w", "watch", json!({"session": "main"})).await;
        // 3 MB of answers, of which the slow client reads nothing.
        for number in 0..6 {
            let id = number.to_string();
            fast.ask(&id, "send", json!({"session": "main", "text": "more"})).await;
            fast.until(|frame| frame["event"]["type"] == "reply").await;
        }
        // When it reads again, it learns where it can go on.
        slow.until(|frame| frame["type"] == "gap" || frame["event"]["type"] == "reply").await;
    });
    gateway.stop();
}

/// The number of an event that comes directly after `before`.
pub(super) fn follows(before: u64, frame: &Value) -> u64 {
    let number = frame["sequence"].as_u64().unwrap();
    assert_eq!(frame["from"].as_u64().unwrap_or(number), before + 1, "{frame}");
    number
}

#[test]
fn a_client_that_comes_back_gets_the_deltas_of_a_text_as_one_event() {
    let words: Vec<String> = (0..200).map(|number| format!("word{number} \"é\" ")).collect();
    let answer = words.concat();
    // What comes after the first of three deltas waits until the client has that one.
    let gate = Gate::closed();
    let step = Reply::anthropic().text(answer.clone()).step();
    let bench = Bench::new(Script::repeat(step.hold_after(answer.len() / 3, &gate)));
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let watched = socket.ask("w", "watch", json!({"session": "main"})).await;
        let (stream, begin) =
            (watched["result"]["stream"].clone(), watched["result"]["sequence"].as_u64().unwrap());
        socket.ask("1", "send", json!({"session": "main", "text": "go"})).await;
        let mut all = Vec::new();
        loop {
            let frame = socket.until(|frame| frame["type"] == "event").await;
            let is_last = frame["event"]["type"] == "message";
            if frame["event"]["event"]["delta"].is_string() {
                gate.open();
            }
            all.push(frame);
            if is_last {
                break;
            }
        }
        let mut again = Socket::open(&gateway.client).await;
        let from = json!({"session": "main", "after": begin, "stream": stream});
        again.ask("w", "watch", from).await;
        let (mut text, mut deltas, mut before) = (String::new(), 0, begin);
        let newest = all.last().unwrap()["sequence"].as_u64().unwrap();
        while before < newest {
            let frame = again.until(|frame| frame["type"] == "event").await;
            before = follows(before, &frame);
            if let Some(delta) = frame["event"]["event"]["delta"].as_str() {
                text.push_str(delta);
                deltas += 1;
            }
        }
        assert_eq!((text, deltas), (answer, 1));
        let of_first = all.iter().filter(|frame| frame["event"]["event"]["delta"].is_string());
        assert!(of_first.count() > 1, "the client that kept pace got the deltas one by one");
    });
    gateway.stop();
}

/// Frames as they are on the wire, for the published schema.
#[test]
fn real_frames_are_what_the_published_schema_describes() {
    let Some(ajv) = std::env::var_os("MYCLAW_AJV") else {
        myclaw_testkit::skip_without("MYCLAW_AJV is not set; scripts/test sets it");
        return;
    };
    let bench = Bench::new(shared(|request, _| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("done").step();
        }
        if last.contains("fail") {
            let body =
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
            return Step::status(400, &[], body);
        }
        let arguments = json!({"path": "a.md", "content": "x\n"});
        Reply::anthropic()
            .thinking("hm", "signed")
            .text("I write")
            .tool_call("c", "write", arguments)
            .step()
    }));
    bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
    let gateway = bench.start();
    let mut frames: Vec<Value> = Vec::new();
    block_on(async {
        let mut socket = Socket::silent(&gateway.client, &[]).await.unwrap();
        let auth = json!({"type": "auth", "token": gateway.client.token, "protocol": 1});
        socket.send(&auth).await;
        frames.push(json!({"side": "clientFrame", "frame": auth, "valid": true}));
        let mut asked = Value::Null;
        for (number, (method, params, last)) in requests().into_iter().enumerate() {
            let params = match method {
                "approve" => json!({"id": asked, "answer": "once"}),
                _ => params,
            };
            let id = number.to_string();
            let request = json!({"type": "request", "id": id, "method": method, "params": params});
            socket.send(&request).await;
            frames.push(json!({"side": "clientFrame", "frame": request, "valid": true}));
            let (mut is_answered, mut is_last) = (false, last == "response");
            while !is_answered || !is_last {
                let frame = socket.next().await;
                assert!(frame.get("closed").is_none(), "{frame}");
                is_answered |= frame["id"] == id;
                is_last |= frame["event"]["type"] == last || frame["type"] == last;
                if frame["event"]["type"] == "approval" {
                    asked = frame["event"]["id"].clone();
                }
                frames.push(json!({"side": "serverFrame", "frame": frame, "valid": true}));
            }
        }
    });
    gateway.stop();
    let seen = validate(&bench, &ajv, frames);
    for kind in [
        "accepted",
        "taken",
        "approval",
        "approval_closed",
        "message",
        "reply",
        "tool_end",
        "changed",
    ] {
        assert!(seen.contains(&format!("event {kind}\"")), "{seen}");
    }
}

/// The requests of a client, and the last frame that each leads to.
fn requests() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("watch", json!({"session": "main"}), "response"),
        ("send", json!({"session": "main", "text": "go"}), "approval"),
        // The gap ends what the client gets of before; events until then may be left out.
        ("watch", json!({"session": "main", "after": 0}), "gap"),
        ("approvals", json!({}), "response"),
        // The last event of each message: a client that watches anew gets no event of before.
        ("approve", Value::Null, "reply"),
        ("send", json!({"session": "main", "text": "fail"}), "reply"),
        ("watch", json!({"session": "main"}), "response"),
        ("history", json!({"session": "main", "limit": 9}), "response"),
        ("sessions", json!({"search": "go"}), "response"),
        ("title", json!({"session": "main", "title": "A title"}), "response"),
        ("fork", json!({"session": "main", "newSession": "other"}), "response"),
        ("delete", json!({"session": "other"}), "response"),
        ("abort", json!({"session": "main"}), "response"),
        ("unwatch", json!({"session": "main"}), "response"),
        // Of a session that is not watched, only the list says something.
        ("watch_list", json!({}), "response"),
        ("send", json!({"session": "main", "text": "fail"}), "changed"),
        ("status", json!({}), "response"),
        ("delete", json!({"session": "none"}), "response"),
    ]
}

/// Validates frames, and some that must be refused; gives the kinds of frames that were seen.
fn validate(bench: &Bench, ajv: &std::ffi::OsStr, mut frames: Vec<Value>) -> String {
    // What is no frame is not described.
    for (side, frame) in [
        ("clientFrame", json!({"type": "request", "id": "1", "method": "fly"})),
        (
            "clientFrame",
            json!({"type": "request", "id": "1", "method": "approve", "params": {"id": "a"}}),
        ),
        ("clientFrame", json!({"type": "request", "id": "1", "method": "delete", "params": {}})),
        ("serverFrame", json!({"type": "event", "session": "main", "event": {"type": "done"}})),
        ("serverFrame", json!({"type": "response", "id": "1", "ok": true, "result": {"odd": 1}})),
    ] {
        frames.push(json!({"side": side, "frame": frame, "valid": false}));
    }
    let lines: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = std::process::Command::new("node");
    command.arg(root.join("tests/third-party/schema.mjs")).env("AJV", ajv);
    command.env("SCHEMA", root.join("docs/develop/gateway-protocol.schema.json"));
    command.env("FRAMES", bench.home.write("frames", lines));
    let checked = RunningChild::spawn(&mut command).wait(PATIENCE);
    checked.assert_code(0);
    checked.stdout()
}
