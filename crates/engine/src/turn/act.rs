//! Step `act`: runs the calls of the last assistant message.
//!
//! **What arrives** are the calls of that message that have no result in the log, those of an interrupted run included.
//! **What leaves** is one result in the log for each of them, in call order, and events for the front-end.
//!
//! Adjacent calls of read-only tools run at the same time; every other call runs alone, and its result is in the log
//! before the next call begins. Before a tool runs, its name and arguments are fitted to a schema, the hooks are asked,
//! what the call will do is read once, and that value is judged, approved and given to the tool.
//!
//! **What may fail** in a call (no such tool, wrong arguments, a refusal, an error of the tool, a time limit) becomes a
//! result that the model reads, and the run continues. Only an abort and a log that cannot be written end the step; calls
//! that did not begin then get results that say so.
//!
//! **Why this shape:** a provider refuses a request with an unpaired call, so every path ends in a result, and a killed
//! process leaves at most the calls that were running. The order in the log is that of the calls, so that the same
//! message gives the same bytes in every later request.

mod inner;
mod prepare;
mod report;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use myclaw_llm::{AssistantMessage, ContentBlock, StopReason, ToolCall, joined_text};
use tracing::{Instrument, debug, info_span};

use inner::CallsOfTool;
use report::{emit_end, emit_start, result_message};

pub(super) use report::append_result;

use super::approval_gate::ApprovalGate;
use super::repetition::Repetition;
use super::result_text::MessageRoom;
use super::shared::Stop;
use super::unread_call::WrittenCall;
use super::{Intake, RunContext, Shared, result_text};
use crate::open_log::PendingCalls;
use crate::program::handed_over;
use crate::{
    AgentRunEvent, Approver, HookError, HookPoint, Notice, PreparedCall, RunError, Tool,
    ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate, WithheldTool, cleaned_name,
    written_call,
};

/// Most calls of read-only tools at the same time: enough to hide disk latency, too few to exhaust file handles.
const MAX_PARALLEL: usize = 8;

/// Most calls of one message that are made. Models make around ten calls at once; hundreds are a fault, and each costs
/// a result in every later request.
const MAX_CALLS: usize = 100;

/// How long an aborted tool may clean up, and a hook may look at its result, before it is dropped.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// The tools of a run, and the approver of their calls.
pub(crate) struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    withheld: Vec<WithheldTool>,
    context: ToolContext,
    gate: ApprovalGate,
}

/// The step and its state.
pub(crate) struct Act {
    toolbox: Toolbox,
    repetition: Repetition,
    /// Whether the model was told since the last user message that it wrote a call as text.
    has_corrected: bool,
    /// What the results of the message may still take.
    room: MessageRoom,
}

/// A call that was made or refused.
struct Finished {
    output: ToolOutput,
    took: Duration,
}

impl Act {
    /// Creates the step. It ends a run after `repeated_calls` rounds of the same call; 0 disables the check.
    pub(crate) fn new(toolbox: Toolbox, repeated_calls: u32) -> Self {
        let room = MessageRoom::new(toolbox.context.max_result_chars);
        let repetition = Repetition::new(repeated_calls);
        Self { toolbox, repetition, has_corrected: false, room }
    }

    /// Resets the repetition count, because the user sent a message.
    pub(super) fn begin_message(&mut self) {
        self.repetition.begin_anew();
        self.has_corrected = false;
    }

    /// Gives the calls of a message their tools' names, where the model's server left parts of a template in them.
    pub(super) fn clean_names(&self, message: &mut AssistantMessage) {
        for block in &mut message.content {
            if let ContentBlock::ToolCall(call) = block
                && find(&self.toolbox.tools, &call.name).is_none()
                && self.toolbox.withheld(&call.name).is_none()
                && let Some(name) = cleaned_name(&call.name, |name| self.toolbox.knows(name))
                && let Some(own_name) = self.toolbox.own_name(name)
            {
                call.name = own_name.to_owned();
            }
        }
    }

