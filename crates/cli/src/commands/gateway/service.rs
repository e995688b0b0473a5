//! `myclaw gateway install` and `uninstall`: the gateway as a service of the user, which starts with the session.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use myclaw_agent::Home;
use myclaw_files::{Durability, NewFile, read_regular, remove_if_there};
use myclaw_gateway_client::state_of;
use serde_json::{Value, json};

use super::failure;
use crate::args::{InstallArgs, ServiceManager, UninstallArgs};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::Printer;
use myclaw_front::runtime;

mod files;

/// The first words of the files that this program writes. Others are not changed.
const MARK: &str = "Written by `myclaw gateway install`";
/// Largest service file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// The service of a user on this machine.
pub(super) struct Service {
    manager: ServiceManager,
    /// Its file.
    path: PathBuf,
}

/// What a service file is, compared with the one that would be written.
enum Found {
    Nothing,
    Same,
    /// This program wrote it, for other options or in another version.
    Other,
    Foreign,
}

impl Service {
    pub(super) fn of(home: &Home, manager: Option<ServiceManager>) -> Result<Self, CliError> {
        let manager = manager.unwrap_or_else(ServiceManager::of_system);
        let Some(user) = home.environment.os_home() else {
            return Err(CliError::failure("HOME is not set, so there is no place for a service"));
        };
        let path = match manager {
            ServiceManager::Systemd => {
                let base = home.environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
                let base = base.filter(|path| path.is_absolute());
                let base = base.unwrap_or_else(|| user.join(".config"));
                base.join("systemd/user").join(files::UNIT)
            }
            ServiceManager::Launchd => {
                user.join("Library/LaunchAgents").join(format!("{}.plist", files::LABEL))
            }
        };
        Ok(Self { manager, path })
    }

    /// What `gateway status` says about it.
    pub(super) fn state(&self) -> Value {
        let is_installed = self.path.exists();
        let state = match is_installed && self.manager == ServiceManager::Systemd {
            true => output("systemctl", &["--user", "is-active", files::UNIT]),
            false => None,
        };
        json!({
            "manager": self.manager.name(),
            "file": is_installed.then_some(&self.path),
            "installed": is_installed,
            "state": state,
        })
    }

    /// Whether it can have a journal of its own.
    pub(super) fn journal(&self) -> Option<&'static str> {
        (self.manager == ServiceManager::Systemd && self.path.exists()).then_some(files::UNIT)
    }

    fn find(&self, wanted: &str) -> Result<Found, CliError> {
        match read_regular(&self.path, MAX_BYTES) {
            Ok(bytes) if bytes == wanted.as_bytes() => Ok(Found::Same),
            Ok(bytes) if String::from_utf8_lossy(&bytes).contains(MARK) => Ok(Found::Other),
            Ok(_) => Ok(Found::Foreign),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    fn write(&self, text: &str) -> Result<(), CliError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(directory).and_then(|()| {
            let file = NewFile::in_directory(directory, files::UNIT)?;
            std::io::Write::write_all(&mut file.as_file(), text.as_bytes())?;
            file.put_at(&self.path, Durability::Synced)
        });
        written.map(drop).map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, action: &str, error: &std::io::Error) -> CliError {
        CliError::failure(format!("cannot {action} {}: {error}", self.path.display()))
    }

    /// The commands that start the service, or replace the one that runs.
    fn start_commands(&self) -> Vec<Vec<String>> {
        let file = self.path.display().to_string();
        match self.manager {
            ServiceManager::Systemd => words(&[
                &["systemctl", "--user", "daemon-reload"],
                &["systemctl", "--user", "enable", files::UNIT],
                &["systemctl", "--user", "restart", files::UNIT],
            ]),
            ServiceManager::Launchd => words(&[&["launchctl", "bootstrap", &domain(), &file]]),
        }
    }

    fn stop_commands(&self) -> Vec<Vec<String>> {
        match self.manager {
            ServiceManager::Systemd => {
                words(&[&["systemctl", "--user", "disable", "--now", files::UNIT]])
            }
            ServiceManager::Launchd => {
                words(&[&["launchctl", "bootout", &format!("{}/{}", domain(), files::LABEL)]])
            }
        }
    }
}

