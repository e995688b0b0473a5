//! The public functions on real files.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use myclaw_files::{
    Durability, LockError, LockFile, LockKind, LockWait, NewFile, OwnedDirectory,
    create_private_directory, is_locked, lock, open_regular, open_regular_unlinked,
    private_options, read_regular, set_aside,
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let home = tempfile::tempdir().unwrap();
    let fifo = home.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    for path in [fifo.as_path(), &link, Path::new("/dev/zero"), home.path()] {
        let error = read_regular(path, 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
    }
    let file = home.path().join("file");
    assert_eq!(read_regular(&file, 10).unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(&file, "0123456789").unwrap();
    assert_eq!(read_regular(&file, 4).unwrap(), b"0123");
    assert_eq!(read_regular(&file, 40).unwrap(), b"0123456789");
}

#[test]
fn what_is_made_belongs_to_its_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("a").join("b");
    let changed = create_private_directory(&directory).unwrap();
    assert_eq!(changed, [home.path().to_path_buf(), home.path().join("a")]);
    assert_eq!((mode(&directory), mode(&home.path().join("a"))), (0o700, 0o700));
    assert!(create_private_directory(&directory).unwrap().is_empty());
    let file = directory.join("file");
    private_options().write(true).create(true).open(&file).unwrap().write_all(b"x").unwrap();
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let copy = set_aside(&file).unwrap();
    assert_eq!((fs::read(&copy).unwrap(), mode(&copy)), (b"x".to_vec(), 0o600));
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let (path, new) = (home.path().join("file"), home.path().join("file.new"));
    fs::write(&path, "old").unwrap();
    // What a killed process left.
    fs::write(&new, "half").unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).unwrap();
    let mut abandoned = NewFile::named(&new).unwrap();
    abandoned.write_all(b"never").unwrap();
    drop(abandoned);
    assert_eq!((fs::read(&path).unwrap(), new.exists()), (b"old".to_vec(), false));

    let mut next = NewFile::named(&new).unwrap();
    next.write_all(b"next").unwrap();
    next.put_at(&path, Durability::Synced).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"next".to_vec(), 0o600));

    let mut late = NewFile::in_directory(home.path(), ".late-").unwrap();
    late.write_all(b"late").unwrap();
    let error = late.put_at_free(&path, Durability::Unsynced).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"next");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_lock_names_its_holder_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    assert!(!is_locked(&path).unwrap());
    let held = LockFile::acquire(&path, LockWait::Fail).unwrap();
    assert!(is_locked(&path).unwrap());
    let error = LockFile::acquire(&path, LockWait::Until(Duration::from_millis(5))).unwrap_err();
    let LockError::Held { process_id, waited } = error else { panic!("{error:?}") };
    assert_eq!(process_id, Some(std::process::id()));
    assert!(!waited.is_zero());
    drop(held);
    assert!(!path.exists());
    LockFile::acquire(&path, LockWait::Fail).unwrap();
}

/// What a process leaves behind that is killed while it starts a child.
#[test]
fn a_lock_that_only_a_child_of_a_dead_process_has_is_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    let held_by = |owner: u32, script: &str| {
        let file = private_options().write(true).create(true).truncate(true).open(&path).unwrap();
        file.try_lock().unwrap();
        fs::write(&path, format!("{owner}\n")).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap()
    };
    let dead = || {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let mut child = held_by(dead(), "sleep 0.5");
    assert!(is_locked(&path).unwrap());
    drop(LockFile::acquire(&path, LockWait::Fail).unwrap());
    child.wait().unwrap();

    // A killed process that its parent has not collected yet.
    let mut killed = Command::new("sleep").arg("1000").spawn().unwrap();
    killed.kill().unwrap();
    let killed_id = rustix::process::Pid::from_child(&killed);
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(killed_id), options).unwrap();
    let mut child = held_by(killed.id(), "sleep 0.5");
    drop(LockFile::acquire(&path, LockWait::Fail).unwrap());
    child.wait().unwrap();
    killed.wait().unwrap();

    // Both refusals name the process that took it. Nobody waits for one that lives, and for long for one that does not.
    let owners = [(std::process::id(), false), (dead(), true)];
    for (owner, is_waited_for) in owners {
        let mut child = held_by(owner, "read line");
        let error = LockFile::acquire(&path, LockWait::Fail).unwrap_err();
        let LockError::Held { process_id, waited } = error else { panic!("{error:?}") };
        assert_eq!(process_id, Some(owner));
        assert_eq!(waited >= Duration::from_secs(2), is_waited_for, "{waited:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

/// The id of a process that has ended belongs to another one later.
#[test]
#[cfg(target_os = "linux")]
fn a_process_with_the_number_of_an_earlier_holder_is_not_taken_for_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    LockFile::acquire(&path, LockWait::Fail).unwrap().leave_file();
    let own = fs::read_to_string(&path).unwrap();
    let started: u64 = own.split_whitespace().nth(1).unwrap().parse().unwrap();
    let id = std::process::id();
    // This process has the number that the file names. Only in the last two cases it is the one that took the lock.
    for (named, is_waited_for, shown) in [
        (format!("{id} {}\n", started + 1), true, None),
        (format!("{id} {}\n", started.saturating_sub(1)), true, None),
        (format!("{id} 0\n"), true, None),
        (own, false, Some(id)),
        (format!("{id}\n"), false, Some(id)),
        (format!("{id} not-a-number\n"), false, Some(id)),
        ("nobody\n".to_owned(), false, None),
    ] {
        let file = private_options().write(true).create(true).truncate(true).open(&path).unwrap();
        file.try_lock().unwrap();
        fs::write(&path, &named).unwrap();
        let error = LockFile::acquire(&path, LockWait::Fail).unwrap_err();
        let LockError::Held { process_id, waited } = error else { panic!("{error:?}") };
        assert_eq!(
            (process_id, waited >= Duration::from_secs(2)),
            (shown, is_waited_for),
            "{named}"
        );
    }
}

#[test]
fn a_lock_file_that_stays_holds_nobody_up_and_names_each_holder() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    fs::write(&path, "1234567\n").unwrap();
    for _ in 0..2 {
        let mut held = LockFile::acquire(&path, LockWait::Fail).unwrap();
        held.leave_file();
        let named = fs::read_to_string(&path).unwrap();
        let first = named.split_whitespace().next();
        assert_eq!(first, Some(&*std::process::id().to_string()), "{named}");
        assert!(is_locked(&path).unwrap());
        drop(held);
        assert!(path.exists() && !is_locked(&path).unwrap());
    }
    drop(LockFile::acquire(&path, LockWait::Fail).unwrap());
    assert!(!path.exists());
}

