//! Tests with somebody who puts everything into the directory that can be there. Each runs with the kernel's way of finding
//! a directory, and with that of systems where the kernel cannot.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::*;

const BOTH: [Resolver; 2] = [Resolver::Kernel, Resolver::Steps];
const SYNCED: (Access, Durability) = (Access::Owner, Durability::Synced);

/// A directory in the hands of somebody else, next to a secret.
struct Place {
    around: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        fs::create_dir_all(around.path().join("inside/deep/deeper")).unwrap();
        fs::create_dir(around.path().join("outside")).unwrap();
        for (name, text) in [
            ("secret", "theirs"),
            ("outside/file", "theirs"),
            ("inside/file", "mine"),
            ("inside/deep/file", "mine"),
            ("inside/deep/deeper/file", "mine"),
        ] {
            fs::write(around.path().join(name), text).unwrap();
        }
        Self { around }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.around.path().join(name)
    }

    fn shared(&self, resolver: Resolver) -> SharedDirectory {
        SharedDirectory { resolver, ..SharedDirectory::open(&self.path("inside")).unwrap() }
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Puts one of everything that is no plain file into `directory`, and gives the names.
fn traps(place: &Place, directory: &str) -> Vec<String> {
    let at = |name: &str| place.path(directory).join(name);
    let link = |target: &Path, name: &str| symlink(target, at(name)).unwrap();
    link(&place.path("secret"), "to-secret");
    link(Path::new("/dev/zero"), "to-device");
    link(Path::new("/proc/self/environ"), "to-process");
    link(Path::new("/proc/self/root/etc/passwd"), "to-magic");
    link(Path::new("loop"), "loop");
    link(Path::new("nowhere"), "dangling");
    link(&place.path("outside"), "to-directory");
    fifo(&at("fifo"));
    link(Path::new("fifo"), "to-fifo");
    // Its file stays when the listener is closed.
    UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    fs::read_dir(place.path(directory))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["file", "deep", "deeper"].contains(&name.as_str()))
        .map(|name| PathBuf::from(directory).join(name))
        .map(|path| path.strip_prefix("inside").unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn only_regular_files_beneath_are_read() {
    for resolver in BOTH {
        let place = Place::new();
        let mut wrong = traps(&place, "inside");
        wrong.extend(traps(&place, "inside/deep"));
        wrong.extend(
            [
                "",
                ".",
                "..",
                "/",
                "/etc/passwd",
                "../secret",
                "../outside/file",
                "deep/../../secret",
                "deep/../file",
                "deep/..",
                "to-directory/file",
                "deep/to-directory/file",
                "file/x",
                "directory/none",
                "fifo/x",
            ]
            .map(str::to_owned),
        );
        let shared = place.shared(resolver);
        for path in wrong {
            let error = shared.read(&path, 100).unwrap_err();
            let expected = match &*path {
                "directory/none" => io::ErrorKind::NotFound,
                _ => io::ErrorKind::InvalidInput,
            };
            assert_eq!(error.kind(), expected, "{resolver:?} {path}: {error}");
        }
        for right in ["file", "./file", "deep/file", "./deep/./deeper//file"] {
            assert_eq!(shared.read(right, 4).unwrap(), b"mine", "{resolver:?} {right}");
        }
    }
}

#[test]
fn the_reasons_are_words() {
    for resolver in BOTH {
        let place = Place::new();
        traps(&place, "inside");
        let shared = place.shared(resolver);
        let reasons =
            ["to-secret", "to-directory/file", "../secret", "file/x", "fifo", "directory"]
                .map(|path| shared.read(path, 100).unwrap_err().to_string());
        assert_eq!(
            reasons,
            [
                "it is a symbolic link, or its path leads over one",
                "it is a symbolic link, or its path leads over one",
                "it is outside of the directory",
                "a part of its path is not a directory",
                "it is not a regular file",
                "it is a directory",
            ],
            "{resolver:?}"
        );
    }
}

#[test]
fn a_long_file_is_an_error_and_not_read_to_its_end() {
    for resolver in BOTH {
        let place = Place::new();
        let sparse = File::create(place.path("inside/sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let shared = place.shared(resolver);
        let error = shared.read("sparse", 1000).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::FileTooLarge, "it is longer than 1000 bytes".to_owned())
        );
        assert_eq!(shared.read("file", 4).unwrap(), b"mine");
        assert_eq!(shared.read("file", 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(shared.facts("sparse").unwrap().unwrap().bytes, 1 << 40);
    }
}

#[test]
fn facts_describe_the_name_itself() {
    for resolver in BOTH {
        let place = Place::new();
        traps(&place, "inside");
        let shared = place.shared(resolver);
        let kind = |path: &str| shared.facts(path).unwrap().map(|facts| facts.kind);
        assert_eq!(kind("file"), Some(EntryKind::File));
        assert_eq!(kind("deep/deeper"), Some(EntryKind::Directory));
        assert_eq!(kind("to-secret"), Some(EntryKind::Link));
        assert_eq!(kind("fifo"), Some(EntryKind::Special));
        assert_eq!(kind("none"), None);
        assert_eq!(kind("deep/none"), None);
        assert!(shared.facts("to-directory/file").is_err());
        assert!(shared.facts("../secret").is_err());
    }
}

#[test]
fn links_that_stay_beneath_are_followed_on_request() {
    for resolver in BOTH {
        let place = Place::new();
        let mut wrong = traps(&place, "inside/deep");
        symlink("../file", place.path("inside/deep/up")).unwrap();
        symlink("deep", place.path("inside/down")).unwrap();
        symlink(place.path("inside/deep/up"), place.path("inside/absolute")).unwrap();
        symlink(place.path("inside/deep/up"), place.path("inside/deep/absolute")).unwrap();
        symlink(place.path("inside/../secret"), place.path("inside/round")).unwrap();
        symlink("deep/../../secret", place.path("inside/out")).unwrap();
        symlink("..", place.path("inside/above")).unwrap();
        let names = ["round", "out", "above/secret", "above/inside/file", "../inside/file", ".."];
        wrong.extend(names.map(str::to_owned));
        let shared = place.shared(resolver);
        for path in wrong {
            let error = shared.followed(&path).unwrap_err();
            let expected = match &*path {
                "deep/dangling" => io::ErrorKind::NotFound,
                _ => io::ErrorKind::InvalidInput,
            };
            assert_eq!(error.kind(), expected, "{path}: {error}");
        }
        for (right, real) in [
            ("file", "file"),
            ("deep/up", "file"),
            ("absolute", "file"),
            ("deep/absolute", "file"),
            ("down/deeper/../file", "deep/file"),
            ("deep/../down/up", "file"),
        ] {
            let mut text = String::new();
            let mut followed = shared.followed(right).unwrap();
            followed.file.read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), &*followed.path), ("mine", Path::new(real)), "{right}");
        }
    }
}

#[test]
fn names_are_sorted_and_bounded() {
    for resolver in BOTH {
        let place = Place::new();
        let odd = OsStr::from_bytes(b"odd\xff");
        fs::write(place.path("inside").join(odd), "").unwrap();
        let shared = place.shared(resolver);
        let all = shared.names(10, |_| true).unwrap();
        let expected = ["deep".into(), "file".into(), odd.to_owned()];
        assert_eq!(all, Names { names: expected.to_vec(), is_cut: false });
        let some = shared.names(1, |name| name != "deep").unwrap();
        assert_eq!(some, Names { names: vec!["file".into()], is_cut: true });
        assert_eq!(shared.read(odd, 10).unwrap(), b"", "a name need not be UTF-8");
    }
}

#[test]
fn a_directory_with_very_many_entries_is_not_read_to_its_end() {
    let place = Place::new();
    for number in 0..MAX_ENTRIES {
        File::create(place.path("inside").join(number.to_string())).unwrap();
    }
    let mut seen = 0;
    let found = place.shared(Resolver::Kernel).names(10, |_| {
        seen += 1;
        false
    });
    assert_eq!(found.unwrap(), Names { names: Vec::new(), is_cut: true });
    assert!(seen <= MAX_ENTRIES, "{seen}");
}

#[test]
fn what_is_written_stays_inside_and_replaces_names_only() {
    for resolver in BOTH {
        let place = Place::new();
        symlink("../secret", place.path("inside/link")).unwrap();
        fs::hard_link(place.path("secret"), place.path("inside/second")).unwrap();
        symlink("../outside", place.path("inside/out")).unwrap();
        fifo(&place.path("inside/fifo"));
        let shared = place.shared(resolver);
        for name in ["link", "second", "fifo", "new", "deep/new"] {
            shared.write(name, b"ours", SYNCED).unwrap();
            let found = fs::symlink_metadata(place.path("inside").join(name)).unwrap();
            assert_eq!((found.is_file(), found.mode() & 0o777, found.nlink()), (true, 0o600, 1));
            assert_eq!(shared.read(name, 10).unwrap(), b"ours");
        }
        for wrong in ["out/file", "out/new", "../secret", "/tmp/x", "..", "", "none/new", "deep"] {
            assert!(shared.write(wrong, b"ours", SYNCED).is_err(), "{wrong}");
            assert!(shared.create(wrong, Access::Owner).is_err(), "{wrong}");
            assert!(shared.append(wrong, Access::Owner).is_err(), "{wrong}");
        }
        let names = shared.names(100, |name| name.as_encoded_bytes().starts_with(b".")).unwrap();
        assert_eq!(names, Names::default(), "nothing is left behind");
        assert_eq!(fs::read(place.path("secret")).unwrap(), b"theirs");
        assert_eq!(fs::read(place.path("outside/file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    }
}

#[test]
fn new_files_replace_nothing_and_appended_ones_have_one_name() {
    for resolver in BOTH {
        let place = Place::new();
        traps(&place, "inside");
        fs::hard_link(place.path("secret"), place.path("inside/second")).unwrap();
        let shared = place.shared(resolver);
        for name in ["file", "dangling", "to-secret", "fifo", "directory"] {
            let error = shared.create(name, Access::Owner).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        // A FIFO that somebody reads could be opened for writing.
        let _reader = fs::OpenOptions::new().read(true).write(true).open(place.path("inside/fifo"));
        for name in ["second", "dangling", "to-secret", "fifo", "socket", "directory"] {
            let error = shared.append(name, Access::Owner).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        for _ in 0..2 {
            shared.append("log", Access::Everyone).unwrap().write_all(b"ours").unwrap();
        }
        assert_eq!(shared.read("log", 10).unwrap(), b"oursours");
        shared.create("fresh", Access::Owner).unwrap().write_all(b"ours").unwrap();
        assert_eq!(shared.read("fresh", 10).unwrap(), b"ours");
        assert_eq!(fs::read(place.path("secret")).unwrap(), b"theirs");
    }
}

#[test]
fn directories_are_made_and_opened_inside_only() {
    for resolver in BOTH {
        let place = Place::new();
        traps(&place, "inside");
        let shared = place.shared(resolver);
        for wrong in ["to-directory", "to-directory/new", "dangling", "fifo/x", "../new", "file"] {
            let error = shared.make_directory(wrong, Access::Owner).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong}: {error}");
        }
        let made = shared.make_directory("./one/two", Access::Owner).unwrap();
        made.write("file", b"ours", SYNCED).unwrap();
        assert_eq!(made.path(), place.path("inside/one/two"));
        let mode = fs::metadata(place.path("inside/one")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let again = shared.make_directory("one/two", Access::Owner).unwrap();
        assert_eq!(again.read("file", 10).unwrap(), b"ours");
        let one = shared.directory("one").unwrap();
        assert_eq!(one.read("two/file", 10).unwrap(), b"ours");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
        assert!(!place.path("new").exists());
    }
}

#[test]
fn what_is_removed_or_moved_is_the_name_itself() {
    for resolver in BOTH {
        let place = Place::new();
        traps(&place, "inside");
        let (shared, target) = (place.shared(resolver), place.shared(resolver));
        let target = target.make_directory("target", Access::Owner).unwrap();
        assert!(shared.remove("to-secret").unwrap());
        assert!(!shared.remove("to-secret").unwrap());
        assert!(shared.remove("directory").is_err());
        assert!(shared.remove("to-directory/file").is_err());
        assert!(shared.move_to("to-device", &target, "moved").unwrap());
        assert!(!shared.move_to("to-device", &target, "moved").unwrap());
        assert!(shared.move_to("to-directory/file", &target, "moved").is_err());
        assert!(shared.move_to("file", &target, "../../moved").is_err());
        assert_eq!(target.facts("moved").unwrap().unwrap().kind, EntryKind::Link);
        assert_eq!(fs::read(place.path("secret")).unwrap(), b"theirs");
        assert_eq!(fs::read(place.path("outside/file")).unwrap(), b"theirs");
    }
}

/// Ends the other thread even if an assertion fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_fifo_that_replaces_a_file_after_the_look_at_it_holds_nobody_up() {
    let place = Place::new();
    fifo(&place.path("inside/fifo"));
    let shared = place.shared(Resolver::Kernel);
    let (sender, receiver) = std::sync::mpsc::channel();
    // It is not joined: opening a FIFO waits forever.
    std::thread::spawn(move || {
        sender.send(walk::open_regular(shared.opened.as_fd(), OsStr::new("fifo"))).unwrap();
    });
    let opened = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("no wait");
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

/// Opening a device may do something, so it must not happen. A FIFO stands for the device.
#[cfg(target_os = "linux")]
#[test]
fn what_is_no_regular_file_is_not_even_opened() {
    use rustix::fs::inotify;

    let place = Place::new();
    fifo(&place.path("inside/fifo"));
    let shared = place.shared(Resolver::Kernel);
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    for name in ["inside/fifo", "inside/file"] {
        inotify::add_watch(&watch, place.path(name), inotify::WatchFlags::OPEN).unwrap();
    }
    let mut space = [std::mem::MaybeUninit::uninit(); 1024];
    let mut events = inotify::Reader::new(&watch, &mut space);
    assert!(shared.file("fifo").is_err());
    assert!(shared.followed("fifo").is_err());
    assert!(shared.append("fifo", Access::Owner).is_err());
    assert_eq!(events.next().unwrap_err(), Errno::AGAIN);
    shared.file("file").unwrap();
    assert!(events.next().is_ok(), "an opened file is seen");
}

/// Somebody replaces a file by a link, and a directory by a link, as fast as possible.
#[test]
fn nothing_outside_is_read_or_written_while_names_are_swapped() {
    const ROUNDS: usize = 2_000;
    for resolver in BOTH {
        let place = Place::new();
        let shared = place.shared(resolver);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let at = |name: &str| place.path("inside").join(name);
                symlink("../secret", at("link-to-file")).unwrap();
                symlink("../outside", at("link-to-directory")).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    for (name, link) in [("file", "link-to-file"), ("deep", "link-to-directory")] {
                        let exchange = |one: &Path, other: &Path| {
                            let flags = rustix::fs::RenameFlags::EXCHANGE;
                            let here = rustix::fs::CWD;
                            rustix::fs::renameat_with(here, one, here, other, flags).unwrap();
                        };
                        exchange(&at(name), &at(link));
                    }
                }
            });
            let _end = EndOnDrop(&is_over);
            for round in 0..ROUNDS {
                for path in ["file", "deep/file", "deep/deeper/../file"] {
                    if let Ok(bytes) = shared.read(path, 100) {
                        assert_eq!(bytes, b"mine", "{resolver:?} {path}");
                    }
                    if let Ok(mut followed) = shared.followed(path) {
                        let mut text = String::new();
                        followed.file.read_to_string(&mut text).unwrap();
                        assert_eq!(text, "mine", "{resolver:?} {path}");
                    }
                }
                // The file itself is swapped too, so what is written keeps its text.
                let unsynced = (Access::Owner, Durability::Unsynced);
                let _ = shared.write("deep/new", b"mine", unsynced);
                let _ = shared.make_directory(format!("deep/{}/x", round % 7), Access::Owner);
            }
        });
        assert_eq!(fs::read(place.path("secret")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    }
}

#[test]
fn a_directory_that_is_moved_away_stays_the_one_that_was_opened() {
    for resolver in BOTH {
        let place = Place::new();
        let shared = place.shared(resolver);
        let deep = shared.directory("deep").unwrap();
        fs::rename(place.path("inside/deep"), place.path("inside/moved")).unwrap();
        symlink("../outside", place.path("inside/deep")).unwrap();
        assert_eq!(deep.read("file", 10).unwrap(), b"mine");
        deep.write("new", b"ours", SYNCED).unwrap();
        assert!(place.path("inside/moved/new").exists());
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    }
}

#[test]
fn files_of_killed_writers_are_removed_and_no_others() {
    let place = tempfile::tempdir().unwrap();
    let directory = SharedDirectory::open(place.path()).unwrap();
    let mut ended = Command::new("true").spawn().unwrap();
    let id = ended.id();
    ended.wait().unwrap();
    let own = std::process::id();
    let (left, writing) = (format!(".new-1f-{id}-0.tmp"), format!(".new-1f-{own}-0.tmp"));
    for name in [&left, &writing, "new-1f-1-0.tmp", ".new-1f-x-0.tmp", "file"] {
        fs::write(place.path().join(name), "text").unwrap();
    }
    directory.remove_unfinished().unwrap();
    let names = directory.names(9, |_| true).unwrap().names;
    assert_eq!(names, [&writing, ".new-1f-x-0.tmp", "file", "new-1f-1-0.tmp"]);
    // The name is the one that a writer gives.
    let (_file, name) = new_file(&Parent::This(directory.opened.as_fd()), Access::Owner).unwrap();
    assert_eq!(writer_of(&name), Pid::from_raw(i32::try_from(own).unwrap()));
}
