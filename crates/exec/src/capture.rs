//! A child's output: its tail in memory, all of it in a side file once it is long.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_files::portable::{O_NOFOLLOW, O_NONBLOCK, OpenOptionsExt};
use myclaw_files::private_options;
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

use crate::OutputLimits;
use crate::attach::Shared;

/// Most bytes of a side file, so that one command cannot fill the disk.
const MAX_SIDE_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// What a child printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// The end of the output, or all of it if `truncated` is false. Bytes that are not UTF-8 are replaced. A cut text
    /// begins at the start of a line, unless more than half of it would be lost that way.
    pub tail: String,
    /// All bytes that were printed.
    pub total_bytes: u64,
    /// Number of printed lines; a last line without a newline counts.
    pub total_lines: u64,
    /// Whether `tail` is not all of it.
    pub truncated: bool,
    /// The file with all output, if a side file was requested, and the output was truncated or the file was wanted in
    /// any case.
    pub side_file: Option<SideFile>,
}

/// The file with the whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// Where it is. With [`SideFileProblem::Failed`] it may not exist.
    pub path: PathBuf,
    /// Why it does not hold everything, if so.
    pub problem: Option<SideFileProblem>,
}

/// Why a side file does not hold everything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SideFileProblem {
    /// It reached the largest size that such a file may have.
    #[error("only the first {limit} bytes are in it")]
    Capped {
        /// In bytes.
        limit: u64,
    },
    /// It could not be written, or only in part, for example because the disk is full.
    #[error("it could not be written: {reason}")]
    Failed {
        /// An I/O error.
        reason: String,
    },
}

/// Collects output as it arrives. It takes twice the memory of the tail.
pub(crate) struct Capture {
    limits: OutputLimits,
    /// Whether the side file is wanted also for short output.
    link: Option<Arc<Shared>>,
    /// The newest bytes. They may exceed the limit, so that old bytes are removed seldom and many at a time.
    recent: Vec<u8>,
    total_bytes: u64,
    total_chars: u64,
    newlines: u64,
    ends_mid_line: bool,
    side: Side,
}

/// The state of the side file.
enum Side {
    /// The output is still short; `recent` holds all of it.
    NotNeeded,
    Open {
        file: File,
        written: u64,
    },
    Closed(Option<SideFileProblem>),
}

