//! One run of a container.
//!
//! What a run does to messages is stored as it happens: that a part of an answer is on its way, and that a query has
//! ended. So a host that starts after a crash knows which messages are answered, which were perhaps answered in part,
//! and which wait.

mod batch;
mod execute;
mod input;
mod log;
mod outcome;
mod progress;

use std::path::Path;
use std::time::Duration;

use myclaw_exec::{Attachment, Finished, attach};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backend::{Access, BackendError, Launch, Mount};
use crate::desk::{RunnerFiles, write_snapshots};
use crate::host::Shared;
use crate::job::{ContainerJob, without_internal};
use crate::ledger::{State, Stored, now_ms};
use crate::mounts::{self, Applicant};
use crate::output::{Block, Parsed, Status};
use crate::rows::{Context, MessageState, OutgoingPart, Query, RunState, RunTask, Task, Traces};
use crate::shared_directory::has;
use crate::{Group, HostError, Limits, Outbound, OutboundKind};
use batch::{gather, is_spoken, keys, prompt_of};
use input::{clear_input, input};
use log::RunLog;
pub(crate) use outcome::{end_leftovers, end_removed, recover};

/// How long a runner that has done a task may stay.
const TASK_IDLE: Duration = Duration::from_secs(10);
/// A runner ends only when the host says so; longer than any limit of the host.
const RUNNER_IDLE: &str = "520w";
/// How often an idle run looks whether a task has become due.
const CLOCK: Duration = Duration::from_secs(1);
/// So many changes are stored before the next block is looked at, because a batch of the store is limited.
const AT_ONCE: usize = 100;

/// What is to be done.
pub(crate) enum Due {
    Messages,
    Task(Box<Stored<Task>>),
}

/// Whether a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// It was told to end at this time.
    Closing(Instant),
    /// It is being ended, because it said nothing for too long or did not end when it was told to.
    Stopped(Stopped),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    WasSilent,
    DidNotClose,
    /// Somebody wanted it.
    ByOrder,
}

struct Run<'a> {
    shared: &'a Shared,
    group: &'a Group,
    state: &'a mut State,
    log: RunLog,
    phase: Phase,
    /// Fires when somebody wants what is being done to stop.
    interrupt: CancellationToken,
    /// The last sign of life, as the protocol counts it: a block.
    last_block: Instant,
    /// Whether any block was read.
    has_answered: bool,
    /// The last text, for the list of tasks.
    last_text: String,
    /// Whether there was a text since messages were passed on last.
    has_spoken_since: bool,
    /// Whether the messages of the query were spoken, so that its answer is spoken too.
    is_voice: bool,
    /// What the runner said about its failure.
    error: Option<String>,
    /// The task, if that is what runs.
    task: Option<Box<Stored<Task>>>,
}

/// What is due as the work of a run, its prompt, and whether it was spoken. `None` if there is nothing any more.
async fn work_of(
    shared: &Shared,
    group: &Group,
    due: &Due,
) -> Result<Option<(RunTask, String, bool)>, HostError> {
    Ok(match due {
        Due::Messages => {
            let batch = gather(shared, group, &[]).await?;
            let work = RunTask::Messages { ids: keys(&batch) };
            (!batch.is_empty()).then(|| (work, prompt_of(&batch), is_spoken(&batch)))
        }
        Due::Task(task) => {
            let due = task.row.next_run.unwrap_or_else(now_ms);
            Some((RunTask::Task { id: task.id.clone(), due }, task.row.prompt.clone(), false))
        }
    })
}

