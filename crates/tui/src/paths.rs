//! Completion of paths: `@` finds a file anywhere below the working directory, Tab completes a path that was begun. Names
//! that would look like other ones in the editor are left out.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use myclaw_agent::approvals::is_deceptive;

/// Files that are looked at for one completion: more would take longer than a key press may.
const MOST_FILES: usize = 20_000;

/// The rank of a path that contains what was typed, and does not begin with it.
const CONTAINS: u8 = 2;

/// The files and directories below `directory` that fit `typed`, the best first: those whose path begins with it, then
/// those whose name does, then those that contain it, unless one alone begins with it: then that one is meant. What
/// ignore files name is left out.
pub(super) fn find(directory: &Path, typed: &str, limit: usize) -> Vec<String> {
    let wanted = typed.to_lowercase();
    let mut found: Vec<(u8, usize, String)> = Vec::new();
    let walk = WalkBuilder::new(directory).require_git(false).build();
    for entry in walk.flatten().skip(1).take(MOST_FILES) {
        let Ok(below) = entry.path().strip_prefix(directory) else { continue };
        let Some(path) = below.to_str().filter(|path| !path.contains(is_deceptive)) else {
            continue;
        };
        let lower = path.to_lowercase();
        let name = lower.rsplit('/').next().unwrap_or_default();
        let rank = match () {
            () if lower.starts_with(&wanted) => 0,
            () if name.starts_with(&wanted) => 1,
            () if lower.contains(&wanted) => CONTAINS,
            () => continue,
        };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let slash = if is_directory { "/" } else { "" };
        found.push((rank, path.matches('/').count(), format!("{path}{slash}")));
    }
    found.sort();
    let beginning = found.iter().filter(|(rank, ..)| *rank < CONTAINS).count();
    found.truncate(if beginning == 1 { 1 } else { limit });
    found.into_iter().map(|(_, _, path)| path).collect()
}

/// The entries of a directory that continue the path `typed`, which is relative to `directory`, absolute, or begins with
/// `~/`.
pub(super) fn complete(directory: &Path, typed: &str, limit: usize) -> Vec<String> {
    let (parent, name) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    let real = match parent.strip_prefix("~/") {
        Some(below) => match std::env::var_os("HOME") {
            Some(home) => PathBuf::from(home).join(below),
            None => return Vec::new(),
        },
        None => directory.join(parent),
    };
    let Ok(entries) = fs::read_dir(real) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .take(MOST_FILES)
        .flatten()
        .filter_map(|entry| {
            let file_name = entry.file_name().into_string().ok()?;
            let fits = file_name.starts_with(name)
                && !file_name.contains(is_deceptive)
                && (name.starts_with('.') || !file_name.starts_with('.'));
            let slash = if entry.path().is_dir() { "/" } else { "" };
            fits.then(|| format!("{parent}{file_name}{slash}"))
        })
        .collect();
    found.sort();
    found.truncate(limit);
    found
}

#[cfg(test)]
mod tests;
