//! Sets a run up, runs its turn, and tells how it ended.

mod open;
mod thinking;

use std::time::Duration;

use myclaw_auth::KeyResolver;
use myclaw_llm::{Model, Provider, ThinkingLevel, ToolSchema};

use crate::event::RunFrame;
use crate::failover::{Candidate, Candidates, Roster};
use crate::prompt::{PromptParts, build_system_prompt};
use crate::turn::{
    Allowance, Delivery, Recovery, Repetition, Tally, Turn, TurnLimits, announce_end,
};
use crate::{
    AgentStart, CompactionReport, Enqueue, LanePermit, LaneRequest, Lanes, Notice, Providers,
    RunError, RunOutcome, RunParams, RunResult, RunStores, RunWork, ToolContext,
};
use open::{Opened, open};
use thinking::Thinking;

/// A wait longer than this is told.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Runs turns. Keep one for several turns: it keeps the connection to the model's server open between them.
pub struct Engine {
    providers: Box<dyn Providers>,
    keys: KeyResolver,
    lanes: Lanes,
}

impl Engine {
    /// An engine that calls models through `providers`, with keys that `keys` looks up.
    pub fn new(providers: impl Providers + 'static, keys: KeyResolver) -> Self {
        Self { providers: Box::new(providers), keys, lanes: Lanes::default() }
    }

    /// Runs one turn: takes the user message, calls the model, runs tools until the model answers, and returns when
    /// everything is on disk.
    ///
    /// # Errors
    /// See [`RunError`]. Whatever was said and done until then is in the session, which stays valid.
    pub async fn run(&self, params: RunParams) -> Result<RunResult, RunError> {
        let frame = RunFrame::begin(params.events(), RunWork::Turn);
        let result = self.run_turns(params).await;
        frame.end(&result, RunOutcome::Answered);
        result
    }

    /// Runs the turn, and further ones as long as messages wait that were promised an answer.
    async fn run_turns(&self, params: RunParams) -> Result<RunResult, RunError> {
        let mut roster = Roster::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let (mut params, mut outcome) = self.run_once(params, &roster).await?;
        let inbox = params.stores.sessions.inbox(&params.session_key);
        while let Ok(before) = &outcome
            && before.bound.is_none()
            // Somebody may have sent a message between the turn's last look and the session's release, and been told
            // that the run takes it.
            && (params.switch.is_due() || inbox.may_hold_messages())
        {
            let before = before.clone();
            if params.switch.is_due() {
                params.switch.clone().apply(&mut params);
                roster = Roster::new(&params)?;
            }
            let Ok((next_params, next)) = self.run_once(params.clone(), &roster).await else {
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
        params: RunParams,
        roster: &Roster,
    ) -> Result<(RunParams, Result<RunResult, RunError>), RunError> {
        let opened = open(&params, roster).await?;
        let events = params.events();
        for notice in roster.notices().iter().chain(&opened.notices) {
            events.notice(notice.clone());
        }
        let (first, candidates) = roster.line_up(&params, &opened.auth_file)?;
        let thinking = Thinking::of(&params, first.choice);
        if let Some(notice) = thinking.notice {
            events.notice(notice);
        }
        let mut turn = self.turn(params, roster, opened, (first, candidates), thinking.requested);
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
        params: RunParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let roster = Roster::new(&params)?;
        let _permit = self.enter_lanes(&params).await?;
        let opened = open(&params, &roster).await?;
        let answering = roster.line_up(&params, &opened.auth_file)?;
        self.turn(params, &roster, opened, answering, ThinkingLevel::Off)
            .compact_by_hand(focus)
            .await
    }

    /// Waits until the run may begin.
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
        mut params: RunParams,
        roster: &'a Roster,
        opened: Opened,
        (first, candidates): (Candidate<'a>, Candidates<'a>),
        thinking: ThinkingLevel,
    ) -> Turn<'a> {
        let RunStores { sessions, spending, .. } = params.stores.clone();
        let rules = params.rules.clone();
        let model = first.choice;
        let tool_schemas: Vec<ToolSchema> =
            params.tools.iter().map(|tool| tool.schema().clone()).collect();
        let working_directory =
            params.working_directory.clone().unwrap_or_else(|| params.workspace.clone());
        let system_prompt = build_system_prompt(&PromptParts {
            bootstrap: &opened.bootstrap_files,
            tools: &tool_schemas,
            working_directory: &working_directory,
            model: &model.reference(),
        });
        let user_message = std::mem::take(&mut params.user_message);
        let caller = params.cancel.clone();
        let abort = caller.child_token();
        params.cancel = abort.child_token();
        Turn {
            engine: self,
            events: params.events(),
            provider: self.provider(&model.model),
            model,
            thinking,
            rotation: first.rotation,
            candidates,
            keys: &self.keys,
            ledger: roster.ledger(rules.cooldowns),
            inbox: sessions.inbox(&params.session_key),
            delivery: Delivery {
                steering: rules.steering,
                follow_ups: rules.follow_ups,
                quiet: rules.quiet,
            },
            has_steered: false,
            conversation: opened.conversation,
            opening: opened.opening,
            start: AgentStart { system_prompt, user_message, queued_messages: Vec::new() },
            tool_schemas,
            tool_context: ToolContext {
                working_directory,
                artifact_directory: sessions.artifact_directory(&params.session_key),
                max_result_chars: rules.max_tool_result_chars,
                workspace_only: rules.workspace_only,
            },
            limits: TurnLimits {
                max_iterations: rules.max_iterations.limit(),
                max_retries: rules.max_retries,
                compaction: rules.compaction,
                context_pruning: rules.context_pruning,
                call: rules.call,
            },
            tally: Tally::default(),
            recovery: Recovery::default(),
            fruitless_pruning: None,
            allowance: Allowance::new(rules.limits, spending),
            repetition: Repetition::new(rules.limits.repeated_calls),
            store: sessions,
            known_interrupts: opened.interrupts,
            caller,
            abort,
            params,
        }
    }

    /// Who answers for `model`.
    pub(crate) fn provider(&self, model: &Model) -> &dyn Provider {
        self.providers.provider(model)
    }
}
