//! A session is deleted between two statements of somebody who reads it: the reader gets all of it or an error, and never a
//! part that seems to be all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use myclaw_session::{
    About, Case, Catalog as _, Entry, EntryId, LockWait, MemoryBlobs, MetaPatch, PruneScope,
    SearchQuery, SearchReport, SearchScope, SessionError, SessionKey, Sessions as _, TailLimit,
    UpdatedAt,
};
use myclaw_store_postgres::{Options, PostgresSessions, Sealing};

use crate::proxy::{Cut, Fate, Proxy};
use crate::server::{block_on, connect, database, server};
use crate::subjects::open_with;
use crate::values::{Push as _, assistant, user, work};

/// More rows than are read at first.
const ROWS: usize = 100;
/// Which statement with the mark waits.
const FIRST: Fate = |number| (number == 0).then_some(Cut::Hold);
const SECOND: Fate = |number| (number == 1).then_some(Cut::Hold);
/// Texts of statements.
const SEGMENT: &[u8] = b"WHERE segment.session = $1 AND from_seq <=";
const BACKWARD: &[u8] = b"AND seq >= $2 - $3";
const FORWARD: &[u8] = b"least($4, $2 + $3)";

struct Scene {
    url: String,
    home: tempfile::TempDir,
    objects: MemoryBlobs,
    sessions: PostgresSessions,
}

impl Scene {
    /// `None` without a server.
    fn new() -> Option<Self> {
        let url = block_on(database(server()?));
        let (home, objects) = (tempfile::tempdir().unwrap(), MemoryBlobs::default());
        let sessions = Self::open(&url, &home, &objects);
        Some(Self { url, home, objects, sessions })
    }

    fn open(url: &str, home: &tempfile::TempDir, objects: &MemoryBlobs) -> PostgresSessions {
        let sealing =
            Sealing { kept: 3, least: 1, most: 1, only_summarised: false, ..Sealing::default() };
        let options = Options { lease: Duration::from_secs(600), sealing, ..Options::default() };
        let sessions = open_with(url, home.path(), &options);
        sessions.put_contents_in(std::sync::Arc::new(objects.clone()));
        sessions
    }

    fn write(&self, key: &SessionKey) {
        let mut log = self.sessions.open(key, LockWait::Fail).unwrap();
        let rows: Vec<Entry> = (0..ROWS / 2)
            .flat_map(|row| [user(&format!("needle {row}")).into(), assistant("a").into()])
            .collect();
        log.push(&rows).unwrap();
    }

    /// Moves all rows but the last three to the object storage.
    fn seal(&self) {
        self.execute("INSERT INTO myclaw.sealable (session) SELECT id FROM myclaw.session");
        assert!(self.sessions.seal_old_parts().unwrap() > 0);
    }

    fn execute(&self, sql: &str) {
        block_on(async { connect(&self.url).await.batch_execute(sql).await.unwrap() });
    }

    /// What `work` gives on another machine, if `meanwhile` comes before its statement with `mark`.
    fn between<T: Send>(
        &self,
        (mark, fate): (&'static [u8], Fate),
        work: impl FnOnce(&PostgresSessions) -> T + Send,
        meanwhile: impl FnOnce(&PostgresSessions),
    ) -> T {
        let port = server().unwrap().port();
        let proxy = Proxy::start(port, mark, fate);
        let through = self.url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port));
        let far = Self::open(&through, &self.home, &self.objects);
        let held = (0..).find(|number| fate(*number).is_some()).unwrap();
        std::thread::scope(|scope| {
            let working = scope.spawn(|| work(&far));
            while proxy.commits.load(Ordering::SeqCst) <= held {
                assert!(!working.is_finished(), "it came to no such statement");
                std::thread::sleep(Duration::from_millis(1));
            }
            meanwhile(&self.sessions);
            proxy.is_released.store(true, Ordering::SeqCst);
            working.join().unwrap()
        })
    }

    /// The same while the session is deleted.
    fn deleted<T: Send>(
        &self,
        at: (&'static [u8], Fate),
        work: impl FnOnce(&PostgresSessions) -> T + Send,
    ) -> T {
        self.between(at, work, |sessions| assert!(sessions.delete(&self::work()).unwrap()))
    }
}

