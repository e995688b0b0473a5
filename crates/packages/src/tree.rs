//! The files of a package, in memory.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use myclaw_files::portable::MetadataExt as _;
use myclaw_files::{EntryKind, SharedDirectory, hex};
use myclaw_policy::{escape, is_deceptive};
use ring::digest::{Context, SHA256, digest};

/// Most files of a package.
const MAX_FILES: usize = 2_000;
/// Largest file.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Most bytes of all files. A package is read as a whole before each run.
pub(crate) const MAX_BYTES: u64 = 32 << 20;
/// Most directories between the package and a file.
const MAX_DEPTH: usize = 16;
/// Longest path of a file.
const MAX_PATH_BYTES: usize = 512;
/// What belongs to a copy of the sources and not to the package.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];

/// Why something is no package.
#[derive(Debug)]
pub struct TreeError(pub String);

impl fmt::Display for TreeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TreeError {}

impl From<io::Error> for TreeError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be run as a program.
    pub is_executable: bool,
}

impl TreeEntry {
    /// The SHA-256 of its content.
    pub fn sha256(&self) -> String {
        hex(digest(&SHA256, &self.bytes).as_ref())
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }
}

/// How a file differs between two packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChange {
    /// Only the second has it.
    New,
    /// Only the first has it.
    Gone,
    /// Both have it, with different bytes, or as a program in one of them.
    Changed,
}

/// The files of a package by their path, with `/` between directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, TreeEntry>,
    bytes: u64,
    left_out: Vec<String>,
}

impl Tree {
    /// The files, in the order of their paths.
    pub fn files(&self) -> btree_map::Iter<'_, String, TreeEntry> {
        self.files.iter()
    }

    /// The file at a path.
    pub fn get(&self, path: &str) -> Option<&TreeEntry> {
        self.files.get(path)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The links that the source had. They are not part of the package, because they could lead anywhere.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The path could lead out of the directory or deceive a reader, the path is taken, or a limit is exceeded.
    pub fn add(&mut self, path: &str, entry: TreeEntry) -> Result<(), TreeError> {
        let shown = escape(path);
        check_path(path).map_err(|why| TreeError(format!("the file {shown}: {why}")))?;
        if entry.bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(TreeError(format!(
                "the file {shown} has more than {} MiB",
                MAX_FILE_BYTES >> 20
            )));
        }
        self.bytes += entry.bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(TreeError(format!("it has more than {} MiB", MAX_BYTES >> 20)));
        }
        if self.files.insert(path.to_owned(), entry).is_some() {
            return Err(TreeError(format!("it holds the file {shown} twice")));
        }
        if self.files.len() > MAX_FILES {
            return Err(TreeError(format!("it has more than {MAX_FILES} files")));
        }
        Ok(())
    }

    /// Notes a link that does not become part of the package.
    pub fn leave_out(&mut self, path: &str) {
        if self.left_out.len() < MAX_FILES {
            self.left_out.push(escape(path));
        }
    }

    /// Reads a directory. Links are left out, and so are a repository of git and installed dependencies. Blocks.
    ///
    /// # Errors
    /// It cannot be read, holds something that is no file, or exceeds a limit.
    pub fn of_directory(path: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        tree.read(&SharedDirectory::open(path)?, "", Reading::Source)?;
        Ok(tree)
    }

    /// Reads a directory that holds an approved package and nothing else. Blocks.
    pub(crate) fn of_installed(directory: &SharedDirectory) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        tree.read(directory, "", Reading::Installed)?;
        Ok(tree)
    }

    fn read(
        &mut self,
        directory: &SharedDirectory,
        below: &str,
        reading: Reading,
    ) -> Result<(), TreeError> {
        let names = directory.names(MAX_FILES, |_| true)?;
        if names.is_cut || below.matches('/').count() > MAX_DEPTH {
            return Err(TreeError("it has too many files or directories".to_owned()));
        }
        for name in names.names {
            let Some(name) = name.to_str() else {
                return Err(TreeError("it holds a file with a name that is not UTF-8".to_owned()));
            };
            let path = format!("{below}{name}");
            if reading == Reading::Source && LEFT_OUT.contains(&name) {
                continue;
            }
            match directory.facts(name)?.map(|facts| facts.kind) {
                Some(EntryKind::Directory) => {
                    self.read(&directory.directory(name)?, &format!("{path}/"), reading)?;
                }
                Some(EntryKind::Link) if reading == Reading::Source => self.leave_out(&path),
                Some(EntryKind::File) => {
                    let file = directory.file(name)?;
                    let is_executable = file.metadata()?.mode() & 0o111 != 0;
                    let mut bytes = Vec::new();
                    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
                    self.add(&path, TreeEntry { bytes, is_executable })?;
                }
                _ => {
                    return Err(TreeError(format!("{} is no regular file", escape(&path))));
                }
            }
        }
        Ok(())
    }

    /// The same without the directory that all files are in, if there is one: archives often have it.
    #[must_use]
    pub fn without_top(self) -> Self {
        let top = self.files.keys().next().and_then(|path| path.split_once('/'));
        let Some(top) = top.map(|(top, _)| format!("{top}/")) else { return self };
        // A plugin's own directories are at its root, so a single one of these is no wrapping.
        let is_layout = ["skills/", "commands/", "agents/", "hooks/"].contains(&top.as_str());
        if is_layout
            || top.starts_with('.')
            || !self.files.keys().all(|path| path.starts_with(&top))
        {
            return self;
        }
        let files =
            self.files.into_iter().map(|(path, entry)| (path[top.len()..].to_owned(), entry));
        Self { files: files.collect(), ..self }
    }

    /// The files below a directory of it.
    #[must_use]
    pub fn below(self, directory: &str) -> Self {
        let top = format!("{}/", directory.trim_matches('/'));
        let cut = |path: &str| path.strip_prefix(&top).map(str::to_owned);
        let files = self.files.into_iter().filter_map(|(path, entry)| Some((cut(&path)?, entry)));
        let left_out = self.left_out.iter().filter_map(|path| cut(path)).collect();
        Self { files: files.collect(), left_out, ..self }
    }

    /// What an approval is bound to: all paths, contents, and which files may be run.
    pub fn digest(&self) -> String {
        let mut context = Context::new(&SHA256);
        for (path, entry) in &self.files {
            context.update(&(path.len() as u64).to_le_bytes());
            context.update(path.as_bytes());
            context.update(&[u8::from(entry.is_executable)]);
            context.update(&(entry.bytes.len() as u64).to_le_bytes());
            context.update(&entry.bytes);
        }
        hex(context.finish().as_ref())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Of others: some things are left out.
    Source,
    /// Our own copy: everything counts.
    Installed,
}

fn check_path(path: &str) -> Result<(), &'static str> {
    if path.len() > MAX_PATH_BYTES || path.split('/').count() > MAX_DEPTH {
        return Err("its path is too long");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) || path.contains('\\') {
        return Err("its path could lead out of the package");
    }
    if path.chars().any(|char| char.is_control() || is_deceptive(char)) {
        return Err("its name holds hidden characters");
    }
    Ok(())
}
