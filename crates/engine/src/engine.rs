//! Sets a run up, runs its turn, and tells how it ended.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use myclaw_config::{AgentSettings, ConfigError};
use myclaw_llm::{
    Api, CallLimits, DemoProvider, HttpOptions, HttpProvider, Provider, ToolSchema, Variables,
    parse_model_ref,
};
use myclaw_session::{
    DaySpending, EntryId, Inbox, LockWait, SessionError, SessionLog, SessionStore,
};

use crate::conversation::{Conversation, Opening};
use crate::failover::ProfileRotation;
use crate::prompt::{PromptParts, build_system_prompt};
use crate::turn::{
    Allowance, Delivery, Recovery, Repetition, Tally, Turn, TurnLimits, announce_end, input_budget,
};
use crate::workspace::{BootstrapFile, prepare_workspace};
use crate::{
    AgentRunEvent, AgentStart, Enqueue, LanePermit, LaneRequest, Lanes, ModelChoice,
    RunAgentParams, RunError, RunResult, ToolContext,
};

/// A wait longer than this is told.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Pause between two looks at a lock that another process holds: nobody notices it, and it costs nothing.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// File in the state directory with the totals of the day.
const SPENDING_FILE: &str = "usage.json";

/// Runs turns. Keep one for several turns: it keeps the connection to the model's server open between them.
pub struct Engine {
    http: HttpProvider,
    builtin: DemoProvider,
    lanes: Lanes,
}

/// Runs one turn: see [`Engine::run`].
///
/// # Errors
/// See [`Engine::run`].
pub async fn run_agent(params: RunAgentParams) -> Result<RunResult, RunError> {
    Engine::new().run(params).await
}

impl Engine {
    /// Opens no connection yet. Credentials of cloud providers are looked for in the variables of this process.
    pub fn new() -> Self {
        Self::with_variables(Variables::from_process())
    }

    /// Like [`Engine::new`], with other variables.
    pub fn with_variables(variables: Variables) -> Self {
        Self {
            http: HttpProvider::new(http_options(variables)),
            builtin: DemoProvider,
            lanes: Lanes::default(),
        }
    }

    /// Runs one turn: takes the user message, calls the model, runs tools until the model answers, and returns when
    /// everything is on disk.
    ///
    /// # Errors
    /// See [`RunError`]. Whatever was said and done until then is in the session, which stays valid.
    pub async fn run(&self, params: RunAgentParams) -> Result<RunResult, RunError> {
        let setup = Setup::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let (mut params, mut outcome) = self.run_once(params, &setup).await?;
        let inbox = setup.store.inbox(&params.session_key);
        // Somebody may have sent a message between the turn's last look and the session's release, and been told that
        // the run takes it.
        while let Ok(before) = &outcome
            && before.bound.is_none()
            && inbox.may_hold_messages()
        {
            let before = before.clone();
            let Ok((next_params, next)) = self.run_once(params.clone(), &setup).await else {
                break;
            };
            params = next_params;
            outcome = match next {
                Err(RunError::NothingToDo) => break,
                next => next.map(|next| before.followed_by(next)),
            };
        }
        announce_end(&params, &outcome).await;
        outcome
    }

    /// Opens the session, runs a turn in it, and releases it. Gives `params` back, without the user's message.
    async fn run_once(
        &self,
        params: RunAgentParams,
        setup: &Setup,
    ) -> Result<(RunAgentParams, Result<RunResult, RunError>), RunError> {
        let opened = open(&params, setup).await?;
        for notice in &opened.notices {
            params.notice(notice.clone());
        }
        let mut turn = self.turn(params, setup, opened);
        let outcome = turn.run().await;
        Ok(turn.close(outcome).await)
    }

