//! The files of a session's tools, on whichever machine has the session.
//!
//! Commands and tools work with paths, so the files are in a directory of the machine. The database has their contents too.
//! What is new in the directory is stored before the row that may name it is appended, and when the session is closed; who
//! opens the session makes the directory what the database says. Nothing happens where nothing has changed: the row of the
//! session has a number that changes with its files, and a list next to the directory says with which number, and how, the
//! files were the same here and there.
//!
//! Commands of a sandboxed session can change the directory, so nothing follows a link there. The list is next to it, where
//! they cannot write.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use myclaw_files::{
    Access, Durability, EntryKind, NewFile, SharedDirectory, create_private_directory,
    remove_if_there,
};
use myclaw_session::SessionError;
use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;

use super::blobs::{Blob, digest_of};
use super::core::{Core, column};
use super::sql;
use crate::pool::Parameter;
use crate::read::stored;

/// Largest file in the database: the largest that an undo keeps. A larger one goes to the object storage, at the end of a run.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Largest file that other machines get.
const MOST_LARGE_BYTES: u64 = 1024 * 1024 * 1024;
/// Most names in one directory, and the depth to which directories are looked into: more than tools make.
const MOST_NAMES: usize = 2_000;
const MOST_DEPTH: usize = 8;
/// A larger file that grows, such as the output of a job, is stored again after this time only, and at the end.
const GROWING_BYTES: u64 = 1024 * 1024;
const BETWEEN_GROWTHS: Duration = Duration::from_secs(30);
/// Begins the names of directories for temporary files.
const TEMPORARY: &str = "tmp-";
/// The directory with the lists, next to those of the sessions: the name of none of these begins with a dot.
const LISTS: &str = ".lists";

/// The side files of a session that this process owns.
#[derive(Debug)]
pub(super) struct Files {
    /// The directory that holds those of all sessions, and the name of this one's in it.
    scratch: PathBuf,
    name: String,
    list: List,
    /// When large files were stored last.
    stored: HashMap<String, Instant>,
    /// Whether the directory is that of a session here: a copy for another program has no list.
    has_list: bool,
}

/// How the files were when they were the same here and in the database.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    /// The session, because its name may be shortened.
    key: String,
    version: i64,
    files: BTreeMap<String, Known>,
    /// Files that could not be fetched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    missing: BTreeMap<String, i64>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    bytes: u64,
    changed_ns: u64,
    /// `None` if it is too large for the database.
    blob: Option<i64>,
    digest: String,
}

/// What is in a directory: sizes, and times in nanoseconds.
#[derive(Debug, Default)]
struct Found {
    files: BTreeMap<String, (u64, u64)>,
    /// There is more.
    is_cut: bool,
}

impl Known {
    fn is(&self, (bytes, changed_ns): (u64, u64)) -> bool {
        (self.bytes, self.changed_ns) == (bytes, changed_ns)
    }
}

impl Files {
    /// The files of the session with this key.
    pub(super) fn new(scratch: &Path, name: String, key: &str) -> Self {
        let list: Option<List> = std::fs::read(list_path(scratch, &name))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let list = list.filter(|list| list.key == key);
        let list = list.unwrap_or_else(|| List { key: key.to_owned(), ..List::default() });
        Self { scratch: scratch.to_owned(), name, list, stored: HashMap::new(), has_list: true }
    }

    /// The files of a session in the directory of another program.
    pub(super) fn elsewhere(directory: &Path) -> Self {
        let (scratch, name) = (directory.parent(), directory.file_name());
        Self {
            scratch: scratch.unwrap_or(Path::new("")).to_owned(),
            name: name.unwrap_or_default().to_string_lossy().into_owned(),
            list: List::default(),
            stored: HashMap::new(),
            has_list: false,
        }
    }

    /// Copies the files of a session into the directory, all of them.
    ///
    /// # Errors
    /// One of them cannot be read or written.
    pub(super) fn copy(&mut self, core: &Core, session: i64) -> Result<(), SessionError> {
        let wanted = Self::wanted(core, session)?;
        if wanted.is_empty() {
            return Ok(());
        }
        self.apply(core, 0, wanted).map_err(|source| self.failed("write", source))?;
        match self.list.missing.keys().next() {
            Some(name) => {
                Err(self.failed("write", io::Error::other(format!("{name} cannot be read"))))
            }
            None => Ok(()),
        }
    }

