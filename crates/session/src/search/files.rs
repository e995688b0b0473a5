//! Selects the files that a search reads, and how much of each.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink};

use super::SearchScope;
use crate::error::{IoContext, SessionError};
use crate::history::HISTORY_MARK;
use crate::reader::{Positioned, read_header};
use crate::store::LOG_EXTENSION;
use crate::{SessionKey, SessionStore};

/// A file, and the session to which its messages belong.
#[derive(Debug)]
pub(super) struct SearchedFile {
    pub(super) path: PathBuf,
    pub(super) key: SessionKey,
    /// How many bytes of it to search.
    end: u64,
}

impl SearchedFile {
    pub(super) fn search(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        lines: impl Sink<Error = io::Error>,
    ) -> io::Result<()> {
        let file = File::open(&self.path)?;
        searcher.search_reader(matcher, Positioned::until(&file, self.end), lines)
    }
}

/// The logs of all sessions within `scope`, and the history files that are not the log of any of them because the
/// parent was deleted or is out of scope. No file is read twice, however many forks share it.
pub(super) fn files_to_search(
    store: &SessionStore,
    scope: &SearchScope,
) -> Result<Vec<SearchedFile>, SessionError> {
    let directory = store.directory();
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let listing = std::fs::read_dir(directory).context("list the sessions directory", directory)?;
    let mut files = Vec::new();
    let mut logs = HashSet::new();
    let mut histories = Vec::new();
    for found in listing.filter_map(Result::ok) {
        let path = found.path();
        if path.extension() == Some(OsStr::new(LOG_EXTENSION)) {
            if let Some(key) = key_of_log(&path).filter(|key| scope.contains(key)) {
                logs.insert(found.ino());
                files.push(SearchedFile { path, key, end: u64::MAX });
            }
        } else if let Some((log, number)) = log_of_history(&found) {
            histories.push((found.ino(), log, number, path));
        }
    }
    files.extend(orphaned_histories(histories, &logs, scope));
    Ok(files)
}

impl SearchScope {
    fn contains(&self, key: &SessionKey) -> bool {
        self.agent_id.as_ref().is_none_or(|agent| key.parts().agent_id == *agent)
            && self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }
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
        let file = SearchedFile { path, key, end };
        let known = longest.entry(inode).or_insert_with(|| SearchedFile {
            path: file.path.clone(),
            key: file.key.clone(),
            end,
        });
        if known.end < end {
            *known = file;
        }
    }
    longest.into_values()
}
