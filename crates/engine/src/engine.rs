//! Prepares a run, runs its turns, and reports how it ended.

mod open;
mod thinking;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_auth::KeyResolver;
use myclaw_llm::{Model, Provider, ThinkingLevel};
use parking_lot::Mutex;
use tracing::{Instrument, info, info_span};

use crate::event::RunFrame;
use crate::failover::{Candidate, Candidates, Roster};
use crate::prompt::{PromptParts, build_system_prompt, time_zone};
use crate::skills::listed_skills;
use crate::turn::{
    Act, Bounds, CallRules, Caller, Cancellation, Fit, Intake, Interrupts, Pauses, Prompt,
    QueueRules, RunContext, Schemas, Shared, Tally, Toolbox, Turn, announce_end,
};
use crate::{
    ActiveModel, AgentMeta, CompactionReport, EmbeddedResult, Enqueue, LanePermit, LaneRequest,
    Lanes, Notice, Providers, RunError, RunOutcome, RunParams, RunResult, RunStores, RunWork,
    ToolContext, TurnId,
};
use open::{Opened, open};
use thinking::Thinking;

/// Waits longer than this emit a notice.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Runs turns. Reuse one engine for several turns: it keeps the connection to the model's server open between them.
pub struct Engine {
    providers: Box<dyn Providers>,
    keys: KeyResolver,
    lanes: Lanes,
    /// Those of the newest turn. Most turns have the same.
    schemas: Mutex<Arc<Schemas>>,
}

impl Engine {
    /// An engine that calls models through `providers`, with keys that `keys` looks up.
    pub fn new(providers: impl Providers + 'static, keys: KeyResolver) -> Self {
        let (lanes, schemas) = (Lanes::default(), Mutex::default());
        Self { providers: Box::new(providers), keys, lanes, schemas }
    }

    /// Runs one turn: takes the user message, calls the model, runs tools until the model answers, and returns when
    /// everything is on disk.
    ///
    /// # Errors
    /// See [`RunError`]. Everything up to the failure is in the session, which stays valid.
    pub async fn run(&self, params: RunParams) -> Result<RunResult, RunError> {
        let frame = RunFrame::begin(params.events(), RunWork::Turn);
        let began = Instant::now();
        let span = info_span!("run", session = %params.session_key, run = %params.run_id);
        let result = self.run_turns(params).instrument(span.clone()).await;
        let duration_ms = began.elapsed().as_millis() as u64;
        span.in_scope(|| match &result {
            Ok(_) => info!(duration_ms, "run ended"),
            Err(error) => info!(duration_ms, class = error.class(), "run failed"),
        });
        frame.end(&result, RunOutcome::Answered);
        result
    }

