//! Repositories that somebody may have put into a directory that others can change, for the owner's own git to obey: those
//! without a `.git`, and those with one that makes git start programs.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_policy::{RepositoryPrograms, escape};

use super::look_at;
use crate::permissions::tree::{Met, Tree};

/// Most entries that are looked through: some ten milliseconds.
const MAX_ENTRIES: usize = 20_000;
/// Most repositories that are remembered, and most that a message names.
const MAX_FOUND: usize = 100;
const MAX_NAMED: usize = 3;

/// What was found below a directory.
#[derive(Debug, Default)]
pub(crate) struct HiddenRepositories {
    pub(crate) found: Vec<HiddenRepository>,
    /// The directory holds more than was looked through.
    pub(crate) is_cut: bool,
}

/// A repository that git takes for one when it is started there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HiddenRepository {
    /// The `HEAD` or `.git` that makes it one. Without that, git does not obey it.
    mark: PathBuf,
    /// What git starts there, as far as it is known.
    program: Option<String>,
}

impl HiddenRepository {
    /// The mark, and the place to which it can be moved.
    pub(crate) fn mark(&self) -> (&Path, PathBuf) {
        let mut aside = self.mark.clone().into_os_string();
        aside.push(".aside");
        (&self.mark, aside.into())
    }
}

impl HiddenRepositories {
    /// What a person has to know, without control characters; `None` if nothing was found.
    pub(crate) fn message(&self) -> Option<String> {
        let named: Vec<String> = self.found.iter().take(MAX_NAMED).map(described).collect();
        let more = match self.found.len() {
            0 => return None,
            count if count > MAX_NAMED => format!(" and {} more", count - MAX_NAMED),
            _ => String::new(),
        };
        Some(format!(
            "git obeys the config and the hooks of a repository that others may have put into the workspace: {}{more}",
            named.join("; ")
        ))
    }
}

fn described(repository: &HiddenRepository) -> String {
    let path = escape(&repository.mark.parent().unwrap_or(&repository.mark).to_string_lossy());
    match &repository.program {
        Some(program) => format!("{path} ({})", escape(program)),
        None => format!("{path} (without .git)"),
    }
}

/// Looks for them. Links are not followed, and the objects of a repository are not looked through.
pub(crate) fn hidden_repositories(directory: &Path) -> HiddenRepositories {
    let mut all = HiddenRepositories::default();
    let mut walk = Tree::new(directory, MAX_ENTRIES);
    while let Some(met) = walk.next() {
        let entry = match met {
            Met::Entry(entry) => entry,
            Met::Unreadable(_) => continue,
            Met::TooMany => {
                all.is_cut = true;
                break;
            }
        };
        let (name, path) = (entry.file_name(), entry.path());
        let is_git = name.eq_ignore_ascii_case(".git");
        if is_git && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk.leave_out();
        }
        let Some(level) = path.parent() else { continue };
        let is_mark = is_git || (name.eq_ignore_ascii_case("HEAD") && is_repository(level));
        if !is_mark {
            continue;
        }
        let mut programs = RepositoryPrograms::default();
        look_at(level, &mut programs);
        let program = programs.any_command.or(programs.changing_command);
        if program.is_none() && is_git {
            continue;
        }
        if all.found.len() == MAX_FOUND {
            all.is_cut = true;
            break;
        }
        all.found.push(HiddenRepository { mark: path, program });
    }
    all.found.sort_by(|one, other| one.mark.cmp(&other.mark));
    all
}

/// Whether git may take a directory with a `HEAD` for a repository.
fn is_repository(level: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(level.join(name)).is_ok();
    has("commondir") || (has("objects") && has("refs"))
}

#[cfg(test)]
mod tests;
