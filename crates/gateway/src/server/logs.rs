//! The end of the log file, and what comes after it.
//!
//! The lines are as they are in the file, so what is redacted there is redacted here.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::Server;
use super::request::Params;
use crate::GatewayError;

/// The file in the directory of logs.
const NAME: &str = "myclaw.log";
/// Most bytes that are read for an answer: the newest ones.
const MOST_BYTES: u64 = 512 * 1024;
/// Most lines of an answer: the newest ones.
const MOST_LINES: usize = 1_000;
/// Lines of an answer, unless the client wants another number.
const LINES: usize = 300;
/// Bytes at the beginning that tell one file from the next one of the same name: the time of the first line.
const NAME_BYTES: usize = 27;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/logs", get(logs))
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    #[default]
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LogRange {
    /// Lines of this level, and of those that matter more.
    level: Level,
    limit: Option<usize>,
    /// `next` of an earlier answer: lines that came since.
    after: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Line {
    /// In UTC, as RFC 3339.
    at: String,
    level: Level,
    text: String,
}

/// An answer.
#[derive(Serialize)]
struct Tail {
    /// Whether the config asks for a log file.
    enabled: bool,
    file: PathBuf,
    /// The oldest first.
    lines: Vec<Line>,
    /// True if the lines do not follow those of the earlier answer: some are left out, or it is another file.
    gap: bool,
    /// Names the end of the file, for `after`.
    next: String,
}

async fn logs(
    State(server): State<Arc<Server>>,
    Params(range): Params<LogRange>,
) -> Result<Json<Tail>, GatewayError> {
    let file = server.delivery.home().paths.logs_dir().join(NAME);
    let enabled = server.delivery.config().logging.file;
    let reading = tokio::task::spawn_blocking(move || {
        tail(&file, &range)
            .map(|(lines, gap, next)| Tail { enabled, file: file.clone(), lines, gap, next })
            .map_err(|error| GatewayError::File {
                action: "read",
                path: file,
                reason: error.to_string(),
            })
    });
    reading.await.map_err(|error| GatewayError::Internal(error.to_string()))?.map(Json)
}

/// The lines, whether some are missing before them, and the end of the file.
fn tail(path: &PathBuf, range: &LogRange) -> io::Result<(Vec<Line>, bool, String)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Vec::new(), false, String::new()));
        }
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut first = vec![0; NAME_BYTES.min(usize::try_from(length).unwrap_or(NAME_BYTES))];
    file.read_exact(&mut first)?;
    let name: String =
        String::from_utf8_lossy(&first).chars().filter(|c| !c.is_control()).collect();
    let known = range.after.as_deref().and_then(|after| {
        let (at, of_file) = after.split_once('@')?;
        at.parse::<u64>().ok().filter(|at| of_file == name && *at <= length)
    });
    let begin = known.unwrap_or(0).max(length.saturating_sub(MOST_BYTES));
    let is_cut = begin > known.unwrap_or(0);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(length - begin).read_to_end(&mut bytes)?;
    // What does not end with a line end is still being written; the next answer has it.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&bytes[..whole]);
    // The first one may be the end of a line.
    let mut lines: Vec<Line> = text.lines().skip(usize::from(is_cut)).map(parse).collect();
    lines.retain(|line| line.level >= range.level);
    let most = range.limit.unwrap_or(LINES).clamp(1, MOST_LINES);
    let left_out = lines.len().saturating_sub(most);
    lines.drain(..left_out);
    let is_after = range.after.as_deref().is_some_and(|after| !after.is_empty());
    let gap = is_after && (known.is_none() || is_cut || left_out > 0);
    Ok((lines, gap, format!("{}@{name}", begin + whole as u64)))
}

/// A line is `TIME LEVEL text`. One that is not is shown as it is, as something that matters.
fn parse(line: &str) -> Line {
    let parsed = line.split_once(' ').and_then(|(at, rest)| {
        let (level, text) = rest.trim_start().split_once(' ')?;
        let level = match level {
            "TRACE" => Level::Trace,
            "DEBUG" => Level::Debug,
            "INFO" => Level::Info,
            "WARN" => Level::Warn,
            "ERROR" => Level::Error,
            _ => return None,
        };
        Some(Line { at: at.to_owned(), level, text: text.to_owned() })
    });
    parsed.unwrap_or_else(|| Line { at: String::new(), level: Level::Error, text: line.to_owned() })
}
