use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

/// The filter for system calls closes sockets as well, so a whole sandbox does not show that these rules do.
#[test]
fn landlock_alone_closes_tcp() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    for (tcp, is_open) in [(Tcp::Closed, false), (Tcp::Open, true)] {
        // The rules hold for the thread that applies them.
        let reached = thread::spawn(move || {
            restrict(&FileRules { tcp, ..FileRules::default() }).unwrap();
            [TcpStream::connect(address).is_ok(), TcpListener::bind("127.0.0.1:0").is_ok()]
        });
        assert_eq!(reached.join().unwrap(), [is_open; 2], "{tcp:?}");
    }
}

#[test]
fn what_may_be_read_may_not_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    std::fs::write(root.join("file"), "old").unwrap();
    let tried = thread::spawn(move || {
        restrict(&FileRules { readable: vec![root.clone()], ..FileRules::default() }).unwrap();
        let file = root.join("file");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        [
            std::fs::write(&file, "new").is_ok(),
            std::fs::write(root.join("new"), "new").is_ok(),
            std::fs::remove_file(&file).is_ok(),
            std::fs::rename(&file, root.join("moved")).is_ok(),
            std::fs::create_dir(root.join("made")).is_ok(),
            std::os::unix::fs::symlink("file", root.join("link")).is_ok(),
        ]
    });
    assert_eq!(tried.join().unwrap(), [false; 6]);
}

/// The capability for it is dropped as well.
#[test]
fn no_device_can_be_made_where_everything_else_can() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    let tried = thread::spawn(move || {
        restrict(&FileRules { writable: vec![root.clone()], ..FileRules::default() }).unwrap();
        let make = |name, kind| mknodat(CWD, root.join(name), kind, Mode::RUSR, makedev(1, 3));
        [make("pipe", FileType::Fifo), make("device", FileType::CharacterDevice)]
    });
    assert_eq!(tried.join().unwrap(), [Ok(()), Err(rustix::io::Errno::ACCESS)]);
}
