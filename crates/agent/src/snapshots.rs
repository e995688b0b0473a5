//! What the files of a directory hold, as trees of git in a repository of this program.
//!
//! The repository is in the state directory, one for each directory that is looked at. It borrows the objects of the project's
//! repository, of which nothing is written: no index, no stash, no reference. Attributes of the project count for nothing here, so
//! no filter runs and contents are kept as they are. What is ignored is left out, as git leaves it out.
//!
//! git keeps the state of each file in the index, so a look at files that did not change costs a call of the system for each. What
//! the index was written as is kept next to it, so this costs one process of git, also the first time in a process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::portable::{MetadataExt as _, OsStrExt as _};
use myclaw_files::{
    LockError, LockFile, LockWait, canonical, create_private_directory, hex, read_regular,
    remove_if_there,
};
use myclaw_tools::{CommandChange, OldContent};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::git::{Ended, Git};

mod listed;
mod written;

use listed::{Listed, Wanted};
use written::Written;

/// Longest time for a command of git here.
const LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for another process that looks at the same files.
const WAIT: LockWait = LockWait::Until(Duration::from_secs(10));
/// Most files that a command may change.
const MOST_CHANGED: usize = 2_000;
/// Most entries of a directory outside of git.
const MOST_OUTSIDE: usize = 5_000;
/// Most files and bytes that are taken in at once: those of a whole project, at the first look.
const IN_GIT: Wanted = Wanted { files: 200_000, bytes: 1 << 30 };
/// The same outside of git.
const OUTSIDE: Wanted = Wanted { files: MOST_OUTSIDE, bytes: 64 << 20 };
/// Bytes of the digest that names a repository.
const NAME_BYTES: usize = 12;
/// Largest list of what a repository ignores.
const MAX_IGNORED: u64 = 1 << 20;
/// The file that says that a repository is complete.
const READY: &str = "ready";
/// What turns the attributes of a project off.
const ATTRIBUTES: &str = "* -text -filter -ident -eol -working-tree-encoding\n";
/// Settings, whatever the user's config says.
const SETTINGS: [(&str, &str); 11] = [
    ("core.bare", "false"),
    ("core.autocrlf", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.fileMode", "true"),
    ("core.symlinks", "true"),
    ("core.ignoreCase", "false"),
    ("core.sparseCheckout", "false"),
    ("core.splitIndex", "false"),
    ("core.fsync", "none"),
    ("core.looseCompression", "0"),
    ("feature.manyFiles", "false"),
];

/// The files of a directory, of which trees are made.
#[derive(Debug)]
pub(crate) struct Snapshots {
    root: PathBuf,
    repository: PathBuf,
    wanted: Wanted,
    /// The last tree, and the index that it was made of: another process may have looked at the files since.
    last: Option<(Tree, Stamp)>,
    /// What the last look left out.
    left_out: Vec<u8>,
}

/// Number, length and time of a file, which git replaces when it writes it.
type Stamp = (u64, u64, i64, i64);

/// What the files held at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The directory.
    pub(crate) root: PathBuf,
    /// The tree of git.
    id: String,
    /// The permissions of most files, and of most programs.
    usual: (u32, u32),
    /// The others, by their paths in the directory.
    modes: HashMap<PathBuf, u32>,
}

/// What is different between two trees.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changes: Vec<CommandChange>,
    /// Directories that the first does not have.
    pub(crate) made: Vec<PathBuf>,
}