fn is_gone<T>(result: Result<T, SessionError>) -> bool {
    matches!(result, Err(SessionError::NoSuchSession { key }) if key == work())
}

fn newest(sessions: &PostgresSessions) -> Result<usize, SessionError> {
    let reader = sessions.read(&work())?.unwrap();
    reader.last_messages(10_000).map(|messages| messages.len())
}

fn all(sessions: &PostgresSessions) -> Result<usize, SessionError> {
    let reader = sessions.read(&work())?.unwrap();
    let entries: Result<Vec<Entry>, SessionError> = reader.entries().collect();
    entries.map(|entries| entries.len())
}

fn exported(sessions: &PostgresSessions) -> Result<usize, SessionError> {
    let mut lines = 0;
    let mut count = |_: &str| {
        lines += 1;
        Ok(())
    };
    sessions.visit_lines(&work(), &mut count).map(|_| lines)
}

fn found(sessions: &PostgresSessions) -> SearchReport {
    let query = SearchQuery::text("needle", Case::Ignored).unwrap();
    sessions.search(&query, &SearchScope::default(), 5).unwrap()
}

#[test]
fn who_reads_a_session_that_is_deleted_gets_no_part_of_it() {
    let Some(scene) = Scene::new() else { return };
    type Read = fn(&PostgresSessions) -> Result<usize, SessionError>;
    let of_table: [(&[u8], Fate, Read); 3] =
        [(BACKWARD, SECOND, newest), (FORWARD, SECOND, all), (FORWARD, SECOND, exported)];
    for (mark, fate, read) in of_table {
        scene.write(&work());
        let result = scene.deleted((mark, fate), read);
        assert!(is_gone(result), "{}", String::from_utf8_lossy(mark));
    }
    let sealed: [Read; 3] = [newest, all, exported];
    for (number, read) in sealed.into_iter().enumerate() {
        scene.write(&work());
        scene.seal();
        assert!(is_gone(scene.deleted((SEGMENT, FIRST), read)), "{number}");
    }
}

/// The rows that are missing are named, and no shorter log is given, where somebody has removed them by hand.
#[test]
fn a_log_with_a_missing_row_is_not_taken_for_a_shorter_one() {
    let Some(scene) = Scene::new() else { return };
    scene.write(&work());
    scene.execute("DELETE FROM myclaw.entry WHERE seq IN (1, 50)");
    for (read, place) in [(newest as fn(&_) -> _, 50), (all, 1), (exported, 1)] {
        let said = read(&scene.sessions).unwrap_err().to_string();
        let wanted = format!("row {place} of session {} is missing", work());
        assert!(said.contains(&wanted) && said.contains("restore the database"), "{said}");
    }
}

/// Each of these reads with one statement, which finds nothing in a session without a title, a summary or that message either.
#[test]
fn what_a_session_never_had_is_told_from_what_was_deleted() {
    let Some(scene) = Scene::new() else { return };
    scene.write(&work());
    let reader = scene.sessions.read(&work()).unwrap().unwrap();
    let unknown = Some(EntryId::generate());
    assert_eq!(reader.about().unwrap(), About::default());
    assert_eq!(reader.last_compaction().unwrap(), None);
    assert_eq!(reader.messages_before(unknown, 1).unwrap(), None);
    assert!(scene.sessions.delete(&work()).unwrap());
    assert!(is_gone(reader.about()));
    assert!(is_gone(reader.last_compaction()));
    assert!(is_gone(reader.messages_before(unknown, 1)));
}

#[test]
fn a_fork_of_a_session_that_is_deleted_meanwhile_is_none() {
    let Some(scene) = Scene::new() else { return };
    let to = SessionKey::for_cli("main", "fork");
    for is_sealed in [false, true] {
        scene.write(&work());
        if is_sealed {
            scene.seal();
        }
        let mark: &[u8] = b"row_number() OVER (ORDER BY seq)";
        assert!(is_gone(scene.deleted((mark, FIRST), |far| far.fork(&work(), None, &to))));
        assert!(scene.sessions.read(&to).unwrap().is_none());
        assert_eq!(scene.sessions.entry(&to).unwrap(), None);
        assert!(!scene.sessions.is_in_use(&to).unwrap());
    }
}