    /// Runs one turn like [`Engine::run`], for programs that show payloads. An abort is a result here, and so is a
    /// session that does not fit the model: its payload describes the problem.
    ///
    /// # Errors
    /// Every other [`RunError`].
    pub async fn run_embedded(&self, params: RunParams) -> Result<EmbeddedResult, RunError> {
        let began = Instant::now();
        let roster = Roster::new(&params)?;
        let (store, key) = (params.stores.sessions.clone(), params.session_key.clone());
        let outcome = self.run(params).await;
        let session_id = tokio::task::spawn_blocking(move || store.session_id(&key)).await;
        let model = &roster.first().model;
        let agent_meta = AgentMeta {
            session_id: session_id.ok().and_then(Result::ok).flatten(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            usage: None,
        };
        EmbeddedResult::of(outcome, agent_meta, began)
    }

    /// Runs the turn, and further turns while acknowledged messages wait.
    async fn run_turns(&self, mut params: RunParams) -> Result<RunResult, RunError> {
        let mut roster = Roster::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let mut outcome = self.run_once(&mut params, &roster, None).await?;
        let inbox = params.stores.sessions.inbox(&params.session_key);
        while let Ok(before) = &outcome
            && before.bound.is_none()
            // A message may have arrived after the turn's last look at the inbox and before the session was released.
            // Its sender expects this run to take it.
            && (params.switch.is_due() || inbox.may_hold_messages())
        {
            let before = before.clone();
            if params.switch.is_due() {
                params.switch.clone().apply(&mut params);
                roster = Roster::new(&params)?;
            }
            let next = self.run_once(&mut params, &roster, Some(&before)).await;
            let Ok(next) = next else { break };
            outcome = match next {
                Err(RunError::NothingToDo) => break,
                next => next.map(|next| before.followed_by(next)),
            };
        }
        announce_end(&params, &outcome).await;
        outcome
    }

    /// Opens the session, runs a turn in it, and releases it. Takes the user's message out of `params`; `before` is the
    /// result of the earlier turns of the run. The outer error means that no turn was run.
    async fn run_once(
        &self,
        params: &mut RunParams,
        roster: &Roster,
        before: Option<&RunResult>,
    ) -> Result<Result<RunResult, RunError>, RunError> {
        let opened = Box::pin(open(params, roster)).await?;
        if before.is_some() && !opened.interrupts.is_empty() {
            // The sender of the interrupt cancels this run and starts another one, which answers the message.
            return Err(RunError::Aborted);
        }
        let events = params.events();
        for notice in roster.notices().iter().chain(&opened.notices) {
            events.notice(notice.clone());
        }
        let answering = roster.line_up(params, &opened.auth_file)?;
        let thinking = Thinking::of(params, answering.0.choice);
        if let Some(notice) = thinking.notice {
            events.notice(notice);
        }
        let mut turn = self.turn(params, roster, opened, answering, thinking.requested);
        turn.shared.tally.earlier_tokens = before.map_or(0, |before| before.usage.total_tokens);
        // Boxed: the state of a whole turn is large, and callers hold it inside their own state.
        Ok(Box::pin(turn.run().instrument(info_span!("turn"))).await)
    }

    /// Replaces all but the newest messages of a session by a summary, without running a turn. The session, the config
    /// and the model are those of `params`; its user message is not used. `focus` says what the summary should
    /// concentrate on.
    ///
    /// # Errors
    /// See [`RunError`]. The session is unchanged on failure.
    pub async fn compact(
        &self,
        params: RunParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let frame = RunFrame::begin(params.events(), RunWork::Compaction);
        let result = self.compact_session(params, focus).await;
        frame.end(&result, RunOutcome::Compacted);
        result
    }

    async fn compact_session(
        &self,
        mut params: RunParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let roster = Roster::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let opened = open(&params, &roster).await?;
        let answering = roster.line_up(&params, &opened.auth_file)?;
        self.turn(&mut params, &roster, opened, answering, ThinkingLevel::Off)
            .compact_manually(focus)
            .await
    }

    /// Waits until the lanes let the run begin.
    async fn enter_lanes(&self, params: &RunParams) -> Result<LanePermit, RunError> {
        let enqueue: &dyn Enqueue = params.enqueue.as_deref().unwrap_or(&self.lanes);
        let request = LaneRequest {
            session_key: params.session_key.clone(),
            lane: params.lane,
            widths: params.rules.lanes,
        };
        let mut entering = enqueue.enter(request);
        tokio::select! {
            biased;
            permit = &mut entering => return Ok(permit),
            () = params.cancel.cancelled() => return Err(RunError::Aborted),
            () = tokio::time::sleep(SILENT_WAIT) => {}
        }
        params.events().notice(Notice::WaitingForLane {});
        tokio::select! {
            permit = entering => Ok(permit),
            () = params.cancel.cancelled() => Err(RunError::Aborted),
        }
    }

    fn turn<'a>(
        &'a self,
        params: &mut RunParams,
        roster: &'a Roster,
        opened: Opened,
        answering: (Candidate<'a>, Candidates<'a>),
        thinking: ThinkingLevel,
    ) -> Turn<'a> {
        let RunStores { sessions, spending, .. } = params.stores.clone();
        let rules = params.rules.clone();
        let key = &params.session_key;
        let schemas = self.schemas_of(params);
        let prompt = first_prompt(params, &opened, answering.0.choice, schemas);
        let delivery = QueueRules {
            steering: rules.steering,
            follow_ups: rules.follow_ups,
            quiet: rules.quiet,
        };
        let call_rules = CallRules {
            thinking,
            tool_use: params.tool_use,
            options: params.options.clone(),
            max_retries: rules.max_retries,
            cut_answers: rules.cut_answers,
            limits: rules.call,
            refusals: rules.refusals,
        };
        let ledger = roster.ledger(rules.cooldowns);
        let inbox = sessions.inbox(key);
        let interrupts = Interrupts::new(Arc::clone(&inbox), opened.watch, opened.interrupts);
        let pauses = Pauses::default();
        let most_calls = rules.max_iterations.limit();
        Turn {
            bounds: Bounds::new(rules.limits, most_calls, spending, &pauses, rules.config_keys)
                .of_family(rules.shared_cost),
            shared: Shared {
                run: RunContext {
                    session_key: key.clone(),
                    store: sessions,
                    events: params.events(),
                    clock: Arc::clone(&params.clock),
                    hooks: params.hooks.clone(),
                    cancel: Cancellation::new(&params.cancel),
                    pauses,
                    quiet: params.quiet.clone(),
                    mode: params.mode.clone(),
                    listed_with: params.listed_with.clone(),
                    known_secrets: rules.known_secrets,
                },
                is_active: false,
                opening: None,
                entering: None,
                has_begun: false,
                log: opened.log,
                prompt,
                tally: Tally::default(),
            },
            fit: Fit::new(
                rules.compaction,
                rules.refusals,
                rules.context_pruning,
                rules.history_limit,
                opened.opening,
            ),
            call: Caller::new(self, &self.keys, answering, ledger, call_rules),
            act: Act::new(toolbox(params), rules.limits.repeated_calls),
            switch: params.switch.clone(),
            intake: Intake::new(
                inbox,
                delivery,
                interrupts,
                std::mem::take(&mut params.user_message),
            ),
        }
    }

    /// The schemas of the run's tools. A turn with the same tools as the one before shares its schemas.
    fn schemas_of(&self, params: &RunParams) -> Arc<Schemas> {
        let newest = || self.schemas.lock();
        let schemas = Arc::clone(&*newest());
        if schemas.are_of(&params.tools) {
            return schemas;
        }
        let schemas = Arc::new(Schemas::of(&params.tools));
        newest().clone_from(&schemas);
        schemas
    }

    /// The provider that serves `model`.
    pub(crate) fn provider(&self, model: &Model) -> &dyn Provider {
        self.providers.provider(model)
    }
}

