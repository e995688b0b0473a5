//! Old parts of logs in an object storage: everything reads them as if they were still in the database.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use myclaw_session::{
    About, Case, Catalog as _, Entry, EntryId, FileBlobs, LockWait, SearchQuery, SearchScope,
    SessionKey, Sessions as _, SideFiles as _, TailLimit, TranscriptMessage,
};
use myclaw_store_postgres::{Options, PostgresSessions};

use crate::proxy::{Cut, Proxy};
use crate::server::{block_on, connect, database, server};
use crate::subjects::open_with;
use crate::values::{Push as _, assistant, compaction, user, work};

/// Rows before the summary, of which 2,000 are sealed: the newest 1,000 stay.
const ROWS: usize = 3_000;

/// A machine with a bucket, which is a directory here.
struct Machine {
    sessions: PostgresSessions,
    home: tempfile::TempDir,
    bucket: PathBuf,
}

impl Machine {
    fn new(url: &str, bucket: PathBuf) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(&bucket).unwrap();
        // No renewal of a lease during a test, which would be one more statement.
        let options = Options { lease: Duration::from_secs(600), ..Options::default() };
        let sessions = open_with(url, &home.path().join("side-files"), &options);
        sessions.put_contents_in(Arc::new(FileBlobs::new(&bucket)));
        Self { sessions, home, bucket }
    }

    fn objects(&self) -> Vec<String> {
        let files = fs::read_dir(&self.bucket).into_iter().flatten();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn log(&self, key: &SessionKey) -> Vec<String> {
        let mut lines = Vec::new();
        let mut visit = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        assert!(self.sessions.visit_lines(key, &mut visit).unwrap());
        lines
    }

    fn found(&self, text: &str) -> Vec<(SessionKey, u64)> {
        let query = SearchQuery::text(text, Case::Ignored).unwrap();
        let report = self.sessions.search(&query, &SearchScope::default(), 5).unwrap();
        assert!(report.unreadable.is_empty(), "{:?}", report.unreadable);
        report.matches.into_iter().collect()
    }

    /// The bucket is not there as long as this runs.
    fn without_bucket(&self, work: impl FnOnce()) {
        let aside = self.home.path().join("aside");
        fs::rename(&self.bucket, &aside).unwrap();
        fs::write(&self.bucket, "no directory").unwrap();
        work();
        fs::remove_file(&self.bucket).unwrap();
        fs::rename(&aside, &self.bucket).unwrap();
    }
}

fn number(url: &str, sql: &str) -> i64 {
    block_on(async { connect(url).await.query_one(sql, &[]).await.unwrap().get(0) })
}

fn execute(url: &str, sql: &str) {
    block_on(async { connect(url).await.batch_execute(sql).await.unwrap() });
}

/// A session with many rows, a title in the middle of them, and a summary at the end.
fn write(sessions: &PostgresSessions, key: &SessionKey) -> Vec<TranscriptMessage> {
    let mut log = sessions.open(key, LockWait::Fail).unwrap();
    let mut said = Vec::new();
    for part in 0..ROWS / 500 {
        let more: Vec<TranscriptMessage> = (0..500)
            .map(|row| part * 500 + row)
            .map(|row| match row % 2 {
                0 => user(&format!("question <{row}> of the zebra")),
                _ => assistant(&format!("answer <{row}> in Straße")),
            })
            .collect();
        log.push(&more.iter().cloned().map(Entry::from).collect::<Vec<_>>()).unwrap();
        said.extend(more);
    }
    drop(log);
    let about = About { title: Some("the title".to_owned()), ..About::default() };
    sessions.change_about(key, LockWait::Fail, &mut |it| *it = about.clone()).unwrap();
    let end = compaction(said.last().unwrap().id);
    sessions.open(key, LockWait::Fail).unwrap().push(&[end.into()]).unwrap();
    said
}

fn setting() -> Option<(String, Machine, tempfile::TempDir)> {
    let url = block_on(database(server()?));
    let home = tempfile::tempdir().unwrap();
    let machine = Machine::new(&url, home.path().join("bucket"));
    Some((url, machine, home))
}

