//! Reads what git prints about files, and looks at these.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use myclaw_files::portable::{PermissionsExt as _, may_read};

use super::path_of;

/// Largest file whose content is kept.
const MAX_FILE: u64 = 16 << 20;

/// How much is taken in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// Names of files, each with a zero byte behind it.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Those that are taken in, or are gone.
    pub(super) taken: Vec<u8>,
    /// Those that cannot be: they are too large, or no files.
    pub(super) left_out: Vec<u8>,
}

impl Listed {
    /// Sorts the names that git printed.
    ///
    /// # Errors
    /// They are too many, or too large.
    pub(super) fn of(root: &Path, printed: &[u8], wanted: Wanted) -> Result<Self, String> {
        let (mut listed, mut files, mut bytes) = (Self::default(), 0, 0);
        for name in names(printed) {
            // A repository in the repository.
            if name.ends_with(b"/") {
                continue;
            }
            let path = root.join(path_of(name));
            let metadata = path.symlink_metadata().ok();
            let is_taken = metadata.as_ref().is_none_or(|metadata| can_be_kept(&path, metadata));
            let to = if is_taken { &mut listed.taken } else { &mut listed.left_out };
            to.extend_from_slice(name);
            to.push(0);
            if is_taken {
                files += 1;
                bytes += metadata.map_or(0, |metadata| metadata.len());
            }
            if files > wanted.files || bytes > wanted.bytes {
                return Err(format!(
                    "there are more than {} files or {} MiB in {}",
                    wanted.files,
                    wanted.bytes >> 20,
                    root.display()
                ));
            }
        }
        Ok(listed)
    }
}

fn can_be_kept(path: &Path, metadata: &Metadata) -> bool {
    let is_file = metadata.is_file() && metadata.len() <= MAX_FILE;
    metadata.is_symlink() || (is_file && may_read(path))
}

fn names(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Counts the entries of a directory and those below it.
///
/// # Errors
/// There are more than `most`.
pub(super) fn count(root: &Path, most: usize) -> Result<(), String> {
    let (mut left, mut count) = (vec![root.to_owned()], 0);
    while let Some(directory) = left.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            count += 1;
            if count > most {
                let root = root.display();
                return Err(format!("{root} is in no git project and has more than {most} files"));
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}

/// The permissions of most files and of most programs, and those of the others.
pub(super) fn modes(root: &Path, printed: &[u8]) -> ((u32, u32), HashMap<PathBuf, u32>) {
    let is_program = |mode: u32| mode & 0o100 != 0;
    let mode = |name: &[u8]| {
        let name = path_of(name);
        let metadata = root.join(&name).symlink_metadata().ok()?;
        metadata.is_file().then(|| (name, metadata.permissions().mode() & 0o7777))
    };
    let found: Vec<(PathBuf, u32)> = names(printed).filter_map(mode).collect();
    let mut counts: HashMap<u32, usize> = HashMap::new();
    found.iter().for_each(|(_, mode)| *counts.entry(*mode).or_default() += 1);
    let most = |programs: bool, usual: u32| {
        let of_kind = counts.iter().filter(|(mode, _)| is_program(**mode) == programs);
        of_kind.max_by_key(|(mode, count)| (**count, **mode)).map_or(usual, |(mode, _)| *mode)
    };
    let usual = (most(false, 0o600), most(true, 0o700));
    let is_unusual = |mode: u32| mode != if is_program(mode) { usual.1 } else { usual.0 };
    (usual, found.into_iter().filter(|(_, mode)| is_unusual(*mode)).collect())
}

/// A file that is different in two trees.
pub(super) struct Changed {
    /// Its path in the directory.
    pub(super) name: PathBuf,
    /// The id of its old content, and whether that was a program; `None` if there was no file.
    pub(super) old: Option<(String, bool)>,
}

/// The regular files in what `git diff-tree --raw -z` printed.
pub(super) fn changed(printed: &[u8]) -> Vec<Changed> {
    let (mut fields, mut changed) = (names(printed), Vec::new());
    while let (Some(facts), Some(name)) = (fields.next(), fields.next()) {
        let facts = String::from_utf8_lossy(facts).into_owned();
        let mut facts = facts.trim_start_matches(':').split(' ');
        let (old, new, id) = (facts.next(), facts.next(), facts.next());
        let is_file = |mode: Option<&str>| mode.is_some_and(|mode| mode.starts_with("100"));
        let is_none = |mode: Option<&str>| mode == Some("000000");
        // Links and repositories in the repository are left alone.
        if !(is_file(old) || is_none(old)) || !(is_file(new) || is_none(new)) {
            continue;
        }
        let id = id.unwrap_or_default().to_owned();
        let old = is_file(old).then_some((id, old == Some("100755")));
        changed.push(Changed { name: path_of(name), old });
    }
    changed
}

/// The contents in what `git cat-file --batch` printed, by their ids.
pub(super) fn contents(printed: &[u8]) -> HashMap<&str, &[u8]> {
    let (mut rest, mut found) = (printed, HashMap::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, more) = (&rest[..end], &rest[end + 1..]);
        let head = std::str::from_utf8(head).unwrap_or_default();
        let mut words = head.split(' ');
        let (id, kind) = (words.next().unwrap_or_default(), words.next());
        let size = words.next().and_then(|size| size.parse::<usize>().ok());
        match (kind, size) {
            (Some("blob"), Some(size)) if more.len() > size => {
                found.insert(id, &more[..size]);
                rest = &more[size + 1..];
            }
            // It is missing.
            _ => rest = more,
        }
    }
    found
}

/// The directories of new files that `known`, as git printed them, does not have: the outermost first.
pub(super) fn made(root: &Path, changed: &[Changed], known: &[u8]) -> Vec<PathBuf> {
    let known: BTreeSet<PathBuf> = names(known).map(path_of).collect();
    let new = changed.iter().filter(|file| file.old.is_none());
    let parents = new.flat_map(|file| file.name.ancestors().skip(1));
    let made: BTreeSet<&Path> =
        parents.filter(|path| !path.as_os_str().is_empty() && !known.contains(*path)).collect();
    made.into_iter().map(|path| root.join(path)).collect()
}
