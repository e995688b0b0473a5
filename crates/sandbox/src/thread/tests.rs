use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A directory that may be changed, with something protected in it.
struct Place {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::write(root.join("AGENTS.md"), "old").unwrap();
        Self { directory, root }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let protected = ["AGENTS.md", ".git"].map(|name| self.root.join(name)).to_vec();
        let writable = vec![self.root.clone()];
        with_open_paths(&OpenPaths { writable, protected, ..OpenPaths::default() }, work).unwrap()
    }
}

#[test]
fn work_changes_everything_but_what_is_protected() {
    let place = Place::new();
    let root = &place.root;
    place.run(|| {
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/new"), "new").unwrap();
        fs::set_permissions(root.join("a/b/new"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(root.join("a/b/new"), root.join("moved")).unwrap();
        fs::hard_link(root.join("moved"), root.join("second")).unwrap();
        fs::remove_file(root.join("second")).unwrap();
        symlink("moved", root.join("link")).unwrap();
        fs::write(root.join("link"), "through a link").unwrap();
    });
    assert_eq!(fs::read_to_string(root.join("moved")).unwrap(), "through a link");
    let refused = place.run(|| {
        [
            fs::write(root.join("AGENTS.md"), "new"),
            fs::rename(root.join("moved"), root.join("AGENTS.md")),
            fs::rename(root.join("AGENTS.md"), root.join("aside")),
            fs::remove_file(root.join("AGENTS.md")),
            fs::hard_link(root.join("AGENTS.md"), root.join("other")),
            fs::set_permissions(root.join("AGENTS.md"), fs::Permissions::from_mode(0o666)),
            fs::create_dir(root.join(".git")),
            fs::rename(root.join("a"), root.join(".git")),
            symlink("a", root.join(".GIT")),
            fs::write(root.join("../outside"), ""),
        ]
        .map(|outcome| outcome.is_err())
    });
    assert_eq!(refused, [true; 10]);
    assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap(), "old");
    let read = place.run(|| fs::read_to_string(root.join("AGENTS.md")));
    assert_eq!(read.unwrap(), "old");
}

/// The thread that helps gives up rights; the caller keeps them.
#[test]
fn the_caller_stays_as_it_is() {
    let place = Place::new();
    let mask = || fs::read_to_string("/proc/thread-self/status").unwrap();
    let rights = |status: &str| {
        status
            .lines()
            .filter(|line| line.starts_with("Cap") || line.starts_with("Umask"))
            .collect::<String>()
    };
    let before = mask();
    place.run(|| fs::write(place.root.join("file"), "")).unwrap();
    assert_eq!(rights(&mask()), rights(&before));
    fs::write(place.directory.path().join("AGENTS.md"), "by the caller").unwrap();
}

#[test]
fn a_panic_of_the_work_goes_on_in_the_caller() {
    let place = Place::new();
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| place.run(|| panic!("x"))));
    assert!(caught.is_err());
}

#[test]
fn a_path_that_is_missing_is_an_error() {
    let paths = OpenPaths {
        writable: vec!["/missing/root".into()],
        protected: vec!["/missing/root/AGENTS.md".into()],
        ..OpenPaths::default()
    };
    let error = with_open_paths(&paths, || ()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Other && error.to_string().contains("/missing/root"),
        "{error}"
    );
}
