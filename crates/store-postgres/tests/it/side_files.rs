//! Side files go with their session from one machine to the next.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use myclaw_session::{Catalog as _, FileBlobs, LockWait, Sessions as _, SideFiles as _};
use myclaw_store_postgres::PostgresSessions;

use crate::proxy::{Cut, Proxy};
use crate::server::{block_on, connect, database, server};
use crate::subjects::open;
use crate::values::{Push as _, user, work};

/// A machine of its own.
struct Machine {
    sessions: PostgresSessions,
    home: tempfile::TempDir,
}

impl Machine {
    fn new(url: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { sessions: open(url, &home.path().join("side-files")), home }
    }

    fn directory(&self) -> PathBuf {
        self.sessions.artifact_directory(&work())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.directory().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.directory().join(name)).ok()
    }

    /// What a run does: it opens the session, writes files, and appends the row that names them.
    fn run(&self, work_with_files: impl FnOnce(&Self)) {
        let mut log = self.sessions.open(&work(), LockWait::Fail).unwrap();
        work_with_files(self);
        log.push(&[user("q").into()]).unwrap();
    }
}

/// The number of contents in the database.
fn contents(url: &str) -> i64 {
    block_on(async {
        let sql = "SELECT count(*) FROM myclaw.blob WHERE EXISTS (SELECT FROM myclaw.blob_part WHERE blob = id)";
        connect(url).await.query_one(sql, &[]).await.unwrap().get(0)
    })
}

#[test]
fn files_are_on_the_machine_that_takes_the_session() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    // More than a part, and bytes that are no text.
    let large: Vec<u8> = (0..2_500_000_u32).map(|number| number as u8).collect();
    one.run(|one| {
        one.write("bash-1.log", &large);
        one.write("changes/journal.jsonl", "1\n");
        one.write("changes/images/a", "old");
        one.write("tmp-x/scratch", "not shared");
    });
    assert_eq!(two.read("bash-1.log"), None);
    two.run(|two| {
        assert!(two.read("bash-1.log") == Some(large.clone()));
        assert_eq!(two.read("changes/images/a").unwrap(), b"old");
        assert_eq!(two.read("tmp-x/scratch"), None);
        two.write("changes/journal.jsonl", "1\n2\n");
        fs::remove_file(two.directory().join("bash-1.log")).unwrap();
    });
    // What was changed and removed there is so here, and nothing is kept that nothing names.
    one.run(|one| {
        assert_eq!(one.read("changes/journal.jsonl").unwrap(), b"1\n2\n");
        assert_eq!(one.read("bash-1.log"), None);
    });
    assert_eq!(contents(&url), 2);
    // Another program of the same machine need not fetch anything.
    let again = open(&url, &one.home.path().join("side-files"));
    let sql = "UPDATE myclaw.blob_part SET content = 'x'";
    block_on(async { connect(&url).await.batch_execute(sql).await.unwrap() });
    drop(again.open(&work(), LockWait::Fail).unwrap());
    assert_eq!(one.read("changes/images/a").unwrap(), b"old");
}

/// Its size is that of the moment in which it was looked at; the content may have more by the time it is read.
#[test]
fn a_file_that_grew_while_it_was_stored_is_whole_elsewhere() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    let grown = vec![7; 2 * 1024 * 1024];
    one.run(|one| one.write("job.log", &grown));
    let sql = "UPDATE myclaw.side_file SET bytes = 1";
    block_on(async { connect(&url).await.batch_execute(sql).await.unwrap() });
    two.run(|two| assert!(two.read("job.log") == Some(grown.clone())));
}

