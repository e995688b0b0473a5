//! The library call: one message in, a reply out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::AuthStore;
use myclaw_llm::{AnswerOptions, ContentBlock, StopReason, ThinkingLevel, ToolUse, Usage};
use myclaw_session::{SessionKey, Sessions, SideFiles, Spending};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::event::Events;
use crate::{
    ActiveModel, Approver, Bound, Clock, Enqueue, EventCallback, Hook, Lane, ModelSwitch,
    ProjectInstructions, PromptFiles, QuietMessages, RunId, RunRules, SessionMode, SkillSummary,
    SystemClock, SystemPromptReport, Tool, WithheldTool,
};

/// How long a run waits for a session that another process runs. Most turns end sooner after an abort, and a user does
/// not wait longer for a program that prints nothing.
const DEFAULT_SESSION_WAIT: Duration = Duration::from_secs(10);

/// What a run needs. Start from [`RunParams::go_on`] and set what differs.
#[derive(Clone)]
pub struct RunParams {
    /// Id of the run in its events. Each run's parameters have their own.
    pub run_id: RunId,
    /// The session that the run continues or creates.
    pub session_key: SessionKey,
    /// What the user says: text and image blocks. If empty, the run continues from the state of the session: it answers
    /// waiting messages and finishes what an interrupted run left open.
    pub user_message: Vec<ContentBlock>,
    /// The model to ask first, followed by the fallbacks in the order in which they are asked when it fails.
    pub models: Vec<ActiveModel>,
    /// How much the model should think before it answers; `None` means [`RunRules::thinking`]. A requested level that
    /// the model does not offer causes a notice.
    pub thinking: Option<ThinkingLevel>,
    /// What the program that sent the message asks of the answer.
    pub options: AnswerOptions,
    /// The only auth profile to use for the first model's provider; `None` means all of them.
    pub auth_profile: Option<String>,
    /// Limits, time-outs, and how messages are taken in.
    pub rules: RunRules,
    /// The stores for state that outlives the run.
    pub stores: RunStores,
    /// The tools on offer, in the order in which the model sees them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools that a rule withholds from the model. A call of one gets the rule as its result.
    pub withheld: Vec<WithheldTool>,
    /// Whether the model may call the tools. If it may not, they are in the requests all the same.
    pub tool_use: ToolUse,
    /// The skills that the prompt lists, the most important ones first: it lists 100 at most.
    pub skills: Vec<SkillSummary>,
    /// Called around the run and its tool calls, in this order.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Decides about tool calls that need an approval. Without an approver they are refused.
    pub approver: Option<Arc<dyn Approver>>,
    /// Aborts the run when it fires.
    pub cancel: CancellationToken,
    /// Changes the model during the run.
    pub switch: ModelSwitch,
    /// The permission mode of the session, which events and the rows of user messages name.
    pub mode: SessionMode,
    /// Further fields of the entry in the list of sessions of one that begins with this run. They are there before the model is
    /// asked.
    pub listed_with: Map<String, Value>,
    /// Receives events as they happen. Without it only the result is returned.
    pub on_event: Option<EventCallback>,
    /// The agent's workspace, which holds the prompt's bootstrap files. It is created if it is missing.
    pub workspace: PathBuf,
    /// Which files the prompt is made of.
    pub prompt_files: PromptFiles,
    /// The directory that tools work in, if not the workspace. It must exist.
    pub working_directory: Option<PathBuf>,
    /// The global lane of the run.
    pub lane: Lane,
    /// Decides when the run may begin; `None` means the engine's own lanes.
    pub enqueue: Option<Arc<dyn Enqueue>>,
    /// Longest time that the run waits for the session while another process has it open.
    pub session_wait: Duration,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The messages that are no activity of the session.
    pub quiet: QuietMessages,
    /// The whole system prompt. `None` means the one that is built from the bootstrap files of the workspace; with a
    /// prompt of the caller's own the workspace is neither read nor made.
    pub system_prompt: Option<String>,
    /// What the prompt says about where replies go: one line, the same in all runs of a session.
    pub note: Option<String>,
    /// The instructions of the project in the working directory, if it has any.
    pub project: Option<ProjectInstructions>,
    /// What the agent remembers, as the prompt lists it; `None` if it has no tools for notes. It should stay the same in all
    /// runs of a session.
    pub memory: Option<String>,
}

/// The stores for state that outlives a run.
#[derive(Debug, Clone)]
pub struct RunStores {
    /// The sessions.
    pub sessions: Arc<dyn Sessions>,
    /// The directories in which their tools work.
    pub side_files: Arc<dyn SideFiles>,
    /// The usage of all runs of the day.
    pub spending: Arc<dyn Spending>,
    /// The agent's keys and their past failures; `None` to remember nothing about keys.
    pub keys: Option<AuthStore>,
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// Text of the last assistant message.
    pub reply: String,
    /// Why that message ended: [`StopReason::Length`] and [`StopReason::Refusal`] mean that it is incomplete. `None` if
    /// a limit ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Usage over all calls of the run: input and output are sums, cache counters are those of the last call.
    pub usage: Usage,
    /// Usage of the last call only.
    pub last_call_usage: Usage,
    /// Model calls that gave a message, including the final one but not a closing summary.
    pub iterations: u32,
    /// Whether the run ended because it reached the iteration cap.
    pub max_iterations_reached: bool,
    /// The limit that ended the run, if one did; the reply is then a closing summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Whether the turn ended with calls that the program which asked makes; the reply may be empty then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_handed_over: bool,
    /// Provider of the model that answered last; after a fallback it is not the first model's.
    pub provider: String,
    /// The model that answered last.
    pub model: String,
    /// The contents of the system prompt.
    pub system_prompt_report: SystemPromptReport,
}

impl RunResult {
    /// Combines this result with that of the following turn.
    pub(crate) fn followed_by(self, next: Self) -> Self {
        let mut usage = self.usage;
        usage.add_call(&next.usage);
        Self { usage, iterations: self.iterations + next.iterations, ..next }
    }
}

impl RunParams {
    /// Creates parameters for a run without a new message: it answers waiting messages and finishes what an interrupted
    /// run left open. It has no tools, hooks or events, and uses the machine's clock.
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
            options: AnswerOptions::default(),
            auth_profile: None,
            rules,
            stores,
            tools: Vec::new(),
            withheld: Vec::new(),
            tool_use: ToolUse::Auto,
            skills: Vec::new(),
            hooks: Vec::new(),
            approver: None,
            cancel: CancellationToken::new(),
            switch: ModelSwitch::default(),
            mode: SessionMode::default(),
            listed_with: Map::new(),
            on_event: None,
            workspace,
            prompt_files: PromptFiles::All,
            working_directory: None,
            lane: Lane::default(),
            enqueue: None,
            session_wait: DEFAULT_SESSION_WAIT,
            clock: Arc::new(SystemClock),
            quiet: QuietMessages::default(),
            system_prompt: None,
            note: None,
            project: None,
            memory: None,
        }
    }

    /// The sink for the run's events.
    pub(crate) fn events(&self) -> Events {
        Events {
            session: Arc::new(self.session_key.clone()),
            run: Some(self.run_id),
            mode: Some(self.mode.clone()),
            callback: self.on_event.clone(),
        }
    }
}
