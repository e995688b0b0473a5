//! The text about a command that has ended, for the model and for user interfaces.

use std::io::ErrorKind;
use std::time::Duration;

use myclaw_engine::{ToolError, ToolOutput};
use myclaw_exec::{CapturedOutput, ExecError, Exit, Finished, LeftRunning};
use myclaw_llm::outside::harmless_output;
use serde_json::{Value, json};

use crate::jobs::BackgroundJob;
use crate::process;
use crate::support::{cut_start, plain_text};

/// Most background processes that are named.
const MAX_NAMED: usize = 5;

/// The output, followed by notes about it and the remark, each on a line of its own in brackets.
pub(super) fn text(
    finished: &Finished,
    timeout: Duration,
    remark: Option<&str>,
    max_chars: usize,
) -> String {
    let output = plain_text(&finished.output.tail);
    let mut text = harmless_output(output.trim_end_matches('\n')).into_owned();
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let notes = [
        finished.output.truncated.then(|| truncation(&finished.output)),
        ending(finished.exit, timeout),
        (!finished.left_running.is_empty()).then(|| left_running(&finished.left_running)),
        remark.map(str::to_owned),
    ];
    for note in notes.into_iter().flatten() {
        text.push_str("\n[");
        text.push_str(&note);
        text.push(']');
    }
    cut_start(&text, max_chars).into_owned()
}

/// The output so far of a command that has become a job, which counts as seen, and how to go on.
pub(super) fn of_job(job: &BackgroundJob, max_chars: usize) -> ToolOutput {
    /// Reserved for the line about the job.
    const NOTE_CHARS: usize = 500;
    let news = job.news();
    let output = String::from_utf8_lossy(&news.bytes);
    let output = plain_text(&output);
    let output = output.trim_end_matches('\n');
    let output = if output.is_empty() { "(no output yet)" } else { output };
    let output = harmless_output(output);
    let output = cut_start(&output, max_chars.saturating_sub(NOTE_CHARS));
    let record = job.record();
    let id = &record.id;
    let text = format!(
        "{output}\n[background job {id}: {}. A message comes when it ends. The tool process shows its output (poll, log), \
         writes to it and ends it (kill)]",
        record.state()
    );
    let details = Some(process::details(&record));
    ToolOutput { details, ..ToolOutput::text(cut_start(&text, max_chars)) }
}

/// For user interfaces.
pub(super) fn details(finished: &Finished) -> Value {
    let (exit_code, signal) = match finished.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::TimedOut | Exit::Aborted => (None, None),
    };
    json!({
        "exitCode": exit_code,
        "signal": signal,
        "timedOut": finished.exit == Exit::TimedOut,
        "durationMs": u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        "totalBytes": finished.output.total_bytes,
        "totalLines": finished.output.total_lines,
        "truncated": finished.output.truncated,
        "fullOutputPath": finished.output.side_file.as_ref().map(|file| &file.path),
        "leftRunning": finished.left_running.iter().map(|process| process.pid).collect::<Vec<i32>>(),
    })
}

/// A command that could not be started.
pub(super) fn start_failure(error: &ExecError) -> ToolError {
    let text = match error {
        ExecError::Spawn { source, .. } if source.kind() == ErrorKind::ArgumentListTooLong => {
            "the command is too long to be passed to the shell; write it to a file and run that"
                .to_owned()
        }
        other => other.to_string(),
    };
    ToolError::Failed(text)
}

fn truncation(output: &CapturedOutput) -> String {
    let shown = output.tail.lines().count();
    let size = format!(
        "the last {shown} of {} lines are shown, {} bytes in all",
        output.total_lines, output.total_bytes
    );
    match &output.side_file {
        None => format!("output cut: {size}"),
        Some(file) => match &file.problem {
            None => format!("output cut: {size}; full output: {}", file.path.display()),
            Some(problem) => {
                format!("output cut: {size}; full output: {}, but {problem}", file.path.display())
            }
        },
    }
}

fn ending(exit: Exit, timeout: Duration) -> Option<String> {
    /// `SIGKILL`, which the kernel sends when memory runs out.
    const KILLED: i32 = 9;
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("exit code {code}")),
        Exit::Signal(KILLED) => {
            Some("killed by signal 9, perhaps because memory ran out".to_owned())
        }
        Exit::Signal(signal) => Some(format!("ended by signal {signal}")),
        Exit::TimedOut => Some(format!(
            "timed out after {} s and was ended with everything it had started; give a longer timeout, or start it in \
             the background",
            timeout.as_secs()
        )),
        Exit::Aborted => Some("aborted; ended with everything it had started".to_owned()),
    }
}

fn left_running(processes: &[LeftRunning]) -> String {
    let mut named: Vec<String> = processes
        .iter()
        .take(MAX_NAMED)
        .map(|process| format!("{} (pid {})", process.name, process.pid))
        .collect();
    if processes.len() > MAX_NAMED {
        named.push(format!("{} more", processes.len() - MAX_NAMED));
    }
    format!(
        "still running in the background: {}; what it prints from now on is lost unless it goes to a file",
        named.join(", ")
    )
}
