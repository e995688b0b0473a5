//! What a snapshot through the browser tool costs compared with `agent-browser` alone, on the same page of the same browser.
//!
//! Medians within one run: `MYCLAW_AGENT_BROWSER=/path/to/agent-browser cargo bench -p myclaw-bench --bench browser`.
//! Without the variable the program in `PATH` is measured, and nothing without one.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myclaw_browser::{BrowserOptions, BrowserSlot, BrowserTool, Programs};
use myclaw_engine::{PreparedCall, Tool as _, ToolContext, ToolInvocation, TurnId};
use myclaw_web::{AddressGuard, AddressRules, PrivateNetworks};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Timed runs of each: odd, so that the median is a run that happened.
const RUNS: usize = 41;
/// Rows of the table on the page, with a link and a button each: a page of some 1,000 elements.
const ROWS: usize = 200;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os("MYCLAW_AGENT_BROWSER").map(PathBuf::from);
    if named.is_none() && !myclaw_browser::is_installed(&path) {
        println!("browser: agent-browser is not installed");
        return;
    }
    let program = named.clone().unwrap_or_else(|| "agent-browser".into());
    let runtime = Runtime::new().expect("a runtime");
    let directory = TempDir::new().expect("a temporary directory");
    let rules =
        AddressRules { private_networks: PrivateNetworks::Allowed, ..AddressRules::default() };
    let options = BrowserOptions {
        programs: Programs { agent_browser: named, path, ..Programs::default() },
        guard: AddressGuard::new(rules),
        action_limit: Duration::from_secs(25),
        idle_limit: Duration::from_secs(600),
    };
    let tool = BrowserTool::new(options, BrowserSlot::default());
    let context = ToolContext {
        working_directory: directory.path().to_owned(),
        artifact_directory: directory.path().join("artifacts"),
        max_result_chars: 50_000,
        workspace_only: false,
        closed: Default::default(),
        turn: TurnId::generate(),
    };
    let call = |arguments: Value| {
        let arguments = arguments.as_object().expect("an object").clone();
        let prepared = PreparedCall::new(&tool, "call", arguments, &context).expect("a call");
        let invocation = ToolInvocation {
            call: &prepared,
            on_update: &|_| {},
            context: &context,
            cancel: CancellationToken::new(),
        };
        let output = runtime.block_on(tool.execute(invocation)).expect("a result");
        assert!(!output.is_error, "{output:?}");
    };
    call(json!({"action": "open", "url": serve_page()}));
    let browser = tool.directory().expect("a running browser");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        theirs.push(timed(|| bare_snapshot(&program, &browser)));
        ours.push(timed(|| call(json!({"action": "snapshot"}))));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "snapshot of {ROWS} rows: agent-browser alone {theirs:.1} ms, through the tool {ours:.1} ms"
    );
    println!("the tool adds {:.1} ms", ours - theirs);
}

/// The same snapshot with the program alone.
fn bare_snapshot(program: &Path, directory: &Path) {
    let output = Command::new(program)
        .args(["--json", "snapshot", "-c"])
        .current_dir(directory)
        .env("AGENT_BROWSER_SOCKET_DIR", ".")
        .env("AGENT_BROWSER_SESSION", "s")
        .stdin(Stdio::null())
        .output()
        .expect("agent-browser");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Serves one page on this machine for as long as the benchmark runs.
fn serve_page() -> String {
    let row = |number: usize| {
        format!(
            "<tr><td><a href=/{number}>Item {number}</a><td>{number}.00<td><button>Buy</button>"
        )
    };
    let rows: String = (0..ROWS).map(row).collect();
    let page = format!("<!doctype html><title>Shop</title><table>{rows}</table>");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Whatever is asked for gets the page; a browser that goes away early is no problem of the benchmark.
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    url
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