/// Runs a container for what is due, until it ends.
pub(crate) async fn run(
    shared: &Shared,
    group: &Group,
    state: &mut State,
    due: Due,
) -> Result<(), HostError> {
    let Some((work, prompt, is_voice)) = work_of(shared, group, &due).await? else {
        return Ok(());
    };
    let (handle, link) = attach(Attachment::None);
    let trace = handle.trace();
    let name = format!("myclaw-{}-{}", group.folder, uuid::Uuid::now_v7().simple());
    let traces = Traces { mark: trace.mark, boot: trace.boot, name: name.clone() };
    let log = RunLog::begin(&shared.options.home.logs(&group.folder), &name, &work);
    let task = if let Due::Task(task) = due { Some(task) } else { None };
    let context = task.as_ref().map_or(Context::Group, |task| task.row.context);
    let beginnings = shared.ledger.beginnings(&group.folder).await?;
    if state.row.beginnings != beginnings {
        (state.row.beginnings, state.row.session_id) = (beginnings, None);
    }
    let session_id = state.row.session_id.clone().filter(|_| context == Context::Group);
    let job = ContainerJob {
        group,
        assistant: &shared.options.assistant,
        session_id: session_id.as_deref(),
        prompt: &prompt,
        is_scheduled: task.is_some(),
        secrets: &shared.options.secrets,
    };
    let payload = job.payload();
    write_snapshots(shared, &group.folder).await?;
    let run = RunState { traces, work, passed: Vec::new(), query: Query::Silent, queries: 0 };
    shared.queries.lock().insert(group.folder.clone(), run.query_key());
    shared.questions.lock().remove(&group.folder);
    state.row.run = Some(run);
    shared.ledger.save_state(state, Vec::new()).await?;
    let mut run = Run {
        shared,
        group,
        state,
        log,
        phase: Phase::Open,
        interrupt: CancellationToken::new(),
        last_block: Instant::now(),
        has_answered: false,
        last_text: String::new(),
        has_spoken_since: false,
        is_voice,
        error: None,
        task,
    };
    run.works();
    let finished = run.execute(name, payload, link, &handle).await?;
    run.end(finished).await
}

type Ended = (Result<Finished, BackendError>, UnboundedReceiver<Parsed>);

