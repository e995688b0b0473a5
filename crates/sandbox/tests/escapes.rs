//! The attempts to escape, on this kernel, through the real helper process: each succeeds without the sandbox and fails
//! inside.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "all of this is test code, where a panic is a failed test")]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use myclaw_sandbox::escapes::{AttemptOutcome, Row, Verdict, try_all};
use myclaw_sandbox::{Level, Sandbox, probe};

const HELPER: &str = env!("CARGO_BIN_EXE_myclaw-sandbox-helper");

/// What root or a kernel with fewer features may not do even without a sandbox. All else must be shown to work there.
const MAY_BE_IMPOSSIBLE: &[&str] = &["TIOCLINUX", "socket to the host of a virtual machine"];

/// A process that puts a socket into a shared directory offers its service to others.
const BUBBLEWRAP_GAPS: &[&str] = &["Unix socket of a service in the workspace"];

fn table(level: Level) -> Vec<Row> {
    let sandbox = Sandbox::new(HELPER, [OsString::from("__sandbox-exec")]);
    try_all(&sandbox, Path::new(HELPER), &["__escape".into()], level)
        .expect("the attempts can be made")
}

/// `gaps` are the attempts that the documentation lists as open.
fn assert_held(rows: &[Row], gaps: &[&str]) {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let with = |verdict: Verdict| -> Vec<&str> {
        rows.iter().filter(|row| row.verdict() == verdict).map(|row| row.name).collect()
    };
    assert_eq!(
        (with(Verdict::Escaped), with(Verdict::KnownGap)),
        (vec![], gaps.to_vec()),
        "{text}"
    );
    let is_root = rustix::process::geteuid().is_root();
    for row in rows {
        let proven = row.bare == AttemptOutcome::Reached;
        assert!(
            proven || !is_root || MAY_BE_IMPOSSIBLE.contains(&row.name),
            "not proven: {row}\n{text}"
        );
        assert_ne!(row.verdict(), Verdict::Unknown, "{row}\n{text}");
    }
}

#[test]
fn landlock_and_seccomp_hold() {
    assert_held(&table(Level::Landlock), &[]);
}

#[test]
fn bubblewrap_holds() {
    if probe().bubblewrap.is_none() {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
        return;
    }
    assert_held(&table(Level::Bubblewrap), BUBBLEWRAP_GAPS);
}

/// The same as another user, if this is root.
#[test]
fn landlock_and_seccomp_hold_for_a_normal_user() {
    if !rustix::process::geteuid().is_root() {
        myclaw_testkit::skip_here("this is a normal user already");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let helper = directory.path().join("helper");
    // By a process of its own: while this one has a program open for writing, a child that another test starts inherits
    // that, and the program cannot be started.
    assert!(Command::new("cp").arg(HELPER).arg(&helper).status().unwrap().success());
    let output = Command::new(helper).arg("table").uid(65_534).gid(65_534).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let with = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!((with("ESCAPED"), with("known gap"), with("unknown")), (0, 0, 0), "{text}");
    // What a user may do without a sandbox: all but devices, mounts, raw sockets, and parts of the kernel for root.
    assert!(with(" held ") >= 60, "{text}");
}
