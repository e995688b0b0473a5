//! Runs in sessions: the engine and the listener that all sessions of a front-end share.

use std::sync::{Arc, Weak};

use myclaw_engine::{
    Approver, CompactionReport, ConfigKeys, Engine, ProgramRequest, RunError, RunParams, RunResult,
    Tool,
};
use myclaw_llm::{ErrorClass, ModelError, StopReason};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::blocking::no_thread;
use crate::jobs::BackgroundJobs;
use crate::selection::{Selection, SelectionSource};
use crate::session::{SessionCallback, SessionEvent};
use crate::{AgentError, FailureClass, RunAdditions, SessionConfig};

/// What all sessions of a front-end share.
pub struct Driver {
    engine: Arc<Engine>,
    stop: CancellationToken,
    tasks: TaskTracker,
    on_event: SessionCallback,
    /// The background jobs of its sessions.
    jobs: Mutex<Vec<Weak<BackgroundJobs>>>,
    approver: Option<Arc<dyn Approver>>,
    tools: Option<Arc<dyn FrontEndTools>>,
}

/// The tools that a front-end offers in its sessions, besides those of the config. The policy decides about them as about
/// all others.
pub trait FrontEndTools: Send + Sync {
    /// The tools for a session.
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>>;

    /// The tools of the config as they work in this front-end, such as those that use an editor's own files. Sessions in a
    /// sandbox keep theirs.
    fn adapt(&self, session: &SessionConfig, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let _ = session;
        tools
    }

    /// What the program asks that sent the messages of the next run.
    fn asked(&self, session: &SessionConfig) -> ProgramRequest {
        let _ = session;
        ProgramRequest::default()
    }

    /// A note for the model about where its replies go. It is the same in all runs of a session.
    fn note(&self, session: &SessionConfig) -> Option<String> {
        let _ = session;
        None
    }
}

impl Driver {
    /// Runs go through `engine`, and end when `stop` fires. `on_event` receives the events of work that sessions do in
    /// the background.
    /// `approver` answers the questions about calls that need an approval; without one they are denied.
    pub fn new(
        engine: Engine,
        stop: CancellationToken,
        on_event: SessionCallback,
        approver: Option<Arc<dyn Approver>>,
    ) -> Arc<Self> {
        Self::with_tools(engine, stop, on_event, approver, None)
    }

    /// Like [`Driver::new`], for a front-end with tools of its own.
    pub fn with_tools(
        engine: Engine,
        stop: CancellationToken,
        on_event: SessionCallback,
        approver: Option<Arc<dyn Approver>>,
        tools: Option<Arc<dyn FrontEndTools>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine: Arc::new(engine),
            stop,
            tasks: TaskTracker::new(),
            on_event,
            jobs: Mutex::default(),
            approver,
            tools,
        })
    }

    /// Like [`Driver::new`], for a front-end that runs everything in the foreground.
    pub fn foreground(engine: Engine, approver: Option<Arc<dyn Approver>>) -> Arc<Self> {
        Self::new(engine, CancellationToken::new(), Arc::new(|_, _| {}), approver)
    }

    /// What the front-end adds to a run in a session.
    pub fn additions(&self, session: &SessionConfig) -> RunAdditions {
        RunAdditions {
            tools: self.tools_for(session),
            approver: self.approver.clone(),
            ..RunAdditions::default()
        }
    }

    /// The tools of the front-end for a session.
    fn tools_for(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        self.tools.as_ref().map(|tools| tools.tools(session)).unwrap_or_default()
    }

    /// The tools of the config as the front-end uses them.
    pub(crate) fn adapted(
        &self,
        session: &SessionConfig,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Vec<Arc<dyn Tool>> {
        match &self.tools {
            Some(front_end) if !session.is_sandboxed() => front_end.adapt(session, tools),
            _ => tools,
        }
    }

    /// What a program asks of the next run in a session.
    pub(crate) fn asked_in(&self, session: &SessionConfig) -> ProgramRequest {
        self.tools.as_ref().map(|tools| tools.asked(session)).unwrap_or_default()
    }

    /// What the front-end says to the model in a session.
    pub fn note_for(&self, session: &SessionConfig) -> Option<String> {
        self.tools.as_ref().and_then(|tools| tools.note(session))
    }

    /// Fires when everything is to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Receives the events of the sessions.
    pub(crate) fn on_event(&self) -> &SessionCallback {
        &self.on_event
    }

    /// Runs `work` concurrently with the caller, as long as the driver is not [finished](Driver::finish).
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Registers the background jobs of a session, which end with this driver.
    pub(crate) fn has_jobs(&self, jobs: &Arc<BackgroundJobs>) {
        let mut known = self.jobs.lock();
        known.retain(|other| other.strong_count() > 0);
        if !known.iter().any(|other| Weak::as_ptr(other) == Arc::as_ptr(jobs)) {
            known.push(Arc::downgrade(jobs));
        }
    }

    /// Waits until all work in the background is over, and ends the background jobs of the sessions.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        let known = std::mem::take(&mut *self.jobs.lock());
        for jobs in known.iter().filter_map(Weak::upgrade) {
            jobs.close(&|event| (self.on_event)(&event.session, SessionEvent::Run(&event))).await;
        }
    }

    /// Runs one turn with `params`, without an open session. An open session has
    /// [`Session::run`](crate::Session::run).
    ///
    /// # Errors
    /// There is no reply. The session stays valid and holds all messages and results so far.
    pub async fn run(
        &self,
        params: RunParams,
        selection: &Selection,
    ) -> Result<RunResult, AgentError> {
        let engine = Arc::clone(&self.engine);
        let config_keys = params.rules.config_keys.clone();
        let run = in_own_task(async move { engine.run(params).await });
        let run = run.await.map_err(|failure| no_thread(failure.into_panic()))?;
        has_reply(run.map_err(|error| run_error(&error, selection))?, &config_keys)
    }

    /// Summarises all but the newest messages, without a turn.
    pub(crate) async fn compact(
        &self,
        params: RunParams,
        selection: &Selection,
        focus: Option<&str>,
    ) -> Result<CompactionReport, AgentError> {
        self.engine.compact(params, focus).await.map_err(|error| match error {
            RunError::Aborted => {
                AgentError::new(FailureClass::Aborted, "aborted; the session is unchanged")
            }
            error => run_error(&error, selection),
        })
    }
}

