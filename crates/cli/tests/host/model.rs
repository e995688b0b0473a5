//! The model behind a socket: runners have neither key nor network.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use myclaw_testkit::{Gate, ModelServer, Reply, Script, Step};

use super::*;

pub(super) const KEY: &str = "host-key-0123456789abcdef";
const PATH: &str = "/v1/chat/completions";
const CALL: &str =
    r#"{"model":"m-1","stream":true,"messages":[{"role":"user","content":"Hello"}]}"#;
/// A runner that lives until the test lets it end.
const PATIENT: &str =
    r#"touch "$w/group/begun"; await "$w/group/done"; say bye; over; await_close"#;

/// A host whose runners reach the model through the socket.
pub(super) fn start(bench: &Bench, server: &ModelServer, options: &[&str]) -> RunningChild {
    let mut command = bench.command(&["host", "--model-socket", "--retry-base", "10"]);
    command.args(["--grace", "2s", "--name", "Andy"]).args(options);
    command.env("OPENROUTER_API_KEY", KEY).env("MODEL_NAME", "m-1");
    command.env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
    let host = RunningChild::spawn(&mut command);
    host.wait_for_stderr("the host works in");
    host
}

/// A host with a runner that does nothing, and its socket.
fn with_socket(server: &ModelServer, options: &[&str]) -> (Bench, RunningChild, PathBuf) {
    let bench = Bench::with_groups(PATIENT);
    let runner = bench.path("fake-runner");
    let mut all = vec!["--backend", "process", "--runner", runner.to_str().unwrap()];
    all.extend(options);
    let host = start(&bench, server, &all);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("the run begins", || bench.host("groups/family/begun").exists());
    let socket = bench.host("data/model/family/model.sock");
    (bench, host, socket)
}

fn finish(bench: &Bench, host: RunningChild, socket: &Path) {
    fs::write(bench.host("groups/family/done"), "").unwrap();
    bench.wait_for_out(1);
    stop(host);
    assert!(!socket.exists(), "the socket outlives its run");
}

/// The whole answer to a request.
fn ask(socket: &Path, head: &str, body: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let request = format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    // At once: the answer to a refused head, and the end of the connection, may come before the body is written.
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn call(socket: &Path, body: &str) -> String {
    ask(socket, &format!("POST {PATH} HTTP/1.1\r\nHost: x"), body)
}

fn usage(bench: &Bench) -> Value {
    let output = RunningChild::run(&mut bench.command(&["groups", "show", "family", "--json"]));
    let shown: Value = serde_json::from_str(&output.stdout()).unwrap();
    shown["usage"].as_object().unwrap().values().next().cloned().unwrap_or_default()
}

#[test]
fn a_real_runner_reaches_the_model_and_its_use_is_counted() {
    let bench = Bench::with_groups("");
    let server = ModelServer::spawn_blocking_thread(Script::repeat(
        Reply::openai().text("Answered.").usage(12, 3),
    ));
    let host = start(&bench, &server, &["--backend", "process", "--model-tokens", "20"]);
    bench.send("m1", "fam@g.us", "Hello");
    assert_eq!(bench.texts(1), ["Answered."]);
    let request = server.last_request();
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(request.json()["model"], "m-1");
    assert_eq!(
        usage(&bench),
        json!({"calls": 1, "estimated": 0, "input": 12, "output": 3, "cost": 0.0, "unpriced": 1})
    );
    bench.send("m2", "fam@g.us", "And now?");
    assert_eq!(bench.texts(2)[1], "Answered.");
    // 30 tokens are more than the group may use in a day.
    bench.send("m3", "fam@g.us", "Once more?");
    let notice = bench.texts(3)[2].clone();
    assert!(notice.contains("has used its 20 tokens of today"), "{notice}");
    stop(host);
    assert_eq!((usage(&bench)["calls"].clone(), server.requests().len()), (json!(2), 2));
    // A restart forgets nothing, and other groups have a limit of their own.
    let host = start(&bench, &server, &["--backend", "process", "--model-tokens", "20"]);
    bench.send("m4", "fam@g.us", "Now?");
    let notice = bench.texts(4)[3].clone();
    assert!(notice.contains("has used its 20 tokens of today"), "{notice}");
    bench.send("m5", "owner", "And me?");
    assert_eq!(bench.texts(5)[4], "Answered.");
    stop(host);
    assert_eq!((usage(&bench)["calls"].clone(), server.requests().len()), (json!(2), 3));
}

#[test]
fn a_fifth_call_at_a_time_is_refused_until_one_has_ended() {
    let gate = Gate::closed();
    let held = Reply::openai().text("one two three").in_deltas(3).step().hold_after(200, &gate);
    let server = ModelServer::spawn_blocking_thread(Script::repeat(held));
    let (bench, host, socket) = with_socket(&server, &[]);
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let socket = socket.clone();
            std::thread::spawn(move || call(&socket, CALL))
        })
        .collect();
    server.wait_for_requests_blocking(4);
    let refused = call(&socket, CALL);
    assert!(
        refused.starts_with("HTTP/1.1 429 ") && refused.contains("4 calls of the group go on"),
        "{refused}"
    );
    gate.open();
    for answer in calls.into_iter().map(|call| call.join().unwrap()) {
        assert!(answer.contains("[DONE]"), "{answer}");
    }
    // The places are free again.
    let answer = call(&socket, CALL);
    assert!(answer.contains("[DONE]"), "{answer}");
    assert_eq!(usage(&bench)["calls"], 5);
    finish(&bench, host, &socket);
}

