//! A user of the database for each tenant, and one bucket for two of them.

use myclaw_testkit::ObjectStorage;

use super::audit::Audit;
use super::objects::{machine, model_with_outputs, turn};
use super::*;

/// The tenants, each with a user of its own, who owns the tables.
const TENANTS: [&str; 2] = ["anna", "bob"];

/// The machine works for a tenant, with the user of the database that has this name.
fn become_user(machine: &Machine, model: &ModelServer, (tenant, user): (&str, &str), blobs: &str) {
    let url = machine.url.replace("myclaw:secret@", &format!("{user}:of-{user}@"));
    machine.configure("one", model, |config| {
        config["gateway"]["tenant"] = json!(tenant);
        config["gateway"]["store"] = json!(url);
        config["gateway"]["blobs"] = json!(blobs);
    });
}

#[test]
fn users_of_tenants_reach_their_own_tables_and_objects_only() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let (model, blobs) = (model_with_outputs("line"), storage.address("p", storage.port()));
    let audit = Audit::without_triggers(&url);
    audit.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm");
    for name in TENANTS {
        audit.execute(&format!(
            "CREATE ROLE {name} LOGIN PASSWORD 'of-{name}'; CREATE SCHEMA myclaw_{name} AUTHORIZATION {name}"
        ));
    }
    let machines = TENANTS.map(|_| machine("one", &url, &model, &blobs));
    for (machine, name) in machines.iter().zip(TENANTS) {
        become_user(machine, &model, (name, name), &blobs);
        machine.run(&["store", "migrate"]).assert_code(0);
        let gateway = machine.start();
        turn(&gateway, "m1");
        gateway.stop();
    }
    let names = storage.names();
    let of = |name: &str| -> Vec<&String> {
        names.iter().filter(|object| object.starts_with(&format!("p/{name}/"))).collect()
    };
    assert_eq!((of("anna").len(), of("bob").len(), names.len()), (1, 1, 2), "{names:?}");
    let owners = "SELECT DISTINCT schemaname || ' ' || tableowner FROM pg_tables WHERE schemaname LIKE 'myclaw%' ORDER BY 1";
    assert_eq!(audit.texts(owners, &[]), ["myclaw_anna anna", "myclaw_bob bob"]);

    // A user with the tables of another one: a message that says so, and nothing is read or changed.
    let [anna, _] = &machines;
    become_user(anna, &model, ("bob", "anna"), &blobs);
    for arguments in [
        &["gateway"][..],
        &["store", "check"],
        &["store", "migrate"],
        &["cluster", "status"],
        &["sessions", "list"],
    ] {
        let output = anna.run(arguments);
        let said = output.stderr();
        assert_eq!(
            (output.code(), output.stdout().as_str()),
            (Some(1), ""),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("permission denied for schema myclaw_bob"), "{said}");
        assert!(said.contains("own that of the tenant"), "{said}");
        assert!(!said.contains("of-anna"), "{said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    }
    // Past this program too.
    let query = audit.refusal("SET ROLE anna; SELECT * FROM myclaw_bob.entry");
    assert!(query.contains("permission denied"), "{query}");
    become_user(anna, &model, ("anna", "anna"), &blobs);
    let state = nodes::status(anna);
    assert_eq!(state["tenants"], json!(["anna"]), "{state}");
    // What one deletes is its own.
    anna.run(&["sessions", "delete", "main", "--yes"]).assert_code(0);
    assert_eq!(storage.names(), of("bob").into_iter().cloned().collect::<Vec<_>>());
}