/// All that the readers say of a session.
fn everything(machine: &Machine, key: &SessionKey, said: &[TranscriptMessage]) -> Vec<String> {
    let reader = machine.sessions.read(key).unwrap().unwrap();
    let mut all = machine.log(key);
    all.extend(reader.entries().map(|entry| format!("{:?}", entry.unwrap())));
    all.push(format!("{:?}", reader.about().unwrap()));
    all.push(format!("{:?}", reader.tail(TailLimit::UNLIMITED).unwrap().messages));
    all.push(format!("{:?}", reader.last_compaction().unwrap()));
    for at in [0, 1, 999, 1_000, 1_001, 2_500, ROWS - 1] {
        all.push(format!("{:?}", reader.messages_before(Some(said[at].id), 40).unwrap()));
    }
    let unknown = Some(EntryId::from_text("unknown"));
    assert_eq!(reader.messages_before(unknown, 40).unwrap(), None);
    all.push(format!("{:?}", reader.messages_before(None, ROWS).unwrap()));
    let mut oldest = 0;
    let mut count = |message: TranscriptMessage| {
        oldest += message.content.len();
        ControlFlow::Continue(())
    };
    machine.sessions.visit_oldest(key, &mut count).unwrap();
    all.push(oldest.to_string());
    for text in ["<17>", "<1999>", "<2999>", "of the ZEBRA", "straße", "<17"] {
        all.push(format!("{:?}", machine.found(text)));
    }
    all
}

#[test]
fn old_rows_move_and_everything_reads_them_as_before() {
    let Some((url, one, _home)) = setting() else { return };
    let said = write(&one.sessions, &work());
    let before = everything(&one, &work(), &said);
    // Another program would not find them.
    one.sessions.keep_old_parts(true);
    assert_eq!(one.sessions.seal_old_parts().unwrap(), 0);
    one.sessions.keep_old_parts(false);
    assert_eq!(one.sessions.seal_old_parts().unwrap(), 2);
    assert_eq!(number(&url, "SELECT count(*) FROM myclaw.entry"), 1_002);
    assert_eq!((one.objects().len(), one.sessions.seal_old_parts().unwrap()), (2, 0));
    assert_eq!(everything(&one, &work(), &said), before);
    // Another machine, and one without a bucket, whose message says what to do.
    let two = Machine::new(&url, one.bucket.clone());
    assert_eq!(everything(&two, &work(), &said), before);
    let none = open_with(&url, two.home.path(), &Options::default());
    let failed = none.read(&work()).unwrap().unwrap().entries().next().unwrap().unwrap_err();
    assert!(failed.to_string().contains("gateway.blobs is not set on this machine"), "{failed}");
    assert_eq!(none.seal_old_parts().unwrap(), 0);

    // Forks, of which one ends in a sealed part, stay when the rest is gone.
    let [middle, end] = ["middle", "end"].map(|name| SessionKey::for_cli("main", name));
    one.sessions.fork(&work(), Some(said[1_500].id), &middle).unwrap();
    one.sessions.fork(&work(), None, &end).unwrap();
    let (of_middle, of_end) = (one.log(&middle), one.log(&end));
    assert_eq!((of_middle.len(), of_end.len()), (1 + 1_501, 1 + ROWS + 1));
    assert_eq!(of_middle[1..], before[1..1_502]);
    assert_eq!(one.found("<17>"), [(work(), 1)]);
    // The log of the fork is old too.
    one.sessions.seal_old_parts().unwrap();
    assert_eq!((one.objects().len(), one.log(&end)), (4, of_end));
    assert_eq!(one.found("<17>"), [(work(), 1)]);
    assert!(one.sessions.delete(&work()).unwrap());
    assert_eq!(one.objects().len(), 2);
    assert_eq!(one.found("<17>").len(), 1);
    assert!(one.sessions.delete(&end).unwrap() && one.sessions.delete(&middle).unwrap());
    assert_eq!((one.objects(), number(&url, "SELECT count(*) FROM myclaw.blob")), (vec![], 0));
}

