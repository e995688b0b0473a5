//! One turn: from a user message to the model's reply, one file per step.
//!
//! The loop holds no plan. It asks the end of the log what comes next ([`crate::conversation::NextStep`]), does that,
//! and asks again; every step appends its outcome before the next begins.

mod act;
mod bounds;
mod call;
mod context;
mod finish;
mod fit;
mod intake;
mod repair;
mod repetition;
mod result_text;

pub use fit::CompactionReport;
pub(crate) use fit::{Recovery, input_budget};

use std::sync::Arc;

use myclaw_llm::{Provider, ToolSchema, Usage};
use myclaw_session::SessionStore;

use crate::conversation::{Conversation, NextStep, Opening};
use crate::failover::ProfileRotation;
use crate::{
    AgentRunEvent, AgentStart, Hook, ModelChoice, RunAgentParams, RunError, RunResult, ToolContext,
};

/// What the steps of a turn share.
pub(crate) struct Turn<'a> {
    pub(crate) params: &'a RunAgentParams,
    pub(crate) provider: &'a dyn Provider,
    pub(crate) model: &'a ModelChoice,
    pub(crate) store: SessionStore,
    pub(crate) conversation: Conversation,
    pub(crate) opening: Opening,
    pub(crate) start: AgentStart,
    pub(crate) tool_schemas: Vec<ToolSchema>,
    pub(crate) tool_context: ToolContext,
    pub(crate) limits: TurnLimits,
    pub(crate) rotation: ProfileRotation,
    pub(crate) tally: Tally,
    pub(crate) recovery: Recovery,
}

/// Limits of a turn, from the agent's settings.
#[derive(Debug, Clone)]
pub(crate) struct TurnLimits {
    /// Most model calls that give a message; `None` means no cap.
    pub(crate) max_iterations: Option<u32>,
    /// Most retries of one model call.
    pub(crate) max_retries: u32,
    /// When and how older messages are summarised.
    pub(crate) compaction: myclaw_config::CompactionSettings,
    /// Whether old results are sent shorter.
    pub(crate) context_pruning: myclaw_config::ContextPruning,
    /// Time limits of one model call.
    pub(crate) call: myclaw_llm::CallLimits,
}

/// What a turn has used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) usage: Usage,
    pub(crate) last_call_usage: Usage,
    pub(crate) iterations: u32,
}

impl Turn<'_> {
    /// Runs the turn to its end.
    pub(crate) async fn run(&mut self) -> Result<RunResult, RunError> {
        repair::close_interrupted_calls(self)?;
        fit::account_for_older_messages(self)?;
        intake::take_user_message(self).await?;
        let ending = loop {
            match self.conversation.next_step() {
                NextStep::Finish => break finish::Ending::Reply,
                NextStep::CallModel if bounds::iterations_are_used_up(self) => {
                    break finish::Ending::IterationCap;
                }
                NextStep::CallModel => {
                    fit::before_call(self).await?;
                    let message = call::call_model(self).await?;
                    self.tally.count(&message.usage);
                    self.recovery = Recovery::default();
                    self.conversation.append(myclaw_llm::Message::Assistant(message))?;
                }
                NextStep::RunTools(pending) => act::run_tools(self, pending).await?,
            }
        };
        finish::finish(self, ending).await
    }

    /// Summarises the older part of the conversation, and nothing else.
    pub(crate) async fn compact_by_hand(
        &mut self,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        repair::close_interrupted_calls(self)?;
        fit::account_for_older_messages(self)?;
        let report = fit::compact_by_hand(self, focus).await?;
        finish::make_durable(self).await?;
        Ok(report)
    }

    pub(crate) fn emit(&self, event: AgentRunEvent) {
        if let Some(on_event) = &self.params.on_event {
            on_event(event);
        }
    }

    pub(crate) fn notice(&self, message: impl Into<String>) {
        self.emit(AgentRunEvent::Notice { message: message.into() });
    }

    pub(crate) fn hooks(&self) -> &[Arc<dyn Hook>] {
        &self.params.hooks
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.params.clock.now_ms()
    }
}

impl Tally {
    /// Counts a call that gave the turn's next message.
    fn count(&mut self, call: &Usage) {
        self.iterations += 1;
        self.last_call_usage = *call;
        self.usage.add_call(call);
    }
}
