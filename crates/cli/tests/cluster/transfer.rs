//! A state directory into a database and back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::proxy::{Fate, Mark, Proxy};
use super::*;

/// The logs of a state directory, byte by byte.
fn logs(state: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut logs = BTreeMap::new();
    for file in fs::read_dir(state.join("sessions")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            logs.insert(name, fs::read(&path).unwrap());
        }
    }
    logs
}

/// Small documents of the agent and of MCP servers, with their texts; files next to them are none.
const DOCUMENTS: [(&str, &str); 4] = [
    ("agents/main/agent/memory/forgotten.json", r#"{"rows":[["s","r"]],"facts":["d"]}"#),
    ("mcp/files.0123456789abcdef.json", r#"{ "server": "files" }"#),
    ("mcp/projects/0f.json", r#"{"path":"/p/.mcp.json","text":"{}"}"#),
    ("mcp/files.log", "started"),
];

fn without_store(config: &mut Value) {
    config["gateway"].as_object_mut().unwrap().remove("store");
}

#[test]
fn a_state_directory_goes_into_a_database_and_back_with_every_byte() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    machine.configure("one", &model, without_store);
    let gateway = machine.start();
    let mut ids = Vec::new();
    for (session, text) in [("main", "say <m1>"), ("main", "say <m2>"), ("other", "say <m3>")] {
        let id = gateway.client.send(session, text, text).unwrap();
        gateway.client.outcome(&id).unwrap();
        ids.push(id);
    }
    gateway.stop();
    // Lines of an earlier version, of a later one, and of nobody are kept too.
    let path = machine.home.transcript_path("other");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"of a later version\",\"x\": 1 }\n\nno JSON at all\n");
    fs::write(&path, text).unwrap();
    machine.run(&["sessions", "fork", "agent:main:cli:direct:other", "forked"]);
    let state = machine.home.state_directory();
    let before = logs(&state);
    for (name, text) in DOCUMENTS {
        fs::create_dir_all(state.join(name).parent().unwrap()).unwrap();
        fs::write(state.join(name), text).unwrap();
    }
    machine.configure("one", &model, |_| {});
    let imported = machine.run(&["store", "import"]);
    imported.assert_code(0);
    assert!(imported.stderr().contains("2 sessions") || imported.stderr().contains("3 sessions"));
    assert_eq!(logs(&state), before, "the directory stays as it is");
    let again = machine.run(&["store", "import"]);
    again.assert_code(1);
    assert!(again.stderr().contains("is not empty"), "{}", again.stderr());

    let copy = machine.home.path().join("copy");
    machine.run(&["store", "export", copy.to_str().unwrap()]).assert_code(0);
    let after = logs(&copy);
    for name in before.keys().filter(|name| !name.contains("forked")) {
        let [before, after] = [&before[name], &after[name]].map(|it| String::from_utf8_lossy(it));
        assert_eq!(before, after, "{name}");
    }
    assert_eq!(before.len(), after.len());
    for (name, text) in DOCUMENTS {
        let expected = name.ends_with(".json").then(|| text.to_owned());
        assert_eq!(fs::read_to_string(copy.join(name)).ok(), expected, "{name}");
    }
    let full = machine.run(&["store", "export", copy.to_str().unwrap()]);
    full.assert_code(1);
    assert!(full.stderr().contains("is not empty"), "{}", full.stderr());

    // A gateway on the database knows the messages, and continues with the sessions.
    let gateway = machine.start();
    assert_eq!(gateway.client.outcome(&ids[2]).unwrap()["reply"], "re: <m3>");
    let id = gateway.client.send("main", "d", "say <m4>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m4>");
    let busy = machine.run(&["store", "import"]);
    busy.assert_code(1);
    gateway.stop();

    one_machine_runs(&copy, &machine, &model, &ids[0]);
}

/// A gateway without a database runs an exported directory, and knows this message.
fn one_machine_runs(copy: &Path, machine: &Machine, model: &ModelServer, message: &str) {
    machine.configure("one", model, without_store);
    let of_copy = |arguments: &[&str]| {
        let mut command = machine.command(arguments);
        command.env("MYCLAW_STATE_DIR", copy).env("MYCLAW_CONFIG_PATH", machine.home.config_path());
        command
    };
    let lists = [
        machine.command(&["sessions", "list", "--json"]),
        of_copy(&["sessions", "list", "--json"]),
    ];
    let [before, after] = lists.map(|mut command| {
        let output = RunningChild::run(&mut command);
        output.assert_code(0);
        output.stdout().lines().count()
    });
    // The copy has what was said since the import too, in a session that both have.
    assert_eq!(before, after);
    let child = RunningChild::spawn(&mut of_copy(&["gateway"]));
    child.wait_for_stderr("listening on http://127.0.0.1:");
    let gateway = Gateway { child, client: machine.client() };
    assert_eq!(gateway.client.outcome(message).unwrap()["reply"], "re: <m1>");
    gateway.stop();
}

/// Runs a command until the second of these requests, and kills it there.
fn killed_at(
    machine: &Machine,
    url: &str,
    server: &PostgresServer,
    arguments: &[&str],
    mark: Mark,
) {
    let proxy = Proxy::start(server.port());
    proxy.await_requests(&[mark], &[Fate::Pass, Fate::Hold]);
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    let mut command = machine.command(arguments);
    let child = RunningChild::spawn(command.env("MYCLAW_STORE_URL", through));
    until("it is in the middle", || proxy.waiting() == 0);
    child.signal(myclaw_testkit::Signal::Kill);
    child.wait(PATIENCE);
    proxy.cut();
}

#[test]
fn what_is_killed_in_the_middle_of_a_copy_is_not_taken_for_the_whole() {
    let Some((server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    machine.configure("one", &model, without_store);
    let gateway = machine.start();
    let mut messages = Vec::new();
    for session in ["1", "2", "3"] {
        let id = gateway.client.send(session, session, &format!("say <m{session}>")).unwrap();
        gateway.client.outcome(&id).unwrap();
        messages.push(id);
    }
    gateway.stop();
    let before = logs(&machine.home.state_directory());
    machine.configure("one", &model, |_| {});
    killed_at(&machine, &url, &server, &["store", "import"], Mark::Finish);
    for arguments in
        [&["gateway"][..], &["store", "check"], &["sessions", "list"], &["cluster", "status"]]
    {
        let refused = machine.run(arguments);
        refused.assert_code(1);
        let said = refused.stderr();
        assert!(
            said.contains("is not complete; run `myclaw store import"),
            "{arguments:?}: {said}"
        );
    }
    // Another directory would be mixed with it.
    let other = machine.home.path().join("other");
    fs::create_dir_all(other.join("sessions")).unwrap();
    let refused = machine.run(&["store", "import", other.to_str().unwrap()]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("is not complete"), "{}", refused.stderr());
    let imported = machine.run(&["store", "import"]);
    imported.assert_code(0);
    assert!(imported.stderr().contains("3 sessions"), "{}", imported.stderr());

    let copy = machine.home.path().join("copy");
    let export = ["store", "export", copy.to_str().unwrap()];
    killed_at(&machine, &url, &server, &export, Mark::Forward);
    assert!(!copy.exists());
    let refused = machine.run(&export);
    refused.assert_code(1);
    assert!(refused.stderr().contains("copy.incomplete is the part"), "{}", refused.stderr());
    fs::remove_dir_all(copy.with_file_name("copy.incomplete")).unwrap();
    machine.run(&export).assert_code(0);
    assert_eq!(logs(&copy), before);
    let gateway = machine.start();
    for (message, session) in messages.iter().zip(["1", "2", "3"]) {
        assert_eq!(gateway.client.outcome(message).unwrap()["reply"], format!("re: <m{session}>"));
    }
    assert_eq!(gateway.client.get("/api/sessions").unwrap().1["total"], 3);
    gateway.stop();
}