#[test]
fn without_the_bucket_turns_go_on_and_old_rows_are_unavailable() {
    let Some((url, one, _home)) = setting() else { return };
    let said = write(&one.sessions, &work());
    let other = SessionKey::for_cli("main", "other");
    write(&one.sessions, &other);
    one.without_bucket(|| assert_eq!(one.sessions.seal_old_parts().unwrap(), 0));
    assert_eq!(number(&url, "SELECT count(*) FROM myclaw.segment"), 0);
    execute(&url, "UPDATE myclaw.sealable SET tried = '-infinity'");
    assert_eq!(one.sessions.seal_old_parts().unwrap(), 4);
    one.without_bucket(|| {
        let mut log = one.sessions.open(&work(), LockWait::Fail).unwrap();
        assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages.len(), 1);
        log.push(&[user("more").into(), assistant("of it").into()]).unwrap();
        drop(log);
        let mut beginning = |_| ControlFlow::Continue(());
        one.sessions.visit_oldest(&work(), &mut beginning).unwrap();
        // A search for a message that is not there ends before them.
        let mut recent = 0;
        let mut count = |_| {
            recent += 1;
            ControlFlow::Continue(())
        };
        one.sessions.visit_newest(&work(), &mut count).unwrap();
        assert_eq!(recent, 1_002);
        let reader = one.sessions.read(&work()).unwrap().unwrap();
        assert_eq!(reader.last_messages(900).unwrap().len(), 900);
        assert_eq!(reader.about().unwrap().title.as_deref(), Some("the title"));
        let failed = reader.messages_before(Some(said[1_990].id), 40).unwrap_err().to_string();
        assert!(failed.contains("rows 1001 to 2000 are unavailable now"), "{failed}");
        assert!(failed.contains("try again later"), "{failed}");
        let query = SearchQuery::text("zebra", Case::Ignored).unwrap();
        let report = one.sessions.search(&query, &SearchScope::default(), 5).unwrap();
        assert_eq!((report.hits.len(), report.unreadable.len()), (5, 2));
        let forgotten =
            one.sessions.change_kept(LockWait::Fail, &mut |bytes| bytes.starts_with(b"{"));
        assert!(forgotten.unwrap_err().to_string().contains("unavailable now"));
    });
    assert_eq!(one.found("zebra"), [(other, 1_500), (work(), 1_500)]);
    assert_eq!(one.log(&work()).len(), ROWS + 5);
}

/// What a program that is killed in the middle leaves is neither missing nor there twice.
#[test]
fn a_program_that_dies_between_upload_and_transaction_leaves_nothing() {
    let Some((url, one, _home)) = setting() else { return };
    let said = write(&one.sessions, &work());
    let before = everything(&one, &work(), &said);
    let server = server().unwrap();
    let through = |proxy: &Proxy| {
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
        Machine::new(&through, one.bucket.clone())
    };
    let proxy = Proxy::start(server.port(), b"WITH sealed AS", |_| Some(Cut::Hold));
    let killed = through(&proxy);
    let late = std::thread::spawn(move || killed.sessions.seal_old_parts());
    while proxy.commits.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((one.objects().len(), everything(&one, &work(), &said)), (1, before));
    // Its session has another owner by the time it goes on, as after a pause.
    one.sessions.open(&work(), LockWait::Fail).unwrap().push(&[user("more").into()]).unwrap();
    proxy.is_released.store(true, Ordering::SeqCst);
    assert_eq!(late.join().unwrap().unwrap(), 0);
    assert_eq!((one.objects().len(), one.log(&work()).len()), (0, ROWS + 4));
    // One that never goes on leaves a content that is swept a day later.
    let retry = "UPDATE myclaw.sealable SET tried = '-infinity'";
    execute(&url, retry);
    let proxy = Proxy::start(server.port(), b"WITH sealed AS", |_| Some(Cut::Hold));
    let killed = through(&proxy);
    std::thread::spawn(move || killed.sessions.seal_old_parts());
    while proxy.commits.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    execute(&url, &format!("{retry}; UPDATE myclaw.blob SET begun = begun - interval '2 days'"));
    assert_eq!(one.objects().len(), 1);
    assert_eq!(one.sessions.seal_old_parts().unwrap(), 2);
    one.sessions.trim_all(u64::MAX, &|_| false).unwrap();
    assert_eq!((one.objects().len(), number(&url, "SELECT count(*) FROM myclaw.blob")), (2, 2));
    assert_eq!(one.log(&work()).len(), ROWS + 4);
    // An answer that is lost leaves open whether it happened.
    let other = SessionKey::for_cli("main", "other");
    let said = write(&one.sessions, &other);
    let before = everything(&one, &other, &said);
    let proxy = Proxy::start(server.port(), b"WITH sealed AS", |_| Some(Cut::After));
    drop(through(&proxy).sessions.seal_old_parts());
    assert_eq!(everything(&one, &other, &said), before);
    assert_eq!(one.objects().len(), 3);
}

#[test]
fn words_are_removed_from_old_parts_too() {
    let Some((url, one, _home)) = setting() else { return };
    write(&one.sessions, &work());
    assert_eq!(one.sessions.seal_old_parts().unwrap(), 2);
    let (objects, before) = (one.objects(), one.log(&work()));
    let mut mask = |bytes: &mut [u8]| {
        let found = bytes.windows(4).position(|window| window == b"<17>");
        found.inspect(|at| bytes[at + 1..at + 3].fill(b'*')).is_some()
    };
    assert!(one.sessions.change_kept(LockWait::Fail, &mut mask).unwrap());
    assert!(!one.sessions.change_kept(LockWait::Fail, &mut mask).unwrap());
    let after: Vec<String> = before.iter().map(|line| line.replace("<17>", "<**>")).collect();
    assert_eq!(one.log(&work()), after);
    assert_eq!((one.found("<17>"), one.found("<**>")), (vec![], vec![(work(), 1)]));
    // The part without the word is the same, and the former content of the other is gone.
    let same = one.objects().iter().filter(|name| objects.contains(name)).count();
    assert_eq!((one.objects().len(), same), (2, 1));
    assert_eq!(number(&url, "SELECT count(*) FROM myclaw.blob"), 2);
}

