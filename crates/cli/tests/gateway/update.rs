//! `myclaw update`, for a copy that install.sh could have installed, with releases that a key of these tests has signed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_testkit::{ChildOutput, send_signal, skip_without, wait_until_gone};
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::*;

mod https;
mod released;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Begins the names of directories with a copy of a running program.
const COPY: &str = "myclaw-program-";
/// The files of an archive besides the program.
const FILES: [&str; 7] = [
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "THIRD-PARTY-LICENCES.txt",
    "man/myclaw.1",
    "completions/myclaw.bash",
    "completions/_myclaw",
    "completions/myclaw.fish",
];

/// The names in a directory.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// A version that is newer than this one, and as long.
fn newer() -> String {
    format!("9{}", &VERSION[1..])
}

fn key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn pem(key: &Ed25519KeyPair) -> String {
    let head = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let text = STANDARD.encode([&head[..], key.public_key().as_ref()].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----")
}

/// Whether the programs are here that install.sh needs.
fn can_install() -> bool {
    let said = Command::new("openssl").arg("version").output();
    let is_there = said.is_ok_and(|said| said.stdout.starts_with(b"OpenSSL 3"));
    if !is_there {
        skip_without("openssl 3");
    }
    is_there
}

/// A home with an installed copy and a gateway's config, and a place for releases.
struct Place {
    bench: Bench,
    to: PathBuf,
    release: PathBuf,
}

impl Place {
    fn new() -> Self {
        let place = Self::of(Bench::new(echoing()));
        place.put_copy();
        place
    }

    /// Without a copy.
    fn of(bench: Bench) -> Self {
        let (to, release) = (bench.home.path().join("local"), bench.home.path().join("release"));
        Self { bench, to, release }
    }

    /// Puts this program there, and the files that install.sh puts next to it.
    fn put_copy(&self) {
        fs::create_dir_all(self.to.join("bin")).unwrap();
        // By another process: a child that another test starts at this moment would have it open for writing.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_myclaw")).arg(self.program());
        assert!(copy.status().unwrap().success());
        let own = self.to.join("share/myclaw");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("manifest"), "d share/myclaw\nf bin/myclaw\n").unwrap();
        fs::write(own.join("version"), format!("{VERSION}\n")).unwrap();
        fs::write(own.join("release-key.pem"), format!("{}\n", pem(&key(1)))).unwrap();
        fs::write(own.join("from"), format!("{}\n", self.release.display())).unwrap();
    }

    /// Runs the install.sh of the release.
    fn script(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.bench.home.command("sh");
        command.arg(self.release.join("install.sh")).args(arguments);
        let temporary = self.bench.home.path().join("work");
        fs::create_dir_all(&temporary).unwrap();
        command.env("TMPDIR", temporary);
        RunningChild::run(command.arg("--to").arg(&self.to))
    }

    fn program(&self) -> PathBuf {
        self.to.join("bin/myclaw")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.home.command(self.program());
        command.args(arguments);
        command
    }

    fn update(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.command(&["update"]);
        RunningChild::run(command.args(arguments))
    }

    /// What the installed program says that it is.
    fn version(&self) -> String {
        let said = RunningChild::run(&mut self.command(&["--version"]));
        said.assert_code(0);
        said.stdout().trim().trim_start_matches("myclaw ").to_owned()
    }

    /// Makes a release of a program.
    fn publish(&self, version: &str, program: &[u8]) {
        let _ = fs::remove_dir_all(&self.release);
        let name = format!("myclaw-{version}-{}-unknown-linux-gnu", std::env::consts::ARCH);
        let files = self.release.join(&name);
        for one in FILES {
            fs::create_dir_all(files.join(one).parent().unwrap()).unwrap();
            fs::write(files.join(one), one).unwrap();
        }
        fs::write(files.join("myclaw"), program).unwrap();
        fs::set_permissions(files.join("myclaw"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["-I", "gzip -1", "-cf"]).arg(self.release.join(format!("{name}.tar.gz")));
        assert!(tar.arg("-C").arg(&self.release).arg(&name).status().unwrap().success());
        fs::remove_dir_all(&files).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install.sh");
        let script = fs::read_to_string(script).unwrap();
        let script = script.replace("@URL@", "").replace("@GLIBC@", "0");
        self.write("install.sh", script.replace("@PEM@", &pem(&key(1))));
        self.sign(1);
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.release.join(name), content).unwrap();
    }

    /// Makes the list of digests, and signs it.
    fn sign(&self, seed: u8) {
        let mut list = String::new();
        for entry in fs::read_dir(&self.release).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.starts_with("SHA256SUMS") {
                let found = digest(&SHA256, &fs::read(self.release.join(&name)).unwrap());
                let hex: String = found.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                list = format!("{list}{hex}  {name}\n");
            }
        }
        self.write("SHA256SUMS.sig", key(seed).sign(list.as_bytes()));
        self.write("SHA256SUMS", list);
    }

    fn archive(&self) -> PathBuf {
        let mut names = fs::read_dir(&self.release).unwrap().flatten().map(|entry| entry.path());
        names.find(|path| path.to_string_lossy().ends_with(".tar.gz")).unwrap()
    }

    fn start(&self) -> Gateway {
        let child = RunningChild::spawn(&mut self.command(&["gateway"]));
        Gateway::of(child, &self.bench.home, self.bench.port)
    }

    /// What the gateway that runs says about itself.
    fn status(&self) -> Value {
        let said = RunningChild::run(&mut self.command(&["gateway", "status", "--json"]));
        said.assert_code(0);
        serde_json::from_str(&said.stdout()).unwrap()
    }
}

