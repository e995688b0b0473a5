//! The tools for an agent's notes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::sandbox::{results_of, turn};
use crate::{last_message, run};

const BOILER: &str = "# Boiler\nIt leaks; Mrs Weber repairs it on Tuesday.\n";

/// The tools that the model is offered. `change` changes the config.
fn offered(prepare: impl FnOnce(&TempHome), change: impl FnOnce(&mut Value)) -> Vec<String> {
    let server = ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Hi.")));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    change(&mut config);
    home.write_config(&config);
    prepare(&home);
    run(&home, &["run", "hello"]).assert_code(0);
    let request = server.last_request();
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("memory_")).collect()
}

/// What a call returns, in a session outside of a sandbox. `change` changes `agents.defaults.memorySearch`.
fn result(
    home: &TempHome,
    tool: &str,
    arguments: Value,
    change: impl FnOnce(&mut Value),
) -> String {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", tool, arguments),
        Reply::anthropic().text("Done."),
    ]));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    let search = &mut config["agents"]["defaults"]["memorySearch"];
    *search = json!({"enabled": true});
    change(search);
    home.write_config(&config);
    run(home, &["run", "go on"]).assert_code(0);
    results_of(home, "main").pop().expect("a result")
}

#[test]
fn every_session_has_the_tools_unless_the_config_decides() {
    let enabled = |value: bool| {
        move |config: &mut Value| {
            config["agents"]["defaults"]["memorySearch"] = json!({"enabled": value});
        }
    };
    let all = ["memory_search", "memory_write"];
    let note = |home: &TempHome| {
        home.write_in_workspace("memory/a.md", BOILER);
    };
    assert_eq!(offered(|_| {}, |_| {}), all);
    assert_eq!(offered(note, |_| {}), ["memory_search", "memory_get", "memory_write"]);
    assert_eq!(offered(|_| {}, enabled(false)), [""; 0]);
    let denied = |config: &mut Value| config["tools"]["deny"] = json!(["group:memory"]);
    assert_eq!(offered(|_| {}, denied), [""; 0]);
    let closed = |access: &'static str| {
        move |config: &mut Value| {
            config["agents"]["defaults"]["sandbox"] =
                json!({"mode": "all", "confinement": {"workspaceAccess": access}});
        }
    };
    assert_eq!(offered(|_| {}, closed("rw")), all);
    assert_eq!(offered(|_| {}, closed("ro")), all[..1]);
    assert_eq!(offered(|_| {}, closed("none")), [""; 0]);
}

#[test]
fn notes_are_found_and_nothing_beside_them() {
    let home = TempHome::new();
    home.write_in_workspace("memory/home/2026-03-01.md", BOILER);
    home.write_in_workspace("memory/huge.md", "boiler ".repeat(200_000));
    home.write_in_workspace("boiler.md", "the boiler's code is 4711");
    let outside = home.write("outside/boiler.md", "the boiler's code is 4711");
    symlink(outside.parent().unwrap(), home.workspace().join("memory/outside")).unwrap();
    symlink(&outside, home.workspace().join("memory/link.md")).unwrap();
    let query = || json!({"query": "when is the boiler repaired?"});
    let found = result(&home, "memory_search", query(), |_| {});
    assert!(found.starts_with("memory/home/2026-03-01.md:1-2 (score 0."), "{found}");
    assert!(found.contains("Mrs Weber repairs it on Tuesday."), "{found}");
    assert!(!found.contains("4711"), "{found}");
    let large = "[memory/huge.md is larger than 1 MiB and not searched]";
    assert!(found.contains(large), "{found}");
    assert!(found.ends_with("[memory/link.md is a link and not searched]"), "{found}");
    for path in
        ["memory/link.md", "memory/outside/boiler.md", "boiler.md", outside.to_str().unwrap()]
    {
        let refused = result(&home, "memory_get", json!({"path": path}), |_| {});
        assert!(refused.contains("is not a note"), "{path}: {refused}");
    }
    let read = result(&home, "memory_get", json!({"path": "memory/home/2026-03-01.md"}), |_| {});
    assert_eq!(read, BOILER.trim_end());
    let named = result(&home, "memory_search", query(), |search| {
        search["extraPaths"] = json!([outside]);
    });
    assert!(named.contains("4711"), "{named}");
}