impl Snapshots {
    /// Those of the project of a directory, or of the directory. The repository for them is in `place`.
    ///
    /// # Errors
    /// git does not start, or the directory has too many files; the text says so.
    pub(crate) async fn of(directory: &Path, place: &Path) -> Result<Self, String> {
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-path",
            "objects",
            "--git-path",
            "info/exclude",
            "--show-object-format",
        ];
        let found = Git::default().run(directory, &asked).await?;
        let text = found.text();
        let facts: Vec<&str> = text.lines().collect();
        let (root, project) = match facts[..] {
            [top, objects, exclude, format] if found.is_success => {
                (PathBuf::from(top), Some([objects, exclude, format].map(str::to_owned)))
            }
            _ => (canonical(directory).map_err(|error| error.to_string())?, None),
        };
        let wanted = if project.is_some() { IN_GIT } else { OUTSIDE };
        let name = hex(&digest(&SHA256, root.as_os_str().as_bytes()).as_ref()[..NAME_BYTES]);
        let (repository, place, own) = (place.join(name), place.to_owned(), root.clone());
        let (new, is_outside) = (repository.clone(), project.is_none());
        blocking(move || {
            if is_outside {
                listed::count(&own, MOST_OUTSIDE)?;
            }
            prepare((&place, &own), &new, project.as_ref()).map_err(|error| error.to_string())
        })
        .await
        .map_err(|error| error.message)??;
        let this = Self { root, repository, wanted, last: None, left_out: Vec::new() };
        if !this.repository.join(READY).exists() {
            let format = facts.get(3).filter(|_| !is_outside).unwrap_or(&"sha1");
            let format = format!("--object-format={format}");
            let repository = this.repository.display().to_string();
            let init = ["init", "--quiet", "--bare", "--template=", &format, &repository];
            done(Git::default().run(&this.root, &init).await?)?;
            std::fs::write(this.repository.join(READY), "").map_err(|error| error.to_string())?;
        }
        this.tidy().await;
        Ok(this)
    }

    /// What the files hold now.
    ///
    /// # Errors
    /// There are too many, or git refuses.
    pub(crate) async fn take(&mut self) -> Result<Tree, String> {
        let _lock = self.lock().await?;
        let list = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let names = done(self.git(Vec::new(), &list).await?)?.printed;
        let (root, wanted) = (self.root.clone(), self.wanted);
        let listed = blocking(move || Listed::of(&root, &names, wanted)).await;
        let Listed { taken, left_out } = listed.map_err(|error| error.message)??;
        if self.last.is_none() {
            self.remember().await?;
        }
        let is_same = taken.is_empty() && left_out == self.left_out;
        let known = self.last.as_ref().filter(|(_, of)| *of == self.stamp());
        if let (true, Some((last, _))) = (is_same, known) {
            return Ok(last.clone());
        }
        if left_out != self.left_out {
            let update = ["update-index", "--force-remove", "-z", "--stdin"];
            done(self.git(left_out.clone(), &update).await?)?;
            self.left_out = left_out;
        }
        if !taken.is_empty() {
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            done(self.git(taken, &update).await?)?;
        }
        let id = done(self.git(Vec::new(), &["write-tree", "--missing-ok"]).await?)?.text();
        let names = done(self.git(Vec::new(), &["ls-files", "-z"]).await?)?.printed;
        let stamp = self.stamp();
        let written = Written { stamp, id, left_out: self.left_out.clone(), names };
        let repository = self.repository.clone();
        let kept = blocking(move || {
            // Without it the next process asks git.
            let _ = written.keep(&repository);
            written
        });
        let tree = self.tree(kept.await.map_err(|error| error.message)?).await?;
        self.last = Some((tree.clone(), stamp));
        Ok(tree)
    }

    /// Takes over what an earlier process has written of the index as it is.
    async fn remember(&mut self) -> Result<(), String> {
        let (repository, stamp) = (self.repository.clone(), self.stamp());
        let written = blocking(move || Written::of(&repository, stamp)).await;
        let Some(written) = written.map_err(|error| error.message)? else { return Ok(()) };
        self.left_out.clone_from(&written.left_out);
        self.last = Some((self.tree(written).await?, stamp));
        Ok(())
    }

    /// A tree with the permissions of its files, which git does not keep.
    async fn tree(&self, written: Written) -> Result<Tree, String> {
        let root = self.root.clone();
        let with_modes = blocking(move || (listed::modes(&root, &written.names), written.id)).await;
        let ((usual, modes), id) = with_modes.map_err(|error| error.message)?;
        Ok(Tree { root: self.root.clone(), id, usual, modes })
    }

    fn stamp(&self) -> Stamp {
        let index = std::fs::metadata(self.repository.join("index"));
        index.map_or_else(
            |_| Stamp::default(),
            |index| (index.ino(), index.len(), index.mtime(), index.mtime_nsec()),
        )
    }

    /// What is different between the trees `from` and `to`, with the contents that `from` had.
    ///
    /// # Errors
    /// Too much is different, or git refuses.
    pub(crate) async fn difference(&self, from: &Tree, to: &Tree) -> Result<Difference, String> {
        if from.id == to.id {
            return Ok(Difference::default());
        }
        let compare = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let compare: Vec<&str> = compare.into_iter().chain([&*from.id, &*to.id]).collect();
        let printed = done(self.git(Vec::new(), &compare).await?)?.printed;
        let changed = listed::changed(&printed);
        if changed.len() > MOST_CHANGED {
            return Err(format!("it changed more than {MOST_CHANGED} files"));
        }
        let wanted = changed.iter().filter_map(|file| file.old.as_ref());
        let ids: String = wanted.map(|(id, _)| format!("{id}\n")).collect();
        let contents = match ids.is_empty() {
            true => Vec::new(),
            false => done(self.git(ids.into_bytes(), &["cat-file", "--batch"]).await?)?.printed,
        };
        let contents = listed::contents(&contents);
        let mut difference = Difference::default();
        for file in &changed {
            let before = match &file.old {
                None => None,
                Some((id, is_program)) => {
                    let usual = if *is_program { from.usual.1 } else { from.usual.0 };
                    let mode = from.modes.get(&file.name).copied().unwrap_or(usual);
                    // What git has lost cannot be restored, and is left alone.
                    let Some(bytes) = contents.get(id.as_str()) else { continue };
                    Some(OldContent { bytes: bytes.to_vec(), mode })
                }
            };
            difference.changes.push(CommandChange { path: self.root.join(&file.name), before });
        }
        if changed.iter().any(|file| file.old.is_none()) {
            let list = ["ls-tree", "-d", "-r", "-z", "--name-only", &*from.id];
            let known = done(self.git(Vec::new(), &list).await?)?.printed;
            difference.made = listed::made(&self.root, &changed, &known);
        }
        Ok(difference)
    }

    /// Removes contents that no index names any more, where there are many.
    async fn tidy(&self) {
        /// Files in one of 256 directories.
        const MANY: usize = 20;
        let some = std::fs::read_dir(self.repository.join("objects/17"));
        if some.map_or(0, Iterator::count) > MANY {
            // If it fails, there is more on the disk than is needed.
            let _ = self.git(Vec::new(), &["prune", "--expire=1.hour.ago"]).await;
        }
    }

    async fn lock(&self) -> Result<LockFile, String> {
        let repository = self.repository.clone();
        let locked = blocking(move || {
            let mut lock = LockFile::acquire(&repository.join("myclaw.lock"), WAIT)?;
            lock.leave_file();
            // Only a killed git can have left it.
            let _ = remove_if_there(&repository.join("index.lock"));
            Ok::<_, LockError>(lock)
        });
        let locked = locked.await.map_err(|error| error.message)?;
        locked.map_err(|error| match error {
            LockError::Held { .. } => "another process looks at the same files".to_owned(),
            LockError::Io { action, source } => {
                format!("failed to {action} {}: {source}", self.repository.display())
            }
        })
    }

    async fn git(&self, input: Vec<u8>, args: &[&str]) -> Result<Ended, String> {
        let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let git = Git {
            settings: SETTINGS.into_iter().map(text).collect(),
            variables: vec![
                ("GIT_DIR", self.repository.clone().into()),
                ("GIT_WORK_TREE", self.root.clone().into()),
                ("GIT_INDEX_FILE", self.repository.join("index").into()),
                ("GIT_OBJECT_DIRECTORY", self.repository.join("objects").into()),
                ("GIT_OPTIONAL_LOCKS", "0".into()),
            ],
            input,
            limit: Some(LIMIT),
            reaches_network: false,
        };
        git.run(&self.root, args).await
    }
}