    /// The tool that a message calls in its text instead of by a call, and whether the model may be told so.
    pub(super) fn tool_called_in_text(
        &mut self,
        message: &AssistantMessage,
    ) -> Option<WrittenCall> {
        let is_answer = matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse);
        // A model without tools cannot make the call in another way.
        let has_tools = !(self.toolbox.tools.is_empty() && self.toolbox.withheld.is_empty());
        if !is_answer || !has_tools || message.tool_calls().next().is_some() {
            return None;
        }
        let tool = written_call(&message.text(), |name| self.toolbox.knows(name))?;
        let is_first = !std::mem::replace(&mut self.has_corrected, true);
        Some(WrittenCall { tool, is_first })
    }

    /// Whether the run should end because the model repeats itself.
    pub(super) fn repeats_itself(&self) -> bool {
        self.repetition.repeats_itself()
    }

    /// Whether an earlier run was killed while it waited for the approval of one of these calls. None of them had begun
    /// then, except for read-only ones.
    pub(super) async fn were_asked(&self, run: &RunContext, pending: &PendingCalls) -> bool {
        for call in &pending.calls {
            if !pending.message_was_cut && self.toolbox.gate.was_asked(run, call).await {
                return true;
            }
        }
        false
    }

    /// The result of a call of an earlier run, if its tool has kept it.
    pub(super) async fn recall(
        &self,
        run: &RunContext,
        call: &ToolCall,
        asked_at: u64,
    ) -> Option<ToolOutput> {
        let tool = find(&self.toolbox.tools, &call.name)?;
        // A tool may ask the user before it continues.
        let _pause = run.pauses.begin();
        let mut output = tokio::select! {
            () = run.cancel.cancelled() => None,
            output = tool.recall(call, asked_at, &self.toolbox.context) => output,
        }?;
        run.known_secrets.remove_from(&mut output);
        result_text::limit(&mut output.content, self.toolbox.context.max_result_chars);
        Some(output)
    }

    /// Withdraws the question about a call whose result does not depend on the answer any more.
    pub(super) async fn forget(&self, run: &RunContext, call: &ToolCall) {
        self.toolbox.gate.forget(run, call).await;
    }

    /// Runs the calls that have no result, or stores results that say why they are not run.
    pub(super) async fn run_tools(
        &mut self,
        shared: &mut Shared,
        intake: &Intake,
        pending: PendingCalls,
    ) -> Result<(), RunError> {
        if pending.message_was_cut {
            for call in pending.calls {
                append_result(shared, &call, ToolOutput::error(result_text::CUT_CALL))?;
            }
            return Ok(());
        }
        self.room = MessageRoom::new(self.toolbox.context.max_result_chars);
        let mut wanted = pending.calls;
        let count = wanted.len();
        let surplus = wanted.split_off(count.min(MAX_CALLS));
        let mut calls = wanted.into_iter().peekable();
        while let Some(call) = calls.next() {
            let has_stopped = shared.run.cancel.stop().is_some();
            // The user's messages wait until the calls that an earlier run asked about are answered.
            let heeds = !has_stopped && !pending.are_asked_again;
            let steering_waits = heeds && intake.steering_waits(shared).await?;
            if let Some(stop) = shared.run.cancel.stop() {
                let text = result_text::stopped_before_start(stop);
                append_result(shared, &call, ToolOutput::error(text))?;
                continue;
            }
            if steering_waits {
                skip(shared, &call)?;
                for call in calls.by_ref() {
                    skip(shared, &call)?;
                }
                break;
            }
            let mut group = vec![call];
            if self.toolbox.is_read_only(&group[0]) {
                while group.len() < MAX_PARALLEL
                    && let Some(next) = calls.next_if(|next| self.toolbox.is_read_only(next))
                {
                    group.push(next);
                }
            }
            self.run_group(shared, group, &pending.model).await?;
        }
        for call in surplus {
            let text = result_text::too_many_calls(count, MAX_CALLS);
            append_result(shared, &call, ToolOutput::error(text))?;
        }
        if shared.run.cancel.stop().is_some() { Err(RunError::Aborted) } else { Ok(()) }
    }

    /// Runs the calls of a group at the same time and stores their results in order, each as soon as it and all earlier
    /// ones are available.
    async fn run_group(
        &mut self,
        shared: &mut Shared,
        group: Vec<ToolCall>,
        model: &str,
    ) -> Result<(), RunError> {
        let Self { toolbox, repetition, room, .. } = self;
        let Shared { run, log, .. } = shared;
        // The futures only read; storing a result changes nothing that they read.
        let running = |call| toolbox.run_call(run, call, model, &toolbox.context);
        let mut finished: FuturesOrdered<_> = group.iter().map(running).collect();
        for call in &group {
            let Some(Finished { mut output, took }) = finished.next().await else { break };
            let note = repetition.note(call, &joined_text(&output.content, "\n"));
            room.take(&mut output.content);
            output.content.extend(note.map(ContentBlock::text));
            emit_end(run, call, took, &output);
            log.append(result_message(call, output, run.clock.now_ms()))?;
        }
        Ok(())
    }
}