/// What a fork shares with its parent is found in the parent, or in the fork when the parent is gone.
#[test]
fn a_search_finds_no_part_of_a_session_that_is_deleted_meanwhile() {
    let Some(scene) = Scene::new() else { return };
    let mark: &[u8] = b"grams @>";
    scene.write(&work());
    scene.seal();
    assert_eq!(found(&scene.sessions).matches[&work()], ROWS as u64 / 2);
    let report = scene.deleted((mark, FIRST), found);
    assert!(report.matches.is_empty() && report.hits.is_empty(), "{report:?}");
    assert!(report.unreadable.is_empty(), "{report:?}");

    let fork = SessionKey::for_cli("main", "fork");
    scene.write(&work());
    scene.sessions.fork(&work(), None, &fork).unwrap();
    let report = scene.deleted((mark, FIRST), found);
    assert_eq!(report.matches.into_iter().collect::<Vec<_>>(), [(fork, ROWS as u64 / 2)]);
}

#[test]
fn a_session_that_gets_a_turn_while_old_ones_are_deleted_stays() {
    let Some(scene) = Scene::new() else { return };
    let scope = PruneScope::WithTranscripts;
    let prune = |sessions: &PostgresSessions| sessions.prune(Duration::from_secs(60), scope);
    let take: &[u8] = b"greatest(epoch + 1";
    for is_written in [true, false] {
        scene.write(&work());
        let patch = MetaPatch { updated_at: UpdatedAt::At(1), ..MetaPatch::default() };
        scene.sessions.update(&work(), patch).unwrap();
        let report = scene.between((take, FIRST), prune, |sessions| {
            if is_written {
                sessions.update(&work(), MetaPatch::default()).unwrap();
            }
        });
        let report = report.unwrap();
        assert!(report.kept.is_empty(), "{report:?}");
        assert_eq!(report.removed.is_empty(), is_written);
        assert_eq!(scene.sessions.exists(&work()), is_written);
        scene.sessions.delete(&work()).unwrap();
    }
}

#[test]
fn what_is_forgotten_goes_on_when_a_session_is_deleted_meanwhile() {
    let Some(scene) = Scene::new() else { return };
    let forget = |sessions: &PostgresSessions| {
        sessions.change_kept(LockWait::Fail, &mut |bytes| {
            let is_there =
                bytes.starts_with(b"{") && bytes.windows(6).any(|word| word == b"needle");
            // The length stays.
            bytes.iter_mut().filter(|byte| **byte == b'n').for_each(|byte| *byte = b'm');
            is_there
        })
    };
    scene.write(&work());
    scene.seal();
    assert!(!scene.deleted((SEGMENT, FIRST), forget).unwrap());
    // Between the look and the change.
    scene.write(&work());
    let take: &[u8] = b"greatest(epoch + 1";
    assert!(!scene.deleted((take, FIRST), forget).unwrap());
    assert_eq!(found(&scene.sessions).matches.len(), 0);
}

/// An owner that has lost its session reads no other one with the same key.
#[test]
fn who_has_lost_a_session_that_was_deleted_reads_nothing_as_its_end() {
    let Some(scene) = Scene::new() else { return };
    scene.write(&work());
    let far = Scene::open(&scene.url, &scene.home, &scene.objects);
    for is_written_again in [false, true] {
        let mut log = far.open(&work(), LockWait::Fail).unwrap();
        scene.sessions.lose(&work()).unwrap();
        scene.sessions.delete(&work()).unwrap();
        if is_written_again {
            scene.write(&work());
        }
        let tail = log.tail(TailLimit::UNLIMITED);
        assert!(matches!(tail, Err(SessionError::Fenced { .. })), "{is_written_again}");
        drop(log);
        if !is_written_again {
            scene.write(&work());
        }
    }
}
