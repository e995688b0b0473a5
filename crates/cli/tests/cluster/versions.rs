//! Nodes of two versions on one database, as an upgrade without downtime has them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::nodes::status;
use super::*;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// As long as [`VERSION`].
const OTHER_VERSION: &str = "0.1.9";

/// A program that is another version of this one: all that tells them apart is what it says of itself.
fn older(directory: &Path) -> PathBuf {
    assert_eq!(VERSION.len(), OTHER_VERSION.len());
    let (path, program) = (directory.join("myclaw-older"), env!("CARGO_BIN_EXE_myclaw"));
    let replace = format!("s/{}/{OTHER_VERSION}/g", VERSION.replace('.', "[.]"));
    let mut sed = std::process::Command::new("sed");
    sed.env("LC_ALL", "C").arg(replace).stdin(fs::File::open(program).unwrap());
    assert!(sed.stdout(fs::File::create(&path).unwrap()).status().unwrap().success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn start(machine: &Machine, program: &Path) -> Gateway {
    let mut command = machine.home.command(program);
    command.arg("gateway").env("MYCLAW_STORE_LEASE_MS", machine.lease_ms.to_string());
    let child = RunningChild::spawn(&mut command);
    child.wait_for_stderr("listening on http://127.0.0.1:");
    Gateway { child, client: machine.client() }
}

/// The versions of the nodes, by the names of the nodes.
fn versions(machine: &Machine) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes = status(machine)["nodes"].as_array().unwrap().clone();
    let mut versions: Vec<(String, String)> =
        nodes.iter().map(|node| (text(&node["name"]), text(&node["version"]))).collect();
    versions.sort();
    versions
}

#[test]
fn nodes_of_two_versions_work_together_while_each_is_replaced() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let directory = TempHome::new();
    let (old, new) = (older(directory.path()), PathBuf::from(env!("CARGO_BIN_EXE_myclaw")));
    let mut gateways = machines.each_ref().map(|machine| Some(start(machine, &old)));
    let (mut sent, mut number) = (Vec::new(), 0);
    for replaced in 0..machines.len() {
        // Both nodes get messages for the same sessions, of which each has some.
        for _ in 0..4 {
            for machine in &machines {
                number += 1;
                let session = format!("s{}", number % 3);
                let (source, text) = (format!("id-{number}"), format!("say <m{number}>"));
                sent.push((number, machine.client().send(&session, &source, &text).unwrap()));
            }
        }
        let name = ["one", "two"][replaced];
        machines[replaced].run(&["cluster", "drain", name]).assert_code(0);
        gateways[replaced].take().unwrap().child.wait(PATIENCE).assert_code(0);
        gateways[replaced] = Some(start(&machines[replaced], &new));
        let expected = ["one", "two"].map(|name| {
            let is_new = name == "one" || replaced == 1;
            (name.to_owned(), if is_new { VERSION } else { OTHER_VERSION }.to_owned())
        });
        until("both versions are listed", || versions(&machines[0]) == expected);
    }
    for (number, id) in &sent {
        for machine in &machines {
            let reply = machine.client().outcome(id).unwrap()["reply"].clone();
            assert!(reply.as_str().unwrap().contains(&format!("<m{number}>")), "{reply}");
        }
    }
    gateways.into_iter().flatten().for_each(Gateway::stop);
    let logs = exported(&machines[0]);
    for (number, _) in &sent {
        for role in ["user", "assistant"] {
            assert_eq!(count(&logs, role, &format!("<m{number}>")), 1, "{role} {number}");
        }
    }
}
