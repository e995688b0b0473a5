//! Sandboxed sessions whose commands reach only the hosts of an allowlist.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use myclaw_testkit::{TempHome, WireFormat};
use serde_json::{Value, json};

use crate::run;
use crate::sandbox::{bash, results_of, serve};

/// A server that answers every request with the same page, and counts them.
struct Page {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Page {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("the address").port();
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = client.read(&mut [0; 4096]);
                let _ = client.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nthe page\n",
                );
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Speaks HTTP to the proxy as far as bash can, because not every machine has curl: `ask METHOD TARGET`.
pub(crate) const ASK: &str = r#"
    ask() {
        local proxy=${http_proxy#http://} line
        exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}" || return
        printf '%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" "$2" >&3
        # A tunnel is open after its first line; what follows goes to the server.
        if [ "$1" = CONNECT ]; then printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3; fi
        while read -r line <&3; do echo "${line%$'\r'}"; done; echo "$line"
    }
"#;

/// Makes the calls in a session whose commands reach the listed hosts only.
pub(crate) fn turn_with_hosts(
    confinement: &Value,
    hosts: &[String],
    private: &[String],
    calls: &[(&str, Value)],
) -> Vec<String> {
    let server = serve(calls);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    let mut confinement = confinement.clone();
    confinement["network"] = json!("allowlist");
    confinement["allowHosts"] = json!(hosts);
    config["agents"]["defaults"]["sandbox"]["confinement"] = confinement;
    config["tools"]["web"]["fetch"]["allowHosts"] = json!(private);
    home.write_config(&config);
    // The socket of the proxy is in this directory, which is its own, so that a test sees what is left in it.
    let temporary = tempfile::TempDir::with_prefix("t-").expect("a directory");
    let mut command = crate::myclaw(&home, &["run", "--session", "trip", "go on"]);
    command.env("TMPDIR", temporary.path()).env("NO_PROXY", "*").env("no_proxy", "*");
    myclaw_testkit::RunningChild::run(&mut command).assert_code(0);
    assert_eq!(fs::read_dir(temporary.path()).expect("the directory").count(), 0);
    results_of(&home, "trip")
}

#[test]
fn commands_reach_the_listed_hosts_and_nothing_else() {
    let (open, closed) = (Page::serve(), Page::serve());
    let (port, other) = (open.port, closed.port);
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{other}"), "*.example".to_owned()];
    let private = [format!("127.0.0.1:{port}")];
    let calls = [
        bash(format!("{ASK} ask GET http://127.0.0.1:{port}/")),
        bash(format!("{ASK} ask CONNECT 127.0.0.1:{port}")),
        bash(format!("{ASK} ask GET http://127.0.0.1:{other}/")),
        bash(format!("{ASK} ask CONNECT 127.0.0.1:{other}")),
        // It is listed, but only the owner can say that this machine may be reached.
        bash(format!("{ASK} ask GET http://localhost:{other}/")),
        // Past the proxy.
        bash(format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo REACHED")),
        bash(format!("exec 3<>/dev/tcp/127.0.0.1/{other} && echo REACHED")),
        bash("echo x > /dev/udp/192.0.2.1/53 && echo REACHED"),
        bash("echo \"<${NO_PROXY-}${no_proxy-}>\""),
    ];
    for level in ["landlock", "bubblewrap"] {
        if level == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists() {
            myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
            continue;
        }
        let before = open.requests();
        let results = turn_with_hosts(&json!({"level": level}), &hosts, &private, &calls);
        for (result, words) in results.iter().zip([
            ["200 OK", "the page"],
            ["200 OK", "the page"],
            ["403 Forbidden", "is not on the list of permitted hosts"],
            ["refused by the network of the sandbox", "`sandbox.confinement.allowHosts`"],
            ["403 Forbidden", "tools.web.fetch.allowHosts"],
            ["Connection refused", "exit code 1"],
            ["Connection refused", "exit code 1"],
            ["Network is unreachable", "exit code 1"],
            ["<>", "<>"],
        ]) {
            let has_all = words.iter().all(|word| result.contains(word));
            assert!(has_all && !result.contains("REACHED"), "{level}: no {words:?} in {result}");
        }
        assert_eq!((open.requests() - before, closed.requests()), (2, 0), "{level}");
    }
}

#[test]
fn everyday_programs_find_the_proxy() {
    if !Path::new("/usr/bin/curl").exists() {
        myclaw_testkit::skip_without("curl is not installed (apt install curl)");
        return;
    }
    let page = Page::serve();
    let host = [format!("127.0.0.1:{}", page.port)];
    let calls =
        [bash(format!("curl -sS http://{0}/ && curl -sS --proxytunnel http://{0}/", host[0]))];
    let results = turn_with_hosts(&json!({}), &host, &host, &calls);
    assert_eq!(results, ["the page\nthe page"]);
}

#[test]
fn an_allowlist_without_hosts_is_a_mistake() {
    for (hosts, expected) in
        [(json!([]), "names no host"), (json!(["http://x.example"]), "is not a host")]
    {
        let server = serve(&[]);
        let home = TempHome::new();
        let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
        config["agents"]["defaults"]["sandbox"]["confinement"] =
            json!({"network": "allowlist", "allowHosts": hosts});
        home.write_config(&config);
        for arguments in [&["run", "-s", "trip", "go on"][..], &["config", "check"]] {
            let output = run(&home, arguments);
            output.assert_code(3);
            assert!(output.stderr().contains(expected), "{}", output.stderr());
        }
        assert_eq!(server.requests().len(), 0);
    }
}

#[test]
fn the_hosts_are_explained() {
    let home = TempHome::new();
    home.write_config(&json!({"agents": {"defaults": {"sandbox": {"confinement": {
        "network": "allowlist", "allowHosts": ["crates.io", "*.crates.io"],
    }}}}}));
    let output = run(&home, &["sandbox", "explain", "-s", "trip"]);
    output.assert_code(0);
    assert!(output.stdout().contains("only crates.io, *.crates.io"), "{}", output.stdout());
    let output = run(&home, &["sandbox", "explain", "-s", "trip", "--json"]);
    let explained: Value = serde_json::from_str(&output.stdout()).expect("JSON");
    let expected = json!({"allowlist": ["crates.io", "*.crates.io"]});
    assert_eq!(explained["confinement"]["network"], expected);
}
