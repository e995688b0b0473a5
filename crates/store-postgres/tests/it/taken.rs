//! A search for a message reads the log only if it is there.

use std::ops::ControlFlow;

use myclaw_session::{
    Catalog as _, Entry, EntryId, Keeper, LockWait, MessageSearch, QueuedMessage, SessionKey,
    Sessions as _, TranscriptMessage, rows,
};
use myclaw_store_postgres::PostgresSessions;

use crate::server::{block_on, connect, database, server};
use crate::subjects::open;
use crate::values::{Push as _, assistant, taking, user, waiting, work};

struct Scene {
    url: String,
    _home: tempfile::TempDir,
    sessions: PostgresSessions,
    taken: QueuedMessage,
}

/// Looks for a message, and counts the rows until it is found.
struct Search {
    id: EntryId,
    rows: usize,
    is_found: bool,
}

impl MessageSearch for Search {
    fn ids(&self) -> &[EntryId] {
        std::slice::from_ref(&self.id)
    }

    fn waiting(&mut self, _: &[QueuedMessage]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: TranscriptMessage) -> ControlFlow<()> {
        self.rows += 1;
        self.is_found |= row.id == self.id;
        ControlFlow::Continue(())
    }

    fn has_found(&self, id: EntryId) -> bool {
        self.is_found && id == self.id
    }
}

impl Scene {
    /// A session that has taken a message, with 99 rows behind it. `None` without a server.
    fn new() -> Option<Self> {
        let url = block_on(database(server()?));
        let home = tempfile::tempdir().unwrap();
        let sessions = open(&url, home.path());
        let taken = waiting("q", Keeper::Inbox);
        let mut log = sessions.open(&work(), LockWait::Fail).unwrap();
        log.push(&[taking(&taken).into()]).unwrap();
        log.push(&(0..99).map(|_| assistant("a").into()).collect::<Vec<Entry>>()).unwrap();
        drop(log);
        Some(Self { url, _home: home, sessions, taken })
    }

    fn execute(&self, sql: &str) {
        block_on(async { connect(&self.url).await.batch_execute(sql).await }).unwrap();
    }

    /// How many rows are read for a message; `None` if it is not there.
    fn rows(&self, key: &SessionKey, id: EntryId) -> Option<usize> {
        let mut search = Search { id, rows: 0, is_found: false };
        self.sessions.whereabouts(key, &mut search).unwrap();
        search.is_found.then_some(search.rows)
    }

    /// That a message is found that the log has taken, and another one is missed without reading a row.
    fn check(&self, key: &SessionKey) {
        self.check_without_log(key);
        assert_eq!(self.rows(key, self.taken.id), Some(100));
    }

    fn check_without_log(&self, key: &SessionKey) {
        self.execute("ALTER TABLE myclaw.entry RENAME TO hidden");
        assert_eq!(self.rows(key, EntryId::generate()), None);
        self.execute("ALTER TABLE myclaw.hidden RENAME TO entry");
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::for_cli("main", name)
}

#[test]
fn no_row_is_read_for_a_message_that_the_log_has_not_taken() {
    let Some(scene) = Scene::new() else { return };
    scene.check(&work());
    // One that is new is found with the row that takes it.
    let newest = QueuedMessage { id: user("").id, ..scene.taken.clone() };
    let mut log = scene.sessions.open(&work(), LockWait::Fail).unwrap();
    log.push(&[taking(&newest).into(), assistant("a").into()]).unwrap();
    assert_eq!(scene.rows(&work(), newest.id), Some(2));
    assert_eq!(scene.rows(&key("none"), newest.id), None);
}

#[test]
fn a_log_that_was_copied_or_begun_by_an_earlier_version_is_read_once() {
    let Some(scene) = Scene::new() else { return };
    scene.sessions.fork(&work(), None, &key("fork")).unwrap();
    assert_eq!(scene.rows(&key("fork"), EntryId::generate()), None);
    scene.check(&key("fork"));
    // Before this table had them all, imported rows were missing in it.
    scene.execute("DELETE FROM myclaw.taken; UPDATE myclaw.session SET knows_taken = false");
    let mut log = scene.sessions.open(&work(), LockWait::Fail).unwrap();
    log.push(&[user("more").into()]).unwrap();
    drop(log);
    assert_eq!(scene.rows(&work(), scene.taken.id), Some(101));
    scene.check_without_log(&work());
}

#[test]
fn an_import_notes_what_its_log_has_taken() {
    let Some(scene) = Scene::new() else { return };
    let imported = key("imported");
    let mut lines = Vec::new();
    let mut visit = |line: &str| {
        lines.push(line.to_owned());
        Ok(())
    };
    assert!(scene.sessions.visit_lines(&work(), &mut visit).unwrap());
    let mut session = scene.sessions.import(&imported).unwrap();
    let header = lines.remove(0);
    for line in &lines {
        session.line(line.as_bytes()).unwrap();
    }
    let log = rows::RawLog { key: imported.clone(), header, inherited: 0 };
    session.finish(&log, None).unwrap();
    scene.check(&imported);
}