impl Run<'_> {
    /// Attends to a running container until it has ended.
    async fn attend(
        &mut self,
        running: impl Future<Output = Result<Finished, BackendError>>,
        mut blocks: UnboundedReceiver<Parsed>,
        stop: &CancellationToken,
    ) -> Result<Ended, HostError> {
        let wake = self.shared.wake_of(&self.group.folder);
        let mut waiting = self.shared.waiting();
        let mut running = std::pin::pin!(running);
        let mut is_stopping = false;
        loop {
            let deadline = self.deadline();
            tokio::select! {
                biased;
                Some(first) = blocks.recv() => {
                    let mut parsed = vec![first];
                    while let Ok(next) = blocks.try_recv() {
                        parsed.push(next);
                    }
                    self.take(parsed).await?;
                    let count = *waiting.borrow();
                    self.look_around(count).await?;
                }
                finished = &mut running => return Ok((finished, blocks)),
                () = wake.notified() => {
                    let count = *waiting.borrow();
                    self.look_around(count).await?;
                }
                // The sender lives as long as the host.
                Ok(()) = waiting.changed() => {
                    let count = *waiting.borrow_and_update();
                    self.look_around(count).await?;
                }
                () = self.shared.stopping.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    self.look_around(0).await?;
                }
                () = self.interrupt.cancelled(), if !self.is_being_stopped() => {
                    self.stop(Stopped::ByOrder, stop);
                }
                () = tokio::time::sleep(CLOCK), if self.phase == Phase::Open && self.is_idle() => {
                    let count = *waiting.borrow();
                    self.look_around(count).await?;
                }
                () = tokio::time::sleep_until(deadline) => self.on_deadline(stop),
            }
        }
    }

    async fn take_rest(&mut self, mut blocks: UnboundedReceiver<Parsed>) -> Result<(), HostError> {
        let mut parsed = Vec::new();
        while let Some(next) = blocks.recv().await {
            parsed.push(next);
        }
        self.take(parsed).await
    }

    /// Stores what blocks say: their texts as parts, and the end of queries.
    async fn take(&mut self, parsed: Vec<Parsed>) -> Result<(), HostError> {
        let mut writes = Vec::new();
        let mut is_to_be_stored = false;
        for parsed in parsed {
            if writes.len() >= AT_ONCE {
                let writes = std::mem::take(&mut writes);
                self.shared.ledger.save_state(self.state, writes).await?;
            }
            let block = match parsed {
                Parsed::Block(block) => block,
                Parsed::Unusable(problem) => {
                    self.log.line(&problem);
                    continue;
                }
            };
            self.last_block = Instant::now();
            if block.status == Status::Partial {
                self.writes(block.result.as_deref().unwrap_or_default());
                continue;
            }
            is_to_be_stored = true;
            self.log.line(&format!("block {:?}, {} bytes", block.status, length(&block)));
            if block.status == Status::Error {
                self.error = Some(block.error.unwrap_or_else(|| "no reason was given".to_owned()));
                continue;
            }
            self.has_answered = true;
            self.error = None;
            writes.extend(self.answer(&block)?);
            // A block without a text, or one that says what it took, ends a query.
            let inputs = block.inputs.as_deref();
            if block.result.is_none() || inputs.is_some_and(|inputs| !inputs.is_empty()) {
                writes.extend(self.end_query(inputs).await?);
            }
            if let Some(id) = block.new_session_id.filter(|_| self.is_of_group()) {
                self.state.row.session_id = Some(id);
            }
        }
        if is_to_be_stored {
            self.shared.ledger.save_state(self.state, writes).await?;
            self.shared.has_parts();
        }
        Ok(())
    }

    /// Whether the session of the run is the group's.
    fn is_of_group(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.row.context == Context::Group)
    }

    /// The part of a block's text, if it has one for the chat.
    fn answer(&mut self, block: &Block) -> Result<Vec<myclaw_store::Write>, HostError> {
        let text = without_internal(block.result.as_deref().unwrap_or_default());
        if text.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(run) = &mut self.state.row.run {
            run.query = Query::Spoke;
        }
        self.has_spoken_since = true;
        self.last_text.clone_from(&text);
        let kind = match self.is_voice && self.shared.options.speaker.is_some() {
            true => OutboundKind::Voice { voice: None, audio: None },
            false => OutboundKind::Message,
        };
        let part = part(&self.group.jid, kind, text, Vec::new());
        self.shared.ledger.new_part(&part)
    }

    /// The end of the messages that a query has answered: those of the prompt, and those of the files it took.
    async fn end_query(
        &mut self,
        inputs: Option<&[String]>,
    ) -> Result<Vec<myclaw_store::Write>, HostError> {
        // What was sent through files belongs to this query.
        RunnerFiles::new(self.shared).attend(&self.group.folder).await?;
        let directory = input(self.shared, self.group);
        let is_gone = |file: &str| directory.as_ref().is_ok_and(|input| !has(input, file));
        let has_spoken_since = self.has_spoken_since;
        // A runner that does not name files has answered those that it took before it said something.
        let was_taken = |file: &String| match inputs {
            Some(inputs) => inputs.contains(file),
            None => has_spoken_since && is_gone(file),
        };
        let Some(run) = &mut self.state.row.run else { return Ok(Vec::new()) };
        let mut answered = match &mut run.work {
            RunTask::Messages { ids } => std::mem::take(ids),
            RunTask::Task { .. } => Vec::new(),
        };
        run.passed.retain(|(id, file)| {
            let is_taken = was_taken(file);
            if is_taken {
                answered.push(id.clone());
            }
            !is_taken
        });
        // The next query has begun, or will at once, if files wait.
        run.query = if run.passed.is_empty() { Query::Over } else { Query::Silent };
        self.is_voice &= run.query == Query::Silent;
        run.queries += 1;
        self.shared.queries.lock().insert(self.group.folder.clone(), run.query_key());
        self.state.row.failures = 0;
        if self.is_idle() {
            self.rests();
        }
        outcome::ends(self.shared, &answered, MessageState::Answered).await
    }

    /// Hands over messages that have come, and ends an idle container when something else is due.
    async fn look_around(&mut self, waiting: usize) -> Result<(), HostError> {
        if self.phase != Phase::Open {
            return Ok(());
        }
        let is_session_over = self.is_session_over().await?;
        if self.is_idle() {
            let task = self.shared.ledger.first_due(&self.group.folder).await?;
            let is_due = |task: &Stored<Task>| task.row.next_run.is_none_or(|due| due <= now_ms());
            let is_stopping = self.shared.stopping.is_cancelled()
                || self.shared.groups().of_folder(&self.group.folder).is_none();
            if is_stopping || is_session_over || waiting > 0 || task.as_ref().is_some_and(is_due) {
                self.close();
                return Ok(());
            }
        }
        let asked = self.shared.questions.lock().get(&self.group.folder).copied();
        let since = match (&self.task, asked) {
            _ if is_session_over || self.shared.stopping.is_cancelled() => return Ok(()),
            (None, _) => 0,
            // A task takes nothing but the reply to its question.
            (Some(_), Some(asked)) => asked,
            (Some(_), None) => return Ok(()),
        };
        self.pass_on(since).await
    }

    /// Whether no query runs.
    fn is_idle(&self) -> bool {
        self.state.row.run.as_ref().is_some_and(|run| run.query == Query::Over)
    }

    /// How long the runner may stay as it is.
    fn deadline(&self) -> Instant {
        let limits = &self.shared.options.limits;
        match self.phase {
            Phase::Closing(since) => since + limits.grace,
            Phase::Stopped(_) => Instant::now() + Duration::from_secs(3600),
            Phase::Open => {
                let idle =
                    if self.task.is_some() { TASK_IDLE.min(limits.idle) } else { limits.idle };
                match self.state.row.run.as_ref().map(|run| run.query) {
                    Some(Query::Over) => self.last_block + idle,
                    // A runner that does not report the end of a query gets the order to end after a quiet time.
                    Some(Query::Spoke) => self.last_block + limits.idle,
                    _ => self.last_block + hard(limits),
                }
            }
        }
    }

    fn on_deadline(&mut self, stop: &CancellationToken) {
        match self.phase {
            Phase::Open if self.has_answered && !self.is_silent() => self.close(),
            Phase::Open => self.stop(Stopped::WasSilent, stop),
            Phase::Closing(_) => self.stop(Stopped::DidNotClose, stop),
            Phase::Stopped(_) => {}
        }
    }

    fn is_silent(&self) -> bool {
        self.state.row.run.as_ref().is_some_and(|run| run.query == Query::Silent)
    }

    fn launch(&mut self, name: String, payload: Vec<u8>) -> Launch {
        let home = &self.shared.options.home;
        let folder = &self.group.folder;
        let mount = |host: std::path::PathBuf, name: &str, access| Mount {
            host,
            container: Path::new("/workspace").join(name),
            access,
        };
        let of_global = if self.group.is_main() { Access::ReadWrite } else { Access::ReadOnly };
        let mut list = vec![
            mount(home.group(folder), "group", Access::ReadWrite),
            mount(home.global(), "global", of_global),
            mount(home.ipc(folder), "ipc", Access::ReadWrite),
        ];
        if self.group.is_main() {
            list.push(mount(home.all_groups(), "project/groups", Access::ReadOnly));
        }
        let by = Applicant { is_main: self.group.is_main(), host_root: home.root() };
        let (allowed, refused) = mounts::check(&self.group.mounts, self.shared.allowlist(), by);
        list.extend(allowed);
        for problem in refused {
            self.log.line(&problem.to_string());
            self.shared.say(&format!("group {folder}: {problem}"));
        }
        let mut options = self.shared.options.runner_options.clone();
        if let Some(model) = &self.shared.options.model {
            options.extend(model.runner_options());
        }
        if self.is_shown() {
            options.push("--partial".to_owned());
        }
        if self.task.is_none() {
            options.extend(["--stay", "--idle-limit", RUNNER_IDLE].map(str::to_owned));
        }
        Launch {
            name,
            payload,
            mounts: list,
            workspace: home.workspace(folder),
            home: home.session(folder),
            temporary: home.temporary(folder),
            options,
            model: None,
            time_zone: myclaw_schedule::local_zone(),
            stop_grace: self.shared.options.limits.grace,
        }
    }
}

/// A part with an id of its own.
fn part(chat: &str, kind: OutboundKind, text: String, about: Vec<String>) -> OutgoingPart {
    let id = uuid::Uuid::now_v7().to_string();
    OutgoingPart { outbound: Outbound { id, chat: chat.to_owned(), kind, text, about } }
}

/// The time without a block after which a runner counts as hung. An idle one gets the order to end earlier.
fn hard(limits: &Limits) -> Duration {
    limits.hard.max(limits.idle + 2 * limits.grace)
}

fn length(block: &Block) -> usize {
    block.result.as_ref().map_or(0, String::len)
}
