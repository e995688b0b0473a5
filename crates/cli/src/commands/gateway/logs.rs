//! `myclaw gateway logs`: the end of the log, and what is added to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::service::Service;
use crate::args::LogsArgs;
use myclaw_files::portable::{MetadataExt as _, become_program};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;

/// The log of the program, and that of the launchd job.
const FILES: [&str; 2] = ["myclaw.log", "gateway.log"];
/// How often a file that is followed is looked at.
const POLL: Duration = Duration::from_millis(250);
/// Bytes that are read at once.
const BLOCK: u64 = 64 * 1024;
/// Longest end of a file that is searched for lines.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Shows the newest lines of the log file; without one, the journal of the service.
pub(super) fn logs(args: &LogsArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let directory = home.paths.logs_dir();
    let paths = FILES.map(|name| directory.join(name));
    // The newer one: the file log may have been switched off long ago.
    let changed = |path: &&PathBuf| path.metadata().and_then(|found| found.modified()).ok();
    if let Some(path) = paths.iter().filter(|path| path.is_file()).max_by_key(changed) {
        return show(path, args).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::output(&error),
            _ => CliError::failure(format!("cannot show {}: {error}", path.display())),
        });
    }
    if let Some(unit) = Service::of(&home, None)?.journal() {
        let lines = args.lines.to_string();
        let mut command = Command::new("journalctl");
        command.args(["--user", "--unit", unit, "--lines", &lines, "--no-pager"]);
        if args.follow {
            command.arg("--follow");
        }
        // Only returns if the program cannot be run.
        let error = become_program(&mut command);
        return Err(CliError::failure(format!(
            "journalctl cannot be run: {error}; set logging.file to true in the config file, and restart the gateway"
        )));
    }
    let message = "there is no log; set logging.file to true in the config file and restart the gateway, or run it as \
                   a service (`myclaw gateway install`)";
    Err(CliError::failure_of_class("no_log", message))
}

fn show(path: &Path, args: &LogsArgs) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut out = io::stdout().lock();
    let end = file.metadata()?.len();
    let start = start_of_lines(&mut file, end, args.lines)?;
    file.seek(SeekFrom::Start(start))?;
    io::copy(&mut file, &mut out)?;
    out.flush()?;
    if !args.follow {
        return Ok(());
    }
    loop {
        thread::sleep(POLL);
        io::copy(&mut file, &mut out)?;
        out.flush()?;
        // The file may have been replaced when it was full.
        let Ok(now) = path.metadata() else { continue };
        let (open, at) = (file.metadata()?, file.stream_position()?);
        if (now.ino(), now.dev()) != (open.ino(), open.dev()) {
            io::copy(&mut file, &mut out)?;
            file = File::open(path)?;
        } else if now.len() < at {
            file.seek(SeekFrom::Start(0))?;
        }
    }
}

/// Where the last `count` lines of a file of `end` bytes begin.
fn start_of_lines(file: &mut File, end: u64, count: usize) -> io::Result<u64> {
    let (mut position, mut found) = (end, 0);
    while position > 0 && end - position < MOST_BYTES {
        let size = BLOCK.min(position);
        position -= size;
        file.seek(SeekFrom::Start(position))?;
        let mut block = Vec::new();
        Read::by_ref(file).take(size).read_to_end(&mut block)?;
        for (at, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = position + at as u64 + 1;
            // The break at the very end ends the last line.
            if after == end {
                continue;
            }
            found += 1;
            if found == count {
                return Ok(after);
            }
        }
    }
    Ok(if count == 0 { end } else { position })
}
