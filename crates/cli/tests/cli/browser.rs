//! The browser through the program. `MYCLAW_AGENT_BROWSER` names agent-browser; without it these tests say that they
//! were skipped.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Signal, TempHome, WireFormat};
use serde_json::json;

use crate::{last_message, myclaw, run};

/// A page server on a thread that ends with the tests.
fn page_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = "<title>T</title><h1>Heron</h1>";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("http://{address}/")
}

/// A home in which the browser may open pages of this machine and puts its files below `temporary`.
fn home(server: &ModelServer) -> Option<(TempHome, PathBuf)> {
    let Some(program) = std::env::var_os("MYCLAW_AGENT_BROWSER") else {
        myclaw_testkit::skip_without("MYCLAW_AGENT_BROWSER is not set; scripts/test sets it");
        return None;
    };
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"]["browser"]["program"] = json!(program.to_str());
    config["tools"]["web"]["fetch"]["allowHosts"] = json!(["127.0.0.1"]);
    home.write_config(&config);
    let temporary = home.path().join("t");
    std::fs::create_dir(&temporary).expect("a directory");
    Some((home, temporary))
}

fn call(id: &str, arguments: serde_json::Value) -> Reply {
    Reply::anthropic().tool_call(id, "browser", arguments)
}

/// Waits until no process has `directory` in its environment and nothing is left in it.
fn wait_until_clean(directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let text = directory.to_str().expect("a readable path");
    loop {
        let processes = processes_with(text);
        let files = std::fs::read_dir(directory).expect("the directory").count();
        if processes == 0 && files == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{processes} processes and {files} files are left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn processes_with(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("the process table").flatten();
    entries
        .filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.windows(text.len()).any(|window| window == text.as_bytes())
        })
        .count()
}

#[test]
fn a_run_reads_a_page_and_leaves_nothing_behind() {
    let url = page_server();
    let server = ModelServer::spawn_blocking_thread(Script::from([
        call("call_1", json!({"action": "open", "url": url})),
        call("call_2", json!({"action": "snapshot"})),
        Reply::anthropic().text("Done."),
    ]));
    let Some((home, temporary)) = home(&server) else { return };
    RunningChild::run(myclaw(&home, &["run", "go on"]).env("TMPDIR", &temporary)).assert_code(0);
    let snapshot = last_message(&server);
    assert!(snapshot.contains("heading \\\"Heron"), "{snapshot}");
    wait_until_clean(&temporary);
}

#[test]
fn a_killed_run_leaves_neither_processes_nor_files() {
    let url = page_server();
    for signal in [Signal::Kill, Signal::Terminate] {
        let server = ModelServer::spawn_blocking_thread(Script::from([
            call("call_1", json!({"action": "open", "url": url})),
            call("call_2", json!({"action": "wait", "text": "never there"})),
        ]));
        let Some((home, temporary)) = home(&server) else { return };
        let child = RunningChild::spawn(myclaw(&home, &["run", "go on"]).env("TMPDIR", &temporary));
        // The second call is made once the browser shows the page.
        server.wait_for_requests_blocking(2);
        assert!(processes_with(temporary.to_str().expect("a readable path")) >= 3);
        child.signal(signal);
        wait_until_clean(&temporary);
    }
}

#[test]
fn without_the_programs_nothing_is_offered_and_a_call_says_how_to_install_them() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().text("Nothing to do."),
        call("call_1", json!({"action": "open", "url": "https://93.184.215.14/"})),
        Reply::anthropic().text("Done."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"]["browser"]["enabled"] = json!(false);
    home.write_config(&config);
    run(&home, &["run", "hello"]).assert_code(0);
    let tools = server.last_request().json()["tools"].to_string();
    assert!(tools.contains("\"bash\"") && !tools.contains("\"browser\""), "{tools}");
    config["tools"]["browser"] = json!({"enabled": true, "program": "/nonexistent/agent-browser"});
    home.write_config(&config);
    run(&home, &["run", "go on"]).assert_code(0);
    let result = last_message(&server);
    assert!(result.contains("npm install -g agent-browser"), "{result}");
}
