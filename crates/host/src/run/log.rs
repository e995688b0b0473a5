//! The log of one run. It holds no text of a chat.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use myclaw_files::private_options;

use crate::ledger::now_ms;
use crate::rows::RunTask;

/// Most logs of a group; older ones are deleted.
const MAX_LOGS: usize = 200;

/// Most bytes of a log: a runner can cause any number of lines.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The file, if it could be made: a full disk must not keep messages from being answered.
pub(super) struct RunLog {
    file: Option<File>,
    bytes: usize,
}

impl RunLog {
    pub(super) fn begin(directory: &Path, name: &str, work: &RunTask) -> Self {
        prune(directory);
        let path = directory.join(format!("{}.log", now_ms()));
        let file = private_options().create(true).append(true).open(path).ok();
        let mut log = Self { file, bytes: 0 };
        log.line(&format!("{name} begins: {}", described(work)));
        log
    }

    pub(super) fn line(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES {
            return;
        }
        if let Some(file) = &mut self.file {
            let time = jiff::Timestamp::now();
            drop(writeln!(file, "{time:.3} {text}"));
        }
    }
}

fn described(work: &RunTask) -> String {
    match work {
        RunTask::Messages { ids } => format!("{} messages", ids.len()),
        RunTask::Task { id, .. } => format!("task {id}"),
    }
}

fn prune(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries.map(|entry| entry.path()).collect();
    logs.sort_unstable();
    let surplus = (logs.len() + 1).saturating_sub(MAX_LOGS);
    for old in &logs[..surplus.min(logs.len())] {
        drop(std::fs::remove_file(old));
    }
}
