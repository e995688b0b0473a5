//! Repairs the end of a log that a crash left in the middle of a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use myclaw_files::portable::{FileExt, set_length};
use myclaw_files::{parent_of, private_options, sync_directory};
use serde::de::IgnoredAny;

use crate::backward::BackwardLines;
use crate::error::{IoContext, SessionError};
use crate::now_ms;
use crate::reader::Positioned;

/// Separates the name of a log from the time at which its torn end was moved to a side file.
pub(crate) const TORN_MARK: &str = ".torn-";

/// A torn end of a log that was moved to a file next to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedAside {
    /// The path of the side file.
    pub path: PathBuf,
    /// How many bytes were moved.
    pub bytes: u64,
}

/// The state of the end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    /// It ended with a whole line, or was empty.
    NotNeeded,
    /// The last line lacked only its line feed, which was added.
    Terminated,
    /// The last line was torn; its bytes were moved to a side file.
    MovedAside(MovedAside),
}

/// Makes the log end with a whole line. Nothing is lost: torn bytes go to a file next to the log.
pub(crate) fn repair_torn_tail(file: &File, path: &Path) -> Result<Repair, SessionError> {
    let Some(torn_at) = torn_line(file).context("read the session log", path)? else {
        return Ok(Repair::NotNeeded);
    };
    if is_whole_object(file, torn_at) {
        (&mut &*file).write_all(b"\n").context("repair the last line of", path)?;
        return Ok(Repair::Terminated);
    }
    let moved = move_aside(file, torn_at, path)?;
    set_length(file, path, torn_at).context("cut the torn last line off", path)?;
    Ok(Repair::MovedAside(moved))
}

/// The length of the torn last line; 0 if there is none.
pub(crate) fn torn_bytes(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let torn_at = torn_line(file)?.filter(|torn_at| !is_whole_object(file, *torn_at));
    Ok(torn_at.map_or(0, |torn_at| length.saturating_sub(torn_at)))
}

/// The offset of the last line, if it has no line feed.
fn torn_line(file: &File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    let mut last = [0];
    if length == 0 || (file.read_at(&mut last, length - 1)? == 1 && last == *b"\n") {
        return Ok(None);
    }
    Ok(BackwardLines::new(Positioned::new(file))?.next_line()?.map(|line| line.offset))
}

/// True if everything from `start` on is one JSON object. A prefix of an object never is.
fn is_whole_object(file: &File, start: u64) -> bool {
    let mut rest = Positioned::new(file);
    if rest.seek(SeekFrom::Start(start)).is_err() {
        return false;
    }
    // Only the names of the outermost fields are kept in memory, however large the line is.
    serde_json::from_reader::<_, BTreeMap<String, IgnoredAny>>(BufReader::new(rest)).is_ok()
}

/// Copies everything from `start` on into a new file next to the log.
fn move_aside(file: &File, start: u64, path: &Path) -> Result<MovedAside, SessionError> {
    let (mut side_file, side_path) = create_side_file(path)?;
    let mut torn = Positioned::new(file);
    let copied = torn
        .seek(SeekFrom::Start(start))
        .and_then(|_| io::copy(&mut torn.by_ref(), &mut side_file))
        .and_then(|bytes| side_file.sync_all().map(|()| bytes))
        .and_then(|bytes| sync_directory(&parent_of(path)).map(|()| bytes));
    if copied.is_err() {
        // The bytes are still in the log, so an incomplete copy is not needed.
        let _ = std::fs::remove_file(&side_path);
    }
    let bytes = copied.context("save the torn last line to", &side_path)?;
    Ok(MovedAside { path: side_path, bytes })
}

fn create_side_file(path: &Path) -> Result<(File, PathBuf), SessionError> {
    let mut stamp = now_ms();
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{TORN_MARK}{stamp}"));
        let side_path = PathBuf::from(name);
        match private_options().write(true).create_new(true).open(&side_path) {
            Ok(file) => return Ok((file, side_path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stamp += 1,
            Err(error) => {
                return Err(SessionError::from_io("save the torn last line to", &side_path, error));
            }
        }
    }
}