#[test]
fn an_answer_that_breaks_off_is_counted_by_its_bytes() {
    let reply = Reply::openai().text("one two three four five six").in_deltas(6).usage(900, 900);
    // All of it comes together with the end of the connection.
    let cut = reply.step().cut_after(700);
    let server = ModelServer::spawn_blocking_thread(Script::repeat(cut));
    let (bench, host, socket) = with_socket(&server, &[]);
    let answer = call(&socket, CALL);
    assert!(answer.contains("one") && !answer.contains("[DONE]"), "{answer}");
    wait_until("it is counted", || usage(&bench)["calls"] == 1);
    let used = usage(&bench);
    let estimated = json!({"calls": 1, "estimated": 1, "input": CALL.len() / 4, "output": used["output"], "cost": 0.0, "unpriced": 1});
    assert_eq!(used, estimated);
    assert!((100..=175).contains(&used["output"].as_u64().unwrap()), "{used}");
    finish(&bench, host, &socket);
}

#[test]
fn a_runner_without_secrets_gets_this_job_and_these_options() {
    let bench = Bench::with_groups("");
    let dump = r#"#!/bin/bash
cd "$(dirname "$0")"; cat > job; printf '%s\n' "$@" > options; tr '\0' '\n' < /proc/$$/environ > environment
printf -- '---NANOCLAW_OUTPUT_START---\n{"status":"success","result":"ok","newSessionId":"s"}\n---NANOCLAW_OUTPUT_END---\n'
"#;
    let runner = bench.path("fake-runner");
    fs::write(&runner, dump).unwrap();
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let host =
        start(&bench, &server, &["--backend", "process", "--runner", runner.to_str().unwrap()]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    stop(host);
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(
        read("job"),
        "{\"prompt\":\"<messages>\\n<message sender=\\\"Ann\\\" time=\\\"2026-01-01T00:00:00.000Z\\\">Hello</message>\\n\
         </messages>\",\"groupFolder\":\"family\",\"chatJid\":\"fam@g.us\",\"isMain\":false,\"assistantName\":\"Andy\",\
         \"secrets\":{}}"
    );
    let socket = bench.host("data/model/family/model.sock");
    let expected = ["--model-url", &format!("{}/v1", server.url()), "--model", "m-1"].join("\n");
    let options = read("options");
    assert!(options.contains(&expected), "{options}");
    assert!(options.ends_with(&format!("--model-socket\n{}\n", socket.display())), "{options}");
    assert!(!read("environment").contains(KEY) && !options.contains(KEY));
}

#[test]
fn only_calls_of_the_model_pass_and_nothing_of_theirs_but_the_body() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::openai().text("Hi.")));
    let (bench, host, socket) = with_socket(&server, &[]);
    let post = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: x");
    let other = CALL.replace("m-1", "m-2");
    let fallback = CALL.replace("\"stream\"", "\"models\":[\"m-2\"],\"stream\"");
    for (head, body, status) in [
        (post("/v1/models"), CALL, "404"),
        (post("/v1/chat/completions?key=1"), CALL, "404"),
        (post("/v1/../v1/chat/completions"), CALL, "404"),
        (post("//other.example/v1/chat/completions"), CALL, "404"),
        (post("/v1/chat/completions/"), CALL, "404"),
        (format!("GET {PATH} HTTP/1.1\r\nHost: x"), "", "405"),
        (post(PATH), &*other, "403"),
        (post(PATH), &*fallback, "403"),
        (post(PATH), "{\"model\":", "400"),
        (post(PATH), "[]", "400"),
    ] {
        let answer = ask(&socket, &head, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        assert!(answer.contains("{\"error\":{\"message\":\""), "{answer}");
    }
    let mut stream = UnixStream::connect(&socket).unwrap();
    let length = 17 * 1024 * 1024;
    write!(stream, "{}\r\nContent-Length: {length}\r\n\r\n", post(PATH)).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    // The same without a length in its head.
    let mut stream = UnixStream::connect(&socket).unwrap();
    write!(stream, "{}\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n", post(PATH)).unwrap();
    // The host stops reading at its limit.
    drop(stream.write_all(&vec![b' '; length]));
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    assert!(server.all_requests().is_empty());

    let head = "POST http://other.example/v1/chat/completions HTTP/1.1\r\nHost: other.example\r\nAuthorization: \
        Bearer mine\r\nCookie: a=b\r\nX-Forwarded-Host: other.example";
    let answer = ask(&socket, head, CALL);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("[DONE]"), "{answer}");
    let request = server.last_request();
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(request.body_text(), CALL);
    assert_eq!([request.header("cookie"), request.header("x-forwarded-host")], [None, None]);
    assert_eq!(format!("http://{}", request.header("host").unwrap()), server.url());
    finish(&bench, host, &socket);
}

