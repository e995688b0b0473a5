//! Notifies those who wait for messages to arrive.
//!
//! A message from this process notifies its watchers at once. Messages of other processes are noticed by one thread for
//! all sessions of the process: the system reports which file of a sessions directory was closed after writing. So a
//! running session costs nothing while nobody writes to it. Where the system cannot report that, the thread polls the
//! watched files.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use myclaw_files::parent_of;
use myclaw_files::portable::MetadataExt;
use parking_lot::{Mutex, MutexGuard};

use super::{InboxCallback, InboxWatch};

/// Pause between two polls where the system reports nothing: short enough for somebody who waits.
const PAUSE: Duration = Duration::from_millis(500);
/// Stack of the thread, whose calls are shallow.
const STACK_BYTES: usize = 128 * 1024;

/// All watches of this process.
static WATCHES: LazyLock<Mutex<Watches>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Watches {
    by_path: HashMap<PathBuf, Vec<(u64, InboxCallback)>>,
    last_id: u64,
    /// How messages of other processes are noticed; `None` until the first watch is added.
    source: Option<Source>,
}

/// How messages of other processes are noticed.
enum Source {
    #[cfg(target_os = "linux")]
    Events(events::Events),
    Looks,
}

/// Ends its watch when it is dropped.
pub(super) struct FileWatch {
    path: PathBuf,
    id: u64,
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FileWatch").field(&self.path).finish()
    }
}

impl FileWatch {
    pub(super) fn new(path: &Path, notify: InboxCallback) -> Self {
        let mut watches = watches();
        watches.last_id += 1;
        let id = watches.last_id;
        watches.by_path.entry(path.to_path_buf()).or_default().push((id, notify));
        Self { path: path.to_path_buf(), id }
    }
}

impl InboxWatch for FileWatch {
    fn notice_other_processes(&self) {
        watches().listen_to(&parent_of(&self.path));
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let mut watches = watches();
        if let Some(of_path) = watches.by_path.get_mut(&self.path) {
            of_path.retain(|(id, _)| *id != self.id);
            if of_path.is_empty() {
                watches.by_path.remove(&self.path);
            }
        }
    }
}

/// Notifies everybody in this process who watches the inbox at `path`.
pub(super) fn notify(path: &Path) {
    let found = watches().by_path.get(path).cloned().unwrap_or_default();
    // Called without the lock, because a callback may add a watch itself.
    for (_, notify) in found {
        notify();
    }
}

fn watches() -> MutexGuard<'static, Watches> {
    WATCHES.lock()
}

impl Watches {
    /// Begins to watch for writes of other processes into the inboxes of `directory`.
    fn listen_to(&mut self, directory: &Path) {
        #[cfg(target_os = "linux")]
        {
            if self.source.is_none() {
                self.source = events::Events::start().map(Source::Events);
            }
            if let Some(Source::Events(events)) = &mut self.source
                && events.add(directory)
            {
                return;
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = directory;
        if !matches!(self.source, Some(Source::Looks)) {
            self.source = Some(Source::Looks);
            // Without the thread, messages of other processes are noticed at the next step of a turn.
            let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(look_forever);
        }
    }
}

/// Polls the length and the time of every watched file.
fn look_forever() {
    let mut seen = HashMap::new();
    loop {
        thread::sleep(PAUSE);
        let paths: Vec<PathBuf> = watches().by_path.keys().cloned().collect();
        let now: HashMap<PathBuf, _> = paths
            .into_iter()
            .map(|path| {
                let found = std::fs::metadata(&path).ok();
                let state = found.map(|found| (found.len(), found.mtime(), found.mtime_nsec()));
                (path, state)
            })
            .collect();
        for (path, state) in &now {
            if seen.get(path).is_some_and(|before| before != state) {
                notify(path);
            }
        }
        seen = now;
    }
}

#[cfg(target_os = "linux")]
mod events {
    //! Watches files with the system's own notifications (inotify).

    use myclaw_files::portable::OsStrExt;
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::thread;

    use parking_lot::Mutex;
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    use rustix::io::Errno;

    use super::{STACK_BYTES, notify};

    /// Room for many events at once.
    const BUFFER_BYTES: usize = 16 * 1024;

    /// The watched directories, by the number that the system gave each.
    type Directories = Arc<Mutex<HashMap<i32, PathBuf>>>;

    pub(super) struct Events {
        queue: Arc<OwnedFd>,
        directories: Directories,
    }

    impl Events {
        /// Starts the thread; `None` if the system refuses.
        pub(super) fn start() -> Option<Self> {
            let queue = Arc::new(init(CreateFlags::CLOEXEC).ok()?);
            let directories = Directories::default();
            let (read_from, known) = (Arc::clone(&queue), Arc::clone(&directories));
            thread::Builder::new()
                .name("inbox".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || listen(&read_from, &known))
                .ok()?;
            Some(Self { queue, directories })
        }

        /// Watches one more directory. Returns false if the system refuses.
        pub(super) fn add(&self, directory: &Path) -> bool {
            let mut known = self.directories.lock();
            // A directory that was deleted and created again has another number, so it is added each time.
            let Ok(number) = add_watch(&self.queue, directory, WatchFlags::CLOSE_WRITE) else {
                return false;
            };
            known.insert(number, directory.to_path_buf());
            true
        }
    }

    fn listen(queue: &OwnedFd, directories: &Directories) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            let Some(name) = event.file_name() else { continue };
            if !name.to_bytes().ends_with(b".inbox") {
                continue;
            }
            let known = directories.lock();
            let directory = known.get(&event.wd()).cloned();
            drop(known);
            if let Some(directory) = directory {
                notify(&directory.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
}
