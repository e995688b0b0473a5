//! The gateway as a service of the user: its file, and the programs that start it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use myclaw_testkit::ChildOutput;

use super::*;

/// A home with a `systemctl` that notes how it is called, and does what a test says.
struct Machine {
    home: TempHome,
}

impl Machine {
    fn new(systemctl: Option<&str>) -> Self {
        let machine = Self { home: TempHome::new() };
        std::fs::create_dir_all(machine.home.path().join("bin")).unwrap();
        if let Some(script) = systemctl {
            let text = format!("#!/bin/sh\necho \"$@\" >> \"$HOME/calls\"\n{script}\n");
            let program = machine.home.write("bin/systemctl", text);
            std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        machine
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.env("PATH", format!("{}:/bin", self.home.path().join("bin").display()));
        if !self.home.path().join("bin/systemctl").exists() {
            command.env("PATH", self.home.path().join("bin"));
        }
        RunningChild::run(command.arg("gateway").args(arguments))
    }

    fn unit(&self) -> PathBuf {
        self.home.path().join(".config/systemd/user/myclaw-gateway.service")
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_is_installed_once_and_removed() {
    let machine = Machine::new(Some("test \"$2\" = is-active && echo inactive"));
    let printed = machine.run(&["install", "--dry-run"]);
    printed.assert_code(0);
    assert!(printed.stdout().contains("\nExecStart=\""), "{}", printed.stdout());
    assert!(!machine.unit().exists());
    // `is-active` fails in the script for all other calls; make them work.
    let machine = Machine::new(Some("test \"$2\" != is-active || echo inactive"));
    let installed = machine.run(&["install"]);
    installed.assert_code(0);
    assert!(installed.stdout().contains("the service runs"), "{}", installed.stdout());
    let text = std::fs::read_to_string(machine.unit()).unwrap();
    let home = machine.home.path().display().to_string();
    assert!(text.contains(&format!("Environment=\"MYCLAW_HOME={home}\"")), "{text}");
    let calls = machine.calls();
    for call in ["daemon-reload", "enable myclaw-gateway.service", "restart myclaw-gateway.service"]
    {
        assert!(calls.contains(&format!("--user {call}")), "{calls:?}");
    }
    let again = machine.run(&["install"]);
    again.assert_code(0);
    assert!(again.stdout().contains("is up to date"), "{}", again.stdout());

    let status = machine.run(&["status"]);
    status.assert_code(1);
    assert!(status.stdout().contains("installed (systemd, inactive)"), "{}", status.stdout());

    // A file that somebody has changed is kept.
    std::fs::write(machine.unit(), format!("{text}Nice=5\n")).unwrap();
    let refused = machine.run(&["install"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("use --force to replace it"), "{}", refused.stderr());
    assert!(std::fs::read_to_string(machine.unit()).unwrap().ends_with("Nice=5\n"));
    machine.run(&["install", "--force"]).assert_code(0);
    assert_eq!(std::fs::read_to_string(machine.unit()).unwrap(), text);

    std::fs::write(machine.unit(), "[Service]\nExecStart=/bin/true\n").unwrap();
    let refused = machine.run(&["uninstall"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("was not written by this program"), "{}", refused.stderr());
    std::fs::write(machine.unit(), &text).unwrap();
    machine.run(&["uninstall"]).assert_code(0);
    assert!(!machine.unit().exists());
    assert!(machine.calls().contains(&"--user disable --now myclaw-gateway.service".to_owned()));
    let none = machine.run(&["uninstall"]);
    none.assert_code(0);
    assert!(none.stdout().contains("no service is installed"), "{}", none.stdout());
}

#[test]
#[cfg(target_os = "linux")]
fn without_a_working_systemctl_the_commands_are_printed() {
    for systemctl in [None, Some("echo 'Failed to connect to bus' >&2; exit 1")] {
        let machine = Machine::new(systemctl);
        let installed = machine.run(&["install"]);
        installed.assert_code(0);
        let said = installed.stdout();
        assert!(machine.unit().exists());
        assert!(said.contains("start the service with:"), "{said}");
        assert!(said.contains("\n  systemctl --user restart myclaw-gateway.service"), "{said}");
        assert!(!said.contains("the service runs"), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_gateway_in_a_terminal_is_not_pushed_aside() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let installed = RunningChild::run(command.args(["gateway", "install"]).env("PATH", "/nowhere"));
    installed.assert_code(0);
    let says = format!("a gateway runs already (process {})", gateway.child.id());
    assert!(installed.stdout().contains(&says), "{}", installed.stdout());
    let uninstall = || {
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(["uninstall", "--yes"]).env("PATH", "/nowhere"))
    };
    let refused = uninstall();
    refused.assert_code(1);
    let says = "gateway/store.sqlite.lock is locked";
    assert!(refused.stderr().contains(says), "{}", refused.stderr());
    assert!(bench.home.path().join(".myclaw/gateway/token").exists());
    gateway.stop();
    uninstall().assert_code(0);
    assert!(!bench.home.path().join(".myclaw/gateway").exists());
}

#[test]
fn the_files_are_what_the_service_programs_read() {
    let odd = TempHome::new();
    let directory = odd.path().join("50% \"of\" $HOME & <more>");
    std::fs::create_dir_all(&directory).unwrap();
    let print = |manager: &str| {
        let mut command = odd.command(env!("CARGO_BIN_EXE_myclaw"));
        command.env("MYCLAW_STATE_DIR", &directory);
        let printed = RunningChild::run(command.args([
            "gateway",
            "install",
            "--dry-run",
            "--manager",
            manager,
        ]));
        printed.assert_code(0);
        printed.stdout().split_once('\n').unwrap().1.to_owned()
    };
    let plist = odd.write("gateway.plist", print("launchd"));
    let read = "import plistlib,sys; p=plistlib.load(open(sys.argv[1],'rb')); \
                print(p['EnvironmentVariables']['MYCLAW_STATE_DIR']); print(p['ProgramArguments'][1])";
    let read = RunningChild::run(odd.command("python3").args(["-c", read]).arg(plist));
    assert_eq!(read.stdout(), format!("{}\ngateway\n", directory.display()), "{}", read.stderr());

    let unit = odd.write("myclaw-gateway.service", print("systemd"));
    let verify = std::process::Command::new("systemd-analyze");
    let mut verify = verify;
    verify.args(["verify", "--user"]).arg(unit).env("XDG_RUNTIME_DIR", odd.path());
    // Where systemd is not installed, the other tests still look at the lines.
    if std::process::Command::new("systemd-analyze").arg("--version").output().is_ok() {
        let verified = verify.output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains("myclaw-gateway"), "{said}");
    }
}

#[test]
fn the_end_of_the_log_is_shown_and_followed() {
    let home = TempHome::new();
    let run = |arguments: &[&str]| {
        let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(["gateway", "logs"]).args(arguments);
        command
    };
    let none = RunningChild::run(&mut run(&[]));
    none.assert_code(1);
    assert!(none.stderr().contains("set logging.file to true"), "{}", none.stderr());
    let lines: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
    let log = home.write(".myclaw/logs/myclaw.log", &lines);
    let shown = RunningChild::run(&mut run(&["--lines", "2"]));
    assert_eq!(shown.stdout(), "line 29998\nline 29999\n");
    assert_eq!(RunningChild::run(&mut run(&["-n", "90000"])).stdout(), lines);
    assert_eq!(RunningChild::run(&mut run(&["-n", "0"])).stdout(), "");
    let following = RunningChild::spawn(&mut run(&["-n", "1", "--follow"]));
    following.wait_for_stdout("line 29999\n");
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut file, b"added\n").unwrap();
    following.wait_for_stdout("added\n");
    // The file is full, and a new one takes its place.
    std::fs::rename(&log, home.path().join(".myclaw/logs/myclaw.1.log")).unwrap();
    home.write(".myclaw/logs/myclaw.log", "of the new file\n");
    following.wait_for_stdout("of the new file\n");
    following.signal(Signal::Terminate);
    following.wait(PATIENCE);
}

#[test]
#[cfg(target_os = "linux")]
fn uninstall_stops_and_removes_the_service_too() {
    let machine = Machine::new(Some("test \"$2\" != is-active || echo active"));
    machine.run(&["install"]).assert_code(0);
    let mut command = machine.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.env("PATH", format!("{}:/bin", machine.home.path().join("bin").display()));
    let output = RunningChild::run(command.args(["uninstall", "--yes", "--workspace"]));
    output.assert_code(0);
    assert!(output.stdout().contains("the service, which is stopped"), "{}", output.stdout());
    assert!(!machine.unit().exists());
    let calls = machine.calls();
    assert!(calls.contains(&"--user disable --now myclaw-gateway.service".to_owned()), "{calls:?}");
}
