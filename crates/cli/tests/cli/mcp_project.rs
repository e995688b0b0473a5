//! The `.mcp.json` of a project: it counts as the owner approved it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use myclaw_testkit::{ChildOutput, ModelServer, RunningChild, TempHome, WireFormat, mcp_server};
use serde_json::{Value, json};

use crate::mcp::calls;
use crate::myclaw;

struct Project {
    home: TempHome,
    root: PathBuf,
    model: ModelServer,
    entry: Value,
}

impl Project {
    fn new() -> Self {
        let home = TempHome::new();
        let root = home.path().join("project");
        fs::create_dir_all(root.join(".git")).expect("the project");
        let model = calls(&[]);
        home.write_config(&TempHome::config_for(model.url(), WireFormat::AnthropicMessages));
        let (mut entry, _) = mcp_server(&home, "sessions");
        entry.as_object_mut().expect("an entry").remove("timeoutSeconds");
        Self { home, root, model, entry }
    }

    fn write(&self, servers: &Value) {
        let file = json!({"mcpServers": servers});
        fs::write(self.root.join(".mcp.json"), file.to_string()).expect("the file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = myclaw(&self.home, arguments);
        command.current_dir(&self.root);
        command
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        RunningChild::run(&mut self.command(arguments))
    }

    /// Whether a run there has the tool `name`.
    fn has(&self, name: &str) -> bool {
        self.model.push(myclaw_testkit::Reply::anthropic().text("Done."));
        self.run(&["run", "go on"]).assert_code(0);
        self.model.last_request().json()["tools"].to_string().contains(&format!("{name}__echo"))
    }
}

#[test]
fn the_servers_of_a_project_count_while_its_file_is_as_it_was_approved() {
    let project = Project::new();
    project.write(
        &json!({"faults": project.entry, "unset": {"command": "x", "env": {"A": "${NOT_SET}"}}}),
    );
    assert!(!project.has("faults"));
    let listed = project.run(&["mcp", "list"]);
    assert!(listed.stderr().contains(".mcp.json was not approved"), "{}", listed.stderr());
    assert!(!listed.stdout().contains("faults"), "{}", listed.stdout());
    let early = project.run(&["mcp", "approve", "faults", "--yes"]);
    early.assert_code(2);
    assert!(early.stderr().contains(".mcp.json was not approved"), "{}", early.stderr());
    // Without a terminal nobody says yes.
    let asked = project.run(&["mcp", "approve"]);
    assert!(asked.stdout().contains("server.py") && asked.stdout().contains("not approved;"));
    project.run(&["mcp", "approve", "--yes"]).assert_code(0);
    // Its tools are approved by themselves.
    assert!(!project.has("faults"));
    project.run(&["mcp", "approve", "faults", "--yes"]).assert_code(0);
    assert!(project.has("faults"));
    assert!(project.run(&["mcp", "approve"]).stdout().contains("nothing has changed"));
    // Whatever changes turns it off.
    let mut entry = project.entry.clone();
    entry["env"] = json!({"NEW": "value"});
    project.write(&json!({"faults": entry}));
    assert!(!project.has("faults"));
    let listed = project.run(&["mcp", "list"]);
    assert!(listed.stderr().contains("has changed since"), "{}", listed.stderr());
    let shown = project.run(&["mcp", "approve", "--yes"]);
    assert!(shown.stdout().contains("NEW"), "{}", shown.stdout());
    assert!(project.has("faults"));
    let kept = project.run(&["mcp", "remove", "faults"]);
    kept.assert_code(2);
    assert!(kept.stderr().contains("`.mcp.json` of this project"), "{}", kept.stderr());
}

#[test]
fn a_project_neither_replaces_the_servers_of_the_owner_nor_is_used_elsewhere() {
    let project = Project::new();
    let mut config = TempHome::config_for(project.model.url(), WireFormat::AnthropicMessages);
    config["mcp"]["servers"]["mine"] = project.entry.clone();
    project.home.write_config(&config);
    project.write(&json!({"mine": {"command": "evil"}, "faults": project.entry}));
    project.run(&["mcp", "approve", "--yes"]).assert_code(0);
    let listed = project.run(&["mcp", "list"]).stdout();
    assert!(listed.contains("faults") && !listed.contains("evil"), "{listed}");
    let elsewhere = RunningChild::run(&mut myclaw(&project.home, &["mcp", "list"])).stdout();
    assert!(elsewhere.contains("mine") && !elsewhere.contains("faults"), "{elsewhere}");
    let nothing = RunningChild::run(&mut myclaw(&project.home, &["mcp", "approve"]));
    nothing.assert_code(2);
    assert!(nothing.stderr().contains("there is no `.mcp.json`"), "{}", nothing.stderr());
    fs::write(project.root.join(".mcp.json"), "{ broken").unwrap();
    project.run(&["mcp", "list"]).assert_code(0);
}
