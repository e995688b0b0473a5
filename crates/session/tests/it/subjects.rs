//! The stores that the conformance suites are about.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_session::{
    Catalog, JsonSessions, LockWait, MemorySessions, OpenSession, SessionStore, Sessions,
    SideFiles, TailLimit,
};

use crate::values::{texts, work};

/// A store, and how another process opens the same session.
pub(crate) struct Subject {
    home: tempfile::TempDir,
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
    reopen: fn(&Path, &dyn Sessions) -> Arc<dyn Sessions>,
    /// Takes the session from its owner.
    lose: fn(&Subject),
}

impl Subject {
    pub(crate) fn directory(&self) -> PathBuf {
        self.home.path().join("sessions")
    }

    /// The store as a process that starts now sees it.
    pub(crate) fn restarted(&self) -> Arc<dyn Sessions> {
        self.reopened(&self.directory())
    }

    pub(crate) fn open(&self) -> Box<dyn OpenSession> {
        self.store.open(&work(), LockWait::Fail).unwrap()
    }

    /// The store as a process sees it that finds these files.
    pub(crate) fn reopened(&self, directory: &Path) -> Arc<dyn Sessions> {
        (self.reopen)(directory, &*self.store)
    }

    /// Takes the session from its owner.
    pub(crate) fn lose(&self) {
        (self.lose)(self);
    }

    fn remove_lock_file(&self) {
        let path = PathBuf::from(self.store.describe(&work())).with_extension("lock");
        std::fs::remove_file(path).unwrap();
    }

    pub(crate) fn texts(store: &dyn Sessions) -> Vec<String> {
        let mut log = store.open(&work(), LockWait::Fail).unwrap();
        let tail = log.tail(TailLimit::UNLIMITED).unwrap();
        texts(&tail.messages).into_iter().map(str::to_owned).collect()
    }
}

/// Runs `check` over each store.
pub(crate) fn of_each(check: impl Fn(&Subject)) {
    of_each_in_files(&check);
    let home = tempfile::tempdir().unwrap();
    let store = MemorySessions::new(home.path().join("sessions"));
    REOPENED.set(Some(store.clone()));
    check(&Subject {
        home,
        side_files: Arc::new(store.clone()),
        store: Arc::new(store),
        reopen: |_, _| Arc::new(REOPENED.with_borrow(|store| store.clone().unwrap())),
        lose: |_| REOPENED.with_borrow(|store| store.as_ref().unwrap().lose(&work())),
    });
}

/// The same without the documents, which keep an append of an owner in its process until it is synced.
pub(crate) fn of_each_that_keeps_each_append(check: impl Fn(&Subject)) {
    of_each(|subject| {
        if !subject.store.describe(&work()).ends_with(".json") {
            check(subject);
        }
    });
}

thread_local! {
    /// The sessions in memory that the present check is about: a process that starts now would see none.
    static REOPENED: RefCell<Option<MemorySessions>> = const { RefCell::new(None) };
}

/// Runs `check` over each store that outlives the process.
pub(crate) fn of_each_in_files(check: impl Fn(&Subject)) {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(SessionStore::new(home.path().join("sessions")));
    check(&Subject {
        home,
        side_files: Arc::<_>::clone(&store) as Arc<dyn SideFiles>,
        store,
        reopen: |directory, _before| Arc::new(SessionStore::new(directory)),
        lose: Subject::remove_lock_file,
    });
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(JsonSessions::new(home.path().join("sessions")));
    check(&Subject {
        home,
        side_files: Arc::<_>::clone(&store) as Arc<dyn SideFiles>,
        store,
        reopen: |directory, before| {
            let store = JsonSessions::new(directory);
            let id = id_in_path(before);
            assert_eq!(store.resume(&work(), &id), id, "the session is found by its id");
            Arc::new(store)
        },
        lose: Subject::remove_lock_file,
    });
}

fn id_in_path(store: &dyn Sessions) -> String {
    Path::new(&store.describe(&work())).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// A store with both of its faces.
pub(crate) struct Faces {
    _home: tempfile::TempDir,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
    pub(crate) catalog: Arc<dyn Catalog>,
}

impl Faces {
    fn of<T: Sessions + Catalog + SideFiles + 'static>(home: tempfile::TempDir, store: T) -> Self {
        let store = Arc::new(store);
        let side_files = Arc::clone(&store) as Arc<dyn SideFiles>;
        let sessions = Arc::clone(&store) as Arc<dyn Sessions>;
        Self { _home: home, sessions, side_files, catalog: store }
    }
}

pub(crate) fn of_each_catalog(check: impl Fn(&Faces)) {
    let home = tempfile::tempdir().unwrap();
    let store = SessionStore::new(home.path().join("sessions"));
    check(&Faces::of(home, store));
    let home = tempfile::tempdir().unwrap();
    let store = MemorySessions::new(home.path().join("scratch"));
    check(&Faces::of(home, store));
}
