//! Keys of providers in the database.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::*;

const KEY: &str = "sk-ant-0123456789-0123456789-kept";
/// What seals the keys of these machines.
const SEAL: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";

/// The command, on a machine that has this key of the store.
fn sealed(machine: &Machine, arguments: &[&str], seal: &str) -> std::process::Command {
    let mut command = machine.command(arguments);
    command.env("MYCLAW_STORE_KEY", seal);
    command
}

fn run(machine: &Machine, arguments: &[&str], seal: &str) -> ChildOutput {
    RunningChild::run(&mut sealed(machine, arguments, seal))
}

/// Gives a machine the key of the provider, as a user does.
fn add(machine: &Machine, seal: &str) {
    let mut command = sealed(machine, &["auth", "add", "anthropic"], seal);
    let mut child = RunningChild::spawn_piped(&mut command);
    child.send(&format!("{KEY}\n"));
    child.close_stdin();
    child.wait(Duration::from_secs(60)).assert_code(0);
}

/// The values of all records.
fn records(url: &str) -> String {
    let sql = "SELECT string_agg(encode(value, 'escape'), ' ') FROM myclaw.record";
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one(sql, &[]).await.unwrap().get(0)
    })
}

fn without_keys(config: &mut Value) {
    let provider = config.as_object_mut().unwrap().remove("provider").unwrap();
    config["models"]["providers"]["anthropic"] = json!({"baseUrl": provider["baseUrl"]});
    let model = format!("anthropic/{}", provider["model"].as_str().unwrap());
    config["agents"] = json!({"defaults": {"model": model}});
}

#[test]
fn a_key_that_one_machine_keeps_is_the_key_of_all() {
    let Some((_server, url)) = database() else { return };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = {
        let seen = Arc::clone(&seen);
        ModelServer::spawn_blocking_thread(Script::answer_with(move |request, _| {
            seen.lock().extend(request.header("x-api-key").map(str::to_owned));
            echo(request).step()
        }))
    };
    let machine = |name: &str| {
        let machine = Machine::new(name, &url, &model);
        machine.configure(name, &model, without_keys);
        machine
    };
    let (one, two) = (machine("one"), machine("two"));
    add(&one, SEAL);
    let files = one.home.state_directory().join("agents/main/agent/auth-profiles.json");
    assert!(!files.exists());

    // The other machine has it in the same file of a secret, and answers with it.
    let file = two.home.write("seal", format!("{SEAL}\n"));
    let seal = format!("file:{}", file.display());
    let child = RunningChild::spawn(&mut sealed(&two, &["gateway"], &seal));
    child.wait_for_stderr("listening on http://127.0.0.1:");
    let gateway = Gateway { child, client: two.client() };
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
    // A turn whose lease ends on a busy machine asks again.
    let keys = seen.lock().clone();
    assert!(!keys.is_empty() && keys.iter().all(|key| key == KEY), "{keys:?}");
    let listed = run(&one, &["auth", "list", "--json"], SEAL);
    listed.assert_code(0);
    let row: Value = serde_json::from_str(listed.stdout().lines().next().unwrap()).unwrap();
    assert!(row["profile"] == "anthropic:default" && row.get("lastUsed").is_some(), "{row}");

    // Nothing in the database shows it, and no other machine reads it.
    let dumped = records(&url);
    assert!(dumped.contains("sealed") && !dumped.contains("sk-ant"), "{dumped}");
    let stranger = run(&one, &["auth", "list"], &SEAL.replace("0f", "1f"));
    stranger.assert_code(1);
    let said = stranger.stderr();
    assert!(said.contains("encrypted with another MYCLAW_STORE_KEY"), "{said}");
    for seal in ["0f1e", "no key", &SEAL.replace('f', "g")] {
        let refused = run(&one, &["auth", "list"], seal);
        refused.assert_code(3);
        assert!(refused.stderr().contains("openssl rand -hex 32"), "{}", refused.stderr());
    }
}

#[test]
fn keys_go_into_the_database_and_back() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    machine.configure("one", &model, |config| {
        without_keys(config);
        config["gateway"].as_object_mut().unwrap().remove("store");
    });
    add(&machine, "");
    let name = "agents/main/agent/auth-profiles.json";
    let before = fs::read_to_string(machine.home.state_directory().join(name)).unwrap();
    fs::create_dir_all(machine.home.state_directory().join("sessions")).unwrap();
    machine.configure("one", &model, without_keys);
    let imported = run(&machine, &["store", "import"], SEAL);
    imported.assert_code(0);
    assert!(imported.stderr().contains("1 keys and logins"), "{}", imported.stderr());
    for (seal, is_there) in [(SEAL, true), ("", false)] {
        let copy = machine.home.path().join(format!("copy{is_there}"));
        let exported = run(&machine, &["store", "export", copy.to_str().unwrap()], seal);
        exported.assert_code(0);
        let said = exported.stderr();
        assert_eq!(said.contains("MYCLAW_STORE_KEY is not set"), !is_there, "{said}");
        let after = fs::read_to_string(copy.join(name)).ok();
        assert_eq!(after.as_deref(), is_there.then_some(before.as_str()));
    }
}
