//! The MCP server with the clients of others: the protocol's own conformance suite, its inspector, and the SDKs for Python and
//! TypeScript, in both kinds of revision. `MYCLAW_MCP_CONFORMANCE`, `MYCLAW_MCP_SERVERS` (the directory with the npm packages)
//! and `MYCLAW_MCP_PYTHON` name them; `scripts/test` installs them, without them the tests say that they are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

const LIMIT: Duration = Duration::from_secs(300);
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn installed(variable: &str, file: &str) -> Option<PathBuf> {
    // A program is named itself; joined with nothing, its path would be that of a directory.
    let of = |path| if file.is_empty() { PathBuf::from(path) } else { Path::new(&path).join(file) };
    let found = std::env::var_os(variable).map(of);
    let found = found.filter(|path| path.exists());
    if found.is_none() {
        let why = format!("{variable} names nothing with {file:?}; scripts/test installs it");
        myclaw_testkit::skip_without(&why);
    }
    found
}

fn third_party(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/third-party")).join(name)
}

/// A gateway whose agent wants to run a command that needs an approval, and then says that it is done.
fn asking() -> Bench {
    let script = Script::answer_with(|request, number| {
        let last = request.messages().last().map(|message| message["content"].to_string());
        match last.is_some_and(|last| last.contains("tool_result")) {
            true => Reply::anthropic().text("Done.").step(),
            false => {
                let arguments = json!({"command": "echo it ran"});
                Reply::anthropic().tool_call(format!("call_{number}"), "bash", arguments).step()
            }
        }
    });
    let bench = Bench::new(script);
    bench.configure(|config| config["tools"] = json!({"exec": {"ask": "always"}}));
    bench
}

#[test]
fn the_server_conforms_to_the_revisions_of_the_protocol() {
    let Some(suite) = installed("MYCLAW_MCP_CONFORMANCE", "dist/index.js") else { return };
    let bench = Bench::new(answering("Hello."));
    let gateway = bench.start();
    for revision in REVISIONS {
        let mut node = Command::new("node");
        node.arg("--import").arg(third_party("conformance-on-node-20.mjs"));
        node.arg("--import").arg(third_party("mcp-conformance-token.mjs"));
        node.arg(&suite).args(["server", "--requirements", revision]);
        node.arg("--url").arg(format!("http://127.0.0.1:{}/mcp", gateway.client.port));
        node.arg("--expected-failures").arg(third_party("mcp-conformance-baseline.yml"));
        node.arg("--output-dir").arg(bench.home.path().join("results"));
        node.env("TOKEN", &gateway.client.token).env("SUITE", &suite);
        let output = RunningChild::spawn(&mut node).wait(LIMIT);
        output.assert_code(0);
        assert!(output.stdout().contains("dns-rebinding-protection: 2 passed, 0 failed"));
    }
    gateway.stop();
}

/// What a client of an SDK has seen.
fn check(mut client: Command, revision: &str, tools: usize) {
    let output = RunningChild::spawn(&mut client).wait(LIMIT);
    output.assert_code(0);
    let line = output.stdout();
    let seen: Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!(seen["revision"], revision, "{seen}");
    assert_eq!(seen["tools"].as_array().unwrap().len(), tools, "{seen}");
    assert_eq!(seen["asked"].as_array().unwrap().len(), 1, "{seen}");
    assert!(seen["asked"][0].as_str().unwrap().contains("echo it ran"), "{seen}");
    assert!(seen["progress"].as_array().unwrap().contains(&json!("uses bash")), "{seen}");
    assert_eq!((&seen["reply"], &seen["read"]), (&json!("Done."), &json!(["go", "Done."])));
}

/// Lets a client, which `start` makes, ask over both transports in both revisions.
fn check_all(start: &dyn Fn() -> Command) {
    let bench = asking();
    let gateway = bench.start();
    for (mode, revision) in [("legacy", REVISIONS[0]), (REVISIONS[1], REVISIONS[1])] {
        let mut over_http = start();
        over_http.args([mode, "http", &format!("http://127.0.0.1:{}/mcp", gateway.client.port)]);
        over_http.arg(&gateway.client.token);
        check(over_http, revision, 5);
        // The client passes its environment on.
        let mut over_pipes = start();
        over_pipes.args([mode, "stdio", env!("CARGO_BIN_EXE_myclaw"), "mcp", "serve"]);
        let own = bench.home.command("unused");
        over_pipes.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        over_pipes.current_dir(bench.home.path());
        check(over_pipes, revision, 4);
    }
    gateway.stop();
}

#[test]
fn a_client_of_the_python_sdk_asks_approves_and_reads() {
    let Some(python) = installed("MYCLAW_MCP_PYTHON", "") else { return };
    check_all(&|| {
        let mut client = Command::new(&python);
        client.arg(third_party("mcp_client.py"));
        client
    });
}

#[test]
fn a_client_of_the_typescript_sdk_asks_approves_and_reads() {
    let Some(package) = installed("MYCLAW_MCP_SERVERS", "client/dist/index.mjs") else { return };
    let packages = package.ancestors().nth(3).unwrap();
    check_all(&|| {
        let mut client = Command::new("node");
        client.arg(third_party("mcp-client.mjs")).arg(packages);
        client
    });
}

#[test]
fn the_inspector_lists_and_calls() {
    let file = "inspector/clients/launcher/build/index.js";
    let Some(inspector) = installed("MYCLAW_MCP_SERVERS", file) else { return };
    let bench = Bench::new(answering("Hello."));
    let gateway = bench.start();
    let address = format!("http://127.0.0.1:{}/mcp", gateway.client.port);
    let token = format!("Authorization: Bearer {}", gateway.client.token);
    let over_http = vec![address.as_str(), "--header", &token];
    let over_pipes = vec![env!("CARGO_BIN_EXE_myclaw"), "mcp", "serve"];
    for target in [over_http, over_pipes] {
        let inspect = |method: &[&str]| {
            let mut node = bench.home.command("node");
            node.arg(&inspector).arg("--cli").args(&target).args(method);
            let output = RunningChild::spawn(&mut node).wait(LIMIT);
            output.assert_code(0);
            serde_json::from_str::<Value>(&output.stdout()).unwrap()
        };
        let listed = inspect(&["--method", "tools/list"]);
        assert_eq!(listed["tools"][0]["name"], "ask", "{listed}");
        let call = ["--method", "tools/call", "--tool-name", "ask", "--tool-arg", "message=hi"];
        let answer = inspect(&call);
        assert_eq!(answer["structuredContent"]["reply"], "Hello.", "{answer}");
    }
    gateway.stop();
}
