//! Databases that cannot be used, at the start and later, and commands that leave the database to gateways.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::audit::Audit;
use super::scene::within;
use super::*;

/// The message of a command that fails with this code.
fn refused(machine: &Machine, arguments: &[&str], code: i32) -> String {
    let output = machine.run(arguments);
    output.assert_code(code);
    output.stderr()
}

#[test]
fn each_reason_why_a_database_cannot_be_used_has_a_message() {
    let Some((server, url)) = database() else { return };
    let model = model();
    let of = |url: &str| Machine::new("one", url, &model);
    let check = ["store", "check"];
    let gone = of(&format!("postgresql://myclaw:secret@127.0.0.1:{}/x", free_port()));
    let said = refused(&gone, &check, 1);
    assert!(said.contains("cannot be reached") && !said.contains("secret"), "{said}");
    let said = refused(&of(&url.replace("secret", "wrong")), &check, 1);
    assert!(said.contains("refuses the login") && !said.contains("wrong@"), "{said}");
    let said = refused(&of(&format!("{}x", server.url("no"))), &check, 1);
    assert!(said.contains("create it with createdb"), "{said}");
    let said = refused(&of(&format!("{url}?sslmode=verify-full")), &check, 1);
    assert!(said.contains("does not encrypt connections"), "{said}");
    let said = refused(&of(&format!("{url}?sslmode=prefer")), &check, 3);
    assert!(said.contains("gateway.store") && said.contains("sslmode=verify-full"), "{said}");
    let said = refused(&of("mysql://h/d"), &check, 3);
    assert!(said.contains("expected the address of a PostgreSQL database"), "{said}");
    let said = refused(&of("env:NO_SUCH_VARIABLE"), &check, 3);
    assert!(said.contains("NO_SUCH_VARIABLE, which is not set"), "{said}");
    let said = refused(&of("file:/no/such/file"), &check, 3);
    assert!(said.contains("/no/such/file, which cannot be read"), "{said}");
    let said = refused(&of("!pass db"), &check, 3);
    assert!(said.contains("neither a command nor a keyring"), "{said}");
    let usable = of(&url);
    let path = usable.home.write("address", format!("{url}\n"));
    let from_file = of(&format!("file:{}", path.display()));
    from_file.run(&check).assert_code(0);
    let mut command = gone.command(&check);
    RunningChild::run(command.env("MYCLAW_STORE_URL", &url)).assert_code(0);
    let mut command = usable.command(&check);
    let output = RunningChild::run(command.env("MYCLAW_STORE_LEASE_MS", "5"));
    output.assert_code(3);
    assert!(output.stderr().contains("milliseconds from 1000 to 600000"), "{}", output.stderr());
}

