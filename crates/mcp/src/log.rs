//! What a server prints to its errors: the newest lines in memory, more of it in a file.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use myclaw_files::{Access, SharedDirectory, create_private_directory};
use parking_lot::Mutex;

/// Lines that are kept in memory.
const LINES: usize = 12;
/// Longest of them, in characters.
const LINE_CHARS: usize = 400;
/// Size at which the file becomes the older one.
const FILE_BYTES: u64 = 512 << 10;
/// Most bytes of a file that are shown.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// The log of one server.
#[derive(Debug)]
pub(crate) struct ServerLog {
    newest: Mutex<VecDeque<String>>,
    file: Option<(PathBuf, String)>,
}

/// The name of a server's log file.
fn log_name(server: &str) -> String {
    format!("{server}.log")
}

/// The name of the file with what was printed before.
fn older_log_name(server: &str) -> String {
    format!("{server}.log.1")
}

/// What a server has printed to its errors, oldest first. The log is in `directory`, which need not exist. Blocks.
///
/// # Errors
/// An I/O error.
pub fn server_log(directory: &Path, server: &str) -> io::Result<String> {
    let Some(directory) = opened(directory)? else { return Ok(String::new()) };
    let mut text = String::new();
    for name in [older_log_name(server), log_name(server)] {
        match directory.read(name, MAX_LOG_BYTES) {
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

/// Removes the log of a server. Blocks.
///
/// # Errors
/// An I/O error.
pub fn remove_server_log(directory: &Path, server: &str) -> io::Result<()> {
    let Some(directory) = opened(directory)? else { return Ok(()) };
    let names = [older_log_name(server), log_name(server)];
    names.iter().try_for_each(|name| directory.remove(name).map(drop))
}

fn opened(directory: &Path) -> io::Result<Option<SharedDirectory>> {
    match SharedDirectory::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

impl ServerLog {
    pub(crate) fn new(directory: Option<&Path>, server: &str) -> Arc<Self> {
        let file = directory.map(|directory| (directory.to_owned(), server.to_owned()));
        Arc::new(Self { newest: Mutex::default(), file })
    }

    /// Forgets the lines in memory, because another program begins.
    pub(crate) fn begin(&self) {
        self.newest.lock().clear();
    }

    /// The newest lines.
    pub(crate) fn newest(&self) -> String {
        self.newest.lock().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Adds lines. The file is written on a thread for that.
    pub(crate) async fn add(self: &Arc<Self>, lines: Vec<String>) {
        {
            let mut newest = self.newest.lock();
            for line in lines.iter().filter(|line| !line.trim().is_empty()) {
                newest.push_back(line.chars().take(LINE_CHARS).collect());
            }
            let surplus = newest.len().saturating_sub(LINES);
            newest.drain(..surplus);
        }
        let this = Arc::clone(self);
        let writing = tokio::task::spawn_blocking(move || this.write(&lines));
        if let Ok(Err(error)) = writing.await {
            tracing::debug!(%error, "the log of an MCP server cannot be written");
        }
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let Some((directory, server)) = &self.file else { return Ok(()) };
        create_private_directory(directory)?;
        let directory = SharedDirectory::open(directory)?;
        let name = log_name(server);
        let mut file = directory.append(&name, Access::Owner)?;
        if file.metadata()?.len() > FILE_BYTES {
            directory.move_to(&name, &directory, older_log_name(server))?;
            file = directory.append(&name, Access::Owner)?;
        }
        let now = Timestamp::now();
        let text: String = lines.iter().map(|line| format!("{now:.0} {line}\n")).collect();
        file.write_all(text.as_bytes())
    }
}
