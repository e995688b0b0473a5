//! This program's file, for the helpers that are started from it.

use std::path::PathBuf;

use parking_lot::Mutex;

use crate::{AgentError, FailureClass};

/// What names of directories with a copy begin with.
const DIRECTORY_PREFIX: &str = "myclaw-program-";

/// The copy, once the file was replaced.
static COPY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A file with this program: its own, or a copy if that was replaced or removed, as package managers do in an update. The
/// new file does not do: helpers of another version are refused.
///
/// # Errors
/// The file is gone, and cannot be copied here.
pub(crate) fn program() -> Result<PathBuf, AgentError> {
    let gone = |problem: &str| {
        AgentError::new(
            FailureClass::Sandbox,
            format!(
                "the program's own file was replaced or removed, and cannot be started again ({problem}); start MyClaw anew"
            ),
        )
    };
    let own = std::env::current_exe().map_err(|error| gone(&error.to_string()))?;
    if own.is_file() {
        return Ok(own);
    }
    let mut known = COPY.lock();
    if let Some(copy) = known.as_ref().filter(|copy| copy.is_file()) {
        return Ok(copy.clone());
    }
    let copy = copied().map_err(|error| {
        gone(&format!("no copy in {}: {error}", std::env::temp_dir().display()))
    })?;
    Ok(known.insert(copy).clone())
}

/// Writes what runs into a directory that is removed when the program ends. Must be called within a tokio runtime.
#[cfg(target_os = "linux")]
fn copied() -> std::io::Result<PathBuf> {
    let runtime = tokio::runtime::Handle::try_current().map_err(std::io::Error::other)?;
    let directory = myclaw_files::OwnedDirectory::create(&std::env::temp_dir(), DIRECTORY_PREFIX)?;
    let copy = myclaw_files::canonical_or_same(directory.path()).join("myclaw");
    // The link leads to the file also when that has no name any more.
    std::fs::copy("/proc/self/exe", &copy)?;
    // A program that exits drops its tasks, and not its statics.
    runtime.spawn(async move {
        let _owned = directory;
        std::future::pending::<()>().await;
    });
    Ok(copy)
}

#[cfg(not(target_os = "linux"))]
fn copied() -> std::io::Result<PathBuf> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}
