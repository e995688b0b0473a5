//! The conformance suite of documents, for those of this crate: each passes it.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::Arc;

use myclaw_files::{Documents, Durability, FileDocuments, MemoryDocuments};

mod conformance;

#[test]
fn files_and_memory_pass_the_conformance_suite() {
    let home = tempfile::tempdir().unwrap();
    let mut number = 0;
    conformance::all(&mut || {
        number += 1;
        Arc::new(FileDocuments::new(home.path().join(format!("not/yet/there-{number}"))))
    });
    conformance::all(&mut || Arc::new(MemoryDocuments::default()));
}

#[test]
fn no_text_in_a_file_is_read_or_written_in_part() {
    let home = tempfile::tempdir().unwrap();
    let documents = FileDocuments::new(home.path());
    let file = home.path().join("a.json");
    std::fs::write(&file, b"text \xff").unwrap();
    assert_eq!(documents.read("a.json").unwrap().unwrap().text, "text \u{fffd}");
    std::fs::File::create(&file).unwrap().set_len((16 << 20) + 1).unwrap();
    let error = documents.read("a.json").unwrap_err();
    assert_eq!(error.to_string(), "it has more than 16777216 bytes");
    let mut long = |_: Option<&str>| "x".repeat((16 << 20) + 1);
    let error = documents.change("b.json", Durability::Unsynced, &mut long).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 16777216 bytes");
    let refused = documents
        .change("a.json", Durability::Unsynced, &mut |_| unreachable!("it cannot be read"));
    assert!(refused.is_err());
    let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}
