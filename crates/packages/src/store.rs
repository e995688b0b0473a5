//! The approved packages on disk.
//!
//! The lock file says which packages count, from where each came, and the digest of each file. A package lies in a directory
//! named by its digest, which is complete before the lock file names it and removed after it does not. So a kill at any moment
//! leaves the old or the new, whole, and what it leaves behind is removed by the next change.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::formats::PACKAGES;
use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{
    Access, Durability, LockError, LockFile, LockWait, SharedDirectory, create_private_directory,
    sync_directory,
};
use myclaw_skills::{Given, Machine, Problem, SkillCatalog, SkillOrigin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FileChange, PackageContents, Tree, TreeError};

/// Raised when an older program would misread the lock file.
const FORMAT: u32 = PACKAGES.newest;
const LOCK_FILE: &str = "lock.json";
/// Who may change the packages: one process at a time.
const CHANGING: &str = "changing.lock";
const CONTENT: &str = "content";
/// A package that is being written.
const UNFINISHED: &str = ".new-";
/// Largest lock file.
const MAX_LOCK_BYTES: u64 = 16 << 20;
/// Most directories that are looked at for what was left behind.
const MAX_DIRECTORIES: usize = 10_000;
/// Another change takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// From where a package came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Source {
    /// A directory or an archive of this machine.
    Path {
        /// Where.
        path: PathBuf,
    },
    /// A repository.
    Git {
        /// Its address.
        url: String,
        /// The branch, tag or commit that was named.
        #[serde(skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        /// The commit that it was.
        commit: String,
    },
    /// A package of npm.
    Npm {
        /// Its name.
        name: String,
        /// The version that was named.
        #[serde(skip_serializing_if = "Option::is_none")]
        wanted: Option<String>,
        /// The version that it was.
        version: String,
        /// What the registry says of the archive's bytes.
        integrity: String,
    },
    /// An archive.
    Archive {
        /// Its address.
        url: String,
        /// The SHA-256 of its bytes.
        sha256: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path } => write!(formatter, "{}", path.display()),
            Self::Git { url, commit, .. } => write!(formatter, "{url} at {commit}"),
            Self::Npm { name, version, .. } => write!(formatter, "npm:{name}@{version}"),
            Self::Archive { url, .. } => write!(formatter, "{url}"),
        }
    }
}

/// A package as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// From where it came.
    pub source: Source,
    /// The directory of the source that the package is; all of it without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdirectory: Option<String>,
    /// Its version, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the whole.
    pub digest: String,
    /// What it asked for.
    pub wishes: Vec<String>,
    /// Its files.
    pub files: BTreeMap<String, LockedFile>,
    /// When it was approved, in milliseconds since the Unix epoch.
    pub approved_at: u64,
}

impl Locked {
    /// How the files of a package differ from those that were approved.
    pub fn changes_to(&self, tree: &Tree) -> Vec<(String, FileChange)> {
        let now = files_of(tree);
        let gone = self.files.keys().filter(|path| !now.contains_key(*path));
        let mut changes: Vec<(String, FileChange)> =
            gone.map(|path| (path.clone(), FileChange::Gone)).collect();
        changes.extend(now.iter().filter_map(|(path, file)| match self.files.get(path) {
            None => Some((path.clone(), FileChange::New)),
            Some(before) => (before != file).then(|| (path.clone(), FileChange::Changed)),
        }));
        changes.sort();
        changes
    }
}

/// A file as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedFile {
    sha256: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct LockText {
    format: u32,
    packages: BTreeMap<String, Locked>,
}

/// Why a package is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// These files differ from those that were approved.
    Files(Vec<String>),
    /// This program reads other wishes from the same bytes than the one with which it was approved.
    Wishes,
    /// It cannot be read.
    Unreadable(String),
}

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => {
                write!(formatter, "files differ from those that you approved: {}", files.join(", "))
            }
            Self::Wishes => formatter.write_str(
                "this version of MyClaw reads more from it than the one with which you approved it",
            ),
            Self::Unreadable(why) => write!(formatter, "it cannot be read: {why}"),
        }
    }
}

/// A package with the bytes that were approved.
#[derive(Debug, Clone)]
pub struct LoadedPackage {
    /// Its name here.
    pub name: String,
    /// Where its files are, for programs that are started and for models.
    pub directory: PathBuf,
    /// What was approved.
    pub locked: Locked,
    /// Its files.
    pub tree: Tree,
    /// What is in it.
    pub contents: PackageContents,
}