    /// Makes the directory what the database says, whose number is `version`.
    ///
    /// # Errors
    /// The database cannot be used, or the directory cannot be written. A file whose content cannot be read is left out, and
    /// fetched by a later opening.
    pub(super) fn fetch(
        &mut self,
        core: &Core,
        session: i64,
        version: i64,
    ) -> Result<(), SessionError> {
        if version == self.list.version && self.list.missing.is_empty() {
            return Ok(());
        }
        let wanted = Self::wanted(core, session)?;
        self.apply(core, version, wanted).map_err(|source| self.failed("write", source))
    }

    fn wanted(core: &Core, session: i64) -> Result<BTreeMap<String, Blob>, SessionError> {
        let rows = core.rows("read", sql::SIDE_FILES, &[(&session, Type::INT8)])?;
        let mut wanted = BTreeMap::new();
        for row in &rows {
            let blob =
                Blob { id: column(row, 1)?, digest: column(row, 2)?, place: column(row, 3)? };
            wanted.insert(column::<String>(row, 0)?, blob);
        }
        Ok(wanted)
    }

    fn apply(
        &mut self,
        core: &Core,
        version: i64,
        wanted: BTreeMap<String, Blob>,
    ) -> io::Result<()> {
        create_private_directory(&self.scratch)?;
        let directory =
            SharedDirectory::open(&self.scratch)?.make_directory(&self.name, Access::Owner)?;
        let found = scan(&directory)?.files;
        let before = std::mem::take(&mut self.list.files);
        self.list.missing.clear();
        for (name, known) in &before {
            let is_unchanged = found.get(name).is_some_and(|now| known.is(*now));
            if is_unchanged && known.blob.is_some() && !wanted.contains_key(name) {
                directory.remove(name)?;
            }
        }
        for (name, blob) in wanted {
            let is_same = match (found.get(&name), before.get(&name)) {
                (None, _) => false,
                (Some(now), Some(known)) if known.is(*now) => known.digest == blob.digest,
                (Some((bytes, _)), _) if *bytes > MOST_BYTES => false,
                (Some(_), _) => {
                    directory.read(&name, MOST_BYTES).is_ok_and(|it| digest_of(&it) == blob.digest)
                }
            };
            if !is_same && let Err(error) = put(core, &directory, &name, &blob) {
                tracing::warn!(session = self.list.key, name, %error, "a side file cannot be fetched; the next run tries it again");
                self.list.missing.insert(name, blob.id);
                continue;
            }
            let Some(facts) = directory.facts(&name)? else { continue };
            let Blob { id, digest, .. } = blob;
            let (bytes, changed_ns) = (facts.bytes, facts.changed_ns);
            self.list.files.insert(name, Known { bytes, changed_ns, blob: Some(id), digest });
        }
        self.list.version = version;
        self.save()
    }

    /// Stores what has changed in the directory. Without the session's epoch nothing changes. At the end, files that grow are
    /// stored too.
    ///
    /// # Errors
    /// The database cannot be used, or the list cannot be written.
    pub(super) fn keep(
        &mut self,
        core: &Core,
        (session, epoch): (i64, i64),
        is_end: bool,
    ) -> Result<(), SessionError> {
        let Some((directory, found)) = self.look() else { return Ok(()) };
        let is_gone = |name: &&String| !found.files.contains_key(*name) && !found.is_cut;
        let gone: Vec<String> = self.list.files.keys().filter(is_gone).cloned().collect();
        let mut changed = Vec::new();
        for (name, facts) in &found.files {
            let is_known = self.list.files.get(name).is_some_and(|known| known.is(*facts));
            if !is_known && (is_end || !self.is_growing(name, facts.0)) {
                changed.push((name, *facts));
            }
        }
        if changed.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let mut new = Vec::new();
        for (name, facts) in changed {
            if let Some(directory) = &directory {
                new.extend(self.store(core, directory, name, facts)?);
            }
        }
        self.tell(core, session, epoch, gone, new)
    }

