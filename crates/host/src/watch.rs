//! Files are noticed when they appear.
//!
//! The system reports changes (inotify). Once a second everything is looked at in any case: a container can replace a
//! directory that is watched, and some file systems report nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::Folder;

/// How often everything is looked at.
const POLL: Duration = Duration::from_secs(1);

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum WatchedPlace {
    /// The files of a group's runner.
    Ipc(Folder),
    /// The file channel.
    Channel,
    /// The list of groups.
    Groups,
}

/// Waits for changes.
pub(crate) struct Watch {
    tick: tokio::time::Interval,
    #[cfg(target_os = "linux")]
    notices: Option<linux::Notices>,
    places: HashMap<PathBuf, WatchedPlace>,
}

impl Watch {
    /// Watches nothing yet.
    pub(crate) fn new() -> Self {
        let mut tick = interval(POLL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            tick,
            #[cfg(target_os = "linux")]
            notices: linux::Notices::new().ok(),
            places: HashMap::new(),
        }
    }

    /// Watches a directory. May be called again: a directory that was replaced is then watched anew.
    pub(crate) fn add(&mut self, directory: &Path, place: WatchedPlace) {
        self.places.insert(directory.to_owned(), place);
        #[cfg(target_os = "linux")]
        if let (Some(notices), Some(place)) = (&mut self.notices, self.places.get(directory)) {
            notices.add(directory, place);
        }
    }

    /// Waits until something may have changed: at a place, or anywhere.
    pub(crate) async fn next(&mut self) -> Option<WatchedPlace> {
        #[cfg(target_os = "linux")]
        if let Some(notices) = &mut self.notices {
            return tokio::select! {
                place = notices.next() => place,
                _ = self.tick.tick() => None,
            };
        }
        self.tick.tick().await;
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, VecDeque};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use tokio::io::unix::AsyncFd;

    use super::WatchedPlace;

    /// Room for some dozens of events.
    const BUFFER: usize = 16 * 1024;

    /// The notices of the system.
    pub(super) struct Notices {
        queue: AsyncFd<OwnedFd>,
        places: HashMap<i32, WatchedPlace>,
        waiting: VecDeque<Option<WatchedPlace>>,
    }

    impl Notices {
        #[expect(
            deprecated,
            reason = "the other way is unsafe, and this descriptor stays open as long as its registration"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let (places, waiting) = (HashMap::new(), VecDeque::new());
            Ok(Self { queue: AsyncFd::new(queue)?, places, waiting })
        }

        pub(super) fn add(&mut self, directory: &Path, place: &WatchedPlace) {
            let flags = WatchFlags::MOVED_TO
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW;
            // Without a watch, the look once a second finds changes.
            if let Ok(id) = inotify::add_watch(self.queue.get_ref(), directory, flags) {
                self.places.insert(id, place.clone());
            }
        }

        /// Where something has changed; `None` if notices were lost.
        pub(super) async fn next(&mut self) -> Option<WatchedPlace> {
            loop {
                if let Some(place) = self.waiting.pop_front() {
                    return place;
                }
                let Ok(mut ready) = self.queue.readable().await else {
                    return std::future::pending().await;
                };
                let mut buffer = [MaybeUninit::uninit(); BUFFER];
                let mut reader = Reader::new(self.queue.get_ref(), &mut buffer);
                while let Ok(event) = reader.next() {
                    let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    let place = self.places.get(&event.wd()).filter(|_| !is_lost);
                    if is_lost || place.is_some() {
                        let place = place.cloned();
                        if !self.waiting.contains(&place) {
                            self.waiting.push_back(place);
                        }
                    }
                }
                ready.clear_ready();
            }
        }
    }
}