/// The prompt of a turn, before hooks change it.
fn first_prompt(
    params: &RunParams,
    opened: &Opened,
    model: &ActiveModel,
    schemas: Arc<Schemas>,
) -> Prompt {
    let built = || {
        build_system_prompt(&PromptParts {
            identity: opened.identity.as_ref(),
            bootstrap: &opened.bootstrap_files,
            tools: schemas.list(),
            skills: listed_skills(&params.skills),
            working_directory: working_directory(params),
            model: &model.reference(),
            time_zone: time_zone(params.rules.time_zone.as_deref()).as_deref(),
            note: params.note.as_deref(),
            project: params.project.as_ref(),
            notes: opened.notes.as_ref(),
            memory: params.memory.as_deref(),
        })
    };
    let system_prompt = params.system_prompt.clone().unwrap_or_else(built);
    let files = opened.identity.iter().chain(&opened.bootstrap_files).chain(&opened.notes);
    Prompt::new(system_prompt, schemas, files)
}

/// The tools of a turn, with the surroundings of their calls.
fn toolbox(params: &RunParams) -> Toolbox {
    let context = ToolContext {
        working_directory: working_directory(params).to_owned(),
        artifact_directory: params.stores.side_files.artifact_directory(&params.session_key),
        max_result_chars: params.rules.max_tool_result_chars,
        workspace_only: params.rules.workspace_only,
        closed: Arc::clone(&params.rules.closed),
        turn: TurnId::generate(),
    };
    Toolbox::new(params.tools.clone(), params.withheld.clone(), context, params.approver.clone())
}

/// The directory that tools work in.
fn working_directory(params: &RunParams) -> &Path {
    params.working_directory.as_ref().unwrap_or(&params.workspace)
}
