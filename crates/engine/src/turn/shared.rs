//! The state that the steps of a turn share: the surroundings, the end of the session in memory, and the usage so far.
//!
//! All other state belongs to a single step.

use std::borrow::Cow;
use std::sync::Arc;

use myclaw_llm::outside::harmless_schema;
use myclaw_llm::{ToolSchema, Usage};
use myclaw_session::{SessionKey, Sessions};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::time_limit::Pauses;
use crate::estimate::text_tokens;
use crate::event::Events;
use crate::open_log::OpenLog;
use crate::workspace::BootstrapFile;
use crate::{
    AgentRunEvent, BootstrapFileReport, Clock, ContextChange, Hook, KnownSecrets, Notice,
    QuietMessages, SessionMode, Tool,
};

/// State that all steps read and some append to.
pub(crate) struct Shared {
    pub(crate) run: RunContext,
    pub(crate) log: OpenLog,
    pub(crate) prompt: Prompt,
    pub(crate) tally: Tally,
    /// Whether the turn has taken a message that is activity of the session.
    pub(crate) is_active: bool,
    /// The message with which the turn begins the session.
    pub(crate) opening: Option<String>,
    /// Tells the index that the turn begins. Its end waits for this, so that the index hears of both in order.
    pub(crate) entering: Option<JoinHandle<()>>,
    /// Whether the log's rows have said that the turn begins.
    pub(crate) has_begun: bool,
}

/// The surroundings of a turn. They do not change during the turn.
pub(crate) struct RunContext {
    pub(crate) session_key: SessionKey,
    pub(crate) store: Arc<dyn Sessions>,
    pub(crate) events: Events,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) cancel: Cancellation,
    /// The times during which the run waits for a person.
    pub(crate) pauses: Pauses,
    /// The messages that are no activity of the session.
    pub(crate) quiet: QuietMessages,
    /// The permission mode of the session.
    pub(crate) mode: SessionMode,
    /// Further fields of the entry in the list of sessions of a new one.
    pub(crate) listed_with: Map<String, Value>,
    /// Removed from the results of tools.
    pub(crate) known_secrets: Arc<KnownSecrets>,
}

/// The tokens that stop a turn: its caller, an interrupt, or the time limit.
pub(crate) struct Cancellation {
    /// The caller's own token.
    caller: CancellationToken,
    /// Fires with the caller's token and at an interrupt.
    abort: CancellationToken,
    /// Fires with `abort` and at the time limit.
    run: CancellationToken,
}

/// Why a turn is stopped in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The caller aborted it, or a message interrupted it.
    User,
    /// The time limit is reached.
    TimeLimit,
}

/// The beginning of every request.
pub(crate) struct Prompt {
    pub(crate) system_prompt: String,
    pub(crate) schemas: Arc<Schemas>,
    /// The bootstrap files in the system prompt.
    pub(super) files: Vec<BootstrapFileReport>,
}

/// The schemas of the tools, as the model reads them.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    list: Vec<ToolSchema>,
    bytes: usize,
}

/// The usage of a turn so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Of all calls, whatever came of them.
    pub(crate) usage: Usage,
    /// Of the call that gave the last message.
    pub(crate) last_call_usage: Usage,
    /// Calls that gave the turn's next message; a closing summary is not one.
    pub(crate) iterations: u32,
    /// Tokens of the run's earlier turns.
    pub(crate) earlier_tokens: u64,
}

impl Shared {
    /// Whether the turn is no activity of the session. A run that takes no message continues an interrupted one.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_active && !self.run.quiet.is_empty()
    }

    pub(crate) fn emit(&self, event: AgentRunEvent) {
        self.run.events.emit(event);
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.run.events.notice(notice);
    }

    /// Emits that the context was made smaller: `kept` messages remain of `before`.
    pub(super) fn emit_compaction(&self, before: usize, kept: usize, change: ContextChange) {
        tracing::info!(before, kept, ?change, "context made smaller");
        self.emit(AgentRunEvent::Compaction { old_count: before, new_count: kept, change });
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.run.clock.now_ms()
    }
}

impl Cancellation {
    pub(crate) fn new(caller: &CancellationToken) -> Self {
        let abort = caller.child_token();
        Self { caller: caller.clone(), run: abort.child_token(), abort }
    }

    /// The token that every step obeys.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.run
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.run.is_cancelled()
    }

    pub(crate) fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.run.cancelled()
    }

    /// Fires at an abort, but not at the time limit.
    pub(crate) fn abort_token(&self) -> &CancellationToken {
        &self.abort
    }

    /// Whether an interrupt stopped the turn, and not its caller.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.abort.is_cancelled() && !self.caller.is_cancelled()
    }

    /// Why the current step should stop, if it should.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match (self.abort.is_cancelled(), self.run.is_cancelled()) {
            (true, _) => Some(Stop::User),
            (false, true) => Some(Stop::TimeLimit),
            (false, false) => None,
        }
    }

    /// Gives the turn more time after its limit, for a closing summary.
    pub(super) fn restart_time(&mut self) {
        self.run = self.abort.child_token();
    }
}

impl Prompt {
    pub(crate) fn new<'a>(
        system_prompt: String,
        schemas: Arc<Schemas>,
        files: impl Iterator<Item = &'a BootstrapFile>,
    ) -> Self {
        let report = |file: &BootstrapFile| BootstrapFileReport {
            name: file.name,
            chars: file.content.chars().count(),
            truncated: file.is_cut,
            file_bytes: file.file_bytes,
        };
        let files = files.map(report).collect();
        Self { system_prompt, schemas, files }
    }

    /// Estimated tokens that every request contains.
    pub(super) fn tokens(&self) -> u64 {
        text_tokens(self.system_prompt.len() + self.schemas.bytes)
    }
}

impl Schemas {
    pub(crate) fn of(tools: &[Arc<dyn Tool>]) -> Self {
        let list: Vec<ToolSchema> = tools.iter().map(|tool| shown(&**tool).into_owned()).collect();
        let bytes = |tool: &ToolSchema| {
            tool.name.len() + tool.description.len() + tool.parameters.to_string().len()
        };
        Self { bytes: list.iter().map(bytes).sum(), list }
    }

    /// Whether these are the schemas of `tools`.
    pub(crate) fn are_of(&self, tools: &[Arc<dyn Tool>]) -> bool {
        self.list.len() == tools.len()
            && self.list.iter().zip(tools).all(|(known, tool)| *known == *shown(&**tool))
    }

    pub(crate) fn list(&self) -> &[ToolSchema] {
        &self.list
    }
}

/// The schema of a tool as a model is sent it. Calls are compared with the tool's own one.
fn shown(tool: &dyn Tool) -> Cow<'_, ToolSchema> {
    match tool.is_described_by_others() {
        false => Cow::Borrowed(tool.schema()),
        true => Cow::Owned(harmless_schema(tool.schema())),
    }
}

impl Tally {
    /// Counts a call that gave the turn's next message.
    pub(super) fn count(&mut self, call: &Usage) {
        self.iterations += 1;
        self.last_call_usage = *call;
    }
}