#[test]
fn nothing_that_comes_back_holds_the_key() {
    let quoting = format!("{{\"error\":{{\"message\":\"the key {KEY} is bad\"}}}}");
    let location = format!("http://other.example/?{KEY}");
    let stream = format!("data: {{\"text\":\"{KEY}\"}}\n\ndata: [DONE]\n\n");
    let script = Script::from([
        Step::event_stream(stream).chunked_by(3),
        Step::status(200, &[("x-key", KEY), ("set-cookie", KEY)], format!("{{\"a\":\"{KEY}\"}}")),
        Step::status(200, &[("content-type", &*format!("text/{KEY}"))], "{}"),
        Step::status(401, &[("www-authenticate", KEY)], quoting.clone()),
        Step::status(500, &[("x-key", KEY), ("retry-after", KEY)], quoting),
        Step::status(307, &[("location", &*location)], ""),
        Step::raw("HTTP/1.1 nonsense\r\n\r\n"),
        Step::raw(""),
    ]);
    let server = ModelServer::spawn_blocking_thread(script);
    let (bench, host, socket) = with_socket(&server, &["--model-calls", "8"]);
    let expected = ["200", "200", "200", "401", "500", "502", "502", "502"]
        .map(|status| format!("HTTP/1.1 {status} "));
    let answers = expected.map(|status| {
        let answer = call(&socket, CALL);
        assert!(answer.starts_with(&status), "{status}: {answer}");
        assert!(!answer.contains(KEY) && !answer.contains(&KEY[..12]), "{answer}");
        answer
    });
    assert!(answers[0].contains("***"), "{}", answers[0]);
    assert!(answers[3].contains("OPENROUTER_API_KEY"), "{}", answers[3]);
    assert!(answers[4].contains("is bad"), "{}", answers[4]);
    let late = call(&socket, CALL);
    assert!(
        late.starts_with("HTTP/1.1 429 ") && late.contains("8 calls within a minute"),
        "{late}"
    );
    // Those that the server took, counted by their bytes.
    let used = usage(&bench);
    assert_eq!((&used["calls"], &used["estimated"]), (&json!(3), &json!(3)));
    finish(&bench, host, &socket);
}

