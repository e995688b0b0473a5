//! The files that are imported, and the directories that their sessions worked in.

use std::fs::File;
use std::io::Seek as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::detect::Format;
use super::lines::Lines;
use myclaw_front::exit::CliError;

/// Lines in which the directory of a session is looked for.
const MOST_LINES: usize = 50;
/// Deepest directories that are searched.
const MOST_DEPTH: usize = 8;
/// Extension of the files that are looked for in directories.
const EXTENSION: &str = "jsonl";
/// Beginning of the names of Claude Code's files for sub-agents, which are no sessions.
const SUBAGENT: &str = "agent-";

/// The named files, and the files in the named directories; and whether there are directories.
///
/// # Errors
/// A directory cannot be read or holds no such file.
pub(super) fn expanded(named: &[PathBuf]) -> Result<(Vec<PathBuf>, bool), CliError> {
    let (mut files, mut is_search) = (Vec::new(), false);
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        is_search = true;
        let before = files.len();
        search(path, MOST_DEPTH, &mut files)?;
        if files.len() == before {
            return Err(CliError::failure(format!("{} holds no .jsonl files", path.display())));
        }
    }
    Ok((files, is_search))
}

fn search(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let listing =
        std::fs::read_dir(directory).map_err(|error| super::cannot_read(directory, &error))?;
    let mut entries: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        // Links are not followed: they may lead anywhere.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() && depth > 0 {
            search(&path, depth - 1, files)?;
        } else if metadata.is_file()
            && path.extension().is_some_and(|extension| extension == EXTENSION)
            && !name.starts_with(SUBAGENT)
        {
            files.push(path);
        }
    }
    Ok(())
}

/// The directory that the session worked in, if the file says so.
///
/// # Errors
/// The file cannot be read.
pub(super) fn directory_of(
    mut file: &File,
    path: &Path,
    format: Format,
) -> Result<Option<PathBuf>, CliError> {
    if !matches!(format, Format::Native | Format::Claude | Format::Codex) {
        return Ok(None);
    }
    let mut found = None;
    let mut lines = Lines::new(file, path);
    for _ in 0..MOST_LINES {
        let Some(line) = lines.next()? else { break };
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(line.bytes) else { continue };
        let payload = fields.get("payload").and_then(Value::as_object).unwrap_or(&fields);
        let name = if format == Format::Native { "directory" } else { "cwd" };
        if let Some(directory) = payload.get(name).and_then(Value::as_str) {
            found = Some(PathBuf::from(directory)).filter(|path| path.is_absolute());
            break;
        }
    }
    file.rewind().map_err(|error| super::cannot_read(path, &error))?;
    Ok(found)
}
