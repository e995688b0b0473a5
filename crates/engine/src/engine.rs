//! Sets a run up, runs its turn, and tells how it ended.

mod open;
mod setup;

use std::time::Duration;

use myclaw_auth::KeyResolver;
use myclaw_llm::{
    Api, CallLimits, DemoProvider, HttpOptions, HttpProvider, Provider, ThinkingLevel, ToolSchema,
    Variables,
};

use crate::event::RunFrame;
use crate::failover::{Candidate, Candidates, key_resolver};
use crate::prompt::{PromptParts, build_system_prompt};
use crate::turn::{
    Allowance, Delivery, Recovery, Repetition, Tally, Turn, TurnLimits, announce_end,
};
use crate::{
    AgentStart, CompactionReport, Enqueue, LanePermit, LaneRequest, Lanes, Notice, RunAgentParams,
    RunError, RunOutcome, RunResult, RunWork, ToolContext,
};
use open::{Opened, open};
use setup::Setup;

/// A wait longer than this is told.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Runs turns. Keep one for several turns: it keeps the connection to the model's server open between them.
pub struct Engine {
    http: HttpProvider,
    builtin: DemoProvider,
    keys: KeyResolver,
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
        let options = http_options(variables);
        Self {
            keys: key_resolver(options.clone()),
            http: HttpProvider::new(options).with_access(myclaw_llm_cloud::access()),
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
        let frame = RunFrame::begin(params.events(), RunWork::Turn);
        let result = self.run_turns(params).await;
        frame.end(&result, RunOutcome::Answered);
        result
    }

    /// Runs the turn, and further ones as long as messages wait that were promised an answer.
    async fn run_turns(&self, params: RunAgentParams) -> Result<RunResult, RunError> {
        let mut setup = Setup::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let (mut params, mut outcome) = self.run_once(params, &setup).await?;
        let inbox = setup.store.inbox(&params.session_key);
        while let Ok(before) = &outcome
            && before.bound.is_none()
            // Somebody may have sent a message between the turn's last look and the session's release, and been told
            // that the run takes it.
            && (params.switch.is_due() || inbox.may_hold_messages())
        {
            let before = before.clone();
            if params.switch.is_due() {
                params.switch.clone().apply(&mut params);
                setup = Setup::new(&params)?;
            }
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
        let events = params.events();
        for notice in setup.roster.notices().iter().chain(&opened.notices) {
            events.notice(notice.clone());
        }
        let (first, candidates) = setup.roster.line_up(&params, &opened.auth_file)?;
        let thinking = setup.thinking(&params, first.choice);
        if let Some(notice) = thinking.notice {
            events.notice(notice);
        }
        let mut turn = self.turn(params, setup, opened, (first, candidates), thinking.requested);
        // Boxed: the state of a whole turn is large, and callers nest it in theirs.
        let outcome = Box::pin(turn.run()).await;
        Ok(turn.close(outcome).await)
    }

    /// Puts a summary in the place of all but the newest messages of a session, without a turn. The session, the
    /// settings and the model are those of `params`; its user message is not used. `focus` is what the summary should
    /// pay attention to.
    ///
    /// # Errors
    /// See [`RunError`]. The session is as it was then.
    pub async fn compact(
        &self,
        params: RunAgentParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let frame = RunFrame::begin(params.events(), RunWork::Compaction);
        let result = self.compact_session(params, focus).await;
        frame.end(&result, RunOutcome::Compacted);
        result
    }

    async fn compact_session(
        &self,
        params: RunAgentParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let setup = Setup::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let opened = open(&params, &setup).await?;
        let answering = setup.roster.line_up(&params, &opened.auth_file)?;
        self.turn(params, &setup, opened, answering, ThinkingLevel::Off)
            .compact_by_hand(focus)
            .await
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
        params.events().notice(Notice::WaitingForLane {});
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
        (first, candidates): (Candidate<'a>, Candidates<'a>),
        thinking: ThinkingLevel,
    ) -> Turn<'a> {
        let Setup { settings, store, spending, .. } = setup;
        let model = first.choice;
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
        let caller = params.cancel.clone();
        let abort = caller.child_token();
        params.cancel = abort.child_token();
        Turn {
            engine: self,
            events: params.events(),
            provider: self.provider(model.model.api),
            model,
            thinking,
            rotation: first.rotation,
            candidates,
            keys: &self.keys,
            ledger: setup.roster.ledger(&params.config),
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
            start: AgentStart { system_prompt, user_message, queued_messages: Vec::new() },
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
                compaction: settings.compaction.clone(),
                context_pruning: settings.context_pruning,
                call,
            },
            tally: Tally::default(),
            recovery: Recovery::default(),
            fruitless_pruning: None,
            allowance: Allowance::new(settings.limits, spending.clone()),
            repetition: Repetition::new(settings.limits.repeated_calls),
            known_interrupts: opened.interrupts,
            caller,
            abort,
            params,
        }
    }

    /// What stands behind a wire format.
    pub(crate) fn provider(&self, api: Api) -> &dyn Provider {
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
