//! Selects the files that a search reads, and how much of each.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use grep_searcher::{Searcher, Sink};
use myclaw_files::portable::{DirEntryExt, OsStrExt};

use super::directory::OpenDirectory;
use super::filters::{Filter, SearchFilters};
use super::stamp::LogStamp;
use super::{SearchQuery, SearchScope};
use crate::backward::BLOCK;
use crate::error::{IoContext, SessionError};
use crate::history::HISTORY_MARK;
use crate::reader::{Positioned, read_header};
use crate::store::LOG_EXTENSION;
use crate::{SessionKey, SessionStore};

/// Files up to this size are read as a whole: most are, and one buffer serves all of them.
const READ_WHOLE_BYTES: usize = 4 << 20;

/// A file of messages.
#[derive(Debug)]
pub(super) struct SearchedFile {
    /// The directory that it is in.
    directory: Arc<OpenDirectory>,
    pub(super) path: PathBuf,
    pub(super) inode: u64,
    /// The session to which the messages belong, once it is known.
    key: OnceLock<SessionKey>,
    /// How many bytes of it to search.
    end: u64,
}

impl SearchedFile {
    /// The session to which its messages belong; `None` if it is the file of no session. Finding that out costs about as
    /// much as a search of a small file, and most files match nothing.
    pub(super) fn key(&self) -> Option<SessionKey> {
        if self.key.get().is_none()
            && let Some(key) = key_of_log(&self.path)
        {
            // Another thread may have found the same.
            let _ = self.key.set(key);
        }
        self.key.get().cloned()
    }

    /// Passes the lines that may match to `lines`. `buffer` is for the content of files, one after the other.
    pub(super) fn search(
        &self,
        (searcher, buffer): (&mut Searcher, &mut Vec<u8>),
        query: &SearchQuery,
        mut filters: Option<(&SearchFilters, &mut Vec<(u64, Filter)>)>,
        lines: impl Sink<Error = io::Error>,
    ) -> io::Result<()> {
        let file = self.open()?;
        // What is written after this is neither searched nor learned as part of this state of the file.
        let stamp = LogStamp::from(&file.metadata()?);
        let length = stamp.length().min(self.end);
        let Some(content) = read_whole(&file, length, buffer)? else {
            let content = Positioned::until(&file, self.end);
            return searcher.search_reader(query.prefilter(), content, lines);
        };
        if let Some((filters, learned)) = &mut filters
            && self.end == u64::MAX
            && !filters.learn((self.inode, stamp, content), Some(query), learned)
        {
            return Ok(());
        }
        searcher.search_slice(query.prefilter(), content, lines)
    }

    /// Puts what the file holds into `learned`, unless it is one of those that are not read as a whole.
    pub(super) fn learn(
        &self,
        filters: &SearchFilters,
        buffer: &mut Vec<u8>,
        learned: &mut Vec<(u64, Filter)>,
    ) -> io::Result<()> {
        let file = self.open()?;
        let stamp = LogStamp::from(&file.metadata()?);
        if self.end == u64::MAX
            && let Some(content) = read_whole(&file, stamp.length(), buffer)?
        {
            filters.learn((self.inode, stamp, content), None, learned);
        }
        Ok(())
    }

    fn open(&self) -> io::Result<File> {
        self.directory.file(self.name()?)
    }

    /// The present state of the file, of which a link is not followed.
    pub(super) fn stamp(&self) -> io::Result<LogStamp> {
        self.directory.stamp(self.name()?)
    }

    fn name(&self) -> io::Result<&OsStr> {
        self.path.file_name().ok_or_else(|| io::ErrorKind::InvalidFilename.into())
    }
}

/// The first `length` bytes, in `buffer`, or all if there are fewer; `None` if that is more than is read as a whole.
fn read_whole<'a>(
    file: &File,
    length: u64,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= READ_WHOLE_BYTES)
    else {
        return Ok(None);
    };
    if buffer.len() < length {
        buffer.resize(length.next_multiple_of(BLOCK), 0);
    }
    let (mut content, mut read) = (Positioned::until(file, length as u64), 0);
    while read < length {
        match content.read(&mut buffer[read..length]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(&buffer[..read]))
}

