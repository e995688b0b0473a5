use super::*;

fn create(path: &Path) -> Change {
    Change::Create {
        path: path.to_owned(),
        bytes: b"new".to_vec(),
        attributes: Attributes::default(),
    }
}

fn replace(path: &Path) -> Change {
    Change::Replace {
        path: path.to_owned(),
        bytes: b"new".to_vec(),
        attributes: Attributes::default(),
    }
}

/// Every name below the directory with its content (`None` for a directory).
fn everything(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.push((path, None));
        } else {
            found.push((path.clone(), Some(std::fs::read(&path).unwrap())));
        }
    }
    found.sort();
    found
}

#[test]
fn makes_all_changes_and_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a"), "old").unwrap();
    std::fs::write(at("b"), "old").unwrap();
    commit(vec![replace(&at("a")), create(&at("x/y/c")), Change::Delete { path: at("b") }])
        .unwrap();
    assert_eq!(
        everything(directory.path()),
        vec![
            (at("a"), Some(b"new".to_vec())),
            (at("x"), None),
            (at("x/y"), None),
            (at("x/y/c"), Some(b"new".to_vec()))
        ]
    );
}

/// Each change that works comes before one that cannot: the rename onto a directory fails once the others are done.
#[test]
fn a_failed_rename_takes_back_what_was_done() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["a", "b", "c"] {
        std::fs::write(at(name), name).unwrap();
    }
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/inside"), "").unwrap();
    let before = everything(directory.path());
    let inode = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(at(name)).unwrap().ino()
    };
    let inodes = ["a", "b", "c"].map(inode);
    let done =
        || vec![replace(&at("a")), create(&at("deep/er/new")), Change::Delete { path: at("b") }];
    for failing in [replace(&at("full")), create(&at("c")), Change::Delete { path: at("missing") }]
    {
        let mut changes = done();
        changes.push(failing);
        changes.push(replace(&at("c")));
        let error = commit(changes).unwrap_err();
        assert_eq!(error.unrestored, vec![]);
        assert_eq!(everything(directory.path()), before, "{error:?}");
        assert_eq!(["a", "b", "c"].map(inode), inodes, "the files are the same ones as before");
    }
}

#[test]
fn a_change_that_cannot_be_prepared_stops_before_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a"), "old").unwrap();
    let before = everything(directory.path());
    let error =
        commit(vec![create(&at("new/b")), replace(&at("a")), create(&at("a/below"))]).unwrap_err();
    assert_eq!(error.path, at("a/below"));
    assert_eq!(everything(directory.path()), before);
}