/// A program that says a version, and is no gateway.
fn script(version: &str) -> Vec<u8> {
    format!("#!/bin/sh\n[ \"$1\" != --version ] || exec echo myclaw {version}\nexit 1\n")
        .into_bytes()
}

/// This program as another version.
fn program(version: &str) -> Vec<u8> {
    let copy = TempHome::new();
    let path = copy.path().join("myclaw");
    fs::copy(env!("CARGO_BIN_EXE_myclaw"), &path).unwrap();
    // Less to unpack, if it can be done.
    let _ = Command::new("strip").arg(&path).status();
    let mut bytes = fs::read(&path).unwrap();
    if version == VERSION {
        return bytes;
    }
    let (old, new) = (VERSION.as_bytes(), version.as_bytes());
    assert_eq!(old.len(), new.len());
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(old.len()).position(|part| part == old) {
        at += found;
        bytes[at..at + old.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn an_update_keeps_the_program_before_and_goes_back_to_it() {
    if !can_install() {
        return;
    }
    let place = Place::new();
    place.publish(VERSION, &script(VERSION));
    let none = place.update(&["--check"]);
    none.assert_code(0);
    assert!(none.stdout().contains("has no newer version"), "{}", none.stdout());
    place.publish(&newer(), &script(&newer()));
    let check = place.update(&["--check"]);
    check.assert_code(0);
    assert!(check.stdout().contains(&format!("MyClaw {} is in", newer())), "{}", check.stdout());
    let rollback = place.update(&["--rollback"]);
    rollback.assert_code(2);
    assert!(rollback.stderr().contains("no program from before is kept"), "{}", rollback.stderr());
    assert_eq!(place.version(), VERSION, "nothing of this has changed it");

    // What the new one writes cannot be read by this one, so there is a backup.
    let reads = "[ \"$1\" != update ] || exec echo '{\"store\": 99}'\nexit 1\n";
    let program = String::from_utf8(script(&newer())).unwrap().replace("exit 1\n", reads);
    place.publish(&newer(), program.as_bytes());
    let done = place.update(&["--to", &newer()]);
    let said = done.stdout();
    let file = said.split("is there now is in ").nth(1).and_then(|rest| rest.split(';').next());
    let check = place.bench.myclaw(&["backup", "--check", file.unwrap()]);
    check.assert_code(0);
    done.assert_code(0);
    assert!(done.stdout().contains("no gateway runs here"), "{}", done.stdout());
    assert_eq!(place.version(), newer());
    // The new program here is a script without this command, so the one before is put back by hand, and goes forward again.
    let (previous, next) = (place.to.join("share/myclaw/previous"), place.to.join("next"));
    fs::rename(place.program(), &next).unwrap();
    fs::rename(&previous, place.program()).unwrap();
    fs::rename(&next, &previous).unwrap();
    place.update(&["--rollback"]).assert_code(0);
    assert_eq!(place.version(), newer());
    let installed = fs::read_to_string(place.to.join("share/myclaw/version")).unwrap();
    assert_eq!(installed.trim(), newer());

    // Nothing is left of it after install.sh has removed what it lists.
    place.script(&["--uninstall"]).assert_code(0);
    assert!(!place.to.join("share/myclaw").exists());
}

/// Package managers put a new file into the place of a program that runs. Its helpers are still of its own version.
#[test]
fn a_gateway_whose_program_was_replaced_runs_sandboxed_commands() {
    let place = Place::new();
    place.bench.configure(|config| config["agents"]["defaults"]["model"] = json!("builtin/demo"));
    let temporary = place.bench.home.path().join("work");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = place.command(&["gateway"]);
    let child = RunningChild::spawn(command.env("TMPDIR", &temporary));
    let gateway = Gateway::of(child, &place.bench.home, place.bench.port);
    let next = place.to.join("next");
    fs::write(&next, script(&newer())).unwrap();
    fs::rename(&next, place.program()).unwrap();

    let copies = || names_in(&temporary).iter().filter(|name| name.starts_with(COPY)).count();
    for session in ["trip", "garden"] {
        let message = gateway.client.send(session, session, "run \"echo $((6 * 7))\"").unwrap();
        let outcome = gateway.client.outcome(&message).unwrap();
        assert!(outcome["reply"].as_str().unwrap().contains("42"), "{outcome}");
        assert_eq!(copies(), 1);
    }
    gateway.stop();
    assert_eq!(copies(), 0);
}

#[test]
fn of_two_updates_at_once_one_waits_for_the_other() {
    if !can_install() {
        return;
    }
    let place = Place::new();
    place.publish(&newer(), &program(&newer()));
    let both = [(); 2].map(|()| RunningChild::spawn(&mut place.command(&["update"])));
    let said = both.map(|child| child.wait(PATIENCE)).map(|output| {
        output.assert_code(0);
        output.stdout()
    });
    for part in [format!("installed MyClaw {}", newer()), "has no newer version".to_owned()] {
        assert_eq!(said.iter().filter(|said| said.contains(&part)).count(), 1, "{part}: {said:?}");
    }
    assert_eq!(place.version(), newer());
    let previous =
        RunningChild::run(Command::new(place.to.join("share/myclaw/previous")).arg("--version"));
    assert_eq!(previous.stdout().trim(), format!("myclaw {VERSION}"));
}

#[test]
fn what_install_sh_cannot_do_is_one_sentence_and_leaves_nothing() {
    if !can_install() {
        return;
    }
    let place = Place::of(Bench::new(echoing()));
    place.publish(VERSION, &script(VERSION));
    let from = place.release.to_str().unwrap().to_owned();
    let home = place.bench.home.path();
    let refused = |to: &Path, from: &str, change: &dyn Fn(&mut Command), words: &str| {
        let mut command = place.bench.home.command("sh");
        command.arg(place.release.join("install.sh")).args(["--from", from, "--to"]).arg(to);
        change(&mut command);
        let output = RunningChild::run(&mut command);
        output.assert_code(1);
        let said = output.stderr();
        assert!(said.starts_with("install.sh: ") && said.contains(words), "{words}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    let file = place.bench.home.write("file", "");
    place.bench.home.write("taken/share/fish", "");
    let no_change = |_: &mut Command| ();
    let choose = "cannot make the directory";
    refused(&file, &from, &no_change, choose);
    refused(&file.join("below"), &from, &no_change, choose);
    refused(&home.join("taken"), &from, &no_change, "choose another place with --to");
    refused(&place.to, "http://127.0.0.1:9", &no_change, "begins with https://");
    refused(&place.to, "-r", &no_change, "No such file or directory; --from names");
    let elsewhere = |command: &mut Command| {
        command.env("TMPDIR", "/nonexistent");
    };
    refused(&place.to, &from, &elsewhere, "cannot make a directory in /nonexistent");
    let without_home = |command: &mut Command| {
        command.env_remove("HOME");
    };
    refused(Path::new(""), &from, &without_home, "HOME is not set");
    // As where programs of the temporary directory may not be started.
    place.publish(VERSION, b"#!/bin/sh\necho myclaw: Permission denied >&2\nexit 126\n");
    refused(&place.to, &from, &no_change, "the program does not run: Permission denied. Nothing");
    place.publish(VERSION, &script(VERSION));
    assert!(!place.to.exists());
    let left = fs::read_dir(home.join("taken")).unwrap().count();
    assert_eq!((left, home.join("taken/share/fish").exists()), (1, true));

    // What a script that was killed has left goes with the next one, or at the end.
    place.script(&["--from", &from]).assert_code(0);
    let killed = |number: u32| fs::write(place.to.join(format!("bin/myclaw.new.{number}")), "");
    killed(u32::MAX).unwrap();
    let work = |number: u32| home.join(format!("work/myclaw-install-{number}-abcdef"));
    for number in [u32::MAX, std::process::id()] {
        place.bench.home.write(work(number).join("archive"), "");
    }
    place.script(&["--from", &from]).assert_code(0);
    assert_eq!(fs::read_dir(place.to.join("bin")).unwrap().count(), 1);
    assert_eq!((work(u32::MAX).exists(), work(std::process::id()).exists()), (false, true));
    killed(1).unwrap();
    place.script(&["--uninstall"]).assert_code(0);
    assert!(!place.to.exists());
}

#[test]
fn what_is_not_the_signed_release_changes_nothing() {
    if !can_install() {
        return;
    }
    let place = Place::new();
    let before = fs::metadata(place.program()).unwrap().modified().unwrap();
    let refused = |arguments: &[&str], code: i32, what: &str| {
        let output = place.update(arguments);
        output.assert_code(code);
        assert!(output.stderr().contains(what), "{arguments:?}: {}", output.stderr());
        assert_eq!(output.stderr().lines().count(), 1, "{}", output.stderr());
        assert_eq!(fs::metadata(place.program()).unwrap().modified().unwrap(), before);
        assert_eq!(place.version(), VERSION);
    };
    let publish = || place.publish(&newer(), &script(&newer()));
    refused(&[], 1, "cannot get SHA256SUMS from");
    publish();
    refused(&["--to", "7.7.7"], 2, "name the place of another version");
    refused(&["--from", "http://127.0.0.1:9/release"], 2, "begins with https://");
    fs::remove_file(place.release.join("SHA256SUMS.sig")).unwrap();
    refused(&[], 1, "the list of digests has no signature");
    place.sign(2);
    refused(&[], 1, "another key has signed it");
    publish();
    let list = fs::read_to_string(place.release.join("SHA256SUMS")).unwrap();
    place.write("SHA256SUMS", format!("{list}\n"));
    refused(&[], 1, "the list of digests was changed");
    publish();
    place.write("install.sh", "echo I am another script");
    refused(&[], 1, "install.sh in ");
    publish();
    let mut bytes = fs::read(place.archive()).unwrap();
    bytes[100] ^= 1;
    fs::write(place.archive(), bytes).unwrap();
    refused(&[], 1, "another digest than the signed list");
    // An older program under a newer name, which its maker has signed by mistake.
    place.publish(&newer(), &script("0.0.1"));
    refused(&[], 1, "says that it is `myclaw 0.0.1`");
    place.publish("0.0.1", &script("0.0.1"));
    refused(&[], 1, "which is older than the installed");
    // A copy of something else.
    let mut foreign = place.bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let output = RunningChild::run(foreign.arg("update"));
    output.assert_code(2);
    assert!(output.stderr().contains("was not installed by install.sh"), "{}", output.stderr());
}

#[test]
fn a_version_that_does_not_get_ready_is_taken_back() {
    if !can_install() {
        return;
    }
    let place = Place::new();
    let gateway = place.start();
    let first = gateway.client.send("main", "one", "first <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&first).unwrap()["reply"], "re: <m1>");
    place.publish(&newer(), &script(&newer()));
    let failed = place.update(&[]);
    failed.assert_code(1);
    for part in ["did not get ready", "is installed again, and its gateway runs"] {
        assert!(failed.stderr().contains(part), "{}", failed.stderr());
    }
    assert_eq!(place.version(), VERSION);
    let state = place.status();
    assert_eq!(state["version"], VERSION);
    let second = gateway.client.send("main", "two", "second <m2>").unwrap();
    assert_eq!(gateway.client.outcome(&second).unwrap()["reply"], "re: <m2>");
    assert_eq!(place.bench.said("main").len(), 4);
    let process = u32::try_from(state["processId"].as_u64().unwrap()).unwrap();
    assert_ne!(process, gateway.child.id());
    send_signal(process, Signal::Terminate);
    wait_until_gone(process);
}