    /// Waits until the run may begin.
    async fn enter_lanes(&self, params: &RunAgentParams) -> Result<LanePermit, RunError> {
        let enqueue: &dyn Enqueue = params.enqueue.as_deref().unwrap_or(&self.lanes);
        let request = LaneRequest {
            session_key: params.session_key.clone(),
            lane: params.lane,
            widths: params.config.agents.defaults.lanes,
        };
        let mut entering = enqueue.enter(request);
        tokio::select! {
            biased;
            permit = &mut entering => return Ok(permit),
            () = params.cancel.cancelled() => return Err(RunError::Aborted),
            () = tokio::time::sleep(SILENT_WAIT) => {}
        }
        params.notice("waiting for another run to end".to_owned());
        tokio::select! {
            permit = entering => Ok(permit),
            () = params.cancel.cancelled() => Err(RunError::Aborted),
        }
    }

    fn turn<'a>(
        &'a self,
        mut params: RunAgentParams,
        setup: &'a Setup,
        opened: Opened,
    ) -> Turn<'a> {
        let Setup { settings, model, store, spending } = setup;
        let tool_schemas: Vec<ToolSchema> =
            params.tools.iter().map(|tool| tool.schema().clone()).collect();
        let working_directory =
            params.working_directory.clone().unwrap_or_else(|| settings.workspace.clone());
        let system_prompt = build_system_prompt(&PromptParts {
            bootstrap: &opened.bootstrap_files,
            tools: &tool_schemas,
            working_directory: &working_directory,
            model: &model.reference(),
        });
        let timeouts = &params.config.models.timeouts;
        let call = CallLimits {
            connect: timeouts.connect(),
            first_event: timeouts.first_event(),
            between_events: timeouts.between_events(),
        };
        let user_message = std::mem::take(&mut params.user_message);
        let abort = params.cancel.clone();
        params.cancel = abort.child_token();
        Turn {
            provider: self.provider(model.model.api),
            model,
            store: store.clone(),
            inbox: store.inbox(&params.session_key),
            delivery: Delivery {
                steering: settings.steering_mode,
                follow_ups: settings.follow_up_mode,
                quiet: Duration::from_millis(params.config.messages.queue.debounce_ms),
            },
            has_steered: false,
            conversation: opened.conversation,
            opening: opened.opening,
            start: AgentStart { system_prompt, user_message },
            tool_schemas,
            tool_context: ToolContext {
                working_directory,
                artifact_directory: store.artifact_directory(&params.session_key),
                max_result_chars: settings.max_tool_result_chars,
                workspace_only: params.config.tools.fs.workspace_only,
            },
            limits: TurnLimits {
                max_iterations: settings.max_iterations.limit(),
                max_retries: settings.max_retries,
                call,
            },
            rotation: ProfileRotation::new(&model.profiles),
            tally: Tally::default(),
            recovery: Recovery::default(),
            allowance: Allowance::new(settings.limits, spending.clone()),
            repetition: Repetition::new(settings.limits.repeated_calls),
            abort,
            params,
        }
    }

    fn provider(&self, api: Api) -> &dyn Provider {
        match api {
            Api::AnthropicMessages
            | Api::OpenaiCompletions
            | Api::OpenaiResponses
            | Api::GoogleGenerativeAi
            | Api::BedrockConverse => &self.http,
            Api::Builtin => &self.builtin,
        }
    }
}

