//! Files of a session's tools on the gateway that takes the session over.

use std::fs;

use myclaw_testkit::{RecordedRequest, Step};

use super::*;

/// In the output of the tool, and not in what the model sees of it.
const HIDDEN: &str = "line 10007";

/// What the last tool said.
fn last_result(request: &RecordedRequest) -> String {
    json!(request.messages().last().unwrap()).to_string()
}

/// The path of the full output, as the result names it.
fn named_path(request: &RecordedRequest) -> String {
    let text = json!(request.messages()).to_string();
    let end = text.find(".log").expect("the result names a file") + ".log".len();
    let begin = text[..end].rfind(['"', ' ', '(', ':']).unwrap() + 1;
    text[begin..end].to_owned()
}

fn tool(request: &RecordedRequest, number: usize) -> Step {
    let call = |name: &str, arguments: Value| {
        Reply::anthropic().tool_call(format!("call_{number}"), name, arguments).step()
    };
    match number {
        0 => call("write", json!({"path": "notes.txt", "content": "made by the agent"})),
        1 => call("bash", json!({"command": "seq -f 'line %.0f' 20000"})),
        3 => call("read", json!({"path": named_path(request), "offset": 10_000, "limit": 20})),
        _ => echo(request).step(),
    }
}

#[test]
fn undo_and_full_outputs_work_on_the_gateway_that_takes_a_session_over() {
    let Some((_server, url)) = database() else { return };
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(tool));
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    // Both mount the workspace.
    let workspace = machines[0].home.workspace();
    for (machine, name) in machines.iter().zip(["one", "two"]) {
        machine.configure(name, &model, |config| {
            config["agents"]["defaults"]["workspace"] = json!(workspace);
        });
    }
    let first = machines[0].start();
    let id = first.client.send("main", "a", "make <m1>").unwrap();
    assert_eq!(first.client.outcome(&id).unwrap()["state"], "answered");
    let notes = workspace.join("notes.txt");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "made by the agent");
    // Before that it could have taken the session.
    let second = machines[1].start();
    first.kill();
    // Its disk is gone with it.
    fs::remove_dir_all(machines[0].home.state_directory().join("side-files")).unwrap();
    let id = second.client.send("main", "b", "look <m2>").unwrap();
    assert_eq!(second.client.outcome(&id).unwrap()["state"], "answered");
    let asked = model.requests();
    assert!(!last_result(&asked[2]).contains(HIDDEN), "the output was not cut");
    assert!(last_result(&asked[4]).contains(HIDDEN), "{}", last_result(&asked[4]));
    second.stop();
    let undone = machines[1].run(&["sessions", "undo", "main"]);
    undone.assert_code(0);
    assert!(!notes.exists(), "{}", undone.stdout());
    // The exported directory has them too, and what it is imported into.
    let copy = machines[1].home.path().join("copy");
    machines[1].run(&["store", "export", copy.to_str().unwrap()]).assert_code(0);
    let session = fs::read_dir(copy.join("sessions")).unwrap().find_map(|file| {
        let path = file.unwrap().path();
        path.is_dir().then_some(path)
    });
    let names: Vec<String> = fs::read_dir(session.expect("a directory of side files"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name == "changes"), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with(".log")), "{names:?}");
}
