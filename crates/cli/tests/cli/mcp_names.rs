//! Names of servers and of their tools that others have as well.

use std::fs;

use myclaw_testkit::{Reply, RunningChild, TempHome, WireFormat, mcp_server};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, home_of, results, tools_of};
use crate::{change_config, myclaw, run};

/// A tool that a server lists.
fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool", "inputSchema": {"type": "object"}})
}

#[test]
fn a_server_that_names_its_tools_like_those_of_the_agent_takes_the_place_of_none() {
    let server = calls(&[
        ("bash", json!({"command": "echo it is my own"})),
        ("faults__bash", json!({})),
        ("faults__mcp__tools", json!({})),
    ]);
    let (home, tools) = home_of(&server, "sessions", |config| {
        config["mcp"]["servers"]["faults"]["tools"]["allow"] = json!(["bash", "read", "mcp__*"]);
    });
    let listed = json!([tool("bash"), tool("read"), tool("mcp__tools")]);
    fs::write(tools, listed.to_string()).unwrap();
    approve(&home);
    run(&home, &["run", "go on"]).assert_code(0);
    let mut offered = tools_of(&server, 0);
    for name in ["bash", "read", "faults__bash", "faults__read", "faults__mcp__tools"] {
        assert_eq!(offered.iter().filter(|other| *other == name).count(), 1, "{name}: {offered:?}");
    }
    offered.sort();
    let all = offered.len();
    offered.dedup();
    assert_eq!(offered.len(), all, "{offered:?}");
    let results = results(&server);
    for (result, words) in results.iter().zip(["it is my own", "called bash", "called mcp__tools"])
    {
        assert!(result.contains(words), "{words}: {result}");
    }
    // A rule for one of them is none for the other.
    for (denied, left) in [("bash", "faults__bash"), ("faults__bash", "bash")] {
        let server = calls(&[]);
        change_config(&home, |config| {
            let new = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
            config["provider"] = new["provider"].clone();
            config["tools"] = json!({"deny": [denied]});
        });
        run(&home, &["run", "go on"]).assert_code(0);
        let offered = tools_of(&server, 0);
        assert!(offered.contains(&left.to_owned()), "{denied}: {offered:?}");
        assert!(!offered.contains(&denied.to_owned()), "{denied}: {offered:?}");
    }
}

/// `read_file_dd32cd` is what `read.file` is called for a model.
#[test]
fn two_tools_of_a_server_never_get_one_name() {
    let server = calls(&[("faults__read_file_dd32cd", json!({}))]);
    let (home, tools) = home_of(&server, "sessions", |config| {
        config["mcp"]["servers"]["faults"]["tools"]["allow"] = json!(["read*"]);
    });
    let names = ["read.file", "read file", "read_file", "read_file_dd32cd"];
    fs::write(tools, Value::from(names.map(tool).to_vec()).to_string()).unwrap();
    let approved = approve(&home);
    let words = "the tool read_file_dd32cd would have the name of another one";
    assert!(approved.stdout().contains(words), "{}", approved.stdout());
    run(&home, &["run", "go on"]).assert_code(0);
    let offered: Vec<String> =
        tools_of(&server, 0).into_iter().filter(|name| name.starts_with("faults__")).collect();
    let expected = ["faults__read_file_dd32cd", "faults__read_file_121414", "faults__read_file"];
    assert_eq!(offered, expected);
    assert!(results(&server)[0].contains("called read.file"), "{:?}", results(&server));
}

/// The server of the agent comes before that of the config, and both before that of the project. None gets what was approved
/// of another one.
#[test]
fn of_servers_with_one_name_the_nearest_of_the_owner_counts() {
    let server = calls(&[]);
    let home = TempHome::new();
    let root = home.path().join("project");
    fs::create_dir_all(root.join(".git")).unwrap();
    let entry = |owner: &str| {
        let (mut entry, _) = mcp_server(&home, "sessions");
        let listed = home.path().join(format!("server/{owner}.json"));
        fs::write(&listed, json!([tool(&format!("of_{owner}"))]).to_string()).unwrap();
        entry["args"][2] = json!(listed);
        entry.as_object_mut().unwrap().remove("timeoutSeconds");
        entry
    };
    let file = json!({"mcpServers": {"faults": entry("project"), "other": entry("project")}});
    fs::write(root.join(".mcp.json"), file.to_string()).unwrap();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["mcp"]["servers"]["faults"] = entry("config");
    config["agents"]["list"] = json!([
        {"id": "main"}, {"id": "second", "mcp": {"servers": {"faults": entry("agent")}}},
    ]);
    home.write_config(&config);
    let command = |arguments: &[&str]| {
        let mut command = myclaw(&home, arguments);
        command.current_dir(&root);
        let output = RunningChild::run(&mut command);
        output.assert_code(0);
        output
    };
    let owners = |arguments: &[&str]| {
        server.push(Reply::anthropic().text("Done."));
        command(arguments);
        // They are many, so their names are in the description of the tool that finds them.
        let tools = server.last_request().json()["tools"].to_string();
        let words = tools.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let named = words.filter_map(|name| name.split_once("__of_"));
        named.map(|(server, owner)| format!("{server} {owner}")).collect::<Vec<_>>()
    };
    command(&["mcp", "approve", "--yes"]);
    command(&["mcp", "approve", "faults", "--yes"]);
    command(&["mcp", "approve", "other", "--yes"]);
    assert_eq!(owners(&["run", "go on"]), ["faults config", "other project"]);
    assert_eq!(owners(&["run", "--agent", "second", "go on"]), ["other project"]);
    command(&["mcp", "approve", "--agent", "second", "faults", "--yes"]);
    let of_second = owners(&["run", "--agent", "second", "go on"]);
    assert_eq!(of_second, ["faults agent", "other project"]);
    assert_eq!(owners(&["run", "go on"]), ["faults config", "other project"]);
}
