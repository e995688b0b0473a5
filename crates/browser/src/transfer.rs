//! Files that go into the browser and come out of it.
//!
//! The browser never gets a path of the user's: uploads are copied into its directory, and what it writes is moved to
//! the session's artifacts. So a page, or a link that is changed meanwhile, cannot make it read or write anything else.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use myclaw_files::portable::path_of;
use myclaw_files::{ClosedPaths, PathUse, canonical, create_private_directory, open_real};

use crate::error::BrowserError;

/// Largest file that is uploaded.
const MAX_UPLOAD_BYTES: u64 = 100 * 1024 * 1024;
/// Most files of one upload.
const MAX_UPLOADS: usize = 20;
/// Most downloads that are moved to the artifacts at once.
const MAX_DOWNLOADS: usize = 20;
/// Longest part of a download's name that is kept, in characters.
const MAX_NAME_CHARS: usize = 100;
/// How Chromium names downloads that are not finished.
const UNFINISHED: &str = "crdownload";

/// What has been downloaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Downloads {
    /// Finished files, now among the artifacts, with their sizes in bytes.
    pub(crate) finished: Vec<(PathBuf, u64)>,
    /// How many are still coming in.
    pub(crate) running: usize,
}

/// Copies files of the working directory to where the browser may read them. Blocking.
///
/// # Errors
/// A file is outside the working directory or closed to tools, is no regular file, or is too large.
pub(crate) fn stage_uploads(
    paths: &[String],
    working_directory: &Path,
    closed: &ClosedPaths,
    uploads: &Path,
) -> Result<Vec<PathBuf>, BrowserError> {
    if paths.is_empty() || paths.len() > MAX_UPLOADS {
        return Err(BrowserError::Argument(format!(
            "the action upload needs paths: 1 to {MAX_UPLOADS} files of the working directory"
        )));
    }
    let root =
        canonical(working_directory).map_err(BrowserError::file("find the working directory"))?;
    let place = uploads.join(stamp());
    fs::create_dir(&place).map_err(BrowserError::file("make a place for uploads"))?;
    paths.iter().map(|path| stage_upload(path, &root, closed, &place)).collect()
}

fn stage_upload(
    path: &str,
    root: &Path,
    closed: &ClosedPaths,
    place: &Path,
) -> Result<PathBuf, BrowserError> {
    let outside = || {
        BrowserError::Argument(format!(
            "{path:?} is not in the working directory; copy the file there first"
        ))
    };
    let real =
        canonical(root.join(path)).map_err(BrowserError::file(format!("upload {path:?}")))?;
    if !real.starts_with(root) {
        return Err(outside());
    }
    if closed.refusing(&real, PathUse::Read).is_some() {
        return Err(BrowserError::Argument(format!(
            "{path:?} holds the program's own config, keys or records, which are not uploaded"
        )));
    }
    let file = open_real(&real).map_err(BrowserError::file(format!("upload {path:?}")))?;
    // A directory of the path may have been replaced by a link since then, so the check looks at the file that is open.
    if path_of(&file).is_some_and(|opened| !opened.starts_with(root)) {
        return Err(outside());
    }
    let name = real.file_name().ok_or_else(outside)?;
    let staged = place.join(name);
    let copied = File::create_new(&staged)
        .and_then(|mut copy| io::copy(&mut file.take(MAX_UPLOAD_BYTES + 1), &mut copy))
        .map_err(BrowserError::file(format!("copy {path:?} for the upload")))?;
    if copied > MAX_UPLOAD_BYTES {
        return Err(BrowserError::Argument(format!(
            "{path:?} is larger than {} MB, the most that is uploaded",
            MAX_UPLOAD_BYTES / (1024 * 1024)
        )));
    }
    Ok(staged)
}

/// Moves finished downloads to the artifacts. Blocking.
///
/// # Errors
/// A file cannot be moved; it stays where it is.
pub(crate) fn collect_downloads(
    downloads: &Path,
    artifacts: &Path,
) -> Result<Downloads, BrowserError> {
    let mut collected = Downloads::default();
    for entry in fs::read_dir(downloads).into_iter().flatten().flatten().take(MAX_DOWNLOADS) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            collected.running += 1;
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let name = entry.file_name();
            let kept = keep(
                &path,
                artifacts,
                &format!("download-{}", harmless_name(&name.to_string_lossy())),
            )?;
            let size = fs::metadata(&kept).map_or(0, |metadata| metadata.len());
            collected.finished.push((kept, size));
        }
    }
    Ok(collected)
}

/// Moves a file that the browser wrote to the artifacts, under a new name that ends with `name`. Blocking.
///
/// # Errors
/// The file is not there, or cannot be moved.
pub(crate) fn keep(path: &Path, artifacts: &Path, name: &str) -> Result<PathBuf, BrowserError> {
    create_private_directory(artifacts)
        .map_err(BrowserError::file("make the directory for the session's files"))?;
    let kept = artifacts.join(format!("{}-{name}", stamp()));
    // The two may be on different file systems, where only a copy can be made.
    fs::rename(path, &kept)
        .or_else(|_| fs::copy(path, &kept).and_then(|_| fs::remove_file(path)))
        .map_err(BrowserError::file("keep the file that the browser wrote"))?;
    Ok(kept)
}

fn stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("browser-{}", now.as_nanos())
}

/// A name without anything that has a meaning to a shell or a reader of the name.
fn harmless_name(name: &str) -> String {
    let is_harmless = |char: char| char.is_ascii_alphanumeric() || ".-_".contains(char);
    let start = name.chars().count().saturating_sub(MAX_NAME_CHARS);
    name.chars().skip(start).map(|char| if is_harmless(char) { char } else { '_' }).collect()
}
