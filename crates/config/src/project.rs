//! Which project a directory belongs to.

use std::path::{Path, PathBuf};

use myclaw_files::portable::MetadataExt as _;

/// Files and directories that mark a project, unless the config names others.
pub const PROJECT_MARKERS: [&str; 9] = [
    ".git",
    ".hg",
    ".jj",
    "AGENTS.md",
    "CLAUDE.md",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
];
/// The markers of version control. They are at the root of a project; the others may be in a part of it too.
const OF_ROOTS: [&str; 3] = [".git", ".hg", ".jj"];

/// The root of the project that `directory` (absolute) belongs to: the nearest directory under version control, else the
/// nearest one with another of `markers`. `None` if there is no project. The home directory and those above it are none,
/// and neither is a directory of another user: what lies there may come from anybody.
pub fn project_root(
    directory: &Path,
    markers: &[impl AsRef<Path>],
    home: Option<&Path>,
) -> Option<PathBuf> {
    let owner = |path: &Path| path.metadata().ok().map(|metadata| metadata.uid());
    let own = owner(directory)?;
    let is_below_home = |path: &&Path| home.is_none_or(|home| !home.starts_with(path));
    let candidates =
        directory.ancestors().take_while(is_below_home).take_while(|path| owner(path) == Some(own));
    let mut nearest = None;
    for candidate in candidates {
        let has = |marker: &Path| candidate.join(marker).symlink_metadata().is_ok();
        let mut found = markers.iter().map(AsRef::as_ref).filter(|marker| has(marker)).peekable();
        nearest = nearest.or_else(|| found.peek().map(|_| candidate));
        if found.any(|marker| OF_ROOTS.iter().any(|of_root| marker == Path::new(of_root))) {
            return Some(candidate.to_owned());
        }
    }
    nearest.map(Path::to_owned)
}

#[cfg(test)]
mod tests;