#[test]
fn notes_are_those_of_the_workspace_wherever_the_agent_works() {
    let home = TempHome::new();
    home.write_in_workspace("memory/a.md", BOILER);
    let project = home.write("project/memory/b.md", "the boiler of the project");
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "memory_search", json!({"query": "boiler"})),
        Reply::anthropic().text("Done."),
    ]));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"]["fs"]["workspaceOnly"] = json!(true);
    home.write_config(&config);
    let project = project.parent().and_then(Path::parent).unwrap().to_str().unwrap();
    run(&home, &["run", "--session", "main", "-C", project, "go on"]).assert_code(0);
    let found = last_message(&server);
    assert!(found.contains("Mrs Weber") && !found.contains("of the project"), "{found}");
}

#[test]
fn a_sandboxed_session_searches_its_workspace_alone() {
    let prepare = |home: &TempHome| {
        home.write_in_workspace("memory/a.md", BOILER);
        let outside = home.write("outside/boiler.md", "the boiler's code is 4711");
        let text = fs::read_to_string(home.config_path()).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["agents"]["defaults"]["memorySearch"] = json!({"extraPaths": [outside]});
        home.write_config(&config);
    };
    let calls = [
        ("memory_search", json!({"query": "boiler"})),
        ("memory_get", json!({"path": "memory/a.md"})),
    ];
    let (_, results) = turn("chat", json!({"mode": "all"}), prepare, &calls);
    assert!(results[0].contains("Mrs Weber"), "{results:?}");
    assert!(!results[0].contains("4711"), "{results:?}");
    assert_eq!(results[1], BOILER.trim_end());
    let closed = json!({"mode": "all", "confinement": {"workspaceAccess": "none"}});
    let (_, results) = turn("chat", closed, prepare, &calls);
    assert!(!results.concat().contains("Mrs Weber"), "{results:?}");
}

#[test]
fn with_a_model_a_search_goes_by_meaning_and_keeps_its_vectors() {
    let home = TempHome::new();
    home.write_in_workspace("memory/a.md", "send an invoice to a customer by mail\n");
    home.write_in_workspace("memory/b.md", "play long music\n");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../embed/tests/data/tiny");
    let query = || json!({"query": "dispatch bill buyer email"});
    let search = |weights: &Path| {
        result(&home, "memory_search", query(), |search| search["weights"] = json!(weights))
    };
    let by_words = result(&home, "memory_search", query(), |_| {});
    assert_eq!(by_words, "none of 2 passages fits; try other words");
    let found = search(&model);
    assert!(found.starts_with("memory/a.md:1-1 (score 0."), "{found}");
    let cache = home.state_directory().join("agents/main/agent/memory-vectors.json");
    let entries = || -> Value {
        let cache: Value = serde_json::from_slice(&fs::read(&cache).unwrap()).unwrap();
        cache["entries"].clone()
    };
    let first = entries();
    assert_eq!(first.as_array().unwrap().len(), 2);
    home.write_in_workspace("memory/b.md", "play short music\n");
    search(&model);
    let second = entries();
    assert_eq!(second.as_array().unwrap().len(), 2);
    let kept =
        first.as_array().unwrap().iter().filter(|entry| second.as_array().unwrap().contains(entry));
    assert_eq!(kept.count(), 1, "{first} {second}");
    let missing = search(Path::new("/nowhere"));
    assert!(
        missing.contains("searched by words alone: there is no model in /nowhere"),
        "{missing}"
    );
}