/// A row that names a file is never there without the file.
#[test]
fn a_program_that_dies_at_any_statement_leaves_no_row_without_its_file() {
    let Some(server) = server() else { return };
    for statement in [
        &b"INSERT INTO myclaw.blob ("[..],
        b"INTO myclaw.blob_part",
        b"SET side_files",
        b"WITH moved AS",
    ] {
        let url = block_on(database(server));
        let (before, after) = (Machine::new(&url), Machine::new(&url));
        before.run(|_| {});
        let proxy = Proxy::start(server.port(), statement, |_| Some(Cut::Hold));
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
        let dying = Machine::new(&through);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let mut log = dying.sessions.open(&work(), LockWait::Fail).unwrap();
                dying.write("out.log", "the whole output");
                log.push(&[user("see out.log").into()])
            });
            while proxy.commits.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // It stands still in the middle, and another one takes the session.
            after.sessions.lose(&work()).unwrap();
            after.run(|after| after.write("mine.log", "of the next owner"));
            proxy.is_released.store(true, Ordering::SeqCst);
            run.join().unwrap().unwrap_err();
        });
        before.run(|before| {
            let reader = before.sessions.read(&work()).unwrap().unwrap();
            let said = reader.last_messages(10).unwrap();
            assert!(said.iter().all(|row| !row.content.contains("out.log")));
            assert_eq!(before.read("mine.log").unwrap(), b"of the next owner");
            // Who has lost the session adds nothing to its files.
            let is_late = statement != b"WITH moved AS";
            assert_eq!(before.read("out.log").is_none(), is_late);
        });
    }
}

#[test]
fn what_is_deleted_is_gone_on_all_machines() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    one.run(|one| one.write("a/b.log", "x"));
    two.run(|two| assert_eq!(two.read("a/b.log").unwrap(), b"x"));
    assert!(two.sessions.delete(&work()).unwrap());
    assert!(!two.directory().exists());
    assert_eq!(contents(&url), 0);
    // The other machine removes it by itself, also if the session exists again.
    assert_eq!(one.read("a/b.log").unwrap(), b"x");
    one.sessions.trim_all(1, &|_| false).unwrap();
    assert!(!one.directory().exists());
    one.run(|one| one.write("new.log", "y"));
    two.run(|two| {
        assert_eq!((two.read("a/b.log"), two.read("new.log")), (None, Some(b"y".to_vec())));
    });
}

#[test]
fn commands_cannot_lead_out_of_the_directory() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    let secret = one.home.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    one.run(|one| {
        one.write("mine", "x");
        symlink(&secret, one.directory().join("link")).unwrap();
        symlink(one.home.path(), one.directory().join("up")).unwrap();
    });
    let outside = two.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    two.write("placeholder", "");
    fs::remove_dir_all(two.directory()).unwrap();
    symlink(&outside, two.directory()).unwrap();
    // A directory that became a link is not written through.
    let said = two.sessions.open(&work(), LockWait::Fail).map(drop);
    assert!(said.is_err() && !outside.join("mine").exists());
    fs::remove_file(two.directory()).unwrap();
    two.run(|two| {
        assert_eq!(two.read("mine").unwrap(), b"x");
        assert_eq!((two.read("link"), two.read("up/secret")), (None, None));
    });
}

/// A file that cannot be fetched is left out until it can, and nobody takes it for one that was removed.
#[test]
fn a_file_that_cannot_be_fetched_is_fetched_later() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    one.run(|one| one.write("a.log", "content"));
    let sql = |sql: &'static str| {
        block_on(async { connect(&url).await.batch_execute(sql).await.unwrap() })
    };
    sql(
        "ALTER TABLE myclaw.blob_part RENAME COLUMN content TO away; ALTER TABLE myclaw.blob_part ADD content bytea",
    );
    two.run(|two| assert_eq!(two.read("a.log"), None));
    sql(
        "ALTER TABLE myclaw.blob_part DROP COLUMN content; ALTER TABLE myclaw.blob_part RENAME COLUMN away TO content",
    );
    two.run(|two| assert_eq!(two.read("a.log").unwrap(), b"content"));
}