#[test]
fn a_stream_passes_as_it_comes() {
    let gate = Gate::closed();
    let reply = Reply::openai().text("one two three four five six").in_deltas(6);
    let held = reply.step().event_by_event().hold_after(400, &gate);
    let server = ModelServer::spawn_blocking_thread(Script::repeat(held));
    let (bench, host, socket) = with_socket(&server, &[]);
    let mut stream = UnixStream::connect(&socket).unwrap();
    let length = CALL.len();
    write!(stream, "POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{CALL}")
        .unwrap();
    let mut answer = String::new();
    let mut chunk = [0; 1024];
    while !answer.contains("one") {
        let count = stream.read(&mut chunk).unwrap();
        answer.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    assert!(!answer.contains("[DONE]"), "{answer}");
    gate.open();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("[DONE]"), "{answer}");
    finish(&bench, host, &socket);
}

/// What a runner without network and key finds when it looks for both. The words that it prints are not in the command.
pub(super) fn searching(server_port: u16) -> String {
    format!(
        "env; tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/self/environ; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; \
         (exec 3<>/dev/tcp/127.0.0.1/{server_port}) 2>/dev/null && echo reached''-the-server; \
         for d in /run/myclaw /workspace /home/node \"$HOME\"; do [ -d $d ] && grep -rs '[h]ost-key-0123' $d && echo found''-the-key; done; echo searched"
    )
}

pub(super) fn isolated(server: &ModelServer, request: usize) {
    let requests = server.requests();
    let result = requests[request].messages().last().unwrap()["content"].to_string();
    assert!(result.contains("searched"), "{result}");
    for forbidden in [KEY, "reached-the-server", "found-the-key"] {
        assert!(!result.contains(forbidden), "{forbidden}: {result}");
    }
}

#[test]
fn a_sandboxed_runner_has_the_socket_of_its_group_and_nothing_else() {
    if !["/usr/bin/bwrap", "/bin/bwrap"].into_iter().any(|path| Path::new(path).exists()) {
        myclaw_testkit::skip_without("bubblewrap is not installed");
        return;
    }
    let bench = Bench::with_groups("");
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let sockets = format!("ls -R {}; echo searched", bench.host("data").display());
    let port = server.address().port();
    for (number, command) in [searching(port), sockets].into_iter().enumerate() {
        let arguments = json!({"command": command});
        server.push(Reply::openai().tool_call(number.to_string(), "Bash", arguments));
    }
    server.push(Reply::openai().text("Done."));
    let host = start(&bench, &server, &["--backend", "sandbox"]);
    bench.send("m1", "fam@g.us", "Look around");
    assert_eq!(bench.texts(1), ["Done."]);
    isolated(&server, 1);
    isolated(&server, 2);
    let listed = server.requests()[2].messages().last().unwrap()["content"].to_string();
    assert!(listed.contains("model.sock") && !listed.contains("main"), "{listed}");
    stop(host);
}

#[test]
fn what_cannot_work_is_refused_at_once() {
    let bench = Bench::with_groups("");
    for (url, problem) in [
        ("ftp://x/v1", "must begin with http:// or https://"),
        ("https://user:secret-word@x/v1", "give the key as OPENROUTER_API_KEY"),
        ("nonsense", "write it like https://host/v1"),
    ] {
        let mut command = bench.command(&["host", "--backend", "process", "--model-socket"]);
        let output = RunningChild::run(command.env("OPENROUTER_BASE_URL", url));
        output.assert_code(2);
        let said = output.stderr();
        assert!(said.contains(problem) && !said.contains("secret-word"), "{url}: {said}");
    }
}
