//! The real program, as a user runs it: what it prints, where, and how it ends.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test that uses it"
)]

use std::path::Path;
use std::process::Command;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, TempHome, WireFormat, skip_here,
};
use serde_json::Value;

mod approvals;
mod asides;
mod auth;
mod auth_login;
mod auth_provider_login;
mod auth_renewal;
mod backup;
mod browser;
mod budget;
mod channels;
mod chat_answers;
mod chat_approvals;
mod chat_branches;
mod chat_commands;
mod chat_desktop;
mod chat_display;
mod chat_keys;
mod chat_lines;
mod chat_screen;
mod chat_talk;
mod chat_terminal;
mod chat_theme;
mod choice;
mod commands;
mod compaction;
mod completions;
mod config_change;
mod config_check;
mod costs;
mod diagnostics;
mod docs_commands;
mod docs_environment;
mod docs_links;
mod doctor;
mod doctor_security;
mod goals;
mod hooks;
mod instead;
mod interrupt;
mod jobs;
mod logs;
mod mcp;
mod mcp_code;
mod mcp_conformance;
mod mcp_faults;
mod mcp_forms;
mod mcp_http;
mod mcp_login;
mod mcp_named;
mod mcp_names;
mod mcp_others;
mod mcp_project;
mod mcp_serve;
mod memory;
mod model_answers;
mod models;
mod modes;
mod onboard;
mod outside;
mod own_rules;
mod packages;
mod picker;
mod pictures;
mod pipelines;
mod plans;
mod policy;
mod project;
mod remember;
mod requests;
mod reviews;
mod rewinds;
mod rpc;
mod run;
mod run_events;
mod sandbox;
mod sandbox_container;
mod sandbox_jobs;
mod sandbox_network;
mod screen;
mod secrets;
mod session_branches;
mod session_export;
mod session_import;
mod session_import_others;
mod session_search;
mod sessions;
mod shortage;
mod skills;
mod special_files;
mod subagents;
mod time_zone;
mod tools;
mod undo;
mod uninstall;
mod watch;
mod web_tools;
mod worktrees;

/// The program in `home`, with nothing of this machine: no key, no config, no model server.
fn myclaw(home: &TempHome, arguments: &[&str]) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.env("MYCLAW_LOCAL_SERVERS", "none").args(arguments);
    command
}

/// Runs it to its end.
fn run(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    RunningChild::run(&mut myclaw(home, arguments))
}

/// The program in a mount namespace of its own, with a directory mounted on another one. `None` if this user cannot mount.
fn mounted(home: &TempHome, directory: &Path, on: &Path, arguments: &[&str]) -> Option<Command> {
    let script = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let apart = |directory: &Path, on: &Path| {
        let mut command = home.command("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(directory).arg(on);
        command
    };
    let probe = apart(home.path(), home.path()).arg("true").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skip_here("this user cannot mount a file system");
        return None;
    }
    let mut command = apart(directory, on);
    command.env("TMPDIR", home.path().join("tmp"));
    command.arg(env!("CARGO_BIN_EXE_myclaw")).args(arguments);
    Some(command)
}

/// A home whose config file names `server`.
fn home_with(server: &ModelServer) -> TempHome {
    let home = TempHome::new();
    home.use_server(server, WireFormat::AnthropicMessages);
    home
}

/// A model server with `script`, and a home whose config file names it.
fn serve(script: impl Into<Script>) -> (ModelServer, TempHome) {
    let server = ModelServer::spawn_blocking_thread(script);
    let home = home_with(&server);
    (server, home)
}

/// The same with a server that answers every request with `text`.
fn always(text: &str) -> (ModelServer, TempHome) {
    serve(Script::repeat(Reply::anthropic().text(text)))
}

/// The content of the last message that `server` got.
fn last_message(server: &ModelServer) -> String {
    server.last_request().messages().last().expect("a message")["content"].to_string()
}

/// Makes `change` to the config of the home.
fn change_config(home: &TempHome, change: impl FnOnce(&mut Value)) {
    let text = std::fs::read_to_string(home.config_path()).expect("a config");
    let mut config = serde_json::from_str(&text).expect("JSON");
    change(&mut config);
    home.write_config(&config);
}