/// Adds the result of a call that is not made because the user sent a message first.
fn skip(shared: &mut Shared, call: &ToolCall) -> Result<(), RunError> {
    shared.emit(AgentRunEvent::ToolSkipped {
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
    });
    append_result(shared, call, ToolOutput::error(result_text::SKIPPED))
}

impl Toolbox {
    pub(crate) fn new(
        tools: Vec<Arc<dyn Tool>>,
        withheld: Vec<WithheldTool>,
        context: ToolContext,
        approver: Option<Arc<dyn Approver>>,
    ) -> Self {
        Self { tools, withheld, context, gate: ApprovalGate::new(approver) }
    }

    /// Whether there is a tool of that name, offered or not.
    fn knows(&self, name: &str) -> bool {
        self.own_name(name).is_some()
    }

    /// The tool's own name for one of its names, in any case of letters.
    fn own_name(&self, name: &str) -> Option<&str> {
        let withheld = self.withheld.iter().map(|withheld| &withheld.tool);
        let mut tools = self.tools.iter().chain(withheld);
        let is_named = |tool: &&Arc<dyn Tool>| {
            tool.schema().name.eq_ignore_ascii_case(name) || tool.aliases().names_tool(name)
        };
        tools.find(is_named).map(|tool| tool.schema().name.as_str())
    }

    /// The tool of that name that is not offered.
    fn withheld(&self, name: &str) -> Option<&WithheldTool> {
        self.withheld.iter().find(|withheld| {
            let tool = &withheld.tool;
            tool.schema().name == name || tool.aliases().names_tool(name)
        })
    }

    fn is_read_only(&self, call: &ToolCall) -> bool {
        find(&self.tools, &call.name).is_some_and(|tool| match tool.stands_for(&call.arguments) {
            Some(Ok((meant, _))) => meant.declaration().is_read_only(),
            _ => tool.declaration().is_read_only(),
        })
    }

    /// Runs one call, from validation to the length limit of its result. It cannot fail: every error becomes a result
    /// that the model reads.
    async fn run_call(
        &self,
        run: &RunContext,
        call: &ToolCall,
        model: &str,
        context: &ToolContext,
    ) -> Finished {
        let is_of_program = find(&self.tools, &call.name).is_some_and(|tool| tool.is_of_program());
        if is_of_program && call.invalid_arguments.is_none() {
            emit_start(run, call.name.clone(), call.id.clone(), call.arguments.clone());
            return Finished { output: handed_over(), took: Duration::ZERO };
        }
        match self.prepare(run, call, model).await {
            Ok((tool, prepared, said)) => {
                let span = info_span!("tool_call", tool = %call.name, id = %call.id);
                let mut finished =
                    self.execute(run, &tool, prepared, context).instrument(span.clone()).await;
                if let Some(said) = said {
                    finished.output.content.insert(0, ContentBlock::text(said));
                }
                let (duration_ms, failed) =
                    (finished.took.as_millis() as u64, finished.output.is_error);
                span.in_scope(|| debug!(duration_ms, failed, "tool call ended"));
                finished
            }
            Err(refusal) => {
                emit_start(run, call.name.clone(), call.id.clone(), call.arguments.clone());
                Finished { output: ToolOutput::error(refusal), took: Duration::ZERO }
            }
        }
    }