impl Capture {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        Self {
            limits,
            link: None,
            recent: Vec::new(),
            total_bytes: 0,
            total_chars: 0,
            newlines: 0,
            ends_mid_line: false,
            side: Side::NotNeeded,
        }
    }

    /// With a side file also for short output, if the holder of the other end of the link wants it.
    pub(crate) fn linked(self, link: Arc<Shared>) -> Self {
        Self { link: Some(link), ..self }
    }

    /// Takes the next piece of output.
    pub(crate) async fn push(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        self.ends_mid_line = *last != b'\n';
        self.total_bytes += piece.len() as u64;
        self.total_chars += piece.iter().filter(|byte| begins_char(**byte)).count() as u64;
        self.newlines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        if self.exceeds_limits() || self.keeps_all() {
            self.begin_side_file().await;
        }
        self.write_side_file(piece).await;
        self.keep(piece);
    }

    fn keeps_all(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.keeps_all())
    }

    /// Opens the side file, unless it was opened before, and writes the output so far.
    async fn begin_side_file(&mut self) {
        if matches!(self.side, Side::NotNeeded) {
            self.open_side_file().await;
            let so_far = std::mem::take(&mut self.recent);
            self.write_side_file(&so_far).await;
            self.recent = so_far;
        }
    }

    /// Closes the side file and returns what was captured.
    pub(crate) async fn finish(mut self) -> CapturedOutput {
        if self.keeps_all() && self.total_bytes > 0 {
            self.begin_side_file().await;
        }
        self.close_side_file().await;
        let truncated = self.exceeds_limits();
        let total_lines = self.total_lines();
        let tail = String::from_utf8_lossy(self.tail()).into_owned();
        let side_file = match (self.side, self.limits.side_file) {
            (Side::Closed(problem), Some(path)) => Some(SideFile { path, problem }),
            _ => None,
        };
        CapturedOutput { tail, total_bytes: self.total_bytes, total_lines, truncated, side_file }
    }

    fn total_lines(&self) -> u64 {
        self.newlines + u64::from(self.ends_mid_line)
    }

    fn exceeds_limits(&self) -> bool {
        self.total_bytes > self.limits.keep_tail_bytes as u64
            || self.total_chars > self.limits.keep_tail_chars as u64
            || self.total_lines() > self.limits.keep_tail_lines as u64
    }

    /// Appends to the recent bytes and drops the oldest ones once there are twice as many as needed. One byte more than
    /// the limit is always kept, to know whether the tail begins a line.
    fn keep(&mut self, piece: &[u8]) {
        let needed = self.limits.keep_tail_bytes.saturating_add(1);
        let piece = &piece[piece.len().saturating_sub(needed)..];
        let length = self.recent.len() + piece.len();
        if length > needed.saturating_mul(2) {
            self.recent.drain(..(length - needed).min(self.recent.len()));
        }
        self.recent.extend_from_slice(piece);
    }

    /// The part of the recent bytes to show.
    fn tail(&self) -> &[u8] {
        let start = self.recent.len().saturating_sub(self.limits.keep_tail_bytes);
        let start = start + start_of_last_chars(&self.recent[start..], self.limits.keep_tail_chars);
        let recent = &self.recent[start..];
        let lines = last_lines(recent, self.limits.keep_tail_lines);
        let begins_line = start == 0 || self.recent[start - 1] == b'\n';
        if lines.len() < recent.len() || begins_line {
            return lines;
        }
        match recent.iter().position(|byte| *byte == b'\n') {
            Some(newline) if newline < recent.len() / 2 => &recent[newline + 1..],
            // Most of it is one long line, so the tail begins within that line, but at the start of a character.
            _ => skip_continuation_bytes(recent),
        }
    }

    async fn open_side_file(&mut self) {
        self.side = match &self.limits.side_file {
            None => Side::Closed(None),
            Some(path) => match create(path).await {
                Ok(file) => Side::Open { file, written: 0 },
                Err(error) => {
                    Side::Closed(Some(SideFileProblem::Failed { reason: error.to_string() }))
                }
            },
        };
    }

    async fn write_side_file(&mut self, bytes: &[u8]) {
        let Side::Open { file, written } = &mut self.side else { return };
        let room = usize::try_from(MAX_SIDE_FILE_BYTES - *written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        if let Err(error) = file.write_all(fitting).await {
            self.side = Side::Closed(Some(SideFileProblem::Failed { reason: error.to_string() }));
            return;
        }
        *written += fitting.len() as u64;
        if fitting.len() < bytes.len() {
            self.close_side_file().await;
            if let Side::Closed(problem @ None) = &mut self.side {
                *problem = Some(SideFileProblem::Capped { limit: MAX_SIDE_FILE_BYTES });
            }
        }
    }

    /// Writing the last bytes may still fail here.
    async fn close_side_file(&mut self) {
        if let Side::Open { file, .. } = &mut self.side {
            let problem = file
                .flush()
                .await
                .err()
                .map(|error| SideFileProblem::Failed { reason: error.to_string() });
            self.side = Side::Closed(problem);
        }
    }
}

/// A new file that only the user can read, because output may hold secrets. Programs in a sandbox may write to the
/// directory, so a symbolic link is not followed, and opening a pipe does not wait.
async fn create(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).await?;
    }
    let mut options = private_options();
    options.write(true).create(true).truncate(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    fs::OpenOptions::from(options).open(path).await
}

/// The last `lines` lines of `text`, the last one with or without a newline at its end.
fn last_lines(text: &[u8], lines: usize) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut breaks =
        body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    match lines.checked_sub(1).map(|before| breaks.nth(before)) {
        Some(Some(newline)) => &text[newline + 1..],
        Some(None) => text,
        None => &[],
    }
}

/// Where the last `chars` characters of `text` begin.
fn start_of_last_chars(text: &[u8], chars: usize) -> usize {
    let Some(before) = chars.checked_sub(1) else { return text.len() };
    let begins = text.iter().enumerate().rev().filter(|(_, byte)| begins_char(**byte));
    begins.map(|(at, _)| at).nth(before).unwrap_or(0)
}

fn begins_char(byte: u8) -> bool {
    (byte & 0b1100_0000) != 0b1000_0000
}

fn skip_continuation_bytes(text: &[u8]) -> &[u8] {
    let start = text.iter().take(3).take_while(|byte| !begins_char(**byte)).count();
    &text[start..]
}

#[cfg(test)]
mod tests;
