//! Keys that the program knows do not stay in the files of long outputs, which are next to the session.
//!
//! A sandboxed session can change everything in that directory, so no link is followed, and the file is replaced as a whole.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{Hook, HookError, KnownSecrets, PreparedCall, ToolOutput};
use myclaw_files::{Access, SharedDirectory};
use serde_json::Value;

use crate::blocking::blocking;

/// Bytes that are searched at once.
const PIECE: usize = 1 << 20;
/// Bytes that are searched again with the next piece, which may hold the rest of a key.
const OVERLAP: usize = 64 << 10;
/// The ending of the file that takes the place of another.
const NEW: &str = "new";

/// Removes keys from the file of a call's output, before the model learns of it.
pub(crate) struct OutputsHook {
    pub(crate) known: Arc<KnownSecrets>,
    /// Where the session's files are.
    pub(crate) directory: PathBuf,
}

impl Hook for OutputsHook {
    fn name(&self) -> &str {
        "keys in outputs"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn tool_result<'a>(
        &'a self,
        _call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let details = output.details.as_ref();
            let text = |name: &str| details.and_then(|details| details.get(name)?.as_str());
            let has_ended =
                details.and_then(|details| details.get("running")) != Some(&Value::Bool(true));
            let of_job = text("outputPath").filter(|_| has_ended);
            let Some(path) = text("fullOutputPath").or(of_job).map(Path::new) else {
                return Ok(());
            };
            let Some(path) = path.file_name().map(|name| self.directory.join(name)) else {
                return Ok(());
            };
            let known = Arc::clone(&self.known);
            blocking(move || remove_keys(&path, &known)).await?;
            Ok(())
        })
    }
}

/// Removes keys from a file, which may be missing. Blocks.
pub(crate) fn remove_keys(path: &Path, known: &KnownSecrets) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
    let removed =
        SharedDirectory::open(directory).and_then(|directory| replace(&directory, name, known));
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "an output may still hold keys");
        }
        _ => {}
    }
}

fn replace(directory: &SharedDirectory, name: &OsStr, known: &KnownSecrets) -> io::Result<()> {
    let mut has_keys = false;
    cleaned(directory.file(name)?, known, |_, is_changed| {
        has_keys |= is_changed;
        Ok(())
    })?;
    if !has_keys {
        return Ok(());
    }
    let new = Path::new(name).with_added_extension(NEW);
    directory.remove(&new)?;
    let mut file = directory.create(&new, Access::Owner)?;
    let written = cleaned(directory.file(name)?, known, |text, _| file.write_all(text.as_bytes()));
    let moved = written.and_then(|()| directory.move_to(&new, directory, name));
    moved.map(drop).inspect_err(|_| drop(directory.remove(&new)))
}

/// Passes the text of a file on, piece by piece, without keys, and whether a piece had some.
fn cleaned(
    mut file: impl io::Read,
    known: &KnownSecrets,
    mut pass_on: impl FnMut(&str, bool) -> io::Result<()>,
) -> io::Result<()> {
    let mut text = String::new();
    let mut bytes = Vec::new();
    loop {
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut bytes)?;
        // A character may end in the next piece.
        let end = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            _ => bytes.len(),
        };
        text.push_str(&String::from_utf8_lossy(&bytes[..end]));
        bytes.drain(..end);
        let clean = known.without(&text);
        let is_changed = matches!(clean, Cow::Owned(_));
        let kept = if read == 0 { 0 } else { OVERLAP };
        let at = clean.floor_char_boundary(clean.len().saturating_sub(kept));
        pass_on(&clean[..at], is_changed)?;
        if read == 0 {
            return Ok(());
        }
        text = clean[at..].to_owned();
    }
}

#[cfg(test)]
mod tests;
