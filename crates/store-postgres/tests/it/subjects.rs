//! What the suites are about here: sessions in a database of their own, and a second opening of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use myclaw_session::{Catalog, LockWait, MemoryBlobs, OpenSession, Sessions, SideFiles, TailLimit};
use myclaw_store::Partition;
use myclaw_store_postgres::{Address, Options, PostgresSessions, Sealing};

use crate::server::{block_on, connect, databases};
use crate::values::{texts, work};

pub(crate) struct Subject {
    home: tempfile::TempDir,
    url: String,
    lost: PostgresSessions,
    sealer: Option<Sealer>,
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
}

/// A store with both of its faces.
pub(crate) struct Faces {
    _home: tempfile::TempDir,
    _sealer: Option<Sealer>,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) side_files: Arc<dyn SideFiles>,
    pub(crate) catalog: Arc<dyn Catalog>,
}

/// Opens the sessions in a database.
pub(crate) fn open(url: &str, scratch: &Path) -> PostgresSessions {
    open_with(url, scratch, &Options::default())
}

pub(crate) fn open_with(url: &str, scratch: &Path, options: &Options) -> PostgresSessions {
    let address = Address::parse(url).unwrap();
    PostgresSessions::open(address, options, &Partition::MAIN, scratch).unwrap()
}

/// So many are enough for a test. Segments of one row make everything slow.
const MOST_SEGMENTS: usize = 50;

/// Seals all rows but the newest of each session at once and again and again, while a suite goes on.
struct Sealer {
    objects: MemoryBlobs,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sealer {
    fn start(url: &str, sessions: &PostgresSessions) -> Self {
        let all = "
            CREATE FUNCTION public.seal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO myclaw.sealable (session) VALUES (NEW.session)
                    ON CONFLICT (session) DO UPDATE SET tried = '-infinity';
                RETURN NULL;
            END $$;
            CREATE TRIGGER seal AFTER INSERT ON myclaw.entry FOR EACH ROW EXECUTE FUNCTION public.seal()";
        block_on(async { connect(url).await.batch_execute(all).await.unwrap() });
        let (objects, is_over) = (MemoryBlobs::default(), Arc::new(AtomicBool::new(false)));
        sessions.put_contents_in(Arc::new(objects.clone()));
        let (sessions, until) = (sessions.clone(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            while count < MOST_SEGMENTS && !until.load(Ordering::SeqCst) {
                // The suites delete sessions meanwhile.
                count += sessions.seal_old_parts().unwrap_or_default();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { objects, is_over, thread: Some(thread) }
    }

    fn options() -> Options {
        let sealing = Sealing {
            kept: 1,
            least: 1,
            most: 1,
            again: Duration::ZERO,
            only_summarised: false,
            ..Sealing::default()
        };
        Options { sealing, ..Options::default() }
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The sessions of each of the databases, and of one more in which everything is sealed at once.
fn each_store(check: impl Fn(&str, PostgresSessions, Option<Sealer>, tempfile::TempDir)) {
    let mut all: Vec<(String, bool)> = databases().into_iter().map(|url| (url, false)).collect();
    all.extend(databases().into_iter().next().map(|url| (url, true)));
    for (url, is_sealed) in all {
        let home = tempfile::tempdir().unwrap();
        let options = if is_sealed { Sealer::options() } else { Options::default() };
        let store = open_with(&url, &home.path().join("scratch"), &options);
        let sealer = is_sealed.then(|| Sealer::start(&url, &store));
        check(&url, store, sealer, home);
    }
}

impl Subject {
    pub(crate) fn directory(&self) -> PathBuf {
        self.home.path().join("sessions")
    }

    pub(crate) fn reopened(&self, _directory: &Path) -> Arc<dyn Sessions> {
        let sessions = open(&self.url, &self.home.path().join("scratch"));
        if let Some(sealer) = &self.sealer {
            sessions.put_contents_in(Arc::new(sealer.objects.clone()));
        }
        Arc::new(sessions)
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
    each_store(|url, store, sealer, home| {
        check(&Subject {
            home,
            url: url.to_owned(),
            lost: store.clone(),
            sealer,
            side_files: Arc::new(store.clone()),
            store: Arc::new(store),
        });
    });
}

pub(crate) fn of_each_that_keeps_each_append(check: impl Fn(&Subject)) {
    of_each(check);
}

/// What is said of files only.
pub(crate) fn of_each_in_files(_check: impl Fn(&Subject)) {}

pub(crate) fn of_each_catalog(check: impl Fn(&Faces)) {
    each_store(|_, store, sealer, home| {
        let store = Arc::new(store);
        check(&Faces {
            _home: home,
            _sealer: sealer,
            sessions: Arc::clone(&store) as Arc<dyn Sessions>,
            side_files: Arc::clone(&store) as Arc<dyn SideFiles>,
            catalog: store,
        });
    });
}
