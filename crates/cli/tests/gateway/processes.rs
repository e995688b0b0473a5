//! The process: its start, its end, and what is in its way.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use myclaw_testkit::ChildOutput;

use super::*;

fn status(bench: &Bench) -> ChildOutput {
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(command.args(["gateway", "status"]))
}

#[test]
fn the_state_of_a_gateway_is_shown() {
    let bench = Bench::new(answering("never"));
    let none = status(&bench);
    none.assert_code(1);
    assert!(none.stderr().contains("no gateway runs; start one"), "{}", none.stderr());
    let gateway = bench.start();
    let shown = status(&bench);
    shown.assert_code(0);
    let process = format!("process {}", gateway.child.id());
    assert!(shown.stdout().contains(&process), "{}", shown.stdout());
    for question in ["status", "probe", "list"] {
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let asked = RunningChild::run(command.args(["channels", question]));
        asked.assert_code(0);
        assert_eq!(asked.stdout(), "no channels; `myclaw channels add telegram` adds one\n");
    }
    gateway.stop();
    // A stranger at the address gets neither a connection nor the token.
    let stranger = TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let other = status(&bench);
    other.assert_code(1);
    assert!(other.stderr().contains("no gateway runs; start one"), "{}", other.stderr());
    assert_eq!(stranger.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_second_gateway_on_one_state_directory_does_not_start() {
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let second = bench.command().wait(PATIENCE);
    second.assert_code(1);
    let says = format!("process {}", gateway.child.id());
    assert!(second.stderr().contains(&says), "{}", second.stderr());
    assert!(second.stderr().contains("stop it first"), "{}", second.stderr());
    assert_eq!(gateway.client.get("/health").unwrap().0, 200);
    gateway.stop();
}

#[test]
fn a_port_in_use_a_newer_store_and_a_short_token_have_one_message_each() {
    let bench = Bench::new(answering("never"));
    let stranger = TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    let refused = bench.command().wait(PATIENCE);
    refused.assert_code(1);
    assert!(refused.stderr().contains("gateway.port"), "{}", refused.stderr());
    drop(stranger);

    bench.configure(|config| config["gateway"]["token"] = json!("short"));
    let refused = bench.command().wait(PATIENCE);
    refused.assert_code(1);
    assert!(refused.stderr().contains("fewer than 16 bytes"), "{}", refused.stderr());
    bench.configure(|_| {});

    let store = bench.home.state_directory().join("gateway/store.sqlite");
    // The version of the tables is at byte 60 of every SQLite file.
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
    std::fs::write(&store, &bytes).unwrap();
    let refused = bench.command().wait(PATIENCE);
    refused.assert_code(1);
    assert!(refused.stderr().contains("the newer version that wrote it"), "{}", refused.stderr());
    assert_eq!(refused.stderr().lines().count(), 1, "{}", refused.stderr());
}

#[test]
fn a_stop_waits_for_the_running_turn_and_leaves_new_messages_to_the_next_start() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let gateway = bench.start();
    gateway.client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    // It is taken before the next one, so it is open when the stop begins.
    let client = &gateway.client;
    let mut open = TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    assert_eq!(client.get("/ready").unwrap().0, 200);
    gateway.child.signal(Signal::Terminate);
    until("the stop", || client.get("/ready").is_err());
    let error = client.send("main", "two", "<m2>").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let body = json!({"session": "main", "id": "two", "text": "<m2>"}).to_string();
    let (head, length) = (client.head("POST", "/api/messages"), body.len());
    let kind = "Content-Type: application/json\r\nContent-Length:";
    write!(open, "{head}{kind} {length}\r\n\r\n{body}").unwrap();
    let mut refused = String::new();
    open.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("stopping"), "{refused}");
    gate.open();
    gateway.child.wait(PATIENCE).assert_code(0);
    assert_eq!(bench.said("main"), ["<m1>", "re: <m1>"]);
    // The same message under the same id is accepted then: nothing of it was stored.
    let gateway = bench.start();
    let id = gateway.client.send("main", "two", "<m2>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m2>");
    gateway.stop();
}

#[test]
fn a_turn_that_takes_too_long_is_left_to_the_next_start() {
    let bench = Bench::new(echoing_after(&Gate::closed()));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    gateway.child.signal(Signal::Terminate);
    gateway.child.wait(PATIENCE).assert_code(0);
    let gateway = bench.start();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
    assert_eq!(bench.said("main"), ["<m1>", "re: <m1>"]);
}
