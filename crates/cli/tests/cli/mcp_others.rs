//! MCP servers that others have written: those of the protocol's own repository, made with the SDK for TypeScript, one made
//! with the SDK for Python, and Grafana's, made with the SDK for Go. `MYCLAW_MCP_SERVERS` names the directory with the npm packages,
//! `MYCLAW_MCP_PYTHON` a Python that has `mcp`, and `MYCLAW_MCP_GRAFANA` Grafana's. `scripts/test` installs them; without them the
//! tests say that they are skipped.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use myclaw_testkit::{RunningChild, Signal, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::mcp::{calls, results};
use crate::run;

fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if found.is_none() {
        myclaw_testkit::skip_without(&format!(
            "{variable} names nothing; scripts/test installs it"
        ));
    }
    found
}

/// Adds and approves the server that `command` starts, and returns what it answers to these calls.
fn answers(
    home: &TempHome,
    options: &[&str],
    command: &[&str],
    wanted: &[(&str, Value)],
) -> Vec<String> {
    let server = calls(wanted);
    home.write_config(&TempHome::config_for(server.url(), WireFormat::AnthropicMessages));
    let mut arguments = vec!["mcp", "add", "other", "--yes"];
    arguments.extend(options);
    if !command.is_empty() {
        arguments.push("--");
        arguments.extend(command);
    }
    let added = run(home, &arguments);
    added.assert_code(0);
    println!("{}", added.stdout());
    run(home, &["run", "go on"]).assert_code(0);
    results(&server)
}

fn script(packages: &Path, name: &str) -> String {
    packages.join(name).join("dist/index.js").display().to_string()
}

#[test]
fn the_server_with_everything_answers() {
    let Some(packages) = installed("MYCLAW_MCP_SERVERS") else { return };
    let home = TempHome::new();
    let program = script(&packages, "server-everything");
    let found = answers(
        &home,
        &[],
        &["node", &program, "stdio"],
        &[
            through("other__echo", &json!({"message": "hello"})),
            through("other__get-sum", &json!({"a": 2, "b": 40})),
            through("other__get-tiny-image", &json!({})),
            through("other__trigger-long-running-operation", &json!({"duration": 1, "steps": 2})),
            through("other__get-structured-content", &json!({"location": "New York"})),
        ],
    );
    for (index, words) in
        ["Echo: hello", "42", "image", "completed", "temperature"].iter().enumerate()
    {
        assert!(found[index].contains(words), "{words}: {}", found[index]);
    }
}

/// A call of a tool of a server whose tools take too many tokens to be offered one by one.
fn through(tool: &str, arguments: &Value) -> (&'static str, Value) {
    ("mcp__tools", json!({"call": tool, "arguments": arguments}))
}

#[test]
fn the_server_for_files_reads_what_its_argument_names_and_writes_where_the_owner_permits() {
    let Some(packages) = installed("MYCLAW_MCP_SERVERS") else { return };
    let program = script(&packages, "server-filesystem");
    for (options, written) in [(&[][..], false), (&["--write"][..], true)] {
        let home = TempHome::new();
        let file = home.write("documents/note.txt", "a note");
        let directory = file.parent().expect("a directory").display().to_string();
        let mut options: Vec<&str> = options.to_vec();
        if written {
            options.push(&directory);
        }
        let new = format!("{directory}/new.txt");
        let found = answers(
            &home,
            &options,
            &["node", &program, &directory],
            &[
                through("other__read_text_file", &json!({"path": file})),
                through("other__write_file", &json!({"path": new, "content": "new"})),
                through("other__read_text_file", &json!({"path": "/etc/passwd"})),
            ],
        );
        assert!(found[0].contains("a note"), "{}", found[0]);
        assert_eq!(Path::new(&new).exists(), written, "{}", found[1]);
        assert!(found[2].contains("denied"), "{}", found[2]);
    }
}

#[test]
fn a_server_of_the_python_sdk_answers() {
    let Some(python) = installed("MYCLAW_MCP_PYTHON") else { return };
    let home = TempHome::new();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/third-party/mcp_server.py");
    let program = Path::new(program).canonicalize().expect("the server").display().to_string();
    let found = answers(
        &home,
        &[],
        &[&python.display().to_string(), &program],
        &[
            ("other__forecast", json!({"city": "Bonn", "days": 3})),
            ("other__stations", json!({})),
            ("other__forecast", json!({"days": "many"})),
        ],
    );
    assert!(found[0].contains("3 sunny days in Bonn"), "{}", found[0]);
    assert!(found[1].contains("Bonn") && found[1].contains('3'), "{}", found[1]);
    assert!(found[2].contains("do not fit"), "{}", found[2]);
}

#[test]
fn a_server_of_the_go_sdk_answers() {
    let Some(program) = installed("MYCLAW_MCP_GRAFANA") else { return };
    let program = program.canonicalize().expect("the server").display().to_string();
    let home = TempHome::new();
    let link = json!({"resourceType": "dashboard", "dashboardUid": "abc"});
    let found = answers(
        &home,
        &["--env", "GRAFANA_URL=http://127.0.0.1:1", "--network", "open"],
        &[&program],
        &[
            through("grafana", &json!({})),
            through("other__generate_deeplink", &link),
            through("other__search_dashboards", &json!({"query": "x"})),
            through("other__generate_deeplink", &json!({"resourceType": 7})),
        ],
    );
    assert!(found[0].contains("other__grafana_api_request"), "{}", found[0]);
    assert!(found[1].contains("http://127.0.0.1:1/d/abc"), "{}", found[1]);
    assert!(found[2].contains("connection refused"), "{}", found[2]);
    assert!(found[3].contains("unsupported resource type: 7"), "{}", found[3]);
}

/// A program of others that serves at a free port, once it does.
fn serving(command: &[&str]) -> (RunningChild, u16) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut program = Command::new(command[0]);
    // One takes its port from a variable, the other as its argument.
    program.args(&command[1..]).arg(port.to_string()).env("PORT", port.to_string());
    let child = RunningChild::spawn(&mut program);
    let limit = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < limit, "{command:?} does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    (child, port)
}

#[test]
fn servers_of_others_behind_addresses_answer() {
    let Some(packages) = installed("MYCLAW_MCP_SERVERS") else { return };
    let Some(python) = installed("MYCLAW_MCP_PYTHON") else { return };
    let everything = script(&packages, "server-everything");
    let weather = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/third-party/mcp_server.py");
    let python = python.display().to_string();
    for (command, path, call, words) in [
        (
            vec!["node", &everything, "streamableHttp"],
            "/mcp",
            through("other__echo", &json!({"message": "hello"})),
            "Echo: hello",
        ),
        (
            vec!["node", &everything, "sse"],
            "/sse",
            through("other__get-sum", &json!({"a": 2, "b": 40})),
            "42",
        ),
        (
            vec![&*python, weather],
            "/mcp",
            ("other__forecast", json!({"city": "Bonn", "days": 3})),
            "3 sunny days in Bonn",
        ),
    ] {
        let (child, port) = serving(&command);
        let home = TempHome::new();
        let url = format!("http://127.0.0.1:{port}{path}");
        let found = answers(&home, &["--url", &url], &[], &[call]);
        assert!(found[0].contains(words), "{command:?}: {}", found[0]);
        child.signal(Signal::Kill);
    }
}