/// Writes the service file, and has the service started.
pub(super) fn install(args: &InstallArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let service = Service::of(&home, args.manager)?;
    let text = files::text(service.manager, &home)?;
    let mut printer = Printer::stdout();
    if args.dry_run {
        printer.safe_lines([format!("# {}", service.path.display())])?;
        printer.raw(text.as_bytes())?;
        return printer.finish();
    }
    let file = service.path.display();
    let is_running = runtime::block_on(state_of(&home))?.map_err(failure)?;
    let found = service.find(&text)?;
    match found {
        Found::Same => printer.safe_lines([format!("{file} is up to date")])?,
        Found::Nothing => {
            service.write(&text)?;
            printer.safe_lines([format!("wrote {file}")])?;
        }
        Found::Other | Found::Foreign if !args.force => {
            let by_whom = match found {
                Found::Foreign => "and was not written by this program",
                _ => "from another version or with other options",
            };
            return Err(CliError::failure_of_class(
                "service",
                format!(
                    "{file} exists, {by_whom}, and is not changed; compare it with `myclaw gateway install \
                     --dry-run`, and use --force to replace it"
                ),
            ));
        }
        Found::Other | Found::Foreign => {
            service.write(&text)?;
            printer.safe_lines([format!("replaced {file}")])?;
        }
    }
    let commands = service.start_commands();
    if matches!(found, Found::Same) && service.state()["state"] == "active" {
        printer.line("the service runs")?;
        return printer.finish();
    }
    if !service.is_of_this_system() {
        tell(&mut printer, "start it with", &commands)?;
        return printer.finish();
    }
    // The service in charge of the running one is replaced; one in a terminal would keep the new one from starting.
    if let Some(state) = is_running.filter(|_| service.state()["state"] != "active") {
        let process = state["processId"].to_string();
        printer.line(format_args!("a gateway runs already (process {process}); stop it first"))?;
        tell(&mut printer, "then start the service with", &commands)?;
        return printer.finish();
    }
    let done = carry_out(&mut printer, &commands, "start the service with")?;
    if done {
        printer.line("the service runs; `myclaw gateway status` shows it")?;
        if service.manager == ServiceManager::Systemd {
            printer.line("to keep it running while you are logged out: loginctl enable-linger")?;
        }
    }
    printer.finish()
}

/// The file of the service of this system, if this program wrote it.
pub(super) fn own_file(home: &Home) -> Option<PathBuf> {
    let service = Service::of(home, None).ok()?;
    matches!(service.find("").ok()?, Found::Other).then_some(service.path)
}

/// Starts the service again, if this program wrote its file; false if that fails.
pub(super) fn restart(home: &Home) -> bool {
    let Some(service) = own_file(home).and_then(|_| Service::of(home, None).ok()) else {
        return false;
    };
    let name = format!("{}/{}", domain(), files::LABEL);
    let command: &[&str] = match service.manager {
        ServiceManager::Systemd => &["systemctl", "--user", "restart", files::UNIT],
        ServiceManager::Launchd => &["launchctl", "kickstart", "-k", &name],
    };
    let ended = Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).output();
    ended.is_ok_and(|ended| ended.status.success())
}

/// Stops the service and removes its file.
pub(super) fn uninstall(args: &UninstallArgs) -> Result<(), CliError> {
    let service = Service::of(&find_home()?, args.manager)?;
    let file = service.path.display();
    let mut printer = Printer::stdout();
    match service.find("")? {
        Found::Nothing => {
            printer.safe_lines([format!("no service is installed ({file} does not exist)")])?;
            return printer.finish();
        }
        Found::Foreign if !args.force => {
            return Err(CliError::failure_of_class(
                "service",
                format!("{file} was not written by this program; use --force to remove it"),
            ));
        }
        _ => {}
    }
    if args.dry_run {
        tell(&mut printer, "this would run", &service.stop_commands())?;
        printer.safe_lines([format!("and remove {file}")])?;
        return printer.finish();
    }
    if service.is_of_this_system() {
        carry_out(&mut printer, &service.stop_commands(), "stop the service with")?;
    }
    remove_if_there(&service.path).map_err(|error| service.failed("remove", &error))?;
    if service.is_of_this_system() && service.manager == ServiceManager::Systemd {
        // What fails here is done at the next login.
        let _ = output("systemctl", &["--user", "daemon-reload"]);
    }
    printer.safe_lines([format!("removed {file}")])?;
    printer.finish()
}

impl Service {
    fn is_of_this_system(&self) -> bool {
        self.manager == ServiceManager::of_system()
    }
}

/// Runs commands, up to the first that fails. Without the program, or after a failure, says which remain. True if all
/// were run.
fn carry_out(
    printer: &mut Printer,
    commands: &[Vec<String>],
    what_for: &str,
) -> Result<bool, CliError> {
    for (number, command) in commands.iter().enumerate() {
        let (program, arguments) = (&command[0], &command[1..]);
        let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        let why = match ended {
            Ok(ended) if ended.status.success() => continue,
            Ok(ended) => {
                let said = String::from_utf8_lossy(&ended.stderr);
                let line = said.lines().next().unwrap_or("it failed without a message").trim();
                format!("`{}` failed: {line}", command.join(" "))
            }
            Err(error) => format!("{program} cannot be run: {error}"),
        };
        printer.safe_lines([why])?;
        tell(printer, what_for, &commands[number..])?;
        return Ok(false);
    }
    Ok(true)
}

fn tell(printer: &mut Printer, what_for: &str, commands: &[Vec<String>]) -> Result<(), CliError> {
    printer.line(format_args!("{what_for}:"))?;
    printer.copied_lines(commands.iter().map(|command| format!("  {}", command.join(" "))))
}

fn words(commands: &[&[&str]]) -> Vec<Vec<String>> {
    let owned = |command: &&[&str]| command.iter().map(|word| (*word).to_owned()).collect();
    commands.iter().map(owned).collect()
}

/// The first line that a program prints, also if it fails; `None` if it cannot be run.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ended.stdout);
    Some(text.lines().next()?.trim().to_owned())
}

/// The services of this user in a graphical session.
fn domain() -> String {
    format!("gui/{}", myclaw_files::portable::process::getuid().as_raw())
}
