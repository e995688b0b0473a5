//! `myclaw uninstall`: removes what this program has written for this user outside of workspaces.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use myclaw_agent::Home;
use myclaw_files::formats::FILE as FORMATS;
use myclaw_files::portable::{MetadataExt as _, may_change};
use myclaw_files::{canonical_or_same, is_locked, parent_of};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_any_home;
use myclaw_front::print::{Printer, files_and_bytes};

use super::{confirm, gateway, refuse_if_in_use};
use crate::args::uninstall::UninstallArgs;

/// What the program keeps in the state directory.
const STATE: [&str; 24] = [
    ".documents",
    ".env",
    "agents",
    "approvals.json",
    "chat_history",
    "chat_pastes",
    "chat_pictures",
    "forget",
    "forget.json",
    "forgotten.json",
    "gateway",
    "jobs",
    "logs",
    "mcp",
    "memory",
    "myclaw.json",
    "node",
    "packages",
    "sessions",
    "snapshots",
    "stops",
    "subagents",
    "turns",
    "usage.json",
];
/// How the names of other files there begin: drafts of the chat, a file that a killed process left, and what tools have written in
/// full for sessions in a database.
const BEGINNINGS: [&str; 4] = ["draft-", FORMATS, ".myclaw.", "side-files"];
/// What the owner and the agent have made there.
const WORK: [&str; 4] = ["commands", "skills", "workspace", "workspaces"];
/// The host's directory in the state directory, and what groups have made in it.
const HOST: &str = "host";
const GROUPS: &str = "groups";
/// The directory of agents, in which the owner's files that describe some are too.
const AGENTS: &str = "agents";
/// Endings of files that stand next to another one while it is changed, or as its copy before that.
const ENDINGS: [&str; 3] = [".bak", ".lock", ".tmp"];
/// Where `docs/use/cli.md` puts completion scripts, below the user's home.
const COMPLETIONS: [&str; 3] = [
    ".local/share/bash-completion/completions/myclaw",
    ".zfunc/_myclaw",
    ".config/fish/completions/myclaw.fish",
];
/// Begins the names of directories for temporary files, in the system's directory for them and next to the state directory. One
/// that was killed leaves them.
const TEMPORARY: [&str; 2] = ["myclaw-", myclaw_backup::UNPACKING];
/// The lock in such a directory, which a running process holds.
const OWNER: &str = "owner";

/// What is there of this program.
#[derive(Default)]
struct Found {
    service: Option<PathBuf>,
    /// What is removed, each with all that is in it.
    removed: Vec<PathBuf>,
    /// What stays because the owner or the agent made it.
    work: Vec<PathBuf>,
    /// What this program did not write.
    others: Vec<PathBuf>,
}

/// Lists what there is, asks, and removes it.
pub(crate) fn run(args: &UninstallArgs) -> Result<(), CliError> {
    let home = find_any_home()?;
    let found = find(&home, args.workspace)?;
    let mut printer = Printer::stdout();
    let hindrance = list(&mut printer, &found)?;
    if found.service.is_none() && found.removed.is_empty() {
        printer.line("nothing is left to remove")?;
        program(&mut printer)?;
        return printer.finish();
    }
    if let Some(why) = hindrance {
        printer.finish()?;
        return Err(CliError::failure(format!(
            "nothing was removed: {why}; correct that and repeat the command"
        )));
    }
    if args.dry_run {
        printer.line("nothing was removed")?;
        return printer.finish();
    }
    if found.service.is_none() {
        refuse_if_in_use(&found.removed)?;
    }
    if !args.yes && !confirm("Remove all this? There is no undo.")? {
        return Err(CliError::usage(
            "nothing was removed; `myclaw uninstall --yes` removes it without a question",
        ));
    }
    if found.service.is_some() {
        gateway::uninstall_service()?;
        refuse_if_in_use(&found.removed)?;
    }
    for path in &found.removed {
        remove(path).map_err(|error| {
            CliError::failure(format!(
                "cannot remove {}: {error}; correct that and repeat the command",
                path.display()
            ))
        })?;
    }
    // Only if nothing is left in them.
    let state = home.paths.state_dir();
    for directory in [state.join(HOST), canonical_or_same(state)] {
        let _ = fs::remove_dir(directory);
    }
    if leads_nowhere(state) {
        let _ = fs::remove_file(state);
    }
    if let Some(config) = user_config(&home) {
        let _ = fs::remove_dir(config);
    }
    printer.line(format_args!("removed {} files and directories", found.removed.len()))?;
    program(&mut printer)?;
    printer.finish()
}

