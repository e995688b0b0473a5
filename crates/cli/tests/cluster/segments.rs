//! Old parts of sessions in object storage, as users meet them.

use std::path::Path;

use myclaw_testkit::ObjectStorage;

use super::audit::Audit;
use super::objects::{machine, turn};
use super::proxy::Proxy;
use super::web_socket::{Socket, block_on};
use super::*;

/// Rows of an old session, and the word that one of the oldest has.
const ROWS: usize = 3_200;
const WORD: &str = "Zanzibarium";
/// Makes the session `main` one that was talked to for a long time.
fn age(audit: &Audit) {
    let last = format!("r{ROWS}");
    let summary = json!({"type": "compaction", "id": "summary", "ts": 2, "summary": "what was said", "firstKeptId": last,
        "tokensBefore": 9, "oldCount": 2, "newCount": 1});
    audit.execute(&format!(
        "CREATE TEMP TABLE old AS SELECT id FROM myclaw.session WHERE key LIKE '%main' AND last_seq = 2;
         INSERT INTO myclaw.entry (session, seq, id, kind, body)
         SELECT old.id, seq, 'r' || seq, 'message', format(
             '{{\"id\":\"r%s\",\"role\":\"%s\",\"content\":\"%s\",\"ts\":1}}', seq,
             CASE WHEN seq % 2 = 0 THEN 'assistant' ELSE 'user' END,
             CASE WHEN seq = 17 THEN 'My doctor is {WORD}' ELSE 'row ' || seq END)
         FROM old, generate_series(3, {ROWS}) AS seq;
         INSERT INTO myclaw.entry (session, seq, id, kind, body)
         SELECT id, {ROWS} + 1, 'summary', 'compaction', '{summary}' FROM old;
         UPDATE myclaw.session SET last_seq = {ROWS} + 1 FROM old WHERE session.id = old.id;
         INSERT INTO myclaw.sealable (session) SELECT id FROM old"
    ));
}

/// A node of a version that knows of no old parts, which gives its signs ahead of time.
fn older_node(audit: &Audit) {
    audit.execute(
        r#"INSERT INTO myclaw.record (partition, kind, key, version, value, queue, place, entered, epoch, lease_until)
           SELECT partition, kind, 'older', version, convert_to((convert_from(value, 'UTF8')::jsonb - 'readsOldParts'
               || '{"name": "older", "holder": "older", "seen": 9000000000000000}')::text, 'UTF8'), queue, place, entered, 0, 0
           FROM myclaw.record WHERE kind = 'node'"#,
    );
}

fn log_of(machine: &Machine, name: &str) -> Vec<u8> {
    let directory = machine.home.path().join(name);
    machine.run(&["store", "export", directory.to_str().unwrap()]).assert_code(0);
    let log = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let mut files = std::fs::read_dir(directory.join("sessions")).unwrap();
    let path = files.find_map(|file| Some(file.unwrap().path()).filter(|path| log(path)));
    std::fs::read(path.unwrap()).unwrap()
}

#[test]
fn an_old_part_is_in_the_bucket_and_where_it_was_for_everybody() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let (model, proxy) = (model(), Proxy::start(storage.port()));
    let blobs = storage.address("p", proxy.port);
    let [one, two] = ["one", "two"].map(|name| machine(name, &url, &model, &blobs));
    let gateway = one.start();
    turn(&gateway, "m1");
    let audit = Audit::without_triggers(&url);
    // Whoever ends the turn has given the session back, and no gateway moves anything of it before its rows are there.
    let count = |sql: &str| audit.texts(sql, &[]).concat();
    until("the session is free", || {
        count("SELECT 'free' FROM myclaw.session WHERE owner IS NULL AND last_seq = 2") == "free"
    });
    // A node of an earlier version would not find them there.
    older_node(&audit);
    let log = one.home.state_directory().join("logs/myclaw.log");
    until("the older node is heeded", || {
        std::fs::read_to_string(&log).unwrap().contains("old parts of logs stay in the database")
    });
    age(&audit);
    let before = log_of(&two, "before");
    assert_eq!(storage.names(), [] as [String; 0]);
    audit.execute("DELETE FROM myclaw.record WHERE kind = 'node' AND key = 'older'");
    let is_sealed = || {
        storage.names().len() == 3
            && count("SELECT sealed::text FROM myclaw.session WHERE sealed > 0") == "2201"
    };
    // What was exported may already be sealed: a gateway looks for old parts every few leases.
    until("old rows are in the bucket", is_sealed);
    assert_eq!(count("SELECT count(*)::text FROM myclaw.entry"), "1000");
    assert!(log_of(&two, "after") == before, "an export has the same bytes");
    let history = |gateway: &Gateway, before: &str| {
        gateway.client.get(&format!("/api/sessions/main/history?before={before}&limit=3")).unwrap()
    };
    let ids = |page: &Value| -> Vec<String> {
        let rows = page["messages"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let (status, page) = history(&gateway, "r18");
    assert_eq!((status, ids(&page)), (200, ["r15", "r16", "r17"].map(str::to_owned).to_vec()));
    let search = || two.run(&["sessions", "search", WORD]);
    assert!(search().stdout().contains("My doctor is"), "{}", search().stdout());

    proxy.cut();
    turn(&gateway, "m2");
    let (status, page) = history(&gateway, "r18");
    assert!(status >= 500, "{status} {page}");
    assert!(page.to_string().contains("unavailable now"), "{page}");
    assert_eq!(history(&gateway, &format!("r{ROWS}")).0, 200);
    // What is looked for in the newest rows, such as the plan that the agent follows, is none if they do not have it.
    let plan = block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        socket.ask("1", "plan", json!({"session": "main"})).await
    });
    assert_eq!(plan["result"], json!({"plan": null}), "{plan}");
    let found = search();
    assert!(!found.stdout().contains("My doctor is"), "{}", found.stdout());
    assert!(found.stderr().contains("unavailable now"), "{}", found.stderr());
    let refused = two.run(&["store", "export", two.home.path().join("none").to_str().unwrap()]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("unavailable now"), "{}", refused.stderr());
    proxy.mend();
    until("old rows are read again", || history(&gateway, "r18").0 == 200);
    gateway.stop();

    let forget = ["memory", "forget", "--redact", "--word", WORD, "--yes"];
    two.run(&forget).assert_code(0);
    let masked = String::from_utf8(before).unwrap().replace(WORD, &"*".repeat(WORD.len()));
    assert!(String::from_utf8(log_of(&one, "masked")).unwrap().starts_with(&masked));
    assert!(!search().stdout().contains("My doctor is"));
    // Whoever had it last may have it for as long as a lease.
    until("the session is deleted", || {
        one.run(&["sessions", "delete", "main", "--yes"]).code() == Some(0)
    });
    assert_eq!(storage.names(), Vec::<String>::new());
}
