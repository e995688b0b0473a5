//! Reads text by line ranges as a stream: lines that are not shown are not kept, so the size of the file does not
//! matter.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};
use myclaw_engine::{ToolError, ToolOutput};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::files::{UTF8_MARK, decode_lossless, shown_size};
use crate::support::{ResolvedPath, io_failure};

/// Most lines that one call shows (Pi's limit, which models are used to).
pub(super) const MAX_LINES: u64 = 2_000;
/// Most bytes of a character. This many bytes of a line are read for each character that may be shown.
const LONGEST_CHAR: usize = 4;
/// Characters of a result that are reserved for the notes after the text.
const NOTE_CHARS: usize = 600;
/// Fewest characters of a text that are shown, even if the limit on results is smaller.
const LEAST_CHARS: usize = 200;
/// Bytes after the shown part in which lines are counted, to report how many there are. This takes a fraction of a
/// second.
const MAX_COUNTED_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes that are read at once, and between two checks of the cancellation token.
const CHUNK_BYTES: usize = 256 * 1024;

/// The file to read.
pub(super) struct Source<'a> {
    pub path: &'a ResolvedPath,
    /// The bytes already taken from `rest`.
    pub start: Vec<u8>,
    pub rest: File,
    /// Size of the whole file.
    pub bytes: u64,
}

/// Lines to show, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub first: u64,
    /// `None` for as many as the limits allow.
    pub last: Option<u64>,
}

/// Why the text ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The file ends there.
    File,
    /// The requested range ends there.
    Range,
    /// The limits of one call.
    Limit,
    /// This line alone is longer than one call may show; this many bytes of it are left out.
    LongLine { left_out: u64 },
}

struct Shown {
    text: String,
    /// Lines shown.
    lines: u64,
    end: End,
    /// Lines of the file, if they were counted.
    total: Option<u64>,
    /// Whether some bytes were not UTF-8.
    has_strays: bool,
    has_nuls: bool,
}

/// Shows `range` of a file.
///
/// # Errors
/// It cannot be read, or `range` starts after its end.
pub(super) fn read(
    source: Source<'_>,
    range: LineRange,
    max_chars: usize,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let (path, bytes) = (source.path, source.bytes);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::Interrupted => {
            ToolError::Aborted(format!("aborted while {} was read", path.shown))
        }
        _ => io_failure("read", path, &error),
    };
    let marked = Encoding::for_bom(&source.start).map(|(encoding, _)| encoding);
    let encoding = marked.unwrap_or(UTF_8);
    let mut lines = LineReader::new(source, encoding, cancel);
    let skipped = lines.skip(range.first - 1).map_err(failed)?;
    let budget = max_chars.saturating_sub(NOTE_CHARS).max(LEAST_CHARS);
    let shown = show(&mut lines, range, budget).map_err(failed)?;
    if shown.lines == 0 {
        return nothing_shown(path, range, skipped);
    }
    let last = range.first + shown.lines - 1;
    let mut text = shown.text;
    if let Some(note) = note(range, last, shown.end, shown.total, bytes) {
        text.push_str(&format!("\n[{note}]"));
    }
    let name = encoding.name();
    if shown.has_strays {
        text.push_str("\n[Some bytes are not valid UTF-8; they are shown as Windows-1252]");
    } else if encoding != UTF_8 {
        text.push_str(&format!("\n[The file is in {name}; edit and apply_patch keep that]"));
    }
    if shown.has_nuls {
        text.push_str("\n[NUL characters are shown as ␀]");
    }
    let details = json!({
        "path": path.shown, "startLine": range.first, "endLine": last, "totalLines": shown.total, "bytes": bytes,
        "encoding": if shown.has_strays { "windows-1252" } else { name }
    });
    Ok(ToolOutput { details: Some(details), ..ToolOutput::text(text) })
}

