//! The queries of a job, from the first to the last.

use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myclaw_agent::{HttpProviders, key_resolver};
use myclaw_embed::Weights;
use myclaw_engine::{
    ActiveModel, AgentRunEvent, Engine, EventCallback, RunError, RunEvent, RunParams, RunStores,
    incomplete_remark, written_call,
};
use myclaw_llm::{ContentBlock, HttpOptions, StreamEvent, redact};
use myclaw_session::{DaySpending, JsonSessions, SessionKey, Sessions};
use myclaw_speech::{Speaker, Way};
use myclaw_web::AllowedHost;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Markers;
use crate::backend::backend;
use crate::ipc::Ipc;
use crate::output::{Output, watch_standard_output};
use crate::payload::Payload;
use crate::profile::{BeforeCall, RunnerProvider, rules, stopped_at};
use crate::prompt::system_prompt;
use crate::tools::{Toolbox, tools};

/// Precedes the prompt of a job that the schedule sends.
const SCHEDULED: &str = include_str!("../prompts/scheduled.md");
/// Shortest time between two blocks with a part of a text: channels show changes less often.
const PARTIAL_PAUSE: Duration = Duration::from_millis(250);
/// Most bytes of a part of a text. No channel shows more in one message.
const MAX_PARTIAL: usize = 16 * 1024;
/// How often the files of the host are looked for while the job waits: too short to be noticed, and next to no work.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// How to do a job.
pub struct RunnerJob {
    /// The directory with `group`, `global` and `ipc`.
    pub workspace: PathBuf,
    /// The home directory of commands; the sessions are below it.
    pub home: PathBuf,
    /// What happens after the first answer.
    pub stay: Stay,
    /// Whether texts are also written while they come.
    pub partial: Partial,
    /// Most model calls for one message. The last one is asked for a summary, without tools.
    pub max_turns: NonZeroU32,
    /// Time limit of a command of Bash.
    pub command_limit: Duration,
    /// Time limit of a workflow.
    pub workflow_limit: Duration,
    /// Longest wait for the user's reply to a question.
    pub ask_limit: Duration,
    /// Hosts on private networks that the web tools may connect to.
    pub allowed_hosts: Vec<AllowedHost>,
    /// The model by which workflows are searched.
    pub weights: Weights,
    /// Who speaks for `send_voice`; without one, that is the host's business. A server without a key gets the secret
    /// `SPEECH_API_KEY` of the job.
    pub speaker: Option<Speaker>,
    /// The lines around each block of the output.
    pub markers: Markers,
    /// The model, where the job's secrets do not name it.
    pub model: NamedModel,
    /// How requests to the model are made. With a socket, the host adds the key.
    pub http: HttpOptions,
    /// Receives one line for each event that belongs in the log.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// Ends the job, with the session saved.
    pub cancel: CancellationToken,
}

/// A model that the command line names.
#[derive(Debug, Clone, Default)]
pub struct NamedModel {
    /// The address of its server.
    pub url: Option<String>,
    /// Its name.
    pub model: Option<String>,
}

/// What happens after the first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// The job is done.
    No,
    /// Further messages of the host are answered, until none comes for this long.
    UntilIdle(Duration),
}

/// What the host gets of a text that is not whole yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial {
    /// Nothing.
    No,
    /// Blocks with the text so far, which the whole text replaces.
    Blocks,
}

/// A job that failed.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The failure was reported: the last block has the reason.
    #[error("{0}")]
    Reported(String),
    /// Nobody reads the output any more. The session is saved.
    #[error("the host has closed the output; the session is saved")]
    HostGone,
}

/// Reads a job from `input`, does it, and writes the blocks to `output`, which is standard output.
///
/// # Errors
/// See [`RunnerError`]. The session holds everything up to the failure.
pub async fn serve(
    job: RunnerJob,
    input: impl Read,
    output: Box<dyn Write + Send>,
) -> Result<(), RunnerError> {
    let output = Arc::new(Output::new(job.markers.clone(), output));
    watch_standard_output(output.gone().clone());
    let outcome = match Payload::read(input) {
        Ok(payload) => Running::new(&job, payload, &output).run().await,
        Err(problem) => Err(Stop::Failed(problem)),
    };
    match outcome {
        _ if output.gone().is_cancelled() => Err(RunnerError::HostGone),
        Ok(()) | Err(Stop::Closed) => Ok(()),
        Err(Stop::Failed(problem)) => {
            output.failure(&problem);
            Err(RunnerError::Reported(problem))
        }
    }
}

/// Why there are no further queries.
enum Stop {
    /// The host wants the job to end.
    Closed,
    /// The text is for the host.
    Failed(String),
}

/// A text that the model is writing, for blocks with a part of it.
struct Growing {
    output: Arc<Output>,
    session_id: Arc<str>,
    text: String,
    /// When a part was written last.
    written: Instant,
    /// Whether one will be written soon.
    is_due: bool,
}

