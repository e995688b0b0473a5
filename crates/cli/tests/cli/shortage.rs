//! A system that allows no further thread.

use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use myclaw_testkit::{ChildOutput, Reply, RunningChild, TempHome};

use crate::{myclaw, serve};

/// A user whose limit of processes counts: the superuser has none.
const ORDINARY_USER: &str = "65534";

/// Runs the program with a limit of one process.
fn run_alone(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    let plain = myclaw(home, arguments);
    let mut limited = home.command("prlimit");
    for (name, value) in plain.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    limited.arg("--nproc=1");
    if std::fs::metadata("/proc/self").expect("/proc").uid() == 0 {
        let status = Command::new("chown").args(["-R", ORDINARY_USER]).arg(home.path()).status();
        assert!(status.expect("chown").success());
        limited.args(["setpriv", "--reuid", ORDINARY_USER, "--clear-groups"]);
    }
    limited.arg(plain.get_program()).args(plain.get_args());
    RunningChild::run(&mut limited)
}

#[test]
fn no_further_thread_is_an_error_with_advice() {
    for arguments in [["run", "hello"].as_slice(), &["gateway"], &["rpc"], &["acp"], &["doctor"]] {
        let (_server, home) = serve(Reply::anthropic().text("Hi."));
        let output = run_alone(&home, arguments);
        let stderr = output.stderr();
        assert_ne!(output.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(stderr.contains("ulimit -u"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("defect"), "{arguments:?}: {stderr}");
    }
}
