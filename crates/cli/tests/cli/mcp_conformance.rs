//! The protocol's own conformance suite for clients, in both kinds of revision. `MYCLAW_MCP_CONFORMANCE` names the npm package;
//! `scripts/test` installs it, without it the test says that it is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use myclaw_testkit::{RunningChild, TempHome};

const LIMIT: Duration = Duration::from_secs(300);

fn third_party(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/third-party")).join(name)
}

#[test]
fn the_client_conforms_to_the_revisions_of_the_protocol() {
    let Some(package) = std::env::var_os("MYCLAW_MCP_CONFORMANCE").map(PathBuf::from) else {
        myclaw_testkit::skip_without(
            "MYCLAW_MCP_CONFORMANCE names nothing; scripts/test installs it",
        );
        return;
    };
    let client = third_party("mcp_conformance_client.py");
    for revision in ["2025-11-25", "2026-07-28"] {
        let home = TempHome::new();
        let mut node = Command::new("node");
        for module in ["conformance-on-node-20.mjs", "conformance-in-turn.mjs"] {
            node.arg("--import").arg(third_party(module));
        }
        node.arg(package.join("dist/index.js")).args(["client", "--requirements", revision]);
        node.arg("--command").arg(format!("python3 {}", client.display()));
        node.arg("--expected-failures").arg(third_party("mcp-conformance-baseline.yml"));
        node.args(["--timeout", "120000", "--output-dir"]).arg(home.path().join("results"));
        node.env("PROGRAM_UNDER_TEST", env!("CARGO_BIN_EXE_myclaw")).env("TMPDIR", home.path());
        let output = RunningChild::spawn(&mut node).wait(LIMIT);
        output.assert_code(0);
        assert!(output.stdout().contains("Total: "), "{}", output.stdout());
    }
}