#[test]
fn only_gateways_work_on_sessions_in_a_database() {
    // Nobody listens there: these commands do not even ask.
    let model = model();
    let machine = Machine::new("one", "postgresql://127.0.0.1:1/x", &model);
    for arguments in [&["chat"][..], &["acp"]] {
        let said = refused(&machine, arguments, 3);
        assert!(said.contains("myclaw attach"), "{arguments:?}: {said}");
    }
    let alone = machine.run(&["run", "--no-session", "say <m1>"]);
    alone.assert_code(0);
    for arguments in [&["usage"][..], &["devices", "list"], &["pairing", "list"], &["cron", "list"]]
    {
        let said = refused(&machine, arguments, 1);
        assert!(said.contains("no gateway runs on this machine"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_database_that_is_away_for_a_while_loses_nothing() {
    let Some((server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    gateway.client.outcome(&id).unwrap();
    server.kill();
    std::thread::scope(|scope| {
        // It waits for the database rather than being lost.
        let waiting = scope.spawn(|| gateway.client.send("main", "b", "say <m2>"));
        std::thread::sleep(std::time::Duration::from_millis(LEASE_MS + 500));
        server.launch();
        let id = match waiting.join().unwrap() {
            Ok(id) => id,
            Err(_) => gateway.client.send("main", "b", "say <m2>").unwrap(),
        };
        assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m2>");
    });
    gateway.stop();
    let logs = exported(&machine);
    assert_eq!((count(&logs, "user", "<m2>"), count(&logs, "assistant", "<m2>")), (1, 1));
}

#[test]
fn a_message_that_cannot_be_stored_for_long_is_refused_until_the_database_is_back() {
    let Some((server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    server.kill();
    let body = json!({"session": "main", "id": "a", "text": "say <m1>"}).to_string();
    let head = gateway.client.head("POST", "/api/messages");
    let length = body.len();
    let request =
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    // One call of the store tries for half a minute; the client waits less than that for all of them.
    let mut stream = TcpStream::connect(("127.0.0.1", machine.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE / 3)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 2\r\n"), "{answer}");
    assert!(answer.contains("\"class\":\"storage\""), "{answer}");
    assert!(answer.contains("send it again under the same id"), "{answer}");
    server.launch();
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
}

/// Sends a message until it is accepted, as a source does, and waits for its answer.
fn insist(gateway: &Gateway, id: &str, mark: &str) {
    let text = format!("say {mark}");
    let id = (0..100).find_map(|_| gateway.client.send("main", id, &text).ok()).unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], format!("re: {mark}"));
}

/// Each reason is said once. Nothing that was accepted is lost, and the gateway goes on by itself.
#[test]
fn a_database_that_is_changed_under_a_gateway_is_named_and_used_again() {
    let Some((server, url)) = database() else { return };
    let (admin, inside) = (Audit::without_triggers(&url), server.url("narrow"));
    admin.execute("CREATE ROLE narrow LOGIN PASSWORD 'first'");
    admin.execute("CREATE DATABASE narrow OWNER narrow");
    let (address, inside) =
        (inside.replace("myclaw:secret", "narrow:first"), Audit::without_triggers(&inside));
    let model = model();
    let machine = Machine::new("one", &address, &model);
    let gateway = machine.start();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'narrow'";
    let cases = [
        (
            "does not exist",
            &admin,
            "ALTER DATABASE narrow RENAME TO other",
            "ALTER DATABASE other RENAME TO narrow",
        ),
        (
            "refuses the login",
            &admin,
            "ALTER ROLE narrow PASSWORD 'second'",
            "ALTER ROLE narrow PASSWORD 'first'",
        ),
        (
            "permission denied",
            &inside,
            "ALTER SCHEMA myclaw OWNER TO myclaw",
            "ALTER SCHEMA myclaw OWNER TO narrow",
        ),
    ];
    let mut marks = Vec::new();
    for (number, (problem, connection, change, back)) in cases.into_iter().enumerate() {
        let [before, during] = [0, 1].map(|which| format!("<m{}>", 10 * number + which));
        insist(&gateway, &before, &before);
        // A database with connections gets no other name.
        connection.execute(&format!("{end}; {change}; {end}"));
        gateway.child.wait_for_stderr(problem);
        let refused = gateway.client.send("main", &during, &format!("say {during}")).unwrap_err();
        assert!(refused.to_string().contains(problem), "{refused}");
        connection.execute(back);
        insist(&gateway, &during, &during);
        let said = || gateway.child.wait_for_stderr("listening on");
        let is_again = || said().matches("the database can be used again").count() > number;
        assert!(within(PATIENCE, is_again), "{}", said());
        marks.extend([before, during]);
    }
    // The server becomes a standby, and takes writes again later.
    server.kill();
    std::fs::write(server.directory().join("data/standby.signal"), "").unwrap();
    server.launch();
    let refused = gateway.client.send("main", "standby", "say <m90>").unwrap_err();
    assert!(refused.to_string().starts_with("503"), "{refused}");
    server.promote();
    insist(&gateway, "standby", "<m90>");
    marks.push("<m90>".to_owned());
    for number in 100..120 {
        let mark = format!("<m{number}>");
        admin.execute(end);
        insist(&gateway, &mark, &mark);
        marks.push(mark);
    }
    let said = gateway.child.wait_for_stderr("listening on");
    for problem in ["does not exist", "refuses the login", "permission denied"] {
        let lines = said.lines().filter(|line| line.contains(problem));
        assert_eq!(lines.count(), 1, "{problem}: {said}");
    }
    assert_eq!(said.matches("the database can be used again").count(), 3, "{said}");
    gateway.stop();
    let logs = exported(&machine);
    for mark in marks {
        let counts = (count(&logs, "user", &mark), count(&logs, "assistant", &mark));
        assert_eq!(counts, (1, 1), "{mark}");
    }
}
