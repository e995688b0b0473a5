//! What the suites are about here: sessions in a database of their own, and a second opening of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_session::{Catalog, LockWait, OpenSession, Sessions, SideFiles, TailLimit};
use myclaw_store::Partition;
use myclaw_store_postgres::{Address, Options, PostgresSessions};

use crate::server::databases;
use crate::values::{texts, work};

pub(crate) struct Subject {
    home: tempfile::TempDir,
    url: String,
    lost: PostgresSessions,
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
}

/// A store with both of its faces.
pub(crate) struct Faces {
    _home: tempfile::TempDir,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
    pub(crate) catalog: Arc<dyn Catalog>,
}

/// Opens the sessions in a database.
pub(crate) fn open(url: &str, scratch: &Path) -> PostgresSessions {
    let address = Address::parse(url).unwrap();
    PostgresSessions::open(address, &Options::default(), &Partition::MAIN, scratch).unwrap()
}

impl Subject {
    pub(crate) fn directory(&self) -> PathBuf {
        self.home.path().join("sessions")
    }

    pub(crate) fn reopened(&self, _directory: &Path) -> Arc<dyn Sessions> {
        Arc::new(open(&self.url, &self.home.path().join("scratch")))
    }

    /// The sessions as a process on another machine sees them.
    pub(crate) fn restarted(&self) -> Arc<dyn Sessions> {
        self.reopened(&self.directory())
    }

    pub(crate) fn lose(&self) {
        self.lost.lose(&work()).unwrap();
    }

    pub(crate) fn open(&self) -> Box<dyn OpenSession> {
        self.store.open(&work(), LockWait::Fail).unwrap()
    }

    pub(crate) fn texts(store: &dyn Sessions) -> Vec<String> {
        let mut log = store.open(&work(), LockWait::Fail).unwrap();
        let tail = log.tail(TailLimit::UNLIMITED).unwrap();
        texts(&tail.messages).into_iter().map(str::to_owned).collect()
    }
}

pub(crate) fn of_each(check: impl Fn(&Subject)) {
    for url in databases() {
        let home = tempfile::tempdir().unwrap();
        let store = open(&url, &home.path().join("scratch"));
        check(&Subject {
            home,
            url,
            lost: store.clone(),
            side_files: Arc::new(store.clone()),
            store: Arc::new(store),
        });
    }
}

pub(crate) fn of_each_that_keeps_each_append(check: impl Fn(&Subject)) {
    of_each(check);
}

/// What is said of files only.
pub(crate) fn of_each_in_files(_check: impl Fn(&Subject)) {}

pub(crate) fn of_each_catalog(check: impl Fn(&Faces)) {
    for url in databases() {
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(open(&url, &home.path().join("scratch")));
        check(&Faces {
            _home: home,
            sessions: Arc::clone(&store) as Arc<dyn Sessions>,
            side_files: Arc::clone(&store) as Arc<dyn SideFiles>,
            catalog: store,
        });
    }
}
