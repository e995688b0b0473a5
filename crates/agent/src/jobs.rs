//! The background jobs of the sessions of a program, and the messages about their ends.
//!
//! A message goes into the session's inbox, where it cannot get lost, and is answered like a follow-up. If the front-end
//! wants that, a turn begins for it in an idle session. An agent that starts a job whenever another one
//! ends would never stop, so after some messages the next ones wait for a message of the user.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use myclaw_engine::{EndedJob, Notice, RunEvent, SessionInbox, SystemClock, WhenIdle};
use myclaw_llm::ContentBlock;
use myclaw_session::{QueuedKind, SessionKey};
use myclaw_tools::{
    JobEnded, JobEnding, JobListener, JobRecord, Jobs, JobsOptions, Killer, message_of_leftover,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::Home;
use crate::outputs::remove_keys;

/// Messages about jobs that an agent gets between two messages of the user.
const MAX_UNATTENDED_MESSAGES: u32 = 20;

/// What happens when the message about a job's end waits in a session.
pub enum JobWake {
    /// A turn begins in the background, unless one is running.
    StartTurn,
    /// The front-end decides.
    Call(Arc<dyn Fn(&SessionKey) + Send + Sync>),
}

/// A session that is open, and can be told of the end of a job.
pub(crate) trait OpenToJobs: Send + Sync {
    /// Puts a message into its inbox. If that fails, the record of the job still says how it ended.
    fn put<'a>(&'a self, kind: QueuedKind, content: Vec<ContentBlock>) -> BoxFuture<'a, ()>;
    /// Begins a turn in the background, unless one is running.
    fn begin_turn(self: Arc<Self>);
}

/// The jobs of all sessions of a program.
pub(crate) struct BackgroundJobs {
    home: Home,
    sessions: Mutex<HashMap<SessionKey, OfSession>>,
    /// Set by front-ends whose sessions stay open. Without it a job's message waits for the next run.
    wake: OnceLock<JobWake>,
    /// Whether the jobs of killed processes were looked for.
    recovered: OnceCell<()>,
}

#[derive(Default)]
struct OfSession {
    jobs: Option<Arc<Jobs>>,
    open: Option<Weak<dyn OpenToJobs>>,
    /// Messages since the last message of the user.
    unattended: u32,
    /// Messages that wait for the next message of the user.
    held_back: Vec<String>,
}

/// Passes the ends of a session's jobs on.
struct Listener {
    jobs: Weak<BackgroundJobs>,
    key: SessionKey,
}

impl JobListener for Listener {
    fn ended(&self, job: JobEnded) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(jobs) = self.jobs.upgrade() {
                jobs.remove_keys([&job.record]).await;
                let text = jobs.home.known_secrets.without(&job.text).into_owned();
                let killed = JobEnding::Killed { by: Killer::User };
                match job.record.end.is_some_and(|end| end.how == killed) {
                    // The user knows it, and a turn would cost money: the agent reads it with the next message.
                    true => jobs.put_into_inbox(&self.key, QueuedKind::Steer, text).await,
                    false => jobs.deliver(&self.key, text).await,
                }
            }
        })
    }
}

impl BackgroundJobs {
    pub(crate) fn new(home: Home) -> Arc<Self> {
        Arc::new(Self {
            home,
            sessions: Mutex::default(),
            wake: OnceLock::new(),
            recovered: OnceCell::new(),
        })
    }

    /// Sets what happens when a job has ended and its message waits. Only the first call has an effect.
    pub(crate) fn set_wake(&self, wake: JobWake) {
        let _ = self.wake.set(wake);
    }

    /// Whether the front-end is one whose sessions stay open.
    pub(crate) fn sessions_stay_open(&self) -> bool {
        self.wake.get().is_some()
    }

    /// The jobs of a session. `yield_after` is the time after which a command becomes a job. It applies only to sessions
    /// that stay open, because in others no run would read the message about the job's end.
    pub(crate) async fn of(
        self: &Arc<Self>,
        key: &SessionKey,
        yield_after: Option<Duration>,
    ) -> Arc<Jobs> {
        self.recovered.get_or_init(|| self.recover()).await;
        let mut sessions = self.sessions.lock();
        let of_session = sessions.entry(key.clone()).or_default();
        let make = || {
            let listener = Listener { jobs: Arc::downgrade(self), key: key.clone() };
            Jobs::new(JobsOptions {
                session: key.to_string(),
                store: Arc::clone(&self.home.stores().jobs),
                yield_after: yield_after.filter(|_| self.sessions_stay_open()),
                listener: Arc::new(listener),
            })
        };
        Arc::clone(of_session.jobs.get_or_insert_with(make))
    }

    /// Ends the jobs of killed processes and sends a message about each to its session. The messages wait for the next
    /// run.
    async fn recover(&self) {
        for record in self.home.stores().jobs.end_leftovers().await {
            let Ok(key) = SessionKey::parse(&record.session) else { continue };
            let catalog = Arc::clone(self.home.catalog());
            let known = Arc::clone(&self.home.known_secrets);
            let blocking = tokio::task::spawn_blocking(move || {
                remove_keys(&record.output, &known);
                let text = known.without(&message_of_leftover(&record)).into_owned();
                (catalog.exists(&key), key, text)
            });
            // A message would create a deleted session again.
            if let Ok((true, key, text)) = blocking.await {
                self.put_into_inbox(&key, QueuedKind::Steer, text).await;
            }
        }
    }

