//! Clocks that are wrong, and a disk that is full.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::audit::Audit;
use super::chaos::{message_of, missing_rows, settle};
use super::*;

/// Longest time in which everything is answered.
const SETTLED: Duration = Duration::from_secs(60);
/// Where Debian has the library.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// Messages of two sessions, sent to these machines in turn; each is answered and stored once.
fn assert_answers(machines: &[Machine], numbers: std::ops::Range<u64>) {
    let mut promised = HashMap::new();
    for number in numbers {
        let (name, id, text) = message_of(number % 2, number);
        let client = machines[usize::try_from(number).unwrap() % machines.len()].client();
        promised.insert(number, (number % 2, client.send(&name, &id, &text).unwrap()));
    }
    assert_eq!(settle(&promised, machines, SETTLED), [] as [String; 0]);
    assert_eq!(missing_rows(&promised, &machines[0]), [] as [String; 0]);
}

#[test]
fn clocks_that_are_wrong_by_an_hour_change_nothing() {
    if !Path::new(FAKETIME).exists() {
        myclaw_testkit::skip_without("libfaketime is missing; scripts/install-third-party");
        return;
    }
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = ["one", "two", "three"].map(|name| Machine::new(name, &url, &model));
    let mut gateways: Vec<Gateway> = machines
        .iter()
        .zip(["+1h", "-1h", "+0"])
        .map(|(machine, offset)| {
            let mut command = machine.command(&["gateway"]);
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME", offset);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            let child = RunningChild::spawn(&mut command);
            child.wait_for_stderr("listening on http://127.0.0.1:");
            Gateway { child, client: machine.client() }
        })
        .collect();
    gateways[0].child.wait_for_stderr(" s ahead of that of the database; set it");
    gateways[1].child.wait_for_stderr(" s behind that of the database; set it");
    assert_answers(&machines, 0..12);
    let said = gateways[2].child.wait_for_stderr("listening on");
    assert!(!said.contains("the clock of this machine"), "{said}");
    // Whoever has the sessions now: the clock of the next one is another.
    gateways.remove(0).kill();
    assert_answers(&machines[1..], 12..18);
    gateways.remove(0).kill();
    assert_answers(&machines[2..], 18..24);
    gateways.remove(0).stop();
}

/// A file system of its own, which a test fills.
struct SmallDisk<'d>(&'d Path);

impl<'d> SmallDisk<'d> {
    /// `None` if nothing can be mounted here.
    fn mount(at: &'d Path, owner: u32) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        let options = format!("size=8m,mode=0700,uid={owner}");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(at))
    }

    fn fill(&self) {
        // The end of the space is the end of the write.
        let _ = fs::write(self.0.join("filler"), vec![0; 8 << 20]);
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_of_the_database_refuses_messages_until_there_is_space() {
    let Some((server, url)) = database() else { return };
    let place = server.directory().join("small");
    let owner = fs::metadata(server.directory().join("data")).unwrap().uid();
    let Some(disk) = SmallDisk::mount(&place, owner) else {
        myclaw_testkit::skip_here("a file system cannot be mounted");
        return;
    };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    let admin = Audit::without_triggers(&url);
    admin.execute(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    admin.execute("ALTER TABLE myclaw.record SET TABLESPACE small");
    disk.fill();
    // No two parts of it are the same, so it is not stored in less.
    let long: String = (0..20_000_u64)
        .map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let text = format!("say <m2> {}", &long[..200_000]);
    let refused = gateway.client.send("main", "b", &text).unwrap_err().to_string();
    assert!(refused.starts_with("503") && refused.contains("has no space left"), "{refused}");
    disk.free();
    let id = gateway.client.send("main", "b", &text).unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m2>");
    gateway.stop();
    let logs = exported(&machine);
    assert_eq!((count(&logs, "user", "<m2>"), count(&logs, "assistant", "<m2>")), (1, 1));
}
