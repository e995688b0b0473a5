use myclaw_store_postgres::{Address, Options, PostgresSessions};
use myclaw_testkit::PostgresServer;

use super::*;

#[path = "../../../files/tests/documents/conformance.rs"]
mod conformance;

#[test]
fn records_pass_the_conformance_suite_of_documents() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let address = Address::parse(&server.url("postgres")).unwrap();
    let scratch = std::env::temp_dir().join("none");
    let sessions = PostgresSessions::open(
        address.clone(),
        &Options::default(),
        &myclaw_store::Partition::MAIN,
        scratch,
    );
    let sessions = Arc::new(sessions.unwrap());
    let records = Arc::new(Blocking::open(sessions, address, Options::default()).unwrap());
    let new = |number: u32| {
        RecordedDocuments::new(Arc::clone(&records), format!("{MEMORY}agent-{number}"))
    };
    let mut number = 0;
    conformance::all(&mut || {
        number += 1;
        Arc::new(new(number))
    });
    let mut long = |_: Option<&str>| "x".repeat(MAX_VALUE_BYTES);
    let error = new(0).change("a", Durability::Synced, &mut long).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 1048576 bytes");
    assert_eq!(new(0).read("a").unwrap(), None);
}
