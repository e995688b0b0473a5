//! A disk without space.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::*;

/// Lets the gateway write no file, or all of them again.
fn limit(gateway: &Gateway, bytes: Option<u64>) {
    let process = Pid::from_raw(gateway.child.id() as i32);
    prlimit(process, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[test]
fn a_full_disk_refuses_messages_and_loses_none_that_was_acknowledged() {
    let bench = Bench::new(shared(|request, number| {
        let pause = if number == 1 { 1_500 } else { 0 };
        echo(request).step().delay(Duration::from_millis(pause))
    }));
    // The system's signal would end the process; without it, the write fails as on a full disk.
    let mut command = bench.home.command("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" gateway", env!("CARGO_BIN_EXE_myclaw")]);
    let gateway = Gateway::of(RunningChild::spawn(&mut command), &bench.home, bench.port);
    let client = &gateway.client;
    let first = client.send("s", "one", "<m1>").unwrap();
    assert_eq!(client.outcome(&first).unwrap()["reply"], "re: <m1>");
    // This turn ends on the full disk.
    let second = client.send("s", "two", "<m2>").unwrap();
    bench.model.wait_for_requests_blocking(2);
    limit(&gateway, Some(0));
    for _ in 0..2 {
        let body = json!({"session": "t", "id": "three", "text": "<m3>"});
        let (status, answer) = client.post("/api/messages", &body).unwrap();
        assert_eq!((status, &answer["error"]["class"]), (503, &json!("storage")), "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("check the free space"), "{message}");
    }
    // What is stored can be read.
    assert_eq!(client.outcome(&first).unwrap()["state"], "answered");
    assert_eq!(client.get("/health").unwrap().0, 200);
    limit(&gateway, None);
    let third = client.send("t", "three", "<m3>").unwrap();
    assert_eq!(client.outcome(&third).unwrap()["reply"], "re: <m3>");
    // Whether its turn met the full disk depends on the machine.
    let second = client.outcome(&second).unwrap();
    assert!(second["state"] == "answered" || second["state"] == "reported", "{second}");
    let fourth = client.send("s", "four", "<m4>").unwrap();
    let fourth = client.outcome(&fourth).unwrap();
    assert!(fourth["reply"].as_str().unwrap_or_default().contains("<m4>"), "{fourth}");
    for (session, mark) in [("s", "<m1>"), ("s", "<m2>"), ("t", "<m3>"), ("s", "<m4>")] {
        let rows = bench.rows(session);
        let is_of_user = |row: &&Value| {
            row["role"] == "user" && row["content"].as_str().unwrap_or_default().contains(mark)
        };
        assert_eq!(rows.iter().filter(is_of_user).count(), 1, "rows with {mark}");
    }
    gateway.stop();
}
