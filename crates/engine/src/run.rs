//! The library call: one message in, a reply out.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::Config;
use myclaw_llm::{ContentBlock, ThinkingLevel, Usage};
use myclaw_session::SessionKey;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{Clock, EventCallback, Hook, ModelChoice, SystemClock, Tool};

/// What a run needs. Start from [`RunAgentParams::new`] and set what differs.
#[derive(Clone)]
pub struct RunAgentParams {
    /// Which conversation it continues or begins.
    pub session_key: SessionKey,
    /// What the user says: text and image blocks.
    pub user_message: Vec<ContentBlock>,
    /// The settings, as loaded by `myclaw_config`.
    pub config: Arc<Config>,
    /// The model and the keys to try for it; `None` means what the settings name for the agent.
    pub model: Option<ModelChoice>,
    /// How much the model should think before it answers; `None` means what the settings say for the agent, else as
    /// much as the model offers up to `high`. Of a level that was asked for and is not offered, a notice tells.
    pub thinking: Option<ThinkingLevel>,
    /// Which agent's settings apply; `None` means the default agent.
    pub agent: Option<String>,
    /// The tools on offer, in the order in which the model sees them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Called around the run and its tool calls, in this order.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Aborts the run when it fires.
    pub cancel: CancellationToken,
    /// Receives events as they happen; without it only the result is returned.
    pub on_event: Option<EventCallback>,
    /// Directory in which tools work, if not the agent's workspace. It must exist.
    pub working_directory: Option<PathBuf>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Text of the last assistant message.
    pub reply: String,
    /// Over all calls of the run: input and output are sums, cache counters the last call's.
    pub usage: Usage,
    /// Of the last call only.
    pub last_call_usage: Usage,
    /// Model calls that gave a message, the final one included.
    pub iterations: u32,
    /// Whether the run ended because it reached the iteration cap.
    pub max_iterations_reached: bool,
    /// Provider of the last call.
    pub provider: String,
    /// Model of the last call.
    pub model: String,
}

impl RunAgentParams {
    /// Parameters for a text message to the configured model, with no tools, no hooks, no events and the machine's clock.
    pub fn new(
        session_key: SessionKey,
        user_message: impl Into<String>,
        config: Arc<Config>,
    ) -> Self {
        Self {
            session_key,
            user_message: vec![ContentBlock::text(user_message)],
            config,
            model: None,
            thinking: None,
            agent: None,
            tools: Vec::new(),
            hooks: Vec::new(),
            cancel: CancellationToken::new(),
            on_event: None,
            working_directory: None,
            clock: Arc::new(SystemClock),
        }
    }
}
