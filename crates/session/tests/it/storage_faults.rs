//! Disks that are full or read-only, and directories of another user.
//!
//! Faults are made in a mount namespace of the child's own, so nothing has to be cleaned up. Where the system allows
//! no namespaces, the tests say that they were skipped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::children::{Child, Report};
use crate::{Home, user, work};

/// Runs a command in which mounting is allowed and seen by nobody else.
const NAMESPACE: &[&str] = &["unshare", "--user", "--map-root-user", "--mount"];

fn can_mount(test: &str) -> bool {
    let mut probe = Command::new(NAMESPACE[0]);
    probe.args(&NAMESPACE[1..]).args(["sh", "-c", "mount -t tmpfs none /mnt"]);
    let possible = probe.output().is_ok_and(|output| output.status.success());
    if !possible {
        myclaw_testkit::skip_here(&format!(
            "{test} needs `unshare` and the right to mount in a namespace"
        ));
    }
    possible
}

#[test]
fn a_full_disk_loses_nothing_and_can_be_used_again() {
    if !can_mount("a full disk") {
        return;
    }
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none '{0}' && head -c 65536 /dev/zero > '{0}/ballast' && exec \"$@\"",
        home.sessions().display()
    );
    let report = Child::new("fill").directory(home.sessions()).through(NAMESPACE, &script).run();
    assert!(report.succeeded, "{}", report.printed);
    let path = home.store().transcript_path(&work());
    assert_eq!(
        report.value("error").unwrap(),
        format!(
            "failed to write to the session log {}: No space left on device (os error 28); free some space (or raise \
             the quota or file-size limit), then try again; nothing that was stored before is lost",
            path.display()
        )
    );
    assert_eq!(report.value("is_no_space").as_deref(), Some("true"));
    assert_eq!(report.value("intact").as_deref(), Some("true"));
    assert_eq!(report.value("first_append_failed").as_deref(), Some("true"));
    assert_eq!(report.value("left_an_empty_file").as_deref(), Some("false"));
    assert_eq!(report.value("usable_again").as_deref(), Some("true"));
}

#[test]
fn a_full_disk_acknowledges_no_message_and_loses_none() {
    if !can_mount("a full disk") {
        return;
    }
    let home = Home::new();
    fs::create_dir_all(home.sessions()).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none '{0}' && head -c 65536 /dev/zero > '{0}/ballast' && exec \"$@\"",
        home.sessions().display()
    );
    let report =
        Child::new("fill_inbox").directory(home.sessions()).through(NAMESPACE, &script).run();
    assert!(report.succeeded, "{}", report.printed);
    assert_eq!(
        report.value("error").unwrap(),
        format!(
            "failed to write to the inbox {}: No space left on device (os error 28); free some space (or raise \
             the quota or file-size limit), then try again; nothing that was stored before is lost",
            home.store().inbox(&work()).path().display()
        )
    );
    let facts = [
        "is_no_space",
        "intact",
        "one_cannot_be_settled",
        "still_intact",
        "usable_again",
        "all_can_be_settled",
    ];
    for fact in facts {
        assert_eq!(report.value(fact).as_deref(), Some("true"), "{fact}: {}", report.printed);
    }
}

#[test]
fn a_file_size_limit_acknowledges_no_message_and_loses_none() {
    let home = Home::new();
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$@\"";
    let report =
        Child::new("fill_inbox").directory(home.sessions()).through(&["env"], script).run();
    assert!(report.succeeded, "{}", report.printed);
    for fact in ["is_no_space", "intact", "all_can_be_settled"] {
        assert_eq!(report.value(fact).as_deref(), Some("true"), "{fact}: {}", report.printed);
    }
}

#[test]
fn a_file_size_limit_loses_nothing() {
    let home = Home::new();
    // 40 blocks of 512 bytes (1024 in some shells); the signal that goes with it is ignored, as the program does.
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$@\"";
    let report = Child::new("fill").directory(home.sessions()).through(&["env"], script).run();
    assert!(report.succeeded, "{}", report.printed);
    assert_eq!(report.value("is_no_space").as_deref(), Some("true"), "{}", report.printed);
    assert_eq!(report.value("intact").as_deref(), Some("true"));
}

#[test]
fn a_read_only_file_system_is_named_and_can_be_read() {
    if !can_mount("a read-only file system") {
        return;
    }
    let home = Home::new();
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    let script = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && exec \"$@\"",
        home.sessions().display()
    );
    let report =
        Child::new("try_to_write").directory(home.sessions()).through(NAMESPACE, &script).run();
    assert!(report.succeeded, "{}", report.printed);
    let advice = "the file system is read-only; remount it for writing, or keep the state elsewhere by setting \
                  MYCLAW_STATE_DIR";
    let lock = |name: &str| home.sessions().join(format!("{name}.lock")).display().to_string();
    assert_eq!(
        report.value("open").unwrap(),
        format!("failed to open the lock file {}: {advice}", lock(&work().slug()))
    );
    assert_eq!(
        report.value("upsert").unwrap(),
        format!(
            "failed to open the session index {}: {advice}",
            home.sessions().join("sessions.journal").display()
        )
    );
    assert_eq!(report.value("listed").as_deref(), Some("1"), "the list is made from the logs");
    assert_eq!(report.value("read").as_deref(), Some("1"));
}

#[test]
fn a_directory_of_another_user_is_named() {
    let home = Home::new();
    home.open(&work()).append(&[user("hi").into()]).unwrap();
    // Readable for all, writable for its owner only; and the child is not its owner.
    for directory in home.sessions().ancestors().take(3) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(home.store().transcript_path(&work()), fs::Permissions::from_mode(0o644))
        .unwrap();
    let mut command = Child::new("try_to_write").directory(home.sessions()).command();
    if chown(home.sessions(), Some(0), Some(0)).is_ok() {
        // The super-user may do everything, so the child becomes nobody.
        command.uid(65534).gid(65534);
    } else {
        fs::set_permissions(home.sessions(), fs::Permissions::from_mode(0o555)).unwrap();
    }
    let Ok(child) = command.spawn() else {
        myclaw_testkit::skip_here("another user cannot run this test binary where it is");
        return;
    };
    let report = Report::of(child);
    assert!(report.succeeded, "{}", report.printed);
    for (failed, what) in [("open", "lock file"), ("upsert", "session index")] {
        let error = report.value(failed).unwrap();
        assert!(error.starts_with(&format!("failed to open the {what} ")), "{error}");
        assert!(
            error.ends_with(
                ": Permission denied (os error 13); check who owns it and its permissions, or keep the state \
                 elsewhere by setting MYCLAW_STATE_DIR"
            ),
            "{error}"
        );
    }
    assert_eq!(report.value("listed").as_deref(), Some("1"));
    assert_eq!(report.value("read").as_deref(), Some("1"));
}