/// The logs of all sessions within `scope`, and the history files that are not the log of any of them because the
/// parent was deleted or is out of scope. No file is read twice, however many forks share it. Without a limit of the
/// scope there may be files of no session among them.
pub(super) fn files_to_search(
    store: &SessionStore,
    scope: &SearchScope,
) -> Result<Vec<SearchedFile>, SessionError> {
    let directory = store.directory();
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let listing = std::fs::read_dir(directory).context("list the sessions directory", directory)?;
    let opened =
        OpenDirectory::open(directory).context("list the sessions directory", directory)?;
    let opened = Arc::new(opened);
    let mut files = Vec::new();
    let mut logs = HashSet::new();
    let mut histories = Vec::new();
    for found in listing.filter_map(Result::ok) {
        let path = found.path();
        if path.extension() == Some(OsStr::new(LOG_EXTENSION)) {
            let key = match scope.is_everything() {
                true if is_like_a_log(&path) => OnceLock::new(),
                true => continue,
                false => match key_of_log(&path).filter(|key| scope.contains(key)) {
                    Some(key) => OnceLock::from(key),
                    None => continue,
                },
            };
            logs.insert(found.ino());
            let directory = Arc::clone(&opened);
            files.push(SearchedFile { directory, path, inode: found.ino(), key, end: u64::MAX });
        } else if let Some((log, number)) = log_of_history(&found) {
            histories.push((found.ino(), log, number, path));
        }
    }
    files.extend(orphaned_histories(&opened, histories, &logs, scope));
    Ok(files)
}

impl SearchScope {
    pub(super) fn is_everything(&self) -> bool {
        self.agent_id.is_none() && self.keys.is_none()
    }

    pub(crate) fn contains(&self, key: &SessionKey) -> bool {
        self.agent_id.as_ref().is_none_or(|agent| key.parts().agent_id == *agent)
            && self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }
}

/// Whether the name begins like that of a log. All keys begin with `agent:`.
fn is_like_a_log(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"agent__"))
}

/// The session key of a log.
fn key_of_log(path: &Path) -> Option<SessionKey> {
    let from_name = path.file_stem().and_then(OsStr::to_str).and_then(SessionKey::from_slug);
    from_name.or_else(|| {
        // A shortened name does not identify the key.
        let header = read_header(&File::open(path).ok()?).ok()??;
        SessionKey::parse_canonical(&header.session_key)
    })
}

/// The fork to which a history file belongs, and the file's number.
fn log_of_history(found: &DirEntry) -> Option<(PathBuf, usize)> {
    let name = found.file_name().into_string().ok()?;
    let (slug, number) = name.rsplit_once(HISTORY_MARK)?;
    let log = found.path().with_file_name(format!("{slug}.{LOG_EXTENSION}"));
    Some((log, number.parse().ok()?))
}

/// For each file that only histories keep: the history that uses most of it.
fn orphaned_histories(
    directory: &Arc<OpenDirectory>,
    histories: Vec<(u64, PathBuf, usize, PathBuf)>,
    logs: &HashSet<u64>,
    scope: &SearchScope,
) -> impl Iterator<Item = SearchedFile> {
    let mut longest: HashMap<u64, SearchedFile> = HashMap::new();
    for (inode, log, number, path) in histories {
        if logs.contains(&inode) {
            continue;
        }
        let Some(key) = key_of_log(&log).filter(|key| scope.contains(key)) else { continue };
        let header = File::open(&log).ok().and_then(|log| read_header(&log).ok().flatten());
        let Some(&end) = header.as_ref().and_then(|header| header.history.get(number)) else {
            continue;
        };
        if longest.get(&inode).is_none_or(|known| known.end < end) {
            let (directory, key) = (Arc::clone(directory), OnceLock::from(key));
            longest.insert(inode, SearchedFile { directory, path, inode, key, end });
        }
    }
    longest.into_values()
}
