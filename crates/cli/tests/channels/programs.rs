//! The signed webhook and the Unix socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;

use super::*;

/// A program that takes answers and checks their signatures.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) url: String,
    got: Arc<Got>,
}

#[derive(Default)]
struct Got {
    /// Key and body of each answer, in order of arrival.
    answers: Mutex<Vec<(String, Value)>>,
    changed: Condvar,
}

impl Receiver {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/answers", listener.local_addr().unwrap());
        let receiver = Self { url, got: Arc::default() };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = serving.clone();
                std::thread::spawn(move || while receiver.take(&stream).is_some() {});
            }
        });
        receiver
    }

    fn take(&self, stream: &TcpStream) -> Option<()> {
        // One request at a time, so nothing of the next one is buffered.
        let mut reader = BufReader::with_capacity(1, stream);
        let (mut headers, mut line) = (Vec::new(), String::new());
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| {
            headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        let mut body = vec![0; header("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let time = header("x-myclaw-timestamp")?;
        assert_eq!(header("x-myclaw-signature")?, signature(&time, &body), "a wrong signature");
        let value: Value = serde_json::from_slice(&body).ok()?;
        self.got.answers.lock().unwrap().push((header("idempotency-key")?, value));
        self.got.changed.notify_all();
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
    }

    pub(super) fn got(&self) -> Vec<(String, Value)> {
        self.got.answers.lock().unwrap().clone()
    }

    pub(super) fn wait_for(&self, words: &str) -> (String, Value) {
        let end = Instant::now() + PATIENCE;
        let mut got = self.got.answers.lock().unwrap();
        loop {
            let is_it =
                |(_, body): &&(String, Value)| body["text"].as_str().unwrap().contains(words);
            if let Some(found) = got.iter().find(is_it) {
                return found.clone();
            }
            assert!(Instant::now() < end, "{words} did not come");
            got = self.got.changed.wait_timeout(got, Duration::from_secs(1)).unwrap().0;
        }
    }
}

fn signature(time: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, &[time.as_bytes(), b".", body].concat());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Posts a message to the webhook `mine`, signed at `time` for `signed`.
fn post_signed(
    client: &Client,
    time: u64,
    body: &str,
    signed: &str,
) -> std::io::Result<(u16, Value)> {
    let tag = signature(&time.to_string(), signed.as_bytes());
    let head = format!(
        "POST /hooks/webhook/mine HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nContent-Length: {}\r\n\
         x-myclaw-timestamp: {time}\r\nx-myclaw-signature: {tag}\r\n\r\n{body}",
        body.len()
    );
    let (status, body) = client.raw(&head)?;
    Ok((status, serde_json::from_str(&body).unwrap_or_default()))
}

pub(super) fn post(client: &Client, body: &Value) -> std::io::Result<(u16, Value)> {
    let body = body.to_string();
    post_signed(client, now(), &body, &body)
}

pub(super) fn with_programs(bench: &Bench, receiver: &Receiver) {
    with_programs_and(bench, receiver, |_| {});
}

pub(super) fn with_programs_and(
    bench: &Bench,
    receiver: &Receiver,
    change: impl FnOnce(&mut Value),
) {
    bench.configure(|config| {
        config["messages"] = json!({"queue": {"cap": 1_000}});
        config["channels"]["webhook"] = json!({"mine": {"secret": SECRET, "url": receiver.url}});
        config["channels"]["socket"] = json!({});
        config["channels"]["telegram"]["dmPolicy"] = json!("open");
        change(config);
    });
}

pub(super) fn socket_path(bench: &Bench) -> PathBuf {
    bench.home.state_directory().join("gateway/socket")
}

#[test]
fn a_signed_message_is_answered_with_a_signed_one() {
    let bench = Bench::new(echoing());
    let receiver = Receiver::start();
    with_programs(&bench, &receiver);
    let gateway = bench.start();
    let message = json!({"id": "one", "text": "<m1>", "chat": "builds"});
    let (status, accepted) = post(&gateway.client, &message).unwrap();
    assert_eq!(status, 202, "{accepted}");
    let (key, answer) = receiver.wait_for("re: <m1>");
    assert_eq!(
        (&answer["id"], &answer["chat"], &answer["replyTo"]),
        (&json!(key), &json!("builds"), &json!("one"))
    );
    assert_eq!(answer["answers"], json!([accepted["messageId"]]));
    // A replay is the same message.
    assert_eq!(post(&gateway.client, &message).unwrap(), (202, accepted));
    // The same id for another message is a mistake of the program.
    let mut other = message;
    other["text"] = json!("something else");
    let (status, answer) = post(&gateway.client, &other).unwrap();
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("id was used for another message"), "{answer}");

    let body = json!({"id": "two", "text": "<m2>"}).to_string();
    for (time, signed) in
        [(now(), "other"), (now() - 3_600, body.as_str()), (now() + 3_600, body.as_str())]
    {
        let (status, answer) = post_signed(&gateway.client, time, &body, signed).unwrap();
        assert_eq!((status, answer["error"]["class"].as_str()), (401, Some("unauthorized")));
    }
    for (body, says) in [
        (json!({"text": "no id"}), "missing field `id`"),
        (json!("a text"), "expected an object with `id` and `text`"),
        (json!({"id": "three", "text": "x", "sender": "me"}), "expected an object with `id`"),
    ] {
        let (status, answer) = post(&gateway.client, &body).unwrap();
        let error = &answer["error"];
        assert_eq!((status, error["class"].as_str()), (400, Some("usage")), "{answer}");
        assert!(error["message"].as_str().unwrap().contains(says), "{answer}");
    }
    gateway.stop();
    assert_eq!((bench.model.requests().len(), receiver.got().len()), (1, 1));
}

#[test]
fn a_script_that_was_away_gets_its_answer() {
    let bench = Bench::new(echoing());
    with_programs(&bench, &Receiver::start());
    let gateway = bench.start();
    let path = socket_path(&bench);
    gateway.channels(|state| {
        let all = state["channels"].as_array().unwrap();
        all.iter().any(|one| one["channel"] == "socket" && one["state"] == "working")
    });
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = |stream: &UnixStream, text: &str, count: usize| -> Vec<Value> {
        let mut stream = stream.try_clone().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let reader = BufReader::with_capacity(1, stream);
        reader
            .lines()
            .take(count)
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    };
    let script = UnixStream::connect(&path).unwrap();
    let message = "{\"type\":\"message\",\"id\":\"a\",\"text\":\"<m1>\",\"chat\":\"backup\"}\n";
    let got = lines(&script, message, 2);
    assert_eq!((&got[0]["type"], &got[1]["text"]), (&json!("accepted"), &json!("re: <m1>")));
    // It goes away without a confirmation.
    drop(script);
    let script = UnixStream::connect(&path).unwrap();
    let again = lines(&script, "{\"type\":\"listen\",\"chat\":\"backup\"}\n", 2);
    assert_eq!(again[1]["partId"], got[1]["partId"]);
    let ack = json!({"type": "ack", "part": again[1]["partId"]});
    let wrong = lines(&script, &format!("{ack}\nnonsense\n"), 1);
    assert_eq!(wrong[0]["type"], "error");
    gateway.stop();
    let gateway = bench.start();
    gateway.channels(|state| {
        state["channels"]
            .to_string()
            .contains("\"socket\",\"account\":\"default\",\"state\":\"working\"")
    });
    let script = UnixStream::connect(&path).unwrap();
    let got = lines(&script, "{\"type\":\"listen\",\"chat\":\"backup\"}\nx\n", 2);
    assert_eq!(got[1]["type"], "error", "a confirmed answer came again");
    gateway.stop();
}

#[test]
fn files_of_an_answer_reach_programs_and_the_web() {
    let bench = Bench::new(answering("Here it is.\nMEDIA: report.txt"));
    bench.write_for_chats("report.txt", "all is well");
    // The web chat is the owner's.
    bench.home.write_in_workspace("report.txt", "all is well");
    let receiver = Receiver::start();
    with_programs(&bench, &receiver);
    let gateway = bench.start();
    // A webhook gets the bytes, a script the path, and the web a link.
    assert_eq!(post(&gateway.client, &json!({"id": "one", "text": "x"})).unwrap().0, 202);
    assert_eq!(receiver.wait_for("Here it is.").1["text"], "Here it is.");
    let sent = || receiver.got().into_iter().find(|(_, body)| body["file"].is_object());
    until("the file", || sent().is_some());
    let file = sent().unwrap().1["file"].clone();
    assert_eq!(file, json!({"name": "report.txt", "data": "YWxsIGlzIHdlbGw="}));

    let mut script = UnixStream::connect(socket_path(&bench)).unwrap();
    script.set_read_timeout(Some(PATIENCE)).unwrap();
    script.write_all(b"{\"type\":\"message\",\"id\":\"a\",\"text\":\"x\"}\n").unwrap();
    let mut reader = BufReader::new(script.try_clone().unwrap());
    let mut next = || -> Value {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(next()["type"], "accepted");
    let text = next();
    script
        .write_all(format!("{}\n", json!({"type": "ack", "part": text["partId"]})).as_bytes())
        .unwrap();
    let file = next()["file"].clone();
    assert_eq!(file["name"], "report.txt");
    assert_eq!(std::fs::read_to_string(file["path"].as_str().unwrap()).unwrap(), "all is well");

    let id = gateway.client.send("main", "one", "x").unwrap();
    let answer = gateway.client.outcome(&id).unwrap();
    assert_eq!(
        (&answer["reply"], &answer["files"][0]["name"]),
        (&json!("Here it is."), &json!("report.txt"))
    );
    let url = answer["files"][0]["url"].as_str().unwrap().to_owned();
    gateway.kill();
    let gateway = bench.start();
    let head = gateway.client.head("GET", &url);
    let (status, body) = gateway.client.raw(&format!("{head}\r\n")).unwrap();
    assert_eq!((status, body.as_str()), (200, "all is well"));
    let stranger = head.replace(&gateway.client.token, "x");
    assert_eq!(gateway.client.raw(&format!("{stranger}\r\n")).unwrap().0, 401);
    assert_eq!(gateway.client.get("/api/files/o0").unwrap().0, 404);
    gateway.stop();
}