impl LoadedPackage {
    /// Adds its skills to those that are known, from the bytes that were approved.
    pub fn add_skills(&self, catalog: &mut SkillCatalog, machine: &Machine) {
        for skill in &self.contents.skills {
            let Some(entry) = self.tree.get(&skill.path) else { continue };
            let file = self.directory.join(&skill.path);
            let directory =
                file.parent().and_then(Path::file_name).filter(|_| skill.path.contains('/'));
            let directory = directory.map(|name| name.to_string_lossy().into_owned());
            let given = Given {
                base: self.directory.clone(),
                directory: directory.unwrap_or_else(|| self.name.clone()),
                text: String::from_utf8_lossy(&entry.bytes).into_owned(),
                origin: SkillOrigin::Package,
                file: file.clone(),
            };
            if let Err(message) = catalog.add(given, machine) {
                catalog.problems.push(Problem { path: file, message });
            }
        }
    }
}

/// A package that the owner has approved.
#[derive(Debug, Clone)]
pub struct PackageApproval<'a> {
    /// Its name here.
    pub name: &'a str,
    /// Its files.
    pub tree: &'a Tree,
    /// What is in it.
    pub contents: &'a PackageContents,
    /// From where it came.
    pub source: &'a Source,
    /// The directory of the source that it is.
    pub subdirectory: Option<&'a str>,
}

/// A package of the lock file.
#[derive(Debug)]
pub struct PackageState {
    /// Its name here.
    pub name: String,
    /// What was approved.
    pub locked: Locked,
    /// The package, or why it is off.
    pub loaded: Result<LoadedPackage, Changed>,
}

/// A change or a look that failed.
#[derive(Debug)]
pub struct PackageError(pub String);

impl fmt::Display for PackageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PackageError {}

impl From<io::Error> for PackageError {
    fn from(error: io::Error) -> Self {
        Self(format!("the packages cannot be kept: {error}"))
    }
}

/// The packages below one directory.
#[derive(Debug, Clone)]
pub struct PackageStore {
    directory: PathBuf,
}

impl PackageStore {
    /// A store in `directory`, which is made with the first package.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the files of packages are.
    pub fn content(&self) -> PathBuf {
        self.directory.join(CONTENT)
    }