impl Growing {
    fn new(output: &Arc<Output>, session_id: &Arc<str>) -> Arc<Mutex<Self>> {
        let (output, session_id) = (Arc::clone(output), Arc::clone(session_id));
        let (text, written, is_due) = (String::new(), Instant::now(), false);
        Arc::new(Mutex::new(Self { output, session_id, text, written, is_due }))
    }

    /// Adds to the text. What comes within a pause is written together.
    fn add(this: &Arc<Mutex<Self>>, delta: &str) {
        let mut growing = this.lock();
        if growing.text.len() + delta.len() > MAX_PARTIAL {
            return;
        }
        growing.text.push_str(delta);
        if std::mem::replace(&mut growing.is_due, true) {
            return;
        }
        let pause = PARTIAL_PAUSE.saturating_sub(growing.written.elapsed());
        let this = Arc::clone(this);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let mut growing = this.lock();
            growing.is_due = false;
            growing.written = Instant::now();
            // Under the lock, so that it never comes after the whole text.
            if !growing.text.trim().is_empty() {
                growing.output.partial(&growing.text, &growing.session_id);
            }
        });
    }
}

/// A job that is being done.
struct Running<'a> {
    job: &'a RunnerJob,
    payload: Payload,
    output: &'a Arc<Output>,
    ipc: Arc<Ipc>,
    engine: Engine,
    model: ActiveModel,
    key: SessionKey,
    sessions: JsonSessions,
    session_id: Arc<str>,
}

impl<'a> Running<'a> {
    fn new(job: &'a RunnerJob, payload: Payload, output: &'a Arc<Output>) -> Self {
        let ipc = Arc::new(Ipc::new(job.workspace.join("ipc"), &payload));
        let provider = RunnerProvider(HttpProviders::new(job.http.clone()));
        let key = SessionKey::for_cli("main", "runner");
        let sessions = JsonSessions::new(job.home.join(".stingyclaw/sessions"));
        let sessions = sessions.saved_at_each_append();
        let session_id = sessions.resume(&key, payload.session_id.as_deref().unwrap_or_default());
        Self {
            engine: Engine::new(provider, key_resolver(job.http.clone())),
            model: backend(&payload.secrets, &job.model),
            job,
            payload,
            output,
            ipc,
            key,
            sessions,
            session_id: session_id.into(),
        }
    }

    /// Answers the prompt of the job, and further messages if the job stays.
    async fn run(self) -> Result<(), Stop> {
        let group = self.job.workspace.join("group");
        if !group.is_dir() {
            return Err(Stop::Failed(format!(
                "there is no directory {}; mount the directory of the group there",
                group.display()
            )));
        }
        if let Some(wanted) = &self.payload.session_id
            && **wanted != *self.session_id
        {
            (self.job.say)("the session of the job is unknown or cannot be read; a new one begins");
        }
        // The sign was there before the job began, so it is for an earlier one.
        self.ipc.forget_close();
        let speaker = self.speaker();
        let toolbox = tools(&Toolbox { job: self.job, ipc: &self.ipc, group: &group, speaker });
        let prompt =
            system_prompt(&self.payload.assistant_name, &self.job.workspace, &*self.job.say);
        let mut params = RunParams::go_on(
            self.key.clone(),
            vec![self.model.clone()],
            rules(self.job.max_turns),
            self.stores(),
            group.clone(),
        );
        params.working_directory = Some(group);
        params.system_prompt = Some(prompt);
        params.tools = toolbox.tools;
        let mut message = self.first_message();
        let outcome = loop {
            if let Err(stop) = self.query(params.clone(), message).await {
                break Err(stop);
            }
            let Some(next) = self.next_message().await else { break Ok(()) };
            message = next;
        };
        toolbox.browser.close().await;
        self.ipc.forget_close();
        outcome
    }

    fn stores(&self) -> RunStores {
        let sessions: Arc<dyn Sessions> = Arc::new(self.sessions.clone());
        let spending = DaySpending::new(self.job.home.join(".stingyclaw/usage.json"));
        let side_files = Arc::new(self.sessions.clone());
        RunStores { sessions, side_files, spending: Arc::new(spending), keys: None }
    }

    /// The prompt of the job, with the messages that came before it began.
    fn first_message(&self) -> String {
        let mut parts = Vec::new();
        if self.payload.is_scheduled {
            parts.push(SCHEDULED.trim_end().to_owned() + "\n");
        }
        parts.push(self.payload.prompt.clone());
        parts.extend(self.take_pending());
        parts.join("\n")
    }

    fn take_pending(&self) -> Vec<String> {
        let pending = self.ipc.pending(&*self.job.say);
        pending.iter().for_each(|message| self.ipc.take(message));
        pending.into_iter().map(|message| message.text).collect()
    }