/// Makes the directory of a repository for the files in `root`, with what it needs to know of a project: its objects and what it
/// ignores. The directory around `place` is ignored too: it is this program's own. Blocks.
fn prepare(
    (place, root): (&Path, &Path),
    repository: &Path,
    project: Option<&[String; 3]>,
) -> std::io::Result<()> {
    for directory in [place, repository] {
        create_private_directory(directory)?;
    }
    for directory in ["info", "objects/info"] {
        std::fs::create_dir_all(repository.join(directory))?;
    }
    std::fs::write(repository.join("info/attributes"), ATTRIBUTES)?;
    let (objects, mut ignored) = match project {
        Some([objects, exclude, _]) => (
            format!("{objects}\n"),
            read_regular(Path::new(exclude), MAX_IGNORED).unwrap_or_default(),
        ),
        None => Default::default(),
    };
    let own = canonical(place)?;
    if let Some(Ok(own)) = own.parent().map(|own| own.strip_prefix(root))
        && !own.as_os_str().is_empty()
    {
        ignored.extend_from_slice(b"\n/");
        ignored.extend_from_slice(own.as_os_str().as_bytes());
        ignored.extend_from_slice(b"/\n");
    }
    std::fs::write(repository.join("objects/info/alternates"), objects)?;
    std::fs::write(repository.join("info/exclude"), ignored)
}

fn done(ended: Ended) -> Result<Ended, String> {
    match ended.is_success {
        true => Ok(ended),
        false => Err(format!("git failed: {}", ended.errors)),
    }
}

/// The path that git printed.
fn path_of(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests;