    /// What is in the directory, if there is one. `None` if that cannot be found out: what a command has done to its directory
    /// keeps no session from going on.
    fn look(&self) -> Option<(Option<SharedDirectory>, Found)> {
        let opened = SharedDirectory::open(&self.scratch).and_then(|all| all.directory(&self.name));
        let found = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, Found::default())),
            opened => opened.and_then(|opened| scan(&opened).map(|found| (Some(opened), found))),
        };
        let session = &self.list.key;
        found.inspect_err(|error| tracing::warn!(session, %error, "side files cannot be read, so other machines do not get them")).ok()
    }

    /// Whether it is a large file that was stored a short time ago, or one that is stored at the end only.
    fn is_growing(&self, name: &str, bytes: u64) -> bool {
        if bytes > MOST_BYTES {
            return true;
        }
        let is_recent = |at: &Instant| at.elapsed() < BETWEEN_GROWTHS;
        bytes > GROWING_BYTES && self.stored.get(name).is_some_and(is_recent)
    }

    /// Stores the content of a file. `None` if it is gone again, or no file any more.
    fn store(
        &mut self,
        core: &Core,
        directory: &SharedDirectory,
        name: &str,
        (bytes, changed_ns): (u64, u64),
    ) -> Result<Option<(String, Known)>, SessionError> {
        let content = match directory.read(name, MOST_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let known = self.store_large(core, directory, name, (bytes, changed_ns))?;
                return Ok(Some((name.to_owned(), known)));
            }
            // It is gone again, or a command has made it unreadable.
            Err(_) => return Ok(None),
            Ok(content) => content,
        };
        let digest = digest_of(&content);
        let same = self.list.files.get(name).filter(|known| known.digest == digest);
        let blob = match same.and_then(|known| known.blob) {
            Some(blob) => blob,
            None => core.put_blob(&content)?.id,
        };
        self.stored.insert(name.to_owned(), Instant::now());
        Ok(Some((name.to_owned(), Known { bytes, changed_ns, blob: Some(blob), digest })))
    }

    /// Stores a file that is too large for the database, if there is an object storage.
    fn store_large(
        &self,
        core: &Core,
        directory: &SharedDirectory,
        name: &str,
        (bytes, changed_ns): (u64, u64),
    ) -> Result<Known, SessionError> {
        let file = directory.file(name).ok().filter(|_| bytes <= MOST_LARGE_BYTES);
        let stored = file.map_or(Ok(None), |file| core.put_large(file.take(MOST_LARGE_BYTES)))?;
        let (blob, digest) = stored.map(|blob| (blob.id, blob.digest)).unzip();
        if blob.is_none() {
            let session = &self.list.key;
            let why = "a side file is too large for the database, and has more than 1 GiB or there is no object storage \
                       (gateway.blobs) that can be used, so other machines do not get it";
            tracing::warn!(session, name, bytes, "{why}");
        }
        Ok(Known { bytes, changed_ns, blob, digest: digest.unwrap_or_default() })
    }

    /// Writes down what has changed, in the database and then here.
    fn tell(
        &mut self,
        core: &Core,
        session: i64,
        epoch: i64,
        mut gone: Vec<String>,
        new: Vec<(String, Known)>,
    ) -> Result<(), SessionError> {
        let (mut names, mut blobs, mut bytes, mut digests) = (vec![], vec![], vec![], vec![]);
        for (name, known) in &new {
            let Some(blob) = known.blob else {
                gone.push(name.clone());
                continue;
            };
            names.push(name.as_str());
            blobs.push(blob);
            bytes.push(stored(known.bytes));
            digests.push(known.digest.as_str());
        }
        let parameters: [Parameter<'_>; 7] = [
            (&session, Type::INT8),
            (&epoch, Type::INT8),
            (&gone, Type::TEXT_ARRAY),
            (&names, Type::TEXT_ARRAY),
            (&blobs, Type::INT8_ARRAY),
            (&bytes, Type::INT8_ARRAY),
            (&digests, Type::TEXT_ARRAY),
        ];
        let told = core.rows("write", sql::SET_SIDE_FILES, &parameters)?;
        let Some(row) = told.first() else {
            // Somebody else has the session, as the append will say.
            core.drop_blobs(&blobs);
            return Ok(());
        };
        self.list.version = column(row, 0)?;
        let mut unnamed: Vec<i64> = Vec::new();
        for name in gone {
            unnamed.extend(self.list.files.remove(&name).and_then(|known| known.blob));
        }
        for (name, known) in new {
            self.list.missing.remove(&name);
            let blob = known.blob;
            let before = self.list.files.insert(name, known).and_then(|known| known.blob);
            unnamed.extend(before.filter(|before| Some(*before) != blob));
        }
        core.drop_blobs(&unnamed);
        self.save().map_err(|error| self.failed("write", error))
    }

    fn save(&self) -> io::Result<()> {
        if !self.has_list {
            return Ok(());
        }
        let path = list_path(&self.scratch, &self.name);
        create_private_directory(&self.scratch.join(LISTS))?;
        let mut file = NewFile::in_directory(&self.scratch.join(LISTS), "list")?;
        io::Write::write_all(&mut file, &serde_json::to_vec(&self.list)?)?;
        file.put_at(&path, Durability::Unsynced).map(drop)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> SessionError {
        SessionError::Io { action, path: self.scratch.join(&self.name), source }
    }
}