fn find(home: &Home, with_work: bool) -> Result<Found, CliError> {
    let mut found = Found { service: gateway::service_file(home), ..Found::default() };
    let state = home.paths.state_dir();
    let entries = entries(state)?;
    let is_ours = |name: &str| {
        let name = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        STATE.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
    };
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if WORK.contains(&name.as_str()) || name.starts_with("workspace-") {
            found.work.push(path);
        } else if name == HOST && path.join(GROUPS).exists() && !with_work {
            let (groups, rest): (Vec<_>, Vec<_>) =
                self::entries(&path)?.into_iter().partition(|path| path.ends_with(GROUPS));
            found.work.extend(groups);
            found.removed.extend(rest);
        } else if name == AGENTS && !with_work {
            let is_written = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
            let (files, rest): (Vec<_>, Vec<_>) =
                self::entries(&path)?.into_iter().partition(is_written);
            match files.is_empty() {
                true => found.removed.push(path),
                false => found.removed.extend(rest),
            }
            found.work.extend(files);
        } else if name == HOST || is_ours(&name) {
            found.removed.push(path);
        } else {
            found.others.push(path);
        }
    }
    // A directory that the program shares, such as a home, may have a `logs` of another program.
    if !found.others.is_empty() && !state.ends_with(".myclaw") {
        return Err(CliError::failure(format!(
            "{} is the state directory, and has files that MyClaw did not write, such as {}; remove by hand what is \
             MyClaw's",
            state.display(),
            found.others[0].display()
        )));
    }
    if leads_nowhere(state) {
        found.removed.push(state.to_owned());
    }
    found.work.extend(copies(state));
    if with_work {
        found.removed.append(&mut found.work);
    }
    found.removed.extend(elsewhere(home));
    found.removed.sort();
    Ok(found)
}

/// Whether it is a link to a directory that is gone.
fn leads_nowhere(state: &Path) -> bool {
    state.is_symlink() && matches!(state.try_exists(), Ok(false))
}

/// What the program has outside of the state directory.
fn elsewhere(home: &Home) -> Vec<PathBuf> {
    let config = home.paths.config_file();
    let mut candidates = Vec::new();
    if !config.starts_with(home.paths.state_dir()) {
        let name = config.to_string_lossy();
        candidates.push(config.to_owned());
        candidates.extend(ENDINGS.iter().map(|ending| PathBuf::from(format!("{name}{ending}"))));
    }
    candidates.extend(user_config(home).map(|config| config.join("mount-allowlist.json")));
    if let Some(user) = home.environment.os_home() {
        let scripts = COMPLETIONS.iter().map(|place| user.join(place));
        candidates.extend(scripts.filter(|path| is_completion_script(path)));
    }
    let places = [std::env::temp_dir(), parent_of(home.paths.state_dir())];
    let temporary = places.iter().flat_map(|place| entries(place).unwrap_or_default());
    candidates.extend(temporary.filter(|path| is_abandoned(path)));
    candidates.retain(|path| fs::symlink_metadata(path).is_ok());
    candidates
}

/// What a restore and an update have kept next to the state directory; workspaces are in it.
fn copies(state: &Path) -> Vec<PathBuf> {
    let begins = format!("{}.before-", state.file_name().unwrap_or_default().to_string_lossy());
    let is_copy = |path: &PathBuf| {
        path.file_name().unwrap_or_default().to_string_lossy().starts_with(&begins)
    };
    entries(&parent_of(state)).unwrap_or_default().into_iter().filter(is_copy).collect()
}

