//! The database into a state directory.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use myclaw_files::{Documents as _, Durability, create_private_directory, private_options};
use myclaw_session::{
    Blobs as _, FileBlobs, SessionEntry, SessionError, SessionKey, SessionStore, Sessions,
};
use myclaw_store::{Records, Store as _, Write, scan};
use serde_json::{Map, Value};

use super::{ALL, Copied, FILES_ELSEWHERE, OF_PROCESSES, StateDirectory, Waiting, done, failed};
use crate::{Cluster, ClusterError, approvals, documents, keys, outgoing, spending};

impl Cluster {
    /// Copies the database into a state directory that must be empty or missing, and that is there when it is complete. Blocks.
    ///
    /// # Errors
    /// The directory is not empty, or something cannot be read or written.
    pub fn export(&self, to: &StateDirectory) -> Result<Copied, ClusterError> {
        let refused = |why: String| Err(ClusterError::Unusable(why));
        let (path, advice) = (to.path.display(), "name a directory that does not exist yet");
        match fs::read_dir(&to.path).map(|mut files| files.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return refused(format!("{path} is not empty; {advice}")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return refused(format!("{path} cannot be used ({error}); {advice}")),
        }
        // Nobody takes a part for the whole: it gets its name when it is complete.
        let place = std::path::absolute(&to.path).map_err(failed("find", &to.path))?;
        let Some(name) = place.file_name() else {
            return refused(format!("{path} has no name; {advice}"));
        };
        let part = place.with_file_name(format!("{}.incomplete", name.to_string_lossy()));
        if part.exists() {
            let part = part.display();
            return refused(format!(
                "{part} is the part of an export that was interrupted; remove it"
            ));
        }
        let copied = self.export_to(&StateDirectory::at(&part)).inspect_err(|_| {
            // It is what this call has made.
            let _ = fs::remove_dir_all(&part);
        })?;
        fs::rename(&part, &place).map_err(failed("rename", &part))?;
        Ok(copied)
    }

    fn export_to(&self, to: &StateDirectory) -> Result<Copied, ClusterError> {
        for directory in [&to.path, &to.sessions] {
            create_private_directory(directory).map_err(failed("create", directory))?;
        }
        let mut copied = Copied::default();
        self.export_sessions(to, &mut copied)?;
        self.export_files(to, &mut copied)?;
        self.export_records(to, &mut copied)?;
        Ok(copied)
    }

    fn export_sessions(
        &self,
        to: &StateDirectory,
        copied: &mut Copied,
    ) -> Result<(), ClusterError> {
        let store = SessionStore::new(&to.sessions);
        let mut list: Map<String, Value> = Map::new();
        for key in self.sessions().all_keys()? {
            let path = store.transcript_path(&key);
            // First what waits: what a log takes in meanwhile is then in both, where the log counts, and not in neither.
            for message in self.sessions().inbox(&key).pending()? {
                Sessions::inbox(&store, &key).push(&message)?;
                copied.waiting += 1;
            }
            copied.sessions += usize::from(self.export_log(&key, &path)?);
            self.sessions().export_side_files(&key, &store.artifact_directory(&key))?;
            if let Some(entry) = self.stores().catalog.entry(&key)? {
                list.insert(key.as_str().to_owned(), listed(entry, &path)?);
            }
        }
        let path = store.index().path();
        let text = serde_json::to_vec_pretty(&list)
            .map_err(|source| SessionError::Encode { path: path.clone(), source })?;
        write(&path, &text)
    }

    fn export_log(&self, key: &SessionKey, path: &Path) -> Result<bool, ClusterError> {
        let mut file = None;
        let visited = self.sessions().visit_lines(key, &mut |line| {
            let io = |source| SessionError::Io { action: "write", path: path.to_owned(), source };
            let file = match &mut file {
                Some(file) => file,
                none => {
                    let new = private_options().write(true).create_new(true).open(path);
                    none.insert(std::io::BufWriter::new(new.map_err(io)?))
                }
            };
            file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(io)
        });
        if matches!(visited, Err(SessionError::NoSuchSession { .. })) {
            // Deleted meanwhile, as if it had been so before.
            drop(file);
            fs::remove_file(path).map_err(failed("remove", path))?;
            return Ok(false);
        }
        let exists = visited?;
        if let Some(file) = file {
            let file =
                file.into_inner().map_err(|error| failed("write", path)(error.into_error()))?;
            file.sync_all().map_err(failed("write", path))?;
        }
        Ok(exists)
    }

    fn export_files(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let approvals: Records<Value> = Records::new(approvals::KIND);
        let found =
            self.blocking().wait(async |store| approvals.get(store, approvals::KEY).await)?;
        if let Some(found) = found {
            write(&to.approvals, found.row.to_string().as_bytes())?;
        }
        let spending: Records<Value> = Records::new(spending::KIND);
        let found = self.blocking().wait(async |store| spending.get(store, spending::KEY).await)?;
        if let Some(found) = found {
            write(&to.spending, found.row.to_string().as_bytes())?;
        }
        self.export_documents(to)?;
        self.export_keys(to, copied)?;
        let files = FileBlobs::new(&to.outgoing);
        for record in self.blocking().wait(|store| scan(store, outgoing::QUEUE, usize::MAX))? {
            let blob = myclaw_session::NamedBlob { name: record.id.key, digest: None };
            let put = self
                .stores()
                .outgoing
                .open(&blob)
                .and_then(|mut content| files.put(&blob.name, &mut content, ALL));
            put.map_err(|error| failed("copy", &to.outgoing)(std::io::Error::other(error)))?;
            copied.files += 1;
        }
        Ok(())
    }

    fn export_records(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        let ids = self.blocking().wait_for_ids()?;
        let new = myclaw_store::SqliteStore::open(&to.store)?;
        let is_left = |kind: &str| OF_PROCESSES.contains(&kind) || FILES_ELSEWHERE.contains(&kind);
        let mut waiting = Waiting::default();
        let put = |writes: Vec<Write>| {
            self.blocking().wait(async |_| done(&new.commit(writes.into()).await?))
        };
        for id in ids.into_iter().filter(|id| !is_left(&id.kind)) {
            if let Some(record) = self.blocking().wait(|store| store.get(id))? {
                copied.records += 1;
                waiting.add(record).map_or(Ok(()), put)?;
            }
        }
        Ok(put(waiting.rest())?)
    }

    fn export_documents(&self, to: &StateDirectory) -> Result<(), ClusterError> {
        for id in self.blocking().wait_for_ids()?.iter().filter(|id| id.kind == documents::KIND) {
            let Some((collection, name)) = id.key.split_once('/') else { continue };
            let copied = self.documents(collection).read(name).and_then(|document| {
                let text = document.map(|document| document.text).unwrap_or_default();
                let files = to.documents(collection);
                files.change(name, Durability::Synced, &mut |_| text.clone())
            });
            copied.map_err(failed("copy", &to.path))?;
        }
        Ok(())
    }

    fn export_keys(&self, to: &StateDirectory, copied: &mut Copied) -> Result<(), ClusterError> {
        for id in self.blocking().wait_for_ids()?.iter().filter(|id| id.kind == keys::KIND) {
            self.copy_keys(&id.key, copied, |records| (records, to.keys(&id.key)))?;
        }
        Ok(())
    }
}

/// An entry of the list, for a log at `path`.
fn listed(entry: SessionEntry, path: &Path) -> Result<Value, SessionError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let entry = SessionEntry { session_file: name.to_owned(), ..entry };
    serde_json::to_value(entry)
        .map_err(|source| SessionError::Encode { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ClusterError> {
    let new = private_options().write(true).create_new(true).open(path);
    let written = new.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(failed("write", path))
}
