//! The library call: one message in, a reply out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::AuthStore;
use myclaw_llm::{ContentBlock, StopReason, ThinkingLevel, Usage};
use myclaw_session::{DaySpending, SessionKey, SessionStore};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::event::Events;
use crate::{
    ActiveModel, Approver, Bound, Clock, Enqueue, EventCallback, Hook, Lane, ModelSwitch, RunId,
    RunRules, SkillSummary, SystemClock, SystemPromptReport, Tool,
};

/// How long a run waits for a session that another process runs: longer than most turns need to end after an abort,
/// shorter than anybody watches a silent program.
const DEFAULT_SESSION_WAIT: Duration = Duration::from_secs(10);

/// What a run needs. Start from [`RunParams::go_on`] and set what differs.
#[derive(Clone)]
pub struct RunParams {
    /// Names the run in its events. Parameters for another run have another one.
    pub run_id: RunId,
    /// Which conversation it continues or begins.
    pub session_key: SessionKey,
    /// What the user says: text and image blocks. Without any the run goes on where the session stands: it answers
    /// what waits, and what an interrupted run left.
    pub user_message: Vec<ContentBlock>,
    /// The model that answers, and behind it the fallbacks: the models to ask, in this order, when it cannot.
    pub models: Vec<ActiveModel>,
    /// How much the model should think before it answers; `None` means [`RunRules::thinking`]. A level that was asked
    /// for and is not offered causes a notice.
    pub thinking: Option<ThinkingLevel>,
    /// The only auth profile to use for the first model's provider, if not all of them.
    pub auth_profile: Option<String>,
    /// Limits, time-outs, and how messages are taken in.
    pub rules: RunRules,
    /// Where the run keeps what outlives it.
    pub stores: RunStores,
    /// The tools on offer, in the order in which the model sees them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The skills that the prompt lists, the most important ones first: it lists 100 at most.
    pub skills: Vec<SkillSummary>,
    /// Called around the run and its tool calls, in this order.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Decides about tool calls that need an approval; without one they are refused.
    pub approver: Option<Arc<dyn Approver>>,
    /// Aborts the run when it fires.
    pub cancel: CancellationToken,
    /// Changes the model while the run goes on.
    pub switch: ModelSwitch,
    /// Receives events as they happen; without it only the result is returned.
    pub on_event: Option<EventCallback>,
    /// The agent's workspace: the bootstrap files of the prompt are read there. It is made if it is missing.
    pub workspace: PathBuf,
    /// Directory in which tools work, if not the workspace. It must exist.
    pub working_directory: Option<PathBuf>,
    /// Which global lane it runs in.
    pub lane: Lane,
    /// Decides when it may begin; `None` means the engine's own lanes.
    pub enqueue: Option<Arc<dyn Enqueue>>,
    /// How long it waits for the session while another process has it open.
    pub session_wait: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// Where a run keeps what outlives it.
#[derive(Debug, Clone)]
pub struct RunStores {
    /// The sessions.
    pub sessions: SessionStore,
    /// What all runs of the day cost.
    pub spending: DaySpending,
    /// The agent's keys, and how they did in earlier runs; `None` to remember nothing about keys.
    pub keys: Option<AuthStore>,
}

/// What a run gives.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// Text of the last assistant message.
    pub reply: String,
    /// Why that message ended: [`StopReason::Length`] and [`StopReason::Refusal`] mean that it is not whole. `None` where
    /// a limit ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Over all calls of the run: input and output are sums, cache counters the last call's.
    pub usage: Usage,
    /// Of the last call only.
    pub last_call_usage: Usage,
    /// Model calls that gave a message, the final one included, a closing summary not.
    pub iterations: u32,
    /// Whether the run ended because it reached the iteration cap.
    pub max_iterations_reached: bool,
    /// The limit that ended the run, if one did; the reply is then a closing summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Provider of the model that answered last; not the first one's after a fallback.
    pub provider: String,
    /// The model that answered last.
    pub model: String,
    /// What the system prompt was made of.
    pub system_prompt_report: SystemPromptReport,
}

impl RunResult {
    /// This result and that of the turn behind it as one.
    pub(crate) fn followed_by(self, next: Self) -> Self {
        let mut usage = self.usage;
        usage.add_call(&next.usage);
        Self { usage, iterations: self.iterations + next.iterations, ..next }
    }
}

impl RunParams {
    /// Parameters for a run that says nothing new: it answers what waits and what an interrupted run left. It has no
    /// tools, no hooks, no events, and the machine's clock.
    pub fn go_on(
        session_key: SessionKey,
        models: Vec<ActiveModel>,
        rules: RunRules,
        stores: RunStores,
        workspace: PathBuf,
    ) -> Self {
        Self {
            run_id: RunId::generate(),
            session_key,
            user_message: Vec::new(),
            models,
            thinking: None,
            auth_profile: None,
            rules,
            stores,
            tools: Vec::new(),
            skills: Vec::new(),
            hooks: Vec::new(),
            approver: None,
            cancel: CancellationToken::new(),
            switch: ModelSwitch::default(),
            on_event: None,
            workspace,
            working_directory: None,
            lane: Lane::default(),
            enqueue: None,
            session_wait: DEFAULT_SESSION_WAIT,
            clock: Arc::new(SystemClock),
        }
    }

    /// Where the events of the run go.
    pub(crate) fn events(&self) -> Events {
        Events {
            session: Arc::new(self.session_key.clone()),
            run: Some(self.run_id),
            callback: self.on_event.clone(),
        }
    }
}