fn nothing_shown(
    path: &ResolvedPath,
    range: LineRange,
    total: u64,
) -> Result<ToolOutput, ToolError> {
    if total == 0 && range.first == 1 {
        let details = json!({"path": path.shown, "totalLines": 0, "bytes": 0});
        return Ok(ToolOutput {
            details: Some(details),
            ..ToolOutput::text(format!("{} is empty", path.shown))
        });
    }
    let lines = if total == 1 { "line" } else { "lines" };
    Err(ToolError::Failed(format!(
        "startLine {} is after the end: {} has {total} {lines}. Call again with a smaller startLine",
        range.first, path.shown
    )))
}

fn show(lines: &mut LineReader<'_>, range: LineRange, max_chars: usize) -> io::Result<Shown> {
    let mut shown = Shown {
        text: String::new(),
        lines: 0,
        end: End::File,
        total: None,
        has_strays: false,
        has_nuls: false,
    };
    let mut chars = 0;
    loop {
        let number = range.first + shown.lines;
        if range.last.is_some_and(|last| number > last) {
            shown.end = End::Range;
            break;
        }
        if shown.lines == MAX_LINES && !lines.is_at_end()? {
            shown.end = End::Limit;
            break;
        }
        let Some(line) = lines.next(max_chars.saturating_mul(LONGEST_CHAR))? else { break };
        let decoded = decode_lossless(&line.kept);
        let line_chars = decoded.text.chars().count();
        let room = max_chars.saturating_sub(chars + 1);
        let is_too_long = line.dropped > 0 || line_chars > room;
        if is_too_long && shown.lines > 0 {
            // This line does not fit and is not shown in part: the next call starts with it. It was read, so it is
            // counted.
            shown.end = End::Limit;
            shown.total = lines.count_rest(number)?;
            return Ok(shown);
        }
        shown.has_strays |= !decoded.stray_ends.is_empty();
        shown.has_nuls |= decoded.text.contains('\0');
        if shown.lines > 0 {
            shown.text.push('\n');
        }
        shown.lines += 1;
        if is_too_long {
            let cut: String = decoded.text.chars().take(room).collect();
            shown.end =
                End::LongLine { left_out: line.dropped + (decoded.text.len() - cut.len()) as u64 };
            shown.text = cut.replace('\0', "␀");
            break;
        }
        chars += line_chars + 1;
        shown.text.push_str(&decoded.text.replace('\0', "␀"));
    }
    shown.total = match shown.end {
        End::File => Some(range.first - 1 + shown.lines),
        _ => lines.count_rest(range.first - 1 + shown.lines)?,
    };
    Ok(shown)
}

fn note(range: LineRange, last: u64, end: End, total: Option<u64>, bytes: u64) -> Option<String> {
    let of_all = total.map_or_else(
        || format!("; the file has {}", shown_size(bytes)),
        |total| format!(" of {total}"),
    );
    let first = range.first;
    let has_more = total.is_none_or(|total| total > last);
    match end {
        End::File => {
            let wanted = range.last.filter(|wanted| *wanted > last)?;
            Some(format!("The file ends with line {last}; there is no line {wanted}"))
        }
        End::Range => None,
        End::Limit => {
            Some(format!("Lines {first}-{last}{of_all}. Go on with startLine: {}", last + 1))
        }
        End::LongLine { left_out } => {
            let next = if has_more {
                format!(" The next line is startLine: {}.", last + 1)
            } else {
                String::new()
            };
            Some(format!(
                "Line {last}{of_all} is too long: {} of it left out.{next} For the rest use bash, such as sed -n \
                 '{last}p' FILE | cut -c 50000-60000",
                shown_size(left_out)
            ))
        }
    }
}

/// One line, cut to the requested number of bytes.
struct Line {
    kept: Vec<u8>,
    /// Bytes that were not kept.
    dropped: u64,
}

/// Reads UTF-8 (or bytes that are treated as such) line by line.
struct LineReader<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
    cancel: &'a CancellationToken,
}