/// Runs `work` as a task, which ends with the future. The connection is a task too. Two tasks pass deltas to each other
/// without a system call; the runtime polls the system after each poll of the future that it blocks on, which is
/// slower.
///
/// # Errors
/// The system allows no thread.
fn in_own_task<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> AbortOnDropHandle<T> {
    AbortOnDropHandle::new(tokio::spawn(work))
}

/// A run without an answer counts as a failure, even if it did other work.
fn has_reply(result: RunResult, config_keys: &ConfigKeys) -> Result<RunResult, AgentError> {
    if let Some(bound) = result.bound {
        let calls = if result.iterations == 1 { "model call" } else { "model calls" };
        let go_on = match bound.is_of_a_day() {
            true => "try again tomorrow",
            false => "send another message to continue",
        };
        let key = config_keys.of(bound);
        let advice = match key.starts_with("--") {
            // Nothing of the session may be kept.
            true => format!("raise {key}"),
            false => format!("{go_on}, or raise {key} in the config file"),
        };
        let message = format!(
            "stopped after {} {calls} without a final answer, because {}; {advice}",
            result.iterations,
            bound.reason(),
        );
        return Err(AgentError::new(FailureClass::Bound(bound), message));
    }
    if result.reply.trim().is_empty() && !result.is_handed_over {
        let name = format!("{}/{}", result.provider, result.model);
        return Err(match result.stop_reason {
            Some(StopReason::Refusal) => AgentError::new(
                FailureClass::Refusal,
                format!(
                    "{name} refused to answer, or its provider's filter stopped it; rephrase the message, or try \
                     another model"
                ),
            ),
            _ => AgentError::new(
                FailureClass::EmptyReply,
                format!(
                    "{name} ended its turn without text and without tool calls; ask again, or try another model"
                ),
            ),
        });
    }
    Ok(result)
}

/// The error of a failed run, with advice that the layers below cannot give.
pub(crate) fn run_error(error: &RunError, selection: &Selection) -> AgentError {
    let mut failure = AgentError::of_run(error);
    if let RunError::Model(error) = error {
        failure.message = model_failure(error, selection);
        let name = &selection.reference;
        let said = without_provider(error.message_without_address(), &name.provider);
        return failure.for_others(format!("{name}: {said}"));
    }
    failure
}

/// The message of the model layer begins with the provider, which the model's name repeats.
fn without_provider<'m>(message: &'m str, provider: &str) -> &'m str {
    let message = message.trim_end_matches('.');
    message.strip_prefix(&format!("{provider}: ")).unwrap_or(message)
}

/// How the message of a failed run ends where its reader may choose another model on a command line.
const OTHER_MODEL_ADVICE: &str = ", or choose another model with --model";

fn model_failure(error: &ModelError, selection: &Selection) -> String {
    let name = &selection.reference;
    let message = without_provider(&error.message, &name.provider);
    match &selection.source {
        SelectionSource::KeyVariable(variable) if error.class == ErrorClass::Auth => {
            format!("{name}: {message}. The key came from {variable}; check it{OTHER_MODEL_ADVICE}")
        }
        _ => match error.class {
            ErrorClass::Timeout | ErrorClass::RateLimit => format!(
                "{name}: {message}. The session is kept; try again later{OTHER_MODEL_ADVICE}"
            ),
            _ => format!("{name}: {message}"),
        },
    }
}
