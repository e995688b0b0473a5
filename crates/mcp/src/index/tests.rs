use std::fs::{self, FileTimes};
use std::path::Path;
use std::sync::Arc;

use myclaw_files::{Documents, FileDocuments, MemoryDocuments};
use serde_json::json;

use super::*;

fn approved(server: &str, tools: &[&str]) -> Approved {
    let tool = |name: &&str| json!({"name": name, "description": "Does it", "inputSchema": {}});
    let tools = tools.iter().map(tool).collect::<Vec<_>>();
    let fields = json!({"server": server, "identity": "0123456789abcdef01", "revision": "2025-11-25", "tools": tools});
    serde_json::from_value(fields).expect("an approval")
}

/// The names of the approved tools of these servers; `None` where nothing was approved.
fn names(store: &ApprovedStore, servers: &[&str]) -> Vec<Option<String>> {
    let servers = servers.iter().map(|name| ((*name).to_owned(), "0123456789abcdef01".to_owned()));
    let outlines = store.outlines(&servers.collect::<Vec<_>>()).into_iter();
    let read = outlines.map(|outline| outline.expect("it can be read"));
    read.map(|outline| outline.map(|outline| outline.tools.join(" "))).collect()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Writes a text of the same length and age in the place of that of a file.
fn exchange(path: &Path, old: &str, new: &str) {
    let written = fs::metadata(path).and_then(|found| found.modified()).expect("its time");
    let text = fs::read_to_string(path).expect("the file");
    assert_eq!((old.len(), text.contains(old)), (new.len(), true));
    fs::write(path, text.replace(old, new)).expect("the file is written");
    let file = fs::File::options().write(true).open(path).expect("the file");
    file.set_times(FileTimes::new().set_modified(written)).expect("its time is set");
}

#[test]
fn a_run_reads_the_names_from_the_index_and_the_rest_when_it_is_needed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = ApprovedStore::new(Arc::new(FileDocuments::new(directory.path())));
    store.save(&approved("one", &["add", "sub"])).expect("it is kept");
    store.save(&approved("two", &["mul"])).expect("it is kept");
    // If the approvals were read, it would show.
    exchange(&directory.path().join("one.0123456789abcdef.json"), "\"add\"", "\"odd\"");
    assert_eq!(names(&store, &["two", "one", "three"]), [some("mul"), some("add sub"), None]);
    let servers = [("one".to_owned(), "0123456789abcdef01".to_owned())];
    let outline = store.outlines(&servers).remove(0).expect("it can be read").expect("it is there");
    assert_eq!(outline.whole.tool("sub").description, "Does it");
    // What is only in the index is described by nobody, so no server lists it as it was approved.
    assert_eq!(outline.whole.tool("add").input_schema, Value::Null);
}

#[test]
fn an_index_that_is_missing_damaged_or_old_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let documents = Arc::new(FileDocuments::new(directory.path()));
    let store = ApprovedStore::new(documents.clone());
    store.save(&approved("one", &["add"])).expect("it is kept");
    store.save(&approved("two", &["mul"])).expect("it is kept");
    let index = directory.path().join(INDEX);
    let whole = || {
        let text = fs::read_to_string(&index).unwrap_or_default();
        let mut entries = entries(&text);
        entries.sort_by(|one, other| one.server.cmp(&other.server));
        entries.into_iter().map(|entry| entry.tools.join(" ")).collect::<Vec<_>>()
    };
    let damages: [fn(&Path); 4] = [
        |index| fs::remove_file(index).expect("it is removed"),
        |index| fs::write(index, "[{").expect("it is written"),
        |index| fs::write(index, "").expect("it is written"),
        |index| fs::write(index, "[{\"server\": \"one\"}]").expect("it is written"),
    ];
    for damage in damages {
        damage(&index);
        assert_eq!(names(&store, &["one", "two"]), [some("add"), some("mul")]);
        assert_eq!(whole(), ["add", "mul"]);
    }
    // Another program has approved something, which knows no index.
    let text = serde_json::to_string(&approved("one", &["add", "div"])).expect("JSON");
    let name = "one.0123456789abcdef.json";
    documents.change(name, Durability::Unsynced, &mut |_| text.clone()).expect("it is kept");
    assert_eq!(names(&store, &["one", "two"]), [some("add div"), some("mul")]);
    assert_eq!(whole(), ["add div", "mul"]);
    documents.remove(name).expect("it is removed");
    assert_eq!(names(&store, &["one"]), [None]);
    store.forget("two").expect("it is forgotten");
    assert_eq!((names(&store, &["two"]), index.exists()), (vec![None], false));
    // An approval that is damaged offers nothing, whatever the index says.
    store.save(&approved("two", &["mul"])).expect("it is kept");
    fs::write(directory.path().join("two.0123456789abcdef.json"), "[").expect("it is written");
    let servers = [("two".to_owned(), "0123456789abcdef01".to_owned())];
    store.outlines(&servers).remove(0).expect_err("it is damaged");
}

#[test]
fn documents_without_files_have_an_index_too() {
    let store = ApprovedStore::new(Arc::new(MemoryDocuments::default()));
    store.save(&approved("one", &["add"])).expect("it is kept");
    assert_eq!(names(&store, &["one"]), [some("add")]);
    store.save(&approved("one", &["add", "sub"])).expect("it is kept");
    assert_eq!(names(&store, &["one", "two"]), [some("add sub"), None]);
}
