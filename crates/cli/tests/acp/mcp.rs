//! MCP servers in sessions of an editor: those that it passes, and those of the config.

use std::path::{Path, PathBuf};

use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, TempHome, WireFormat, mcp_server, wait_until_gone,
};
use serde_json::json;

use crate::client::{Client, text_of};

/// A home with an approved server, a model that follows the script, and the directory of a project.
pub(crate) fn approved(script: impl Into<Script>) -> (TempHome, ModelServer, PathBuf) {
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let (entry, _) = mcp_server(&home, "sessions");
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["mcp"]["servers"]["faults"] = entry;
    home.write_config(&config);
    let mut approve = home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(approve.args(["mcp", "approve", "faults", "--yes"])).assert_code(0);
    let project = home.write("projects/one/file", "").parent().expect("a directory").to_owned();
    (home, server, project)
}

/// Begins a session in this directory; gives its id.
pub(crate) fn begin(client: &mut Client, project: &Path) -> String {
    let answer = client.request("session/new", &json!({"cwd": project, "mcpServers": []}));
    answer["result"]["sessionId"].as_str().expect("an id").to_owned()
}

#[test]
fn a_server_of_the_editor_is_approved_with_a_command_and_called() {
    let script = Script::from([
        Reply::anthropic().tool_call("call_1", "faults__echo", json!({"text": "hello"})),
        Reply::anthropic().text("Done."),
    ]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let file = home.write("projects/one/file", "");
    let project = file.parent().unwrap();
    let (entry, _) = mcp_server(&home, "sessions");
    let servers = json!([{
        "name": "Faults", "command": entry["command"], "args": entry["args"],
        "env": [{"name": "PASSED", "value": "of the editor"}],
    }]);
    let mut client = Client::introduced(&home);
    let answer = client.request("session/new", &json!({"cwd": project, "mcpServers": servers}));
    let session = answer["result"]["sessionId"].as_str().unwrap();
    client.line_with("`/mcp approve faults`");
    client.converse(session, "/mcp approve faults");
    let said = text_of(&client.updates(), "agent_message_chunk");
    let code = said.split("/mcp approve faults ").nth(1).expect("the code");
    let code = code.split_whitespace().next().expect("the code");
    client.converse(session, &format!("/mcp approve faults {code}"));
    client.converse(session, "go on");
    let read = server.last_request().json().to_string();
    assert!(read.contains("echo: hello"), "{read}");
    client.finish();
}

/// What the owner has set up comes before what an editor passes under the same name.
#[test]
fn a_server_of_the_editor_does_not_take_the_place_of_one_of_the_config() {
    let call = Reply::anthropic().tool_call("call_1", "faults__variable", json!({"text": "WHOSE"}));
    let script = Script::from([call, Reply::anthropic().text("Done.")]);
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    let (mut entry, _) = mcp_server(&home, "sessions");
    let passed = json!([{
        "name": "Faults", "command": entry["command"], "args": entry["args"],
        "env": [{"name": "WHOSE", "value": "of the editor"}],
    }]);
    entry["env"] = json!({"WHOSE": "of the owner"});
    config["mcp"]["servers"]["faults"] = entry;
    home.write_config(&config);
    let mut approve = home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(approve.args(["mcp", "approve", "faults", "--yes"])).assert_code(0);
    let file = home.write("projects/one/file", "");
    let mut client = Client::introduced(&home);
    let opened = json!({"cwd": file.parent().unwrap(), "mcpServers": passed});
    let answer = client.request("session/new", &opened);
    client.converse(answer["result"]["sessionId"].as_str().unwrap(), "go on");
    let read = server.last_request().json().to_string();
    assert!(read.contains("value: of the owner"), "{read}");
    client.finish();
}

#[test]
fn sessions_of_one_program_share_the_program_of_a_server() {
    let call = || Reply::anthropic().tool_call("call_1", "faults__pid", json!({}));
    let done = || Reply::anthropic().text("Done.");
    let (home, server, project) = approved([call(), done(), call(), done()]);
    let mut client = Client::introduced(&home);
    let mut pids = Vec::new();
    for _ in 0..2 {
        let session = begin(&mut client, &project);
        client.converse(&session, "go on");
        let request = server.last_request().json().to_string();
        let (_, rest) = request.split_once("pid ").expect("the id");
        pids.push(rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    }
    assert_eq!(pids[0], pids[1]);
    client.finish();
    wait_until_gone(pids[0].parse().expect("a number"));
}

#[test]
fn a_prompt_says_once_that_a_resource_has_changed_which_its_session_has_read() {
    let call =
        Reply::anthropic().tool_call("call_1", "faults__edit", json!({"text": "Buy bread."}));
    let done = || Reply::anthropic().text("Done.");
    let (home, server, project) = approved([done(), call, done(), done(), done(), done()]);
    let mut client = Client::introduced(&home);
    let (one, two) = (begin(&mut client, &project), begin(&mut client, &project));
    let words = "changed since this session has read it: @faults:notes://today";
    for (session, text, times) in [
        (&one, "read @faults:notes://today", 0),
        (&two, "edit it", 0),
        (&two, "and now?", 0),
        (&one, "and now?", 1),
        (&one, "and then?", 0),
    ] {
        client.converse(session, text);
        let last = json!(server.last_request().messages().last()).to_string();
        assert_eq!(last.matches(words).count(), times, "{text}: {last}");
    }
    let sent = json!(server.requests()[2].messages()).to_string();
    assert!(sent.contains("edited"), "{sent}");
    client.finish();
}