    /// Waits for further messages; `None` when the job is done.
    async fn next_message(&self) -> Option<String> {
        let Stay::UntilIdle(limit) = self.job.stay else { return None };
        let waiting = async {
            loop {
                if self.ipc.is_closed() {
                    return None;
                }
                let texts = self.take_pending();
                if !texts.is_empty() {
                    return Some(texts.join("\n"));
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::select! {
            biased;
            () = self.output.gone().cancelled() => None,
            () = self.job.cancel.cancelled() => None,
            next = tokio::time::timeout(limit, waiting) => next.unwrap_or(None),
        }
    }

    fn speaker(&self) -> Option<Speaker> {
        let mut speaker = self.job.speaker.clone()?;
        if let Way::Endpoint(endpoint) = &mut speaker.way
            && endpoint.api_key.is_none()
        {
            endpoint.api_key = self.payload.secrets.get("SPEECH_API_KEY").cloned();
        }
        Some(speaker)
    }

    /// Answers one message.
    async fn query(&self, mut params: RunParams, message: String) -> Result<(), Stop> {
        let stop = self.job.cancel.child_token();
        params.run_id = myclaw_engine::RunId::generate();
        params.user_message = vec![ContentBlock::text(message)];
        params.cancel = stop.clone();
        params.hooks.push(Arc::new(BeforeCall { ipc: Arc::clone(&self.ipc), stop: stop.clone() }));
        let has_sent = Arc::new(AtomicBool::new(false));
        let tools = params.tools.iter().map(|tool| tool.schema().name.clone()).collect();
        params.on_event = Some(self.on_event(Arc::clone(&has_sent), tools));
        let running = self.engine.run(params);
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = self.output.gone().cancelled() => {
                stop.cancel();
                running.await
            }
        };
        if !matches!(outcome, Err(RunError::Session(_) | RunError::MessageWaits(_))) {
            self.ipc.settle();
        }
        let ending = match outcome {
            Ok(result) => {
                let unsent = match result.bound {
                    Some(bound) => Some(stopped_at(bound)),
                    None => Some(result.reply).filter(|reply| !reply.trim().is_empty()),
                };
                let unsent = unsent.filter(|_| !has_sent.load(Ordering::Relaxed));
                self.end_query(unsent.as_deref());
                return Ok(());
            }
            Err(RunError::Aborted) if self.ipc.is_closed() => {
                self.end_query(None);
                Stop::Closed
            }
            Err(RunError::Aborted) => Stop::Failed(
                "the runner was stopped by a signal; the session is saved, so send the message again"
                    .to_owned(),
            ),
            Err(error) => Stop::Failed(self.failure(&error)),
        };
        Err(ending)
    }

    /// Writes the block that ends a query. A runner that stays always says which files the query took, also if it took none,
    /// so that the host need not guess.
    fn end_query(&self, unsent: Option<&str>) {
        let inputs = self.ipc.end_query();
        let is_named = self.job.stay != Stay::No || !inputs.is_empty();
        self.output.end(unsent, &self.session_id, is_named.then_some(&*inputs));
    }

    /// A failure in words, without secrets.
    fn failure(&self, error: &RunError) -> String {
        let text = redact(&error.to_string(), self.payload.secrets.values());
        match &self.job.http.unix_socket {
            Some(socket) => format!("{text} (through the host's socket {})", socket.display()),
            None => text,
        }
    }

    /// Writes the texts of the model as they come. `has_sent` is whether one was written, since a limit was reached if
    /// one was.
    fn on_event(&self, has_sent: Arc<AtomicBool>, tools: Vec<String>) -> EventCallback {
        let (output, ipc) = (Arc::clone(self.output), Arc::clone(&self.ipc));
        let (session_id, say) = (Arc::clone(&self.session_id), Arc::clone(&self.job.say));
        let is_partial = self.job.partial == Partial::Blocks;
        let growing = Growing::new(&output, &session_id);
        Arc::new(move |event: RunEvent| match event.kind {
            AgentRunEvent::LlmStart { .. } => {
                // What was taken is in the session by now.
                ipc.settle();
                growing.lock().text.clear();
            }
            AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { delta, .. } }
                if is_partial =>
            {
                Growing::add(&growing, &delta);
            }
            AgentRunEvent::LlmEnd { message } => {
                growing.lock().text.clear();
                let mut text = message.text();
                let is_tool = |name: &str| tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
                let is_last = message.tool_calls().next().is_none();
                // The model is told so and asked again.
                let is_call = is_last && written_call(&text, is_tool).is_some();
                if !text.trim().is_empty() && !is_call {
                    has_sent.store(true, Ordering::Relaxed);
                    if let Some(remark) = incomplete_remark(message.stop_reason).filter(|_| is_last)
                    {
                        text.push_str("\n\n");
                        text.push_str(remark);
                    }
                    output.text(&text, &session_id);
                }
            }
            AgentRunEvent::BoundReached { message, .. } => {
                has_sent.store(false, Ordering::Relaxed);
                say(&message);
            }
            AgentRunEvent::Notice(notice) => say(&notice.to_string()),
            AgentRunEvent::Compaction { old_count, new_count, .. } => {
                say(&format!(
                    "the model refused the request; of {old_count} messages {new_count} are kept"
                ));
            }
            _ => {}
        })
    }
}
