//! How much may wait for an answer.

use std::sync::atomic::{AtomicUsize, Ordering};

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
