//! Lines of a job's output: from memory if they are there, otherwise from its output file.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use myclaw_engine::{ToolError, ToolOutput};
use myclaw_llm::outside::harmless_output;

use super::{details, record_of};
use crate::jobs::{Found, count_lines, end_of_file};
use crate::support::{cut_end, cut_line, plain_text, run_blocking};

/// Lines if the call gives no limit.
const SOME_LINES: u64 = 200;
/// Most lines of one call.
const MAX_LINES: u64 = 2_000;
/// Most characters of a line.
const MAX_LINE_CHARS: usize = 2_000;
/// Most bytes of a line that are read.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Bytes at the end of an output file that the last lines are taken from.
const END_BYTES: u64 = 512 * 1024;
/// Characters reserved for the line about what is shown.
const NOTE_CHARS: usize = 300;

/// What to show: from line `offset` on (the first is 1), or the last lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) offset: Option<u64>,
    pub(super) limit: Option<u64>,
}

/// Lines, and the number of the first.
struct Lines {
    /// `None` if it is not known.
    first: Option<u64>,
    lines: Vec<String>,
    /// Whether there are further lines after them.
    more: bool,
}

/// Shows lines of a job's output.
pub(super) async fn show(
    found: Found,
    wanted: Wanted,
    max_chars: usize,
) -> Result<ToolOutput, ToolError> {
    let limit = wanted.limit.unwrap_or(SOME_LINES).clamp(1, MAX_LINES);
    let record = record_of(&found);
    let in_memory = match &found {
        Found::Own(job) => {
            job.mark_seen();
            Some(job.live.recent())
        }
        Found::Record(_) => None,
    };
    let path = record.output.clone();
    let lines = run_blocking(move || {
        Ok(match (in_memory, wanted.offset) {
            (Some((bytes, before)), None) => last_lines(&bytes, Some(before), limit),
            (Some((bytes, before)), Some(offset)) if before == 0 || offset > before + 1 => {
                from_line(&bytes[..], before, offset, limit)
            }
            (_, Some(offset)) => from_file(&path, offset, limit),
            (None, None) => last_lines(&end_of_file(&path, END_BYTES), None, limit),
        })
    })
    .await?;
    let text = cut_end(&lines.lines.join("\n"), max_chars.saturating_sub(NOTE_CHARS)).into_owned();
    let note = match (lines.first, lines.lines.len()) {
        (_, 0) => match wanted.offset {
            Some(offset) => format!("no output from line {offset} on"),
            None => "no output".to_owned(),
        },
        (None, count) => format!("the last {count} lines"),
        (Some(first), count) => {
            let last = first + count as u64 - 1;
            let more = match lines.more {
                true => format!("; go on with offset {}", last + 1),
                false => String::new(),
            };
            format!("lines {first} to {last}{more}")
        }
    };
    let text = format!("{text}\n[job {}: {}; {note}]", record.id, record.state());
    let text = text.trim_start_matches('\n').to_owned();
    Ok(ToolOutput { details: Some(details(&record)), ..ToolOutput::text(text) })
}

/// The last lines. `before` is the number of lines before `bytes`, if it is known.
fn last_lines(bytes: &[u8], before: Option<u64>, limit: u64) -> Lines {
    let all: Vec<&[u8]> = split(bytes).collect();
    let skipped = all.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    Lines {
        first: before.map(|before| before + skipped as u64 + 1),
        lines: all[skipped..].iter().map(|line| shown(line)).collect(),
        more: false,
    }
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = (!bytes.is_empty()).then(|| whole.split(|byte| *byte == b'\n'));
    lines.into_iter().flatten()
}

fn from_file(path: &Path, offset: u64, limit: u64) -> Lines {
    match myclaw_files::open_regular_unlinked(path) {
        Ok(file) => from_line(BufReader::new(file), 0, offset, limit),
        // Without output there is no file.
        Err(_) => Lines { first: Some(offset), lines: Vec::new(), more: false },
    }
}

/// Lines from number `offset` on of a text that begins after `before` lines. An error ends the text.
fn from_line(mut text: impl BufRead, before: u64, offset: u64, limit: u64) -> Lines {
    let mut lines = Lines { first: Some(offset), lines: Vec::new(), more: false };
    let mut number = before + 1;
    let mut line = Vec::new();
    while next_line(&mut text, &mut line).unwrap_or(false) {
        if number >= offset.saturating_add(limit) {
            lines.more = true;
            break;
        }
        if number >= offset {
            lines.lines.push(shown(&line));
        }
        number += 1;
    }
    lines
}

/// Reads a line, and skips what exceeds [`MAX_LINE_BYTES`]. False at the end of the text.
fn next_line(text: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if text.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if count_lines(line) == 0 && line.len() as u64 == MAX_LINE_BYTES {
        text.skip_until(b'\n')?;
    }
    Ok(true)
}

fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = String::from_utf8_lossy(line);
    cut_line(&harmless_output(&plain_text(&line)), MAX_LINE_CHARS).into_owned()
}