impl<'a> LineReader<'a> {
    fn new(
        mut source: Source<'a>,
        encoding: &'static Encoding,
        cancel: &'a CancellationToken,
    ) -> Self {
        let input: Box<dyn Read + 'a> = if encoding == UTF_8 {
            // Its decoder would replace bytes that are not UTF-8; here they stay for `decode_lossless`.
            if source.start.starts_with(UTF8_MARK) {
                source.start.drain(..UTF8_MARK.len());
            }
            Box::new(Cursor::new(source.start).chain(source.rest))
        } else {
            Box::new(Transcoder::new(Cursor::new(source.start).chain(source.rest), encoding))
        };
        Self { input: BufReader::with_capacity(CHUNK_BYTES, input), cancel }
    }

    fn fill(&mut self) -> io::Result<&[u8]> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        self.input.fill_buf()
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.fill()?.is_empty())
    }

    /// Skips `count` lines and returns how many there were.
    fn skip(&mut self, count: u64) -> io::Result<u64> {
        let mut passed = 0;
        let mut is_inside = false;
        while passed < count {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(passed + u64::from(is_inside));
            }
            let missing = usize::try_from(count - passed).unwrap_or(usize::MAX);
            let (used, newlines) =
                match memchr::memchr_iter(b'\n', buffer).take(missing).enumerate().last() {
                    Some((index, newline)) if index + 1 == missing => (newline + 1, missing),
                    Some((index, _)) => (buffer.len(), index + 1),
                    None => (buffer.len(), 0),
                };
            is_inside = buffer[used - 1] != b'\n';
            passed += newlines as u64;
            self.input.consume(used);
        }
        Ok(passed)
    }

    /// The number of all lines if `passed` were read so far; `None` if counting the rest would take long.
    fn count_rest(&mut self, mut passed: u64) -> io::Result<Option<u64>> {
        let mut seen = 0;
        let mut is_inside = false;
        while seen < MAX_COUNTED_BYTES {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(Some(passed + u64::from(is_inside)));
            }
            let used = buffer.len();
            is_inside = buffer[used - 1] != b'\n';
            passed += memchr::memchr_iter(b'\n', buffer).count() as u64;
            seen += used as u64;
            self.input.consume(used);
        }
        Ok(None)
    }

    /// The next line without its ending, at most `max_bytes` of it.
    fn next(&mut self, max_bytes: usize) -> io::Result<Option<Line>> {
        let mut line = Line { kept: Vec::new(), dropped: 0 };
        let mut is_first = true;
        loop {
            let kept = line.kept.len();
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok((!is_first).then_some(line));
            }
            is_first = false;
            let newline = memchr::memchr(b'\n', buffer);
            let content = &buffer[..newline.unwrap_or(buffer.len())];
            let fitting = content.len().min(max_bytes - kept);
            line.kept.extend_from_slice(&content[..fitting]);
            line.dropped += (content.len() - fitting) as u64;
            let used = newline.map_or(buffer.len(), |newline| newline + 1);
            self.input.consume(used);
            if newline.is_some() {
                if line.dropped == 0 && line.kept.last() == Some(&b'\r') {
                    line.kept.pop();
                }
                return Ok(Some(line));
            }
        }
    }
}

/// Turns text that starts with a byte order mark into UTF-8 without one.
struct Transcoder {
    input: Chain<Cursor<Vec<u8>>, File>,
    decoder: Decoder,
    undecoded: Vec<u8>,
    is_finished: bool,
}

impl Transcoder {
    fn new(input: Chain<Cursor<Vec<u8>>, File>, encoding: &'static Encoding) -> Self {
        Self {
            input,
            decoder: encoding.new_decoder_with_bom_removal(),
            undecoded: Vec::new(),
            is_finished: false,
        }
    }
}

impl Read for Transcoder {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while !self.is_finished {
            let mut chunk = vec![0; CHUNK_BYTES];
            let is_last = if self.undecoded.is_empty() {
                let count = self.input.read(&mut chunk)?;
                chunk.truncate(count);
                self.undecoded = chunk;
                count == 0
            } else {
                false
            };
            let (result, used, written, _) =
                self.decoder.decode_to_utf8(&self.undecoded, output, is_last);
            self.undecoded.drain(..used);
            self.is_finished = is_last && result == CoderResult::InputEmpty;
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}
