//! Places from which programs are started later, without a further question.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use myclaw_engine::{Target, TargetAccess};
use myclaw_policy::{PlaceFacts, starts_programs};

use super::Permissions;

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
}