#[test]
fn shared_holders_keep_an_exclusive_one_out() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    let open = || private_options().append(true).create(true).open(&path).unwrap();
    let (one, other, third) = (open(), open(), open());
    lock(&one, LockKind::Shared, LockWait::Fail).unwrap();
    lock(&other, LockKind::Shared, LockWait::Fail).unwrap();
    let refused = lock(&third, LockKind::Exclusive, LockWait::Fail).unwrap_err();
    assert!(matches!(refused, LockError::Held { process_id: None, .. }));
    drop((one, other));
    // A child process that another test starts has a copy of each open file until it starts its program.
    lock(&third, LockKind::Exclusive, LockWait::Until(Duration::from_secs(10))).unwrap();
    assert!(lock(&open(), LockKind::Shared, LockWait::Fail).is_err());
}

#[test]
fn a_link_is_followed_only_where_that_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let [file, link, fifo, directory] =
        ["file", "link", "fifo", "directory"].map(|name| home.path().join(name));
    fs::write(&file, "text").unwrap();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("inner"), "text").unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let linked_directory = home.path().join("linked");
    std::os::unix::fs::symlink(&directory, &linked_directory).unwrap();

    assert!(open_regular(&link).is_ok());
    assert!(open_regular_unlinked(&file).is_ok());
    // Only the last part of the path counts.
    assert!(open_regular_unlinked(&linked_directory.join("inner")).is_ok());
    for path in [&link, &linked_directory, &fifo, &directory] {
        let error = open_regular_unlinked(path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
    }
    let missing = open_regular_unlinked(&home.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_path_that_becomes_a_link_after_the_check_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let [secret, path, next] = ["secret", "path", "next"].map(|name| home.path().join(name));
    fs::write(&secret, "secret").unwrap();
    fs::write(&path, "plain").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::os::unix::fs::symlink(&secret, &next).unwrap();
                fs::rename(&next, &path).unwrap();
                fs::write(&next, "plain").unwrap();
                fs::rename(&next, &path).unwrap();
            }
        });
        for _ in 0..3_000 {
            if let Ok(file) = open_regular_unlinked(&path) {
                let text = io::read_to_string(file).unwrap();
                assert_ne!(text, "secret");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_directory_of_a_killed_process_is_removed_and_no_other() {
    let base = tempfile::tempdir().unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    let age = |path: &Path| fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    let held = OwnedDirectory::create(base.path(), "x-").unwrap();
    assert_eq!(mode(held.path()), 0o700);
    age(held.path());
    // What a kill leaves: the files, and a lock that nobody holds. One lacks even that.
    for name in ["x-killed", "x-bare", "x-new", "y-other"] {
        fs::create_dir(base.path().join(name)).unwrap();
    }
    fs::write(base.path().join("x-killed/owner"), "1\n").unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(base.path().join("x-killed/proxy")).unwrap();
    fs::create_dir(base.path().join("target")).unwrap();
    std::os::unix::fs::symlink(base.path().join("target"), base.path().join("x-link")).unwrap();
    for name in ["x-killed", "x-bare", "y-other", "target"] {
        age(&base.path().join(name));
    }
    let next = OwnedDirectory::create(base.path(), "x-").unwrap();
    let mut left: Vec<_> =
        fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let mut expected: Vec<_> = [held.path(), next.path()]
        .into_iter()
        .map(|path| path.file_name().unwrap().to_owned())
        .chain(["target", "x-link", "x-new", "y-other"].map(Into::into))
        .collect();
    expected.sort();
    assert_eq!(left, expected);
    let path = next.path().to_owned();
    drop(next);
    assert!(!path.exists());
}
