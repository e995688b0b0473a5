//! Words that are to be forgotten go from the database and the bucket too.

use myclaw_testkit::ObjectStorage;

use super::audit::Audit;
use super::objects::{machine, model_with_outputs, outputs, turn};
use super::tenants::{tables, with};
use super::*;

/// What is to be forgotten. The model's command writes it often.
const WORD: &str = "Zanzibarium";

#[test]
fn words_are_removed_from_the_database_and_the_bucket() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let model = model_with_outputs(WORD);
    let blobs = storage.address("p", storage.port());
    let [one, two] = ["one", "two"].map(|name| machine(name, &url, &model, &blobs));
    let gateway = one.start();
    turn(&gateway, "m1");
    let id = gateway.client.send("other", "id", &format!("My doctor is {WORD} <m2>")).unwrap();
    gateway.client.outcome(&id).unwrap();
    let audit = Audit::without_triggers(&url);
    let has = || {
        let rows = tables(&audit, "myclaw");
        with(&rows, WORD).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = has();
    for table in ["entry", "record", "session"] {
        assert!(before.iter().any(|name| name == table), "{table}: {before:?}");
    }
    assert!(outputs(&one).concat().contains(WORD));
    gateway.stop();
    let objects = storage.names();
    let rows = exported(&one);
    let forget = ["memory", "forget", "--redact", "--word", WORD];
    let said = one.run(&forget);
    said.assert_code(2);
    assert!(said.stderr().contains("--yes"), "{}", said.stderr());
    one.run(&[&forget[..], &["--yes"]].concat()).assert_code(0);
    assert_eq!(has(), [] as [String; 0]);
    assert!(!outputs(&one).concat().contains(WORD));
    // The content is another one, and the former is gone.
    assert_eq!(storage.names().len(), objects.len());
    assert_ne!(storage.names(), objects);
    for ((name, before), (_, after)) in rows.iter().zip(exported(&one)) {
        let text = json!(before).to_string().replace(WORD, &"*".repeat(WORD.len()));
        assert_eq!(text, json!(after).to_string(), "{name}");
    }
    // Another machine gets what is left of the output.
    let gateway = two.start();
    turn(&gateway, "m3");
    gateway.stop();
    let of_two = outputs(&two).concat();
    assert!(of_two.contains(&"*".repeat(WORD.len())), "{of_two:.300}");
}