    /// Records that a session is open, so that a turn can begin in it.
    pub(crate) fn opened(&self, key: &SessionKey, session: Weak<dyn OpenToJobs>) {
        self.sessions.lock().entry(key.clone()).or_default().open = Some(session);
    }

    /// Records that the user sends a message in a session. Messages that were held back are delivered before it.
    pub(crate) async fn attended(&self, key: &SessionKey) {
        let held_back = match self.sessions.lock().get_mut(key) {
            Some(of_session) => {
                of_session.unattended = 0;
                std::mem::take(&mut of_session.held_back)
            }
            None => return,
        };
        for text in held_back {
            self.put_into_inbox(key, QueuedKind::Steer, text).await;
        }
    }

    async fn deliver(&self, key: &SessionKey, text: String) {
        let Some(open) = self.counted(key) else {
            self.sessions.lock().entry(key.clone()).or_default().held_back.push(text);
            return;
        };
        match &open {
            Some(session) => {
                session.put(QueuedKind::FollowUp, vec![ContentBlock::text(text)]).await;
            }
            None => self.put_into_inbox(key, QueuedKind::FollowUp, text).await,
        }
        self.wake(key, open);
    }

    /// Has a message answered that waits in the inbox of a session, unless too many have come since the user's last one: then
    /// it waits for the next one.
    pub(crate) fn arrived(&self, key: &SessionKey) {
        if let Some(open) = self.counted(key) {
            self.wake(key, open);
        }
    }

    /// Counts a message for a session, and gives the session if it is open; `None` if there are too many.
    #[expect(
        clippy::option_option,
        reason = "one says that it may come, the other that the session is open"
    )]
    fn counted(&self, key: &SessionKey) -> Option<Option<Arc<dyn OpenToJobs>>> {
        let mut sessions = self.sessions.lock();
        let of_session = sessions.entry(key.clone()).or_default();
        of_session.unattended += 1;
        (of_session.unattended <= MAX_UNATTENDED_MESSAGES)
            .then(|| of_session.open.as_ref().and_then(Weak::upgrade))
    }

    fn wake(&self, key: &SessionKey, open: Option<Arc<dyn OpenToJobs>>) {
        match (self.wake.get(), open) {
            (Some(JobWake::StartTurn), Some(session)) => session.begin_turn(),
            (Some(JobWake::Call(call)), _) => call(key),
            _ => {}
        }
    }

    async fn put_into_inbox(&self, key: &SessionKey, kind: QueuedKind, text: String) {
        let sessions = Arc::clone(self.home.sessions());
        let inbox = SessionInbox::new(sessions, key.clone(), Arc::new(SystemClock));
        let content = vec![ContentBlock::text(text)];
        // If it cannot be written, the job's record still says how it ended.
        let _ = inbox.send(kind, content, WhenIdle::Keep).await;
    }

    /// Ends all jobs, and reports them to `on_event`, one notice for each session.
    pub(crate) async fn close(&self, on_event: &(dyn Fn(RunEvent) + Send + Sync)) {
        let all: Vec<(SessionKey, Arc<Jobs>)> = self.all();
        let ended = join_all(all.iter().map(|(_, jobs)| jobs.close())).await;
        for ((key, _), records) in all.into_iter().zip(ended) {
            if !records.is_empty() {
                self.remove_keys(&records).await;
                let jobs = records.into_iter().map(ended_job).collect();
                on_event(RunEvent::notice(key, Notice::JobsEnded { jobs }));
            }
        }
        self.home.stores().jobs.close();
    }

    /// Ends the jobs of one session, and reports them to `on_event`. The session can be opened again.
    pub(crate) async fn close_session(
        &self,
        key: &SessionKey,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) {
        let jobs = self.sessions.lock().get_mut(key).and_then(|of_session| of_session.jobs.take());
        let Some(jobs) = jobs else { return };
        let ended = jobs.close().await;
        self.remove_keys(&ended).await;
        let ended: Vec<EndedJob> = ended.into_iter().map(ended_job).collect();
        if !ended.is_empty() {
            on_event(RunEvent::notice(key.clone(), Notice::JobsEnded { jobs: ended }));
        }
    }

    /// Removes keys from the outputs of jobs that have ended.
    async fn remove_keys(&self, ended: impl IntoIterator<Item = &JobRecord>) {
        let outputs: Vec<_> = ended.into_iter().map(|record| record.output.clone()).collect();
        let known = Arc::clone(&self.home.known_secrets);
        let work = move || outputs.iter().for_each(|output| remove_keys(output, &known));
        drop(tokio::task::spawn_blocking(work).await);
    }

    /// Ends all jobs by force, and returns at once. For a process that is about to exit.
    pub(crate) fn kill_now(&self) {
        for (_, jobs) in self.all() {
            jobs.kill_now();
        }
    }

    fn all(&self) -> Vec<(SessionKey, Arc<Jobs>)> {
        let sessions = self.sessions.lock();
        let with_jobs = |(key, of_session): (&SessionKey, &OfSession)| {
            Some((key.clone(), Arc::clone(of_session.jobs.as_ref()?)))
        };
        sessions.iter().filter_map(with_jobs).collect()
    }
}

fn ended_job(record: JobRecord) -> EndedJob {
    EndedJob { id: record.id, command: record.command }
}

impl fmt::Debug for BackgroundJobs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BackgroundJobs").finish_non_exhaustive()
    }
}
