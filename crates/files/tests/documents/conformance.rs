//! What each implementation of [`Documents`] must pass.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use myclaw_files::{Documents, Durability};

/// Checks an implementation; `new` gives an empty one.
pub(crate) fn all(new: &mut dyn FnMut() -> Arc<dyn Documents>) {
    a_document_is_what_was_stored_last(&*new());
    a_name_leads_nowhere_else(&*new());
    what_is_removed_or_never_was_is_missing(&*new());
    names_are_listed_by_their_beginning(&*new());
    a_use_begins_the_age_again(&*new());
    no_change_is_lost(&new());
}

fn put(documents: &dyn Documents, name: &str, text: &str) {
    documents.change(name, Durability::Unsynced, &mut |_| text.to_owned()).unwrap();
}

fn text(documents: &dyn Documents, name: &str) -> Option<String> {
    documents.read(name).unwrap().map(|document| document.text)
}

fn names(documents: &dyn Documents, prefix: &str) -> Vec<String> {
    let listed = documents.list(prefix).unwrap();
    let mut names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

fn a_document_is_what_was_stored_last(documents: &dyn Documents) {
    let mut seen = Vec::new();
    for (durability, after) in [(Durability::Synced, "one"), (Durability::Unsynced, "zwei ü")] {
        documents
            .change("a.json", durability, &mut |before| {
                seen.push(before.map(str::to_owned));
                after.to_owned()
            })
            .unwrap();
    }
    assert_eq!(seen, [None, Some("one".to_owned())]);
    assert_eq!(text(documents, "a.json").as_deref(), Some("zwei ü"));
    let long = "x".repeat(1_000_000);
    put(documents, "a.json", &long);
    assert_eq!(text(documents, "a.json"), Some(long));
    put(documents, "a.json", "");
    assert_eq!(text(documents, "a.json").as_deref(), Some(""));
    assert!(documents.describe("a.json").contains("a.json"));
}

fn a_name_leads_nowhere_else(documents: &dyn Documents) {
    let long = "n".repeat(241);
    for name in ["", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", ".a", "a\0b", "a\nb", &long] {
        assert!(documents.read(name).is_err(), "{name:?}");
        assert!(documents.remove(name).is_err(), "{name:?}");
        assert!(documents.note_use(name).is_err(), "{name:?}");
        let change = documents.change(name, Durability::Unsynced, &mut |_| String::new());
        assert!(change.is_err(), "{name:?}");
    }
    put(documents, &"n".repeat(240), "kept");
    assert_eq!(text(documents, &"n".repeat(240)).as_deref(), Some("kept"));
}

fn what_is_removed_or_never_was_is_missing(documents: &dyn Documents) {
    assert_eq!(documents.read("a").unwrap(), None);
    assert!(!documents.remove("a").unwrap());
    documents.note_use("a").unwrap();
    assert_eq!(documents.read("a").unwrap(), None, "a use makes no document");
    put(documents, "a", "text");
    put(documents, "b/c", "other");
    assert!(documents.remove("a").unwrap());
    assert!(!documents.remove("a").unwrap());
    assert_eq!(text(documents, "a"), None);
    assert_eq!(text(documents, "b/c").as_deref(), Some("other"));
}

fn names_are_listed_by_their_beginning(documents: &dyn Documents) {
    assert_eq!(names(documents, ""), [""; 0]);
    assert_eq!(names(documents, "lists/"), [""; 0]);
    for name in ["one.a", "one.b", "onerous", "two", "lists/one", "lists/two", "listsless"] {
        put(documents, name, name);
    }
    assert_eq!(names(documents, "one."), ["one.a", "one.b"]);
    assert_eq!(names(documents, "lists/"), ["lists/one", "lists/two"]);
    assert_eq!(names(documents, "lists/t"), ["lists/two"]);
    assert_eq!(names(documents, "none"), [""; 0]);
    assert_eq!(names(documents, ""), ["listsless", "one.a", "one.b", "onerous", "two"]);
    documents.remove("one.a").unwrap();
    assert_eq!(names(documents, "one."), ["one.b"]);
}

fn a_use_begins_the_age_again(documents: &dyn Documents) {
    let age = || documents.read("a").unwrap().unwrap().age;
    put(documents, "a", "text");
    // Files have the time of a clock with steps of some milliseconds.
    let old = Duration::from_millis(50);
    while age() < old {
        thread::yield_now();
    }
    assert!(documents.list("a").unwrap()[0].1 >= old);
    documents.note_use("a").unwrap();
    let (read, listed) = (age(), documents.list("a").unwrap()[0].1);
    assert!(read < old && listed < old * 2, "{read:?} {listed:?}");
    assert_eq!(text(documents, "a").as_deref(), Some("text"));
}

fn no_change_is_lost(documents: &Arc<dyn Documents>) {
    const THREADS: usize = 4;
    const EACH: usize = 10;
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..EACH {
                    let mut add = |before: Option<&str>| format!("{}x", before.unwrap_or_default());
                    documents.change("count", Durability::Unsynced, &mut add).unwrap();
                }
            });
        }
    });
    assert_eq!(text(&**documents, "count").unwrap().len(), THREADS * EACH);
}
