//! The commands except for the chat. Each does one thing, prints and ends.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::{EntryKind, SharedDirectory, is_locked, parent_of};
use myclaw_front::exit::CliError;

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod auth;
pub(crate) mod backup;
pub(crate) mod channels;
#[cfg_attr(not(feature = "postgres"), path = "commands/cluster/unbuilt.rs")]
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cron;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod groups;
pub(crate) mod host;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod nodes;
pub(crate) mod onboard;
pub(crate) mod packages;
pub(crate) mod pairing;
pub(crate) mod policy;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runner;
pub(crate) mod sandbox;
pub(crate) mod sessions;
pub(crate) mod skills;
mod speech;
pub(crate) mod system;
pub(crate) mod uninstall;
pub(crate) mod update;
pub(crate) mod usage;
pub(crate) mod workflows;
pub(crate) mod worktrees;

/// Asks the person at the terminal; without one the answer is no.
fn confirm(question: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut stderr = io::stderr();
    drop(write!(stderr, "{question} [y/N] "));
    drop(stderr.flush());
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| CliError::failure(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// A gateway, host or chat that runs would write its files again.
fn refuse_if_in_use(places: &[PathBuf]) -> Result<(), CliError> {
    match places.iter().find_map(|place| held_lock(place)) {
        None => Ok(()),
        Some(lock) => Err(CliError::failure(format!(
            "the files stay, because a gateway, host or run of MyClaw still works ({} is locked); end it first, then \
             repeat the command",
            lock.display()
        ))),
    }
}

/// A lock file in a place that a process holds.
fn held_lock(place: &Path) -> Option<PathBuf> {
    if let Ok(directory) = SharedDirectory::open(&parent_of(place))
        && let Ok(inside) = directory.directory(place.file_name()?)
    {
        return held_lock_in(&inside);
    }
    let is_lock = place.extension().is_some_and(|end| end == "lock");
    (is_lock && is_locked(place).is_ok_and(|is_held| is_held)).then(|| place.to_owned())
}

fn held_lock_in(directory: &SharedDirectory) -> Option<PathBuf> {
    let names = directory.names(usize::MAX, |_| true).ok()?.names;
    names.iter().find_map(|name| match directory.facts(name).ok()??.kind {
        EntryKind::Directory => held_lock_in(&directory.directory(name).ok()?),
        EntryKind::File => {
            let path = directory.path().join(name);
            let is_lock = path.extension().is_some_and(|end| end == "lock");
            (is_lock && is_locked(&path).is_ok_and(|is_held| is_held)).then_some(path)
        }
        EntryKind::Link | EntryKind::Special => None,
    })
}