/// An undo, or a job, changes files while the session is not open.
#[test]
fn what_changes_between_runs_is_shared_too() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let (one, two) = (Machine::new(&url), Machine::new(&url));
    one.run(|one| one.write("job.log", "begun"));
    one.write("job.log", "begun, done");
    one.sessions.share(&work()).unwrap();
    two.sessions.share(&work()).unwrap();
    assert_eq!(two.read("job.log").unwrap(), b"begun, done");
    // Nobody disturbs a run.
    let _run = one.sessions.open(&work(), LockWait::Fail).unwrap();
    two.sessions.share(&work()).unwrap();
    // A session that does not exist gets none by that.
    let other = myclaw_session::SessionKey::for_cli("main", "other");
    two.sessions.share(&other).unwrap();
    assert!(!two.sessions.exists(&other) && !is_known(&url, "other"));
}

fn is_known(url: &str, name: &str) -> bool {
    let sql = "SELECT count(*) FROM myclaw.session WHERE key LIKE '%' || $1";
    block_on(async { connect(url).await.query_one(sql, &[&name]).await.unwrap().get::<_, i64>(0) })
        > 0
}

/// It is read and written in parts, at the end of a run.
#[test]
fn a_file_that_is_too_large_for_the_database_goes_to_the_object_storage() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let bucket = tempfile::tempdir().unwrap();
    let [one, two, three] = [(); 3].map(|()| Machine::new(&url));
    let mut large: Vec<u8> = (0..65_u32 << 20).map(|number| (number % 251) as u8).collect();
    // Across two parts in which it is changed below.
    let word = (4 << 20) - 5..(4 << 20) + 6;
    large[word.clone()].copy_from_slice(b"Zanzibarium");
    one.run(|one| one.write("job.log", &large));
    two.run(|two| assert_eq!(two.read("job.log"), None));
    for machine in [&one, &two] {
        machine.sessions.put_contents_in(Arc::new(FileBlobs::new(bucket.path())));
    }
    let objects = || fs::read_dir(bucket.path()).unwrap().count();
    let mut log = one.sessions.open(&work(), LockWait::Fail).unwrap();
    one.write("job.log", &large);
    log.push(&[user("q").into()]).unwrap();
    assert_eq!(objects(), 0, "it may grow");
    drop(log);
    assert_eq!((objects(), contents(&url)), (1, 0));
    two.run(|two| {
        assert!(two.read("job.log") == Some(large.clone()));
        two.write("job.log", &large[..large.len() - 1]);
    });
    one.run(|one| assert!(one.read("job.log").unwrap().len() == large.len() - 1));
    assert_eq!(objects(), 1);
    // A machine without it goes on, and does not remove it for the others.
    three.run(|three| assert_eq!(three.read("job.log"), None));
    two.run(|two| assert!(two.read("job.log").is_some()));
    let copy = bucket.path().join("copy");
    two.sessions.export_side_files(&work(), &copy).unwrap();
    assert_eq!(fs::metadata(copy.join("job.log")).unwrap().len(), large.len() as u64 - 1);
    // Words are removed from it without all of it in memory.
    let mut most = 0;
    let mut mask = |bytes: &mut [u8]| {
        most = most.max(bytes.len());
        let found = bytes.windows(word.len()).position(|window| window == b"Zanzibarium");
        found.inspect(|at| bytes[*at..at + word.len()].fill(b'*')).is_some()
    };
    assert!(two.sessions.change_kept(LockWait::Fail, &mut mask).unwrap());
    assert!(!two.sessions.change_kept(LockWait::Fail, &mut mask).unwrap());
    assert!(most < 8 << 20, "{most} bytes at once");
    large[word].fill(b'*');
    large.pop();
    two.run(|two| assert!(two.read("job.log") == Some(large.clone())));
    assert_eq!(fs::read_dir(bucket.path()).unwrap().count(), 2, "the content and the copy");
}

#[test]
fn a_session_without_side_files_makes_no_directory() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let one = Machine::new(&url);
    one.run(|_| {});
    let is_there = |path: &Path| path.exists();
    assert!(!is_there(&one.home.path().join("side-files")));
}
