//! Places from which programs are started later, without a further question.

use std::path::{Component, Path, PathBuf};

use myclaw_engine::{Target, TargetAccess};
use myclaw_files::canonical;
use myclaw_files::portable::PermissionsExt;
use myclaw_policy::{PlaceFacts, WrittenAs, starts_programs};

use super::Permissions;
use super::tree::{Met, Tree};

/// Most entries of a directory, and of those below, that are looked through for places from which programs are started.
const MAX_ENTRIES: usize = 5_000;

impl Permissions {
    /// Why a change of `target` may start a program later; `None` if nothing says so, or if it is not changed.
    pub(super) fn starts_programs(&self, target: &Target) -> Option<String> {
        match target.access {
            TargetAccess::Read | TargetAccess::Search => None,
            TargetAccess::Write | TargetAccess::Delete => self.start_place(&target.path),
        }
    }

    /// Why something may start a program that `path` names.
    pub(super) fn start_place(&self, path: &Path) -> Option<String> {
        let home = std::env::home_dir();
        let root = self.root();
        let programs: Vec<PathBuf> = self
            .environment
            .get("PATH")
            .map(|path| std::env::split_paths(path).filter(|entry| entry.is_absolute()).collect())
            .unwrap_or_default();
        let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
        let is_executable = path
            .symlink_metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        let facts = PlaceFacts {
            home: home.as_deref(),
            working: &[root.as_path()],
            programs: &programs,
            is_executable,
        };
        starts_programs(path, &facts)
    }

    /// Why a program may be started later if a command writes `path` so.
    pub(super) fn written_place(&self, path: &Path, form: WrittenAs<'_>) -> Option<String> {
        let Some(real) = real_place(path) else {
            return Some("it is not known where it leads".to_owned());
        };
        if let Some(why) = self.start_place(&real) {
            return Some(why);
        }
        let is_directory = real.is_dir();
        match form {
            WrittenAs::Copies(sources) if is_directory => sources.iter().find_map(|source| {
                let name = source.file_name()?;
                // A copied link leads where the first one leads.
                let is_link = source.symlink_metadata().is_ok_and(|found| found.is_symlink());
                let behind = is_link.then(|| self.written_place(source, WrittenAs::File)).flatten();
                behind.or_else(|| self.written_place(&real.join(name), WrittenAs::Unnamed))
            }),
            WrittenAs::Copies(_) if !is_directory => None,
            // A program that is given the directory in which the agent works looks through it.
            WrittenAs::Perhaps if real.starts_with(self.root()) => None,
            WrittenAs::File | WrittenAs::Perhaps | WrittenAs::Copies(_) | WrittenAs::Unnamed
                if is_directory =>
            {
                self.place_below(&real)
            }
            _ => None,
        }
    }

    /// A place below the directory from which programs are started.
    fn place_below(&self, directory: &Path) -> Option<String> {
        for met in Tree::new(directory, MAX_ENTRIES) {
            let entry = match met {
                Met::Entry(entry) => entry,
                Met::Unreadable(path) => return Some(format!("{} cannot be read", path.display())),
                Met::TooMany => {
                    return Some("it holds more files than are looked through".to_owned());
                }
            };
            let path = entry.path();
            let why = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => match real_place(&path) {
                    Some(real) if real.starts_with(directory) => None,
                    Some(real) if !real.is_dir() => self.start_place(&real),
                    _ => Some("it is a link to another directory".to_owned()),
                },
                _ => self.start_place(&path),
            };
            if let Some(why) = why {
                return Some(format!("{} is in it, and {why}", path.display()));
            }
        }
        None
    }
}

/// The path with links followed, also where the last parts of it do not exist yet. `None` if it goes up from a directory that
/// does not exist, or through a link that leads nowhere.
fn real_place(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = canonical(path) {
        return Some(real);
    }
    if path.symlink_metadata().is_ok() {
        return None;
    }
    let mut parts = path.components();
    let name = match parts.next_back()? {
        Component::Normal(name) => name.to_owned(),
        _ => return None,
    };
    Some(real_place(parts.as_path())?.join(name))
}
