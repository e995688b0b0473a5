//! Resolves the paths that models write.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_engine::{ToolContext, ToolError};
use myclaw_files::{ClosedPaths, PathUse, Sameness, process_behind, real_path, respelled};
use tokio_util::sync::CancellationToken;

use super::Walker;

/// Longest path: the kernel's own limit (`PATH_MAX`).
const MAX_PATH_BYTES: usize = 4096;
/// Most similar names that an error suggests.
const MAX_SUGGESTIONS: usize = 3;
/// Most entries that are compared for equal, and for similar, names; more would take too long.
const MAX_ENTRIES_COMPARED: usize = 10_000;

/// The kind of access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read it. The run's side files may be read even if access is limited to the workspace.
    Read,
    /// Create, change or delete it.
    Write,
}

/// A path of a call after all links were followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Absolute, without `.`, `..` and links (also of a path that does not exist yet). Use this path, because it is the
    /// one that was checked.
    pub real: PathBuf,
    /// For results and errors: relative to the working directory if it is in there, else absolute.
    pub shown: String,
    /// The working directory after all links were followed.
    pub root: PathBuf,
    /// Paths that no tool touches.
    pub closed: Arc<ClosedPaths>,
}

/// Resolves a path that a model gave: relative to the working directory, `~` is the home directory, links are followed
/// before anything is checked, and the last parts need not exist.
///
/// # Errors
/// [`ToolError::Failed`] for an empty path, a circle of links, a path through a process in `/proc` (such as `/dev/stdin`), a
/// path that is closed to tools, and, with `workspace_only`, a path that leads out of the working directory; the text says what is allowed.
pub(crate) fn resolve_path(
    context: &ToolContext,
    given: &str,
    access: Access,
) -> Result<ResolvedPath, ToolError> {
    let absolute = as_listed(absolute_path(context, given)?, access);
    let unresolved = |error: io::Error| {
        ToolError::Failed(format!("cannot resolve {given:?}: {error}. Use another path"))
    };
    if let Some(process) = process_behind(&absolute).map_err(unresolved)? {
        return Err(ToolError::Failed(format!(
            "{given:?} leads through {}, which shows the open files, memory and variables of a process. Tools for files do \
             not go there: use the file's own path, or a command of bash that says something about processes",
            process.display()
        )));
    }
    let real = real_path(&absolute).map_err(unresolved)?;
    refuse_closed(context, given, &real, access)?;
    let root = real_root(context);
    if context.workspace_only
        && !real.starts_with(&root)
        && !may_read_artifact(context, &real, access)
    {
        return Err(ToolError::Failed(format!(
            "{given:?} is outside the workspace (it leads to {}). Only paths in {} are allowed: use a path relative \
             to it",
            real.display(),
            root.display()
        )));
    }
    let shown = shown_below(&real, &root);
    Ok(ResolvedPath { real, shown, root, closed: Arc::clone(&context.closed) })
}

/// Refuses a path behind which the program keeps its own data.
fn refuse_closed(
    context: &ToolContext,
    given: &str,
    real: &Path,
    access: Access,
) -> Result<(), ToolError> {
    let wanted = match access {
        Access::Read => PathUse::Read,
        Access::Write => PathUse::Change,
    };
    let Some(place) = context.closed.refusing(real, wanted) else { return Ok(()) };
    let place = place.display();
    let rule = match context.closed.refusing(real, PathUse::Read) {
        Some(_) => {
            "which holds the program's own config, keys and records: tools neither read nor change it"
        }
        None => "which tools may read but not change",
    };
    Err(ToolError::Failed(format!(
        "{given:?} leads into {place}, {rule}. Go on without it; the user can open a directory of it \
         (tools.fs.stateDirectories)"
    )))
}

/// The working directory after all links were followed.
pub(crate) fn real_root(context: &ToolContext) -> PathBuf {
    real_path(&context.working_directory).unwrap_or_else(|_| context.working_directory.clone())
}

/// How results and errors write the real path `path`: relative to the working directory where it lies in there.
pub(crate) fn shown_path(context: &ToolContext, path: &Path) -> String {
    shown_below(path, &real_root(context))
}

/// [`shown_path`] for many paths: `root` is the [`real_root`].
pub(crate) fn shown_below(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => printable(&rest.to_string_lossy()),
        Err(_) => printable(&path.to_string_lossy()),
    }
}

/// A name as it is listed: on one line, and with everything written out that is invisible or changes the direction of text.
/// [`resolve_path`] takes such a name for that of the file.
pub(crate) fn printable(name: &str) -> String {
    myclaw_policy::escape(name)
}

/// The file that was listed by the name `path`, if there is none that is really called so: one whose name was written out, or
/// that is spelled otherwise. A quote or a dash for a typographic one does not make a new file to write the same as one that
/// is there.
fn as_listed(path: PathBuf, access: Access) -> PathBuf {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    if is_there(&path) {
        return path;
    }
    let written_out = path.to_str().and_then(myclaw_policy::unescape).map(PathBuf::from);
    written_out
        .filter(|listed| is_there(listed))
        .or_else(|| respelled(&path, Sameness::Composition))
        .or_else(|| match access {
            Access::Read => respelled(&path, Sameness::Typography),
            Access::Write => None,
        })
        .unwrap_or_else(|| in_own_spelling(path))
}