/// A turn in a session with many rows, of which most are sealed, needs the statements of one in a short session.
#[test]
fn a_turn_is_the_same_in_a_session_of_any_age() {
    let Some((url, one, _home)) = setting() else { return };
    let server = server().unwrap();
    let counts = [100, 100_000].map(|rows| {
        let key = SessionKey::for_cli("main", &format!("of-{rows}"));
        one.sessions.open(&key, LockWait::Fail).unwrap().push(&[user("q").into()]).unwrap();
        execute(
            &url,
            &format!(
                "INSERT INTO myclaw.entry (session, seq, id, kind, body)
                 SELECT id, seq, 'r' || seq, 'message', format('{{\"id\":\"r%s\",\"role\":\"user\",\"content\":\"%s\",\"ts\":1}}', seq, seq)
                 FROM myclaw.session, generate_series(2, {rows}) AS seq WHERE key = '{key}';
                 UPDATE myclaw.session SET last_seq = {rows} WHERE key = '{key}'"
            ),
        );
        let last = EntryId::from_text(&format!("r{rows}"));
        one.sessions.open(&key, LockWait::Fail).unwrap().push(&[compaction(last).into()]).unwrap();
        let sealed = one.sessions.seal_old_parts().unwrap();
        assert_eq!(sealed, if rows > 1_000 { rows / 1_000 - 1 } else { 0 });
        let proxy = Proxy::start(server.port(), b"myclaw.", |_| None);
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
        let two = Machine::new(&through, one.bucket.clone());
        let before = proxy.commits.load(Ordering::SeqCst);
        let mut log = two.sessions.open(&key, LockWait::Fail).unwrap();
        assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages.len(), 1);
        log.push(&[user("q").into()]).unwrap();
        log.push(&[assistant("a").into()]).unwrap();
        drop(log);
        let reader = two.sessions.read(&key).unwrap().unwrap();
        assert_eq!(reader.last_messages(20).unwrap().len(), 20);
        proxy.commits.load(Ordering::SeqCst) - before
    });
    assert!(counts[0] > 4, "{counts:?}");
    assert_eq!(counts[0], counts[1]);
}

/// What all connections but this one have read, once they have ended: until then the server may not have counted it.
fn rows_read(url: &str) -> i64 {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while number(url, others) > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    number(url, "SELECT tup_returned FROM pg_stat_database WHERE datname = current_database()")
}

/// It reads no more rows, also without a title and an object storage.
#[test]
fn a_turn_reads_a_few_rows_of_a_session_of_any_age() {
    let Some(server) = server() else { return };
    let counts = [100, 100_000].map(|rows| {
        let url = block_on(database(server));
        let home = tempfile::tempdir().unwrap();
        let sessions = || open_with(&url, home.path(), &Options::default());
        sessions().open(&work(), LockWait::Fail).unwrap().push(&[user("q").into()]).unwrap();
        execute(
            &url,
            &format!(
                "INSERT INTO myclaw.entry (session, seq, id, kind, body)
                 SELECT id, seq, 'r' || seq, 'message', format('{{\"id\":\"r%s\",\"role\":\"user\",\"content\":\"%s\",\"ts\":1}}', seq, seq)
                 FROM myclaw.session, generate_series(2, {rows}) AS seq;
                 UPDATE myclaw.session SET last_seq = {rows}; ANALYZE"
            ),
        );
        let last = EntryId::from_text(&format!("r{rows}"));
        sessions().open(&work(), LockWait::Fail).unwrap().push(&[compaction(last).into()]).unwrap();
        let before = rows_read(&url);
        let of_turn = sessions();
        let mut log = of_turn.open(&work(), LockWait::Fail).unwrap();
        assert_eq!(log.tail(TailLimit::UNLIMITED).unwrap().messages.len(), 1);
        log.push(&[user("q").into(), assistant("a").into()]).unwrap();
        drop(log);
        let reader = of_turn.read(&work()).unwrap().unwrap();
        assert_eq!(reader.about().unwrap().title, None);
        assert_eq!(reader.last_messages(20).unwrap().len(), 20);
        drop((reader, of_turn));
        rows_read(&url) - before
    });
    assert!(counts[1] < counts[0] + 1_000, "{counts:?}");
}
