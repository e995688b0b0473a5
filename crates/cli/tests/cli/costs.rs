//! What a plain turn costs, where that can be counted without a clock.

#![cfg(target_os = "linux")]

use std::mem::MaybeUninit;
use std::path::Path;

use myclaw_testkit::{Reply, RunningChild};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use crate::{myclaw, serve};

/// Sees what happens to the files of a directory.
struct Watch(rustix::fd::OwnedFd);

impl Watch {
    fn of(directory: &Path) -> Self {
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
        // Two events in a row that are the same count as one, so the end of each is seen too.
        let flags = WatchFlags::OPEN | WatchFlags::CLOSE | WatchFlags::MOVED_TO;
        add_watch(&watch, directory, flags).expect("a watch");
        Self(watch)
    }

    /// How often this happened to the file of this name.
    fn count(&self, what: ReadFlags, name: &str) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 64 * 1024];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            let is_it = event.file_name().is_some_and(|it| it.to_bytes() == name.as_bytes());
            count += usize::from(is_it && event.events().contains(what));
        }
        count
    }
}

#[test]
fn a_plain_turn_reads_its_config_once_and_writes_the_list_of_sessions_once() {
    let (_server, home) = serve(Reply::anthropic().text("Hi."));
    std::fs::create_dir_all(home.sessions_directory()).expect("a directory");
    let config = Watch::of(&home.state_directory());
    let list = Watch::of(&home.sessions_directory());
    RunningChild::run(&mut myclaw(&home, &["run", "hello"])).assert_code(0);
    assert_eq!(config.count(ReadFlags::OPEN, "myclaw.json"), 1);
    assert_eq!(list.count(ReadFlags::MOVED_TO, "sessions.json"), 1);
}
