//! Large contents of sessions in object storage, with a real server of the protocol.

use myclaw_testkit::ObjectStorage;

use super::proxy::Proxy;
use super::*;

/// A model that runs a command with a large output in each turn, whose lines begin with this word.
pub(super) fn model_with_outputs(word: &'static str) -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::answer_with(move |request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return echo(request).step();
        }
        let call = json!({"command": format!("seq -f '{word} {number} %.0f' 20000")});
        Reply::anthropic().tool_call(format!("call_{number}"), "bash", call).step()
    }))
}

pub(super) fn machine(name: &str, url: &str, model: &ModelServer, blobs: &str) -> Machine {
    let machine = Machine::new(name, url, model);
    machine.configure(name, model, |config| config["gateway"]["blobs"] = json!(blobs));
    machine
}

pub(super) fn turn(gateway: &Gateway, id: &str) {
    let message = gateway.client.send("main", id, &format!("run <{id}>")).unwrap();
    let outcome = gateway.client.outcome(&message).unwrap();
    assert_eq!(outcome["state"], "answered", "{outcome}");
}

fn log_of(machine: &Machine) -> String {
    std::fs::read_to_string(machine.home.state_directory().join("logs/myclaw.log")).unwrap()
}

/// The outputs of commands in the side files of a machine.
pub(super) fn outputs(machine: &Machine) -> Vec<String> {
    let mut outputs = Vec::new();
    for session in std::fs::read_dir(machine.home.state_directory().join("side-files")).unwrap() {
        for file in std::fs::read_dir(session.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                outputs.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    outputs
}

#[test]
fn large_outputs_are_in_the_bucket_and_go_with_their_session() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let model = model_with_outputs("line");
    let blobs = storage.address("my/prefix", storage.port());
    let one = machine("one", &url, &model, &blobs);
    let two = machine("two", &url, &model, &blobs);
    let gateway = one.start();
    turn(&gateway, "m1");
    gateway.stop();
    let names = storage.names();
    assert!(names.len() == 1 && names[0].starts_with("my/prefix/"), "{names:?}");
    let gateway = two.start();
    turn(&gateway, "m2");
    let seen = outputs(&two);
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|output| output.contains(" 19999\n")));
    gateway.stop();
    let checked = one.run(&["store", "check"]);
    checked.assert_code(0);
    assert!(checked.stdout().contains("s3://test-bucket/my/prefix"), "{}", checked.stdout());
    assert!(!checked.stdout().contains("secret"), "{}", checked.stdout());
    assert_eq!(storage.names().len(), 2);
    one.run(&["sessions", "delete", "main", "--yes"]).assert_code(0);
    assert_eq!(storage.names(), Vec::<String>::new());
}

#[test]
fn without_its_bucket_a_gateway_goes_on_and_returns_to_it() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let model = model_with_outputs("line");
    let proxy = Proxy::start(storage.port());
    let one = machine("one", &url, &model, &storage.address("p", proxy.port));
    let two = machine("two", &url, &model, &storage.address("p", proxy.port));
    proxy.cut();
    let gateway = one.start();
    turn(&gateway, "m1");
    turn(&gateway, "m2");
    assert_eq!(storage.names(), Vec::<String>::new());
    let log = log_of(&one);
    assert_eq!(
        log.matches("the object storage s3://test-bucket/p cannot be used").count(),
        1,
        "{log}"
    );
    assert!(log.contains("goes into the database"), "{log}");
    proxy.mend();
    // It asks again after a moment.
    let begun = std::time::Instant::now();
    let mut number = 3;
    while storage.names().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it does not return");
        turn(&gateway, &format!("m{number}"));
        number += 1;
    }
    assert!(log_of(&one).contains("can be used again"));
    gateway.stop();
    // What cannot be fetched does not keep the next owner from answering, and comes later.
    proxy.cut();
    let gateway = two.start();
    turn(&gateway, "m100");
    let count = outputs(&two).len();
    gateway.stop();
    proxy.mend();
    let gateway = two.start();
    turn(&gateway, "m101");
    assert!(outputs(&two).len() > count + 1, "{} and {count}", outputs(&two).len());
    gateway.stop();
}

#[test]
fn a_bucket_that_cannot_be_used_is_named_with_what_to_do() {
    let Some(((_server, url), storage)) = database().zip(ObjectStorage::start()) else { return };
    let model = model();
    let good = storage.address("p", storage.port());
    for (blobs, problem) in [
        ("bucket/prefix".to_owned(), "expected the address of a bucket"),
        ("s3://".to_owned(), "s3://bucket/prefix"),
        ("s3://key@bucket/p".to_owned(), "without its secret"),
        (format!("{good}&colour=red"), "\"colour\" is not known"),
        (good.replace("test-bucket", "other-bucket"), "make it"),
        (good.replace(&format!(":{}", storage.port()), ":1"), "check that it runs"),
        ("env:NO_SUCH_BUCKET".to_owned(), "NO_SUCH_BUCKET, which is not set"),
    ] {
        let machine = machine("one", &url, &model, &blobs);
        let checked = machine.run(&["store", "check"]);
        let said = checked.stderr();
        assert_ne!(checked.code(), Some(0), "{blobs}");
        assert!(said.contains(problem), "{blobs} gave: {said}");
        assert!(!said.contains("secret@") && !said.contains("key:"), "{said}");
    }
}