/// The path of a file that does not exist, in the directory that does under another spelling of its name.
fn in_own_spelling(path: PathBuf) -> PathBuf {
    let found = path.ancestors().skip(1).find_map(|directory| {
        let own = match directory.symlink_metadata() {
            Ok(_) => return Some(None),
            Err(_) => respelled(directory, Sameness::Composition)?,
        };
        Some(Some(own.join(path.strip_prefix(directory).ok()?)))
    });
    found.flatten().unwrap_or(path)
}

/// The error for a missing path: where in the working directory its name is, or else similar names in the nearest
/// directory that exists.
pub(crate) fn missing_path(path: &ResolvedPath) -> ToolError {
    let mut text = format!("{} does not exist", path.shown);
    let same = same_names(path);
    if !same.is_empty() {
        text.push_str(&format!("; there is {}", printable(&same.join(", "))));
        return ToolError::Failed(text);
    }
    let existing = path.real.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
    let wanted =
        existing.and_then(|directory| path.real.strip_prefix(directory).ok()?.components().next());
    if let (Some(directory), Some(wanted)) = (existing, wanted) {
        let near = near_names(directory, &wanted.as_os_str().to_string_lossy());
        if near.is_empty() {
            text.push_str("; no name near it is similar");
        } else {
            let near = printable(&near.join(", "));
            text.push_str(&format!("; in {} there is {near}", directory.display()));
        }
    }
    ToolError::Failed(text)
}

/// The error for any other I/O failure at a path. `action` is a verb, as in "read".
pub(crate) fn io_failure(action: &str, path: &ResolvedPath, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => missing_path(path),
        io::ErrorKind::PermissionDenied => ToolError::Failed(format!(
            "cannot {action} {}: permission denied. Use another path, or ask the user to change its permissions",
            path.shown
        )),
        io::ErrorKind::StorageFull => ToolError::Failed(format!(
            "cannot {action} {}: the disk is full. Tell the user",
            path.shown
        )),
        _ => ToolError::Failed(format!("cannot {action} {}: {error}", path.shown)),
    }
}

fn may_read_artifact(context: &ToolContext, real: &Path, access: Access) -> bool {
    access == Access::Read
        && real_path(&context.artifact_directory).is_ok_and(|directory| real.starts_with(directory))
}

/// `given` as an absolute path, links not yet followed. Forms that models use by habit are understood: a `file://`
/// prefix, and an `@` in front of a name that does not exist with it.
fn absolute_path(context: &ToolContext, given: &str) -> Result<PathBuf, ToolError> {
    let path = given.trim();
    let path = path.strip_prefix("file://").unwrap_or(path);
    if path.is_empty() {
        return Err(ToolError::Failed(
            "the path is empty; use \".\" for the working directory".to_owned(),
        ));
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(ToolError::Failed(format!(
            "the path has {} bytes, and at most {MAX_PATH_BYTES} are possible. Use a shorter one",
            path.len()
        )));
    }
    if path.contains('\0') {
        return Err(ToolError::Failed(format!(
            "{given:?} is not a path: it holds a NUL character"
        )));
    }
    let joined = context.working_directory.join(expand_home(path));
    if let Some(bare) = path.strip_prefix('@').filter(|bare| !bare.is_empty())
        && joined.symlink_metadata().is_err()
    {
        return Ok(context.working_directory.join(expand_home(bare)));
    }
    Ok(side_file_of_other_machine(context, &joined).unwrap_or(joined))
}

/// A side file that was written where the state directory has another path, as on another machine that had the session before:
/// the results of tools name it by that path.
fn side_file_of_other_machine(context: &ToolContext, path: &Path) -> Option<PathBuf> {
    let own = &context.artifact_directory;
    // The name of the directory of all sessions, and that of this session in it.
    let name = own.strip_prefix(own.parent()?.parent()?).ok()?;
    let there = path.ancestors().skip(1).find(|directory| directory.ends_with(name))?;
    let here = own.join(path.strip_prefix(there).ok()?);
    (here != path && path.symlink_metadata().is_err() && here.symlink_metadata().is_ok())
        .then_some(here)
}

fn expand_home(path: &str) -> PathBuf {
    let rest = match path.strip_prefix('~') {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('/').map(|rest| rest.trim_start_matches('/')),
        None => None,
    };
    match (rest, std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The paths below the working directory with the name of `path`.
fn same_names(path: &ResolvedPath) -> Vec<String> {
    let mut walker = Walker::new(&path.root, &path.closed, CancellationToken::new());
    let entries = std::iter::from_fn(|| walker.next_entry().ok().flatten());
    entries
        .take(MAX_ENTRIES_COMPARED)
        .filter(|entry| Some(entry.file_name()) == path.real.file_name())
        .take(MAX_SUGGESTIONS)
        .map(|entry| shown_below(entry.path(), &path.root))
        .collect()
}

/// Entries of the directory whose names are similar to `wanted`, the most similar first.
fn near_names(directory: &Path, wanted: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let wanted = wanted.to_lowercase();
    // Two swapped letters count as two edits, so even a short name may differ by two.
    let length = wanted.chars().count();
    let allowed = if length < 3 { 1 } else { (length / 3).max(2) };
    let mut near: Vec<(usize, String)> = entries
        .take(MAX_ENTRIES_COMPARED)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let lower = name.to_lowercase();
            // "config" for "config.toml": a missing or wrong extension.
            let stem_matches = stem(&lower) == stem(&wanted) && !stem(&wanted).is_empty();
            let distance = if stem_matches { 1 } else { strsim::levenshtein(&lower, &wanted) };
            (distance <= allowed).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

fn stem(name: &str) -> &str {
    match name.split_once('.') {
        Some((stem, _)) => stem,
        None => name,
    }
}

#[cfg(test)]
mod tests;
