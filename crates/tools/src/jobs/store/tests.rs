//! What every store of jobs does.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::jobs::record::Trace;
use crate::jobs::{FileJobs, JobEnd, JobEnding, MemoryJobs};

fn in_files(base: &Path) -> FileJobs {
    let records = base.to_owned();
    FileJobs::new(base.join("owners"), move |session| records.join(session))
}

fn of_each(check: impl Fn(&TempDir, Arc<dyn JobStore>)) {
    let home = tempfile::tempdir().unwrap();
    check(&home, Arc::new(in_files(home.path())));
    let home = tempfile::tempdir().unwrap();
    check(&home, Arc::new(MemoryJobs::default()));
}

fn record(session: &str, output: PathBuf) -> JobRecord {
    JobRecord {
        id: String::new(),
        session: session.to_owned(),
        command: "sleep 1".to_owned(),
        command_is_whole: true,
        directory: PathBuf::from("/"),
        terminal: false,
        started_at: 1,
        output,
        end: None,
        owner: PathBuf::new(),
        trace: Trace::default(),
    }
}

fn trace() -> TreeTrace {
    Trace::default().into()
}

#[test]
fn records_are_numbered_found_changed_and_removed() {
    of_each(|home, store| {
        let output = home.path().join("output");
        std::fs::write(&output, "x").unwrap();
        assert_eq!(store.all("a"), []);
        let mut records = [record("a", output.clone()), record("a", "/nowhere".into())];
        for record in &mut records {
            store.insert(record, 1).unwrap();
        }
        let [mut first, second] = records;
        assert_eq!([first.id.as_str(), second.id.as_str()], ["j1", "j2"]);
        assert_eq!(store.all("a"), [first.clone(), second.clone()], "both run");
        assert_eq!(store.all("b"), []);
        assert_eq!(store.find("a", " j2\n"), Some(second.clone()));
        for other in ["", "j", "j3", "2", "J2", "../a/j2", "j2\0"] {
            assert_eq!(store.find("a", other), None, "{other:?}");
        }
        assert_eq!(store.find("b", "j1"), None);
        first.end = Some(JobEnd { at: 2, how: JobEnding::Exited { code: 0 } });
        store.save(&first).unwrap();
        assert_eq!(store.find("a", "j1"), Some(first.clone()));
        store.remove(&first).unwrap();
        store.remove(&first).unwrap();
        assert_eq!(store.all("a"), [second]);
        assert!(!output.exists());
    });
}

#[test]
fn commands_have_numbers_of_their_own_and_their_process_keeps_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    of_each(|home, store| {
        let mut job = record("a", "/nowhere".into());
        store.insert(&mut job, 1).unwrap();
        let job = Noted::begin(&store, trace(), Some(&job)).unwrap();
        let other = Noted::begin(&store, trace(), None).unwrap();
        assert_ne!(job.number, other.number);
        drop(other);
        // Another part of the program ends.
        store.close();
        assert_eq!(runtime.block_on(in_files(home.path()).end_leftovers()), []);
        assert!(store.all("a")[0].is_running());
        drop(job);
        store.close();
        let journals = std::fs::read_dir(home.path().join("owners")).into_iter().flatten();
        let left = journals.flatten().filter(|file| file.path().extension().unwrap() == "journal");
        assert_eq!(left.count(), 0);
    });
}
