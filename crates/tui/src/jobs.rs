//! The background jobs of the chat: what `/jobs` shows, and the turn that begins when one ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use myclaw_agent::{JobWake, Session};
use myclaw_engine::{AgentRunEvent, RunEvent};
use myclaw_tools::JobRecord;
use tokio::sync::Notify;

use myclaw_front::print::note;
use myclaw_front::report::first_line;
use myclaw_front::terminal::escaped;

/// Fires when the message about a job's end waits in one of the chat's sessions.
#[derive(Clone, Default)]
pub(super) struct JobBell {
    rung: Arc<Notify>,
    /// Breaks the line editor off.
    pub(super) breaks_editor: Arc<AtomicBool>,
}

impl JobBell {
    /// The sending side.
    pub(super) fn wake(&self) -> JobWake {
        let bell = self.clone();
        JobWake::Call(Arc::new(move |_| {
            bell.breaks_editor.store(true, Ordering::Relaxed);
            bell.rung.notify_one();
        }))
    }

    /// Returns when a job has ended. May be dropped.
    pub(super) async fn rung(&self) {
        self.rung.notified().await;
    }
}

/// The jobs of the session, one a line.
pub(super) async fn list(session: &Session) -> String {
    let jobs = session.jobs().await;
    if jobs.is_empty() {
        return "no background jobs".to_owned();
    }
    jobs.iter().map(line).collect::<Vec<String>>().join("\n")
}

fn line(job: &JobRecord) -> String {
    format!("{:>4}  {}: {}", job.id, job.state(), first_line(&job.command))
}

/// Ends a job.
pub(super) async fn kill(session: &Session, id: &str) -> String {
    match session.kill_job(id).await {
        Ok(job) => line(&job),
        Err(message) => message,
    }
}

/// The id in `kill ID`.
pub(super) fn killed_id(argument: &str) -> Option<String> {
    let id = argument.strip_prefix("kill ")?.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Prints a notice of jobs that the end of the chat ends.
pub(super) fn print_notice(event: &RunEvent) {
    if let AgentRunEvent::Notice(notice) = &event.kind {
        note(format_args!("myclaw: {}", escaped(&notice.to_string())));
    }
}