    /// What was approved, by name. Nothing of the packages is read. Blocks.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn locked(&self) -> Result<BTreeMap<String, Locked>, PackageError> {
        Ok(self.read_lock()?.packages)
    }

    /// All packages, each compared with its digests. Blocks.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn load(&self) -> Result<Vec<PackageState>, PackageError> {
        let packages = self.read_lock()?.packages.into_iter();
        Ok(packages.map(|(name, locked)| self.state(name, locked)).collect())
    }

    /// One of them. Blocks.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn load_one(&self, name: &str) -> Result<Option<PackageState>, PackageError> {
        let locked = self.read_lock()?.packages.remove(name);
        Ok(locked.map(|locked| self.state(name.to_owned(), locked)))
    }

    fn state(&self, name: String, locked: Locked) -> PackageState {
        let loaded = self.checked(&name, &locked);
        PackageState { name, locked, loaded }
    }

    fn checked(&self, name: &str, locked: &Locked) -> Result<LoadedPackage, Changed> {
        let unreadable = |error: &dyn fmt::Display| Changed::Unreadable(error.to_string());
        let directory = self.content().join(directory_name(name, &locked.digest));
        let opened = SharedDirectory::open(&directory).map_err(|error| unreadable(&error))?;
        let tree = Tree::of_installed(&opened).map_err(|error| unreadable(&error))?;
        // The digest covers everything that the digests of the files do.
        if tree.digest() != locked.digest {
            let differing = locked.changes_to(&tree);
            return Err(Changed::Files(differing.into_iter().map(|(path, _)| path).collect()));
        }
        let contents = PackageContents::of(&tree).map_err(|error| unreadable(&error))?;
        if contents.wishes() != locked.wishes {
            return Err(Changed::Wishes);
        }
        Ok(LoadedPackage {
            name: name.to_owned(),
            directory,
            locked: locked.clone(),
            tree,
            contents,
        })
    }

    /// Keeps a package that was approved, in the place of one with the same name. Blocks.
    ///
    /// # Errors
    /// An I/O error, or another process changes the packages. What was there is unchanged then.
    pub fn put(&self, approval: &PackageApproval<'_>) -> Result<(), PackageError> {
        let PackageApproval { name, tree, contents, source, subdirectory } = approval;
        let _changing = self.changing()?;
        let mut lock = self.read_lock()?;
        let locked = Locked {
            source: (*source).clone(),
            subdirectory: subdirectory.map(str::to_owned),
            version: contents.version.clone(),
            digest: tree.digest(),
            wishes: contents.wishes(),
            files: files_of(tree),
            approved_at: myclaw_files::now_ms(),
        };
        // The same bytes stay where they are, so that no moment is without them.
        if self.checked(name, &locked).is_err() {
            self.write_content(&directory_name(name, &locked.digest), tree)?;
        }
        lock.packages.insert((*name).to_owned(), locked);
        self.write_lock(&lock)?;
        self.remove_unnamed(&lock)
    }

    fn write_content(&self, name: &str, tree: &Tree) -> Result<(), PackageError> {
        let content = self.content();
        create_private_directory(&content)?;
        let unfinished = content.join(format!("{UNFINISHED}{name}"));
        remove_directory(&unfinished)?;
        write_tree(&unfinished, tree)?;
        let target = content.join(name);
        // Only a package that was changed on disk is there already.
        remove_directory(&target)?;
        fs::rename(&unfinished, &target)?;
        Ok(sync_directory(&content)?)
    }

    /// Forgets a package. False if there is none. Blocks.
    ///
    /// # Errors
    /// An I/O error, or another process changes the packages.
    pub fn remove(&self, name: &str) -> Result<bool, PackageError> {
        if !self.read_lock()?.packages.contains_key(name) {
            return Ok(false);
        }
        let _changing = self.changing()?;
        let mut lock = self.read_lock()?;
        let was_there = lock.packages.remove(name).is_some();
        self.write_lock(&lock)?;
        self.remove_unnamed(&lock)?;
        Ok(was_there)
    }

    fn changing(&self) -> Result<LockFile, PackageError> {
        create_private_directory(&self.directory)?;
        LockFile::acquire(&self.directory.join(CHANGING), LockWait::Until(PATIENCE)).map_err(
            |error| {
                PackageError(match error {
                    LockError::Held { .. } => {
                        "another process changes the packages; repeat the command when it is done"
                            .to_owned()
                    }
                    LockError::Io { action, source } => {
                        format!("the packages cannot be kept: cannot {action} their lock: {source}")
                    }
                })
            },
        )
    }

    fn read_lock(&self) -> Result<LockText, PackageError> {
        let opened = SharedDirectory::open(&self.directory);
        let bytes = match opened.and_then(|opened| opened.read(LOCK_FILE, MAX_LOCK_BYTES)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockText::default()),
            read => read?,
        };
        let damaged = |why: String| {
            let path = self.directory.join(LOCK_FILE);
            PackageError(format!(
                "{} cannot be used: {why}; no package counts. Take it from a backup, or move it away and add the packages again",
                path.display()
            ))
        };
        let unread = |error: serde_json::Error| damaged(error.to_string());
        let lock: Value = serde_json::from_slice(&bytes).map_err(unread)?;
        match lock["format"].as_u64() {
            Some(newer) if newer > FORMAT.into() => {
                Err(PackageError(PACKAGES.refusal(&self.directory.join(LOCK_FILE), newer)))
            }
            Some(0) => Err(damaged("it has the format 0".to_owned())),
            _ => serde_json::from_value(lock).map_err(unread),
        }
    }

    fn write_lock(&self, lock: &LockText) -> Result<(), PackageError> {
        let text = LockText { format: FORMAT, packages: lock.packages.clone() };
        let text = serde_json::to_vec_pretty(&text).map_err(io::Error::other)?;
        let how = (Access::Owner, Durability::Synced);
        Ok(SharedDirectory::open(&self.directory)?.write(LOCK_FILE, &text, how)?)
    }

    /// Removes the directories that the lock file does not name: older versions, and what killed processes left.
    fn remove_unnamed(&self, lock: &LockText) -> Result<(), PackageError> {
        let content = match SharedDirectory::open(&self.content()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let named: Vec<String> = lock
            .packages
            .iter()
            .map(|(name, locked)| directory_name(name, &locked.digest))
            .collect();
        let is_unnamed = |name: &std::ffi::OsStr| !named.iter().any(|known| name == known.as_str());
        for name in content.names(MAX_DIRECTORIES, is_unnamed)?.names {
            remove_directory(&content.path().join(name))?;
        }
        SharedDirectory::open(&self.directory)?.remove_unfinished()?;
        Ok(())
    }
}

fn directory_name(name: &str, digest: &str) -> String {
    format!("{name}.{digest}")
}

fn files_of(tree: &Tree) -> BTreeMap<String, LockedFile> {
    let file = |(path, entry): (&String, &crate::TreeEntry)| {
        (path.clone(), LockedFile { sha256: entry.sha256(), executable: entry.is_executable })
    };
    tree.files().map(file).collect()
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a package into a new directory and makes it durable.
fn write_tree(directory: &Path, tree: &Tree) -> Result<(), PackageError> {
    create_private_directory(directory)?;
    let mut directories = vec![directory.to_owned()];
    for (path, entry) in tree.files() {
        let target = directory.join(path);
        if let Some(parent) = target.parent().filter(|parent| *parent != directory) {
            directories.extend(create_private_directory(parent)?);
            directories.push(parent.to_owned());
        }
        let mut file = fs::File::create_new(&target)?;
        file.write_all(&entry.bytes)?;
        let mode = if entry.is_executable { 0o700 } else { 0o600 };
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
    }
    directories.sort();
    directories.dedup();
    for directory in directories {
        sync_directory(&directory)?;
    }
    Ok(())
}

impl From<TreeError> for PackageError {
    fn from(error: TreeError) -> Self {
        Self(error.0)
    }
}