impl Core {
    /// Removes the directory of a session that is gone, and the list of it.
    pub(super) fn remove_side_files(&self, name: &str) -> Result<(), SessionError> {
        let directory = self.scratch.join(name);
        let removed = match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let removed = removed.and_then(|()| remove_if_there(&list_path(&self.scratch, name)));
        let action = "delete the session's files in";
        removed.map(drop).map_err(|source| SessionError::Io { action, path: directory, source })
    }

    /// Removes the directories here of sessions that are gone everywhere.
    pub(super) fn remove_side_files_of_deleted(&self) -> Result<(), SessionError> {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for file in std::fs::read_dir(self.scratch.join(LISTS)).into_iter().flatten().flatten() {
            let name = file.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let list = std::fs::read(file.path()).ok();
            let list = list.and_then(|bytes| serde_json::from_slice::<List>(&bytes).ok());
            names.extend(list.zip(name).map(|(list, name)| (list.key, name.to_owned())));
        }
        let keys: Vec<&String> = names.keys().collect();
        let parameters: [Parameter<'_>; 2] =
            [(&self.partition, Type::INT8), (&keys, Type::TEXT_ARRAY)];
        for row in &self.rows("list", sql::EXISTING, &parameters)? {
            let key: String = column(row, 0)?;
            names.remove(&key);
        }
        names.values().try_for_each(|name| self.remove_side_files(name))
    }
}

fn list_path(scratch: &Path, name: &str) -> PathBuf {
    scratch.join(LISTS).join(format!("{name}.json"))
}

/// Writes a file, which appears as a whole. Its content is not in memory as a whole if it is in the object storage.
fn put(core: &Core, directory: &SharedDirectory, name: &str, blob: &Blob) -> io::Result<()> {
    let path = Path::new(name);
    if let Some(parent) = path.parent() {
        directory.make_directory(parent, Access::Owner)?;
    }
    let unfinished = path.with_file_name(format!(".new-{}.tmp", blob.id));
    // The rest of a process that was killed.
    directory.remove(&unfinished)?;
    let written = directory.create(&unfinished, Access::Owner).and_then(|mut file| {
        core.copy_blob(blob, &mut file).map_err(io::Error::other)?;
        file.sync_all()?;
        directory.move_to(&unfinished, directory, path)
    });
    written.map(drop).inspect_err(|_| drop(directory.remove(&unfinished)))
}

/// The regular files below a directory with their sizes and times. What is in the way of that, such as a link, is left out.
fn scan(directory: &SharedDirectory) -> io::Result<Found> {
    let mut found = Found::default();
    let mut left = vec![(directory.directory("")?, String::new(), 0)];
    while let Some((directory, place, depth)) = left.pop() {
        let names = directory.names(MOST_NAMES, |name| name.to_str().is_some())?;
        found.is_cut |= names.is_cut;
        for name in names.names {
            let Some(name) = name.to_str() else { continue };
            let is_unfinished = name.starts_with(".new-") && name.ends_with(".tmp");
            let Some(facts) = directory.facts(name)?.filter(|_| !is_unfinished) else { continue };
            let path = format!("{place}{name}");
            match facts.kind {
                EntryKind::File => {
                    found.files.insert(path, (facts.bytes, facts.changed_ns));
                }
                EntryKind::Directory if depth < MOST_DEPTH && !name.starts_with(TEMPORARY) => {
                    // It may have become something else.
                    let below = directory.directory(name).ok();
                    left.extend(below.map(|below| (below, format!("{path}/"), depth + 1)));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}
