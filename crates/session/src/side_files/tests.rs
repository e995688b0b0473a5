use std::fs::{File, FileTimes};
use std::os::unix::fs::symlink;

use super::*;
use crate::LockWait;

const HOUR: u64 = 60 * 60;

/// A directory of sessions that is removed afterwards.
struct Sessions {
    store: SessionStore,
    _directory: tempfile::TempDir,
}

impl Sessions {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { store: SessionStore::new(directory.path().join("sessions")), _directory: directory }
    }

    fn key(name: &str) -> SessionKey {
        SessionKey::for_cli("main", name)
    }

    /// A side file of `bytes` bytes that was changed that many hours ago.
    fn put(&self, session: &str, name: &str, bytes: u64, hours: u64) -> PathBuf {
        let path = self.store.artifact_directory(&Self::key(session)).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        age(&file, hours);
        path
    }

    fn names(&self, session: &str) -> Vec<String> {
        let directory = self.store.artifact_directory(&Self::key(session));
        let mut names: Vec<String> = fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn trim(&self, session: &str, most: u64) -> RemovedFiles {
        self.store.trim(&Self::key(session), most, &|_| false).unwrap()
    }

    fn trim_all(&self, most: u64) -> RemovedFiles {
        // As if the last look were long ago.
        let _ = fs::remove_file(self.store.directory().join(LOOKED));
        self.store.trim_all(most, &|_| false).unwrap()
    }
}

fn age(file: &File, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(hours * HOUR);
    file.set_times(FileTimes::new().set_modified(then)).unwrap();
}

#[test]
fn the_oldest_files_of_a_session_go_until_it_has_room() {
    let sessions = Sessions::new();
    for (name, hours) in [("a", 50), ("b", 40), ("c", 30), ("d", 20), ("young", 0)] {
        sessions.put("one", name, 100, hours);
    }
    sessions.put("one", "changes/images/x", 10_000, 1_000);
    sessions.put("other", "a", 10_000, 50);
    assert_eq!(sessions.trim("one", 500), RemovedFiles::default());
    assert_eq!(sessions.trim("one", 499), RemovedFiles { files: 1, bytes: 100 });
    assert_eq!(sessions.names("one"), ["b", "c", "changes", "d", "young"]);
    // The young file stays, whatever the limit.
    assert_eq!(sessions.trim("one", 1), RemovedFiles { files: 3, bytes: 300 });
    assert_eq!(sessions.names("one"), ["changes", "young"]);
    assert_eq!(sessions.trim("one", 0), RemovedFiles::default());
    assert_eq!(sessions.names("other"), ["a"]);
    assert_eq!(sessions.trim("none", 1), RemovedFiles::default());
}

#[test]
fn what_a_job_needs_stays() {
    let sessions = Sessions::new();
    let needed = sessions.put("one", "a", 100, 50);
    sessions.put("one", "b", 100, 40);
    let is_needed = |path: &Path| path == needed;
    let key = Sessions::key("one");
    let removed = sessions.store.trim(&key, 100, &is_needed).unwrap();
    assert_eq!(
        (removed, sessions.names("one")),
        (RemovedFiles { files: 1, bytes: 100 }, vec!["a".to_owned()])
    );
}

#[test]
fn a_session_has_a_greatest_number_of_files() {
    let sessions = Sessions::new();
    for number in 0..=MOST_FILES {
        sessions.put("one", &format!("{number:04}"), 1, 50);
    }
    assert_eq!(sessions.trim("one", 0).files, 101);
    assert_eq!(sessions.names("one").len(), 900);
    assert_eq!(sessions.names("one")[0], "0101");
}

#[test]
fn links_are_not_followed_and_directories_are_removed_whole() {
    let sessions = Sessions::new();
    let outside = sessions.store.directory().parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("sub/file"), vec![0; 1_000]).unwrap();
    sessions.put("one", "a/b/c", 100, 50);
    sessions.put("one", "d", 100, 50);
    let directory = sessions.store.artifact_directory(&Sessions::key("one"));
    symlink(&outside, directory.join("a/link")).unwrap();
    age(&File::open(directory.join("a")).unwrap(), 50);
    let removed = sessions.trim("one", 1);
    assert_eq!((removed.files, sessions.names("one").len()), (2, 0));
    assert!(removed.bytes >= 200, "{removed:?}");
    assert!(outside.join("sub/file").exists());
    // The directory of side files may not be a link either.
    fs::remove_dir_all(&directory).unwrap();
    symlink(outside.join("sub"), &directory).unwrap();
    age(&File::open(outside.join("sub/file")).unwrap(), 50);
    assert_eq!(sessions.trim("one", 1), RemovedFiles::default());
    assert_eq!(sessions.trim_all(1), RemovedFiles::default());
    assert!(outside.join("sub/file").exists());
}

#[test]
fn all_sessions_together_have_a_limit_and_open_ones_keep_everything() {
    let sessions = Sessions::new();
    sessions.put("one", "a", 100, 50);
    sessions.put("one", "changes/journal.jsonl", 10, 24 * 31);
    sessions.put("one", "changes/images/x", 1_000, 24 * 31);
    sessions.put("two", "b", 100, 60);
    sessions.put("two", "changes/journal.jsonl", 10, 24 * 29);
    sessions.put("two", "changes/images/x", 1_000, 24 * 90);
    sessions.put("open", "c", 100, 70);
    let open = sessions.store.open(&Sessions::key("open"), LockWait::Fail).unwrap();
    assert_eq!(sessions.trim_all(1_000_000), RemovedFiles::default());
    // The undo of the first session is older than a month; the second one was used since.
    let removed = sessions.trim_all(1_500);
    assert_eq!((removed.files, removed.bytes >= 1_010), (1, true), "{removed:?}");
    assert_eq!(
        (sessions.names("one"), sessions.names("two")),
        (vec!["a".to_owned()], vec!["b".to_owned(), "changes".to_owned()])
    );
    assert_eq!(sessions.trim_all(1).files, 2);
    assert_eq!((sessions.names("one").len(), sessions.names("two").len()), (0, 1));
    assert_eq!(sessions.names("open"), ["c"]);
    drop(open);
    assert_eq!(sessions.trim_all(1).files, 1);
    assert!(sessions.names("open").is_empty());
}

#[test]
fn all_sessions_are_looked_at_once_in_an_hour() {
    let sessions = Sessions::new();
    sessions.put("one", "a", 100, 50);
    let trim = || sessions.store.trim_all(1, &|_| false).unwrap().files;
    assert_eq!(trim(), 1);
    sessions.put("one", "b", 100, 50);
    assert_eq!(trim(), 0);
    let looked = File::options().write(true).open(sessions.store.directory().join(LOOKED));
    age(&looked.unwrap(), 2);
    assert_eq!((trim(), trim()), (1, 0));
}
