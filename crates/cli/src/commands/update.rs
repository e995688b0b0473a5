//! `myclaw update`: another version for a copy that install.sh has installed.
//!
//! The program is replaced by a rename, so whatever is killed at whatever moment, the old or the new one is there as a whole.
//! The gateway is told to begin anew and does so in its own process, so there is one also if this command is killed.

use std::path::PathBuf;
use std::process::Command;

use myclaw_agent::Home;
use myclaw_files::formats::{ALL, Format};
use myclaw_files::{now_ms, parent_of};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_any_home;
use myclaw_front::print::Printer;
use serde_json::Value;

use crate::args::update::UpdateArgs;

mod installed;
mod release;
mod running;

use installed::Installed;
use release::Release;
use running::Change;

/// Does what the arguments say.
pub(crate) fn run(args: &UpdateArgs) -> Result<(), CliError> {
    if args.formats {
        let mut printer = Printer::stdout();
        let numbers = ALL.map(|format| (format.name.to_owned(), format.newest.into()));
        printer.json(&Value::Object(numbers.into_iter().collect()))?;
        return printer.finish();
    }
    let home = find_any_home()?;
    let installed = Installed::find(&home)?;
    // A look changes nothing, so anybody may look.
    let lock = if args.check { None } else { Some(installed.lock()?) };
    let mut printer = Printer::stdout();
    if args.rollback {
        let version = installed.swap()?;
        printer.line(format_args!("MyClaw {version} is installed again"))?;
        restart(&home, &installed, &version, &mut printer)?;
        return printer.finish();
    }
    let release = Release::find(&installed, args.from.as_deref())?;
    let present = installed.version()?;
    let (new, place) = (release.version(), release.place());
    if args.to.as_deref().is_some_and(|wanted| wanted != new) {
        return Err(CliError::usage(format!(
            "the release in {place} is {new}; name the place of another version with --from"
        )));
    }
    let lock = match numbers(new).cmp(&numbers(&present)) {
        std::cmp::Ordering::Less => {
            return Err(CliError::failure(format!(
                "the release in {place} is {new}, which is older than the installed {present}, so nothing was changed; \
                 `myclaw update --rollback` goes back to the version before the last update"
            )));
        }
        std::cmp::Ordering::Equal => {
            printer.safe_lines([format!(
                "MyClaw {present} is installed, and {place} has no newer version"
            )])?;
            if !args.check {
                // An update that was killed may have left one of the version before.
                restart(&home, &installed, new, &mut printer)?;
            }
            return printer.finish();
        }
        std::cmp::Ordering::Greater => match lock {
            Some(lock) => lock,
            None => {
                printer.safe_lines([format!(
                    "MyClaw {new} is in {place}, and {present} is installed; `myclaw update` installs it"
                )])?;
                return printer.finish();
            }
        },
    };
    installed.keep_program()?;
    let outcome = release.install(&lock);
    installed.settle()?;
    outcome?;
    printer.line(format_args!(
        "installed MyClaw {new}; `myclaw update --rollback` goes back to {present}"
    ))?;
    match back_up(&home, &installed, new) {
        Ok(None) => {}
        Ok(Some(file)) => printer.safe_lines([format!(
            "MyClaw {new} writes files that {present} cannot read, so what is there now is in {}; after a rollback, \
             `myclaw restore --replace` takes it",
            file.display()
        )])?,
        Err(why) => {
            installed.swap()?;
            return Err(CliError::failure(format!(
                "cannot write a backup, which this update needs: {why}; MyClaw {present} is still installed"
            )));
        }
    }
    restart(&home, &installed, new, &mut printer)?;
    printer.finish()
}

/// Backs the state directory up if the new program raises a format, so that the one before can go on without it.
fn back_up(home: &Home, installed: &Installed, new: &str) -> Result<Option<PathBuf>, String> {
    let state = home.paths.state_dir();
    let asked = Command::new(installed.program()).args(["update", "--formats"]).output();
    let said = asked.map_err(|error| error.to_string())?;
    let numbers: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    let is_raised = |format: Format| numbers[format.name].as_u64() > Some(format.newest.into());
    if !ALL.into_iter().any(is_raised) || !state.exists() {
        return Ok(None);
    }
    let name = state.file_name().unwrap_or_default().to_string_lossy();
    let file = parent_of(state).join(format!("{name}.before-{new}-{}.backup", now_ms()));
    let ended = Command::new(installed.previous())
        .args(["backup", "--with-keys"])
        .arg(&file)
        .output()
        .map_err(|error| error.to_string())?;
    match ended.status.success() {
        true => Ok(Some(file)),
        false => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
    }
}

/// Has the gateway run the installed program. If it does not get ready, the program before is put back and started.
fn restart(
    home: &Home,
    installed: &Installed,
    version: &str,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let before = match Change::begin(home, installed, version)? {
        Change::NoGateway => {
            return printer.line("no gateway runs here, so none was restarted");
        }
        Change::Elsewhere(why) => return printer.safe_lines([why]),
        Change::Ready => return printer.line(format_args!("the gateway runs MyClaw {version}")),
        Change::NotReady(process) => process,
    };
    let again = installed.swap()?;
    let outcome = match before.start(home, installed, &again) {
        true => format!("MyClaw {again} is installed again, and its gateway runs"),
        false => format!(
            "MyClaw {again} is installed again, but its gateway does not get ready either; `myclaw gateway` in a terminal \
             shows why"
        ),
    };
    Err(CliError::failure_of_class(
        "update",
        format!("the gateway of MyClaw {version} did not get ready. {outcome}; no message is lost"),
    ))
}

/// A version as three numbers.
fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    [(); 3].map(|()| parts.next().unwrap_or_default())
}
