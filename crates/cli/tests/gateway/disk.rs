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

/// A token that the test knows: it does not see the files of the gateway.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_small_disk_that_fills_up_loses_nothing_and_is_used_again() {
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    let mut probe = std::process::Command::new(namespace[0]);
    probe.args(&namespace[1..]).args(["sh", "-c", "mount -t tmpfs none /mnt"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        myclaw_testkit::skip_here("it needs `unshare` and the right to mount in a namespace");
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let bench = Bench::new(shared(move |request, number| match number {
        1 => echo(request).step().hold_after(0, &held),
        _ => echo(request).step(),
    }));
    bench.configure(|config| config["gateway"]["token"] = json!(TOKEN));
    let state = bench.home.state_directory();
    let place = state.display();
    let shell = format!(
        "cp -a '{place}' '{place}.kept' && mount -t tmpfs -o size=16m none '{place}' && \
         cp -a '{place}.kept/.' '{place}' && exec \"$@\""
    );
    let mut command = bench.home.command(namespace[0]);
    command.args(&namespace[1..]).args(["sh", "-c", &shell, "sh"]);
    command.args([env!("CARGO_BIN_EXE_myclaw"), "gateway"]);
    let child = RunningChild::spawn(&mut command);
    child.wait_for_stderr("listening on http://127.0.0.1:");
    let gateway = Gateway { child, client: Client { port: bench.port, token: TOKEN.to_owned() } };
    let client = &gateway.client;
    let first = client.send("s", "one", "<m1>").unwrap();
    assert_eq!(client.outcome(&first).unwrap()["reply"], "re: <m1>");
    // This turn ends on the full disk.
    let second = client.send("s", "two", "<m2>").unwrap();
    bench.model.wait_for_requests_blocking(2);
    // The disk of the process, seen from here.
    let seen = format!("/proc/{}/root{place}/ballast", gateway.child.id());
    let mut ballast = std::fs::File::create(&seen).unwrap();
    while std::io::Write::write_all(&mut ballast, &[0; 4_096]).is_ok() {}
    while std::io::Write::write_all(&mut ballast, &[0]).is_ok() {}
    gate.open();
    // The store may have room left in its own files, until it is used up too.
    let sent: Vec<(String, Option<String>)> = (3..2_000)
        .map(|number| {
            let text = format!("<m{number}> {}", "x".repeat(20_000));
            let body = json!({"session": "t", "id": number.to_string(), "text": text});
            let (status, answer) = client.post("/api/messages", &body).unwrap();
            if status == 503 {
                assert_eq!(answer["error"]["class"], "storage", "{answer}");
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains("check the free space"), "{message}");
            }
            (number.to_string(), answer["messageId"].as_str().map(str::to_owned))
        })
        .scan(false, |is_over, sent| {
            let is_last = std::mem::replace(is_over, sent.1.is_none());
            (!is_last).then_some(sent)
        })
        .collect();
    let refused = sent.last().unwrap();
    assert_eq!(refused.1, None, "nothing was refused");
    assert_eq!(client.outcome(&first).unwrap()["state"], "answered");
    assert_eq!(client.get("/health").unwrap().0, 200);
    std::fs::remove_file(&seen).unwrap();
    drop(ballast);
    let number = &refused.0;
    let third = client.send("t", number, &format!("<m{number}>")).unwrap();
    let fourth = client.send("u", "last", "<m5000>").unwrap();
    assert_eq!(client.outcome(&fourth).unwrap()["reply"], "re: <m5000>");
    super::subagents::settle(client);
    for message in sent.iter().filter_map(|(_, message)| message.as_ref()).chain([&second, &third])
    {
        let outcome = client.outcome(message).unwrap();
        assert!(outcome["state"] == "answered" || outcome["state"] == "reported", "{outcome}");
    }
    gateway.stop();
}