fn user_config(home: &Home) -> Option<PathBuf> {
    Some(home.environment.os_home()?.join(".config/myclaw"))
}

/// Whether `myclaw completions` has made the file.
fn is_completion_script(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| {
        ["_myclaw()", "#compdef myclaw", "complete -c myclaw"]
            .iter()
            .any(|mark| text.contains(mark))
    })
}

/// Whether it is a temporary directory of this user that no process uses.
fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_mine = |metadata: Metadata| {
        metadata.is_dir() && metadata.uid() == myclaw_files::portable::process::getuid().as_raw()
    };
    TEMPORARY.iter().any(|prefix| name.starts_with(prefix))
        && fs::symlink_metadata(path).is_ok_and(is_mine)
        // It is empty until the process has the lock.
        && fs::metadata(path.join(OWNER)).is_ok_and(|owner| owner.len() > 0)
        && is_locked(&path.join(OWNER)).is_ok_and(|is_locked| !is_locked)
}

/// The entries of a directory, sorted; none if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let read = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    match read {
        Ok(mut paths) => {
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(CliError::failure(format!("cannot read {}: {error}", directory.display())))
        }
    }
}

/// Links are removed, and not what they lead to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Number of files and their bytes in a place, or why it cannot be removed as a whole: what is found when half of it is gone
/// is found too late.
fn look(path: &Path, mounts: &[PathBuf]) -> Result<(usize, u64), String> {
    if mounts.iter().any(|mount| mount == path) {
        return Err(format!("a file system is mounted on {}", path.display()));
    }
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    if !metadata.is_dir() {
        return Ok((1, metadata.len()));
    }
    let mut found = (0, 0);
    let inside = entries(path).map_err(|error| error.message)?;
    if !inside.is_empty() {
        can_change(path)?;
    }
    for entry in inside {
        let (files, bytes) = look(&entry, mounts)?;
        found = (found.0 + files, found.1 + bytes);
    }
    Ok(found)
}

/// Where file systems are mounted, as far as the system tells it.
fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = |line: &str| {
        let place = line.split(' ').nth(4)?;
        // How the kernel writes what would end a field or a line (`mangle` in `fs/proc_namespace.c`).
        let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
        Some(escapes.iter().fold(place.to_owned(), |place, (from, to)| place.replace(from, to)))
    };
    text.lines().filter_map(place).map(PathBuf::from).collect()
}

fn can_change(directory: &Path) -> Result<(), String> {
    may_change(directory).map_err(|error| format!("cannot change {}: {error}", directory.display()))
}

/// Prints what there is. Returns why something of it cannot be removed.
fn list(printer: &mut Printer, found: &Found) -> Result<Option<String>, CliError> {
    let mounts = mount_points();
    let mut hindrance = None;
    if let Some(file) = &found.service {
        printer.safe_lines([format!("{} (the service, which is stopped)", file.display())])?;
    }
    for path in &found.removed {
        let directory = canonical_or_same(parent_of(path));
        let name = path.file_name().unwrap_or_default();
        let looked = can_change(&directory).and_then(|()| look(&directory.join(name), &mounts));
        let size = match &looked {
            Ok((files, bytes)) => files_and_bytes(*files, *bytes),
            Err(why) => why.clone(),
        };
        printer.safe_lines([format!("{} ({size})", path.display())])?;
        hindrance = hindrance.or(looked.err());
    }
    for path in &found.work {
        let line = format!("stays: {} (--workspace removes it)", path.display());
        printer.safe_lines([line])?;
    }
    for path in &found.others {
        printer.safe_lines([format!("stays: {} (not written by MyClaw)", path.display())])?;
    }
    Ok(hindrance)
}

/// What remains to be done.
fn program(printer: &mut Printer) -> Result<(), CliError> {
    let Ok(program) = std::env::current_exe() else { return Ok(()) };
    printer.safe_lines([format!(
        "the program is still there: {}; remove it the way you installed it (docs/use/install.md)",
        program.display()
    )])
}
