//! The identity and content of a file.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use myclaw_files::open_regular;
use myclaw_files::portable::MetadataExt;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};

/// Largest text that is kept, so that its changes can be shown.
const MAX_TEXT: u64 = 64 * 1024;
/// Most digests that are remembered.
const MAX_KNOWN: usize = 4096;
/// Seconds after which a change counts as settled: more than any file system rounds its times to.
const SETTLED_SECONDS: i64 = 2;
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Longest first line of a script that is looked at; the kernel reads no more (`BINPRM_BUF_SIZE`).
const MAX_FIRST_LINE: usize = 256;

/// What is known of a file.
pub(super) struct FileState {
    /// Differs when the file is another one, or has another content.
    pub(super) state: String,
    /// Its content.
    pub(super) text: Option<String>,
    /// The programs that the first line of a script names.
    pub(super) interpreter: Vec<String>,
    /// Bytes that were read for it.
    pub(super) read: u64,
}

/// Whether the content of a file is wanted as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Kept,
    Dropped,
}

/// Identifies a content: nobody can change a file without changing the last of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The digests and the beginnings of files that were read before. All sessions share them, because they share the files.
static KNOWN: LazyLock<Mutex<Digests>> = LazyLock::new(Mutex::default);

type Digests = HashMap<Stamp, (String, Vec<u8>)>;

impl Stamp {
    /// Whether the last change is so long ago that the next one gets another time.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_secs()).is_ok_and(|now| now - self.changed.0 > SETTLED_SECONDS)
    }

    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Reads the file at `path`, if it has at most `most` bytes. Never blocks on anything but a regular file.
pub(super) fn of(path: &Path, wanted: Text, most: u64) -> FileState {
    let read = || -> io::Result<FileState> {
        let file = open_regular(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let identity = format!("device {}, inode {}", stamp.device, stamp.inode);
        if stamp.size > most {
            let Stamp { size, modified, changed, .. } = stamp;
            let state = format!("{size} bytes, changed {modified:?} {changed:?}, {identity}");
            return Ok(FileState { state, text: None, interpreter: Vec::new(), read: 0 });
        }
        let (digest, start) = content(&file, stamp)?;
        let text = match wanted {
            Text::Kept if stamp.size <= MAX_TEXT => text(path),
            _ => None,
        };
        let interpreter = interpreter(&start);
        let state = format!("sha256 {digest}, {identity}");
        Ok(FileState { state, text, interpreter, read: stamp.size })
    };
    read().unwrap_or_else(|error| FileState {
        state: match error.kind() {
            io::ErrorKind::NotFound => "nothing".to_owned(),
            kind => format!("no readable file ({kind})"),
        },
        text: None,
        interpreter: Vec::new(),
        read: 0,
    })
}

/// The digest of a file, and its beginning.
fn content(mut file: &File, stamp: Stamp) -> io::Result<(String, Vec<u8>)> {
    let known = || KNOWN.lock();
    if let Some(content) = known().get(&stamp) {
        return Ok(content.clone());
    }
    let mut context = Context::new(&SHA256);
    let (mut start, mut piece) = (Vec::new(), vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        let read = piece.get(..count).unwrap_or_default();
        context.update(read);
        let room = MAX_FIRST_LINE.saturating_sub(start.len());
        start.extend(read.iter().take(room));
    }
    let digest = context.finish();
    let hex = myclaw_files::hex(digest.as_ref());
    // What changed while it was read belongs to neither content. The clock of the kernel ticks in milliseconds, so a file
    // that has just changed can change again without another stamp.
    if Stamp::of(&file.metadata()?) == stamp && stamp.is_settled() {
        let mut known = known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(stamp, (hex.clone(), start.clone()));
    }
    Ok((hex, start))
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(path).ok()?.take(MAX_TEXT).read_to_string(&mut text).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// The program of a script, and with `env` also the one that this starts.
fn interpreter(start: &[u8]) -> Vec<String> {
    let Some(line) = start.strip_prefix(b"#!") else { return Vec::new() };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words = line.split_whitespace().filter(|word| !word.starts_with('-'));
    words.map(str::to_owned).collect()
}