/// Servers are told which program calls, as their operators expect.
fn http_options(variables: Variables) -> HttpOptions {
    HttpOptions {
        user_agent: concat!("myclaw/", env!("CARGO_PKG_VERSION")).to_owned(),
        variables,
        ..HttpOptions::default()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// What the settings say about a run.
struct Setup {
    settings: AgentSettings,
    model: ModelChoice,
    store: SessionStore,
    spending: DaySpending,
}

impl Setup {
    fn new(params: &RunAgentParams) -> Result<Self, RunError> {
        let settings = params.config.agent_settings(params.agent.as_deref())?;
        let model = match &params.model {
            Some(model) => model.clone(),
            None => {
                let name = settings.model.as_deref().ok_or(RunError::NoModel)?;
                ModelChoice::from_config(&params.config, &parse_model_ref(name)?)
            }
        };
        let paths = params.config.paths.as_ref().ok_or(ConfigError::NoPaths)?;
        let spending = DaySpending::new(paths.state_dir().join(SPENDING_FILE));
        Ok(Self { settings, model, store: SessionStore::new(paths.sessions_dir()), spending })
    }
}

/// What the file system gave.
struct Opened {
    bootstrap_files: Vec<BootstrapFile>,
    conversation: Conversation,
    opening: Opening,
    /// What the user should know.
    notices: Vec<String>,
}

/// Prepares the workspace and opens the session, off the async thread.
async fn open(params: &RunAgentParams, setup: &Setup) -> Result<Opened, RunError> {
    let workspace = setup.settings.workspace.clone();
    let working_directory = params.working_directory.clone();
    let bootstrap = blocking(move || {
        check_directory(working_directory)?;
        prepare_workspace(&workspace)
    })
    .await?;
    let log = open_log(params, &setup.store).await?;
    let inbox = setup.store.inbox(&params.session_key);
    let budget = input_budget(&setup.model.model);
    let mut notices = bootstrap.notices;
    blocking(move || {
        let (conversation, opening, waiting) = load(log, &inbox, budget)?;
        match waiting {
            0 => {}
            1 => notices
                .push("a message from before waits in this session and is answered too".to_owned()),
            count => notices.push(format!(
                "{count} messages from before wait in this session and are answered too"
            )),
        }
        Ok(Opened { bootstrap_files: bootstrap.files, conversation, opening, notices })
    })
    .await
}

/// Loads the end of the log, settles what it has taken of the inbox, and counts what waits there.
fn load(
    log: SessionLog,
    inbox: &Inbox,
    budget: u64,
) -> Result<(Conversation, Opening, usize), RunError> {
    // Held while the log is read: a run that was dropped may still be settling what it took.
    let mut held = if inbox.may_hold_messages() { inbox.open()? } else { None };
    let (conversation, opening) = Conversation::load(log, budget)?;
    let mut waiting = 0;
    if let Some(held) = &mut held {
        let mut pending: Vec<EntryId> = held.pending()?.iter().map(|message| message.id).collect();
        let all = pending.len();
        pending.retain(|id| opening.taken.contains(id));
        if !pending.is_empty() {
            held.change(&[], &pending)?;
        }
        waiting = all - pending.len();
    }
    Ok((conversation, opening, waiting))
}

/// Opens the session's log, and waits while another process has it open.
async fn open_log(params: &RunAgentParams, store: &SessionStore) -> Result<SessionLog, RunError> {
    let began = Instant::now();
    let mut has_told = false;
    loop {
        let (at, key) = (store.clone(), params.session_key.clone());
        let opened = blocking(move || Ok(at.open(&key, LockWait::Fail))).await?;
        let waited = began.elapsed();
        let (path, process_id) = match opened {
            Ok(log) => return Ok(log),
            Err(SessionError::Locked { path, process_id, .. }) if waited < params.session_wait => {
                (path, process_id)
            }
            Err(error) => return Err(error.into()),
        };
        if waited >= SILENT_WAIT && !std::mem::replace(&mut has_told, true) {
            let holder = process_id.map_or_else(String::new, |id| format!(" (process {id})"));
            params.notice(format!(
                "waiting for the session, which another process runs{holder}: {}",
                path.display()
            ));
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => {}
            () = params.cancel.cancelled() => return Err(RunError::Aborted),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| RunError::Internal(error.to_string()))?
}

impl RunAgentParams {
    pub(crate) fn notice(&self, message: String) {
        if let Some(on_event) = &self.on_event {
            on_event(AgentRunEvent::Notice { message });
        }
    }
}

/// A directory that the user named is never made: a misspelt one should be noticed.
fn check_directory(directory: Option<PathBuf>) -> Result<(), RunError> {
    match directory {
        Some(path) if !path.is_dir() => {
            Err(RunError::Workspace { path, source: std::io::ErrorKind::NotADirectory.into() })
        }
        _ => Ok(()),
    }
}