    async fn execute(
        &self,
        run: &RunContext,
        tool: &Arc<dyn Tool>,
        call: PreparedCall,
        context: &ToolContext,
    ) -> Finished {
        let PreparedCall { tool_name, tool_call_id, arguments, .. } = &call;
        emit_start(run, tool_name.clone(), tool_call_id.clone(), arguments.as_map().clone());
        tell_hooks(run, &call, context).await;
        let started = std::time::Instant::now();
        let on_update = |mut update: ToolUpdate| {
            let text = run.known_secrets.without(&update.text).into_owned();
            if let Some(details) = &mut update.details {
                run.known_secrets.remove_from_value(details);
            }
            run.events.emit(AgentRunEvent::ToolExecutionUpdate {
                tool_name: tool_name.clone(),
                tool_call_id: tool_call_id.clone(),
                text,
                details: update.details,
            });
        };
        let cancel = run.cancel.token().clone();
        let invocation = ToolInvocation { call: &call, on_update: &on_update, context, cancel };
        let inner = CallsOfTool { toolbox: self, run, model: &call.model };
        let running = tool.execute_with(invocation, &inner);
        let outcome = tokio::select! {
            biased;
            outcome = running => outcome,
            () = abort_grace_is_over(run) => Err(ToolError::Aborted(String::new())),
        };
        let mut output = match outcome {
            Ok(output) => output,
            Err(ToolError::Failed(text)) => ToolOutput::error(result_text::tool_failed(&text)),
            Err(ToolError::Aborted(text)) => {
                let stop = run.cancel.stop().unwrap_or(Stop::User);
                ToolOutput::error(result_text::aborted(&text, stop))
            }
        };
        let_hooks_change(run, &call, &mut output).await;
        run.known_secrets.remove_from(&mut output);
        result_text::limit(&mut output.content, context.max_result_chars);
        Finished { output, took: started.elapsed() }
    }
}

fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    let by_own_name = tools.iter().find(|tool| tool.schema().name == name);
    by_own_name.or_else(|| tools.iter().find(|tool| tool.aliases().names_tool(name)))
}

/// Tells the hooks that a call begins.
async fn tell_hooks(run: &RunContext, call: &PreparedCall, context: &ToolContext) {
    for hook in &run.hooks {
        let outcome = tokio::select! {
            biased;
            outcome = hook.call_begins(call, context) => outcome,
            () = abort_grace_is_over(run) => Err(HookError("the run was aborted".to_owned())),
        };
        report_failure(run, hook.name(), HookPoint::CallBegins, outcome);
    }
}

fn report_failure(run: &RunContext, hook: &str, point: HookPoint, outcome: Result<(), HookError>) {
    if let Err(error) = outcome {
        let (hook, error) = (hook.to_owned(), error.to_string());
        run.events.notice(Notice::HookFailed { hook, point, error });
    }
}

async fn let_hooks_change(run: &RunContext, call: &PreparedCall, output: &mut ToolOutput) {
    for hook in &run.hooks {
        let outcome = tokio::select! {
            biased;
            outcome = hook.tool_result(call, output) => outcome,
            () = abort_grace_is_over(run) => Err(HookError("the run was aborted".to_owned())),
        };
        report_failure(run, hook.name(), HookPoint::ToolResult, outcome);
    }
}

/// Completes some time after the run was aborted, to stop tools and hooks that do not end by themselves.
async fn abort_grace_is_over(run: &RunContext) {
    run.cancel.cancelled().await;
    run.clock.sleep(ABORT_GRACE).await;
}
