//! Step `act`: runs the calls of the last assistant message.
//!
//! Results enter the log in call order. Neighbouring calls of read-only tools run at the same time; every other call
//! runs alone, and its result is in the log before the next begins.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use myclaw_llm::{ContentBlock, Message, ToolCall, ToolResultMessage, joined_text};

use super::{Stop, Turn, intake, result_text};
use crate::arguments::fit_arguments;
use crate::conversation::PendingCalls;
use crate::hook::unless_aborted;
use crate::{
    AgentRunEvent, HookError, HookPoint, Notice, PendingToolCall, RunError, Tool, ToolCallVerdict,
    ToolError, ToolInvocation, ToolOutput, ToolUpdate,
};

/// Most calls of read-only tools at the same time: enough to hide disk latency, too few to exhaust file handles.
const MAX_PARALLEL: usize = 8;

/// How long an aborted tool may take to clean up, and a hook to look at its result, before it is dropped.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// A call that was made or refused.
struct Finished {
    output: ToolOutput,
    took: Duration,
}

/// Runs the calls that have no result, or says why they do not run.
pub(super) async fn run_tools(turn: &mut Turn<'_>, pending: PendingCalls) -> Result<(), RunError> {
    if pending.message_was_cut {
        for call in pending.calls {
            append_result(turn, &call, ToolOutput::error(result_text::CUT_CALL))?;
        }
        return Ok(());
    }
    let mut calls = pending.calls.into_iter().peekable();
    while let Some(call) = calls.next() {
        let steering_waits = turn.stop().is_none() && intake::steering_waits(turn).await?;
        if let Some(stop) = turn.stop() {
            let text = result_text::stopped_before_start(stop);
            append_result(turn, &call, ToolOutput::error(text))?;
            continue;
        }
        if steering_waits {
            skip(turn, &call)?;
            for call in calls.by_ref() {
                skip(turn, &call)?;
            }
            break;
        }
        let mut group = vec![call];
        if is_read_only(turn, &group[0]) {
            while group.len() < MAX_PARALLEL
                && let Some(next) = calls.next_if(|next| is_read_only(turn, next))
            {
                group.push(next);
            }
        }
        run_group(turn, group).await?;
    }
    if turn.stop().is_some() { Err(RunError::Aborted) } else { Ok(()) }
}

/// Answers a call that is not made, because the user said something first.
fn skip(turn: &mut Turn<'_>, call: &ToolCall) -> Result<(), RunError> {
    turn.emit(AgentRunEvent::ToolSkipped {
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
    });
    append_result(turn, call, ToolOutput::error(result_text::SKIPPED))
}

/// Runs the calls of a group at the same time and stores their results in order.
async fn run_group(turn: &mut Turn<'_>, group: Vec<ToolCall>) -> Result<(), RunError> {
    // Running only reads the turn, storing changes it. A group of several holds read-only calls alone, so a crash
    // before their results are stored loses nothing that cannot be asked again.
    let mut finished = Vec::with_capacity(group.len());
    if let [call] = group.as_slice() {
        finished.push(run_call(turn, call).await);
    } else {
        let mut running: FuturesOrdered<_> =
            group.iter().map(|call| run_call(turn, call)).collect();
        while let Some(output) = running.next().await {
            finished.push(output);
        }
    }
    for (call, Finished { mut output, took }) in group.iter().zip(finished) {
        let text = joined_text(&output.content, "\n");
        let note = turn.repetition.note(call, &text);
        output.content.extend(note.map(ContentBlock::text));
        emit_end(turn, call, took, &output);
        append_result(turn, call, output)?;
    }
    Ok(())
}

/// One call from its validation to its limited result. Never fails: whatever goes wrong is the model's to read.
async fn run_call(turn: &Turn<'_>, call: &ToolCall) -> Finished {
    match prepare(turn, call).await {
        Ok((tool, pending)) => execute(turn, tool, pending).await,
        Err(refusal) => {
            emit_start(turn, call.name.clone(), call.id.clone(), call.arguments.clone());
            Finished { output: ToolOutput::error(refusal), took: Duration::ZERO }
        }
    }
}

/// Finds the tool, fits the arguments and asks the hooks; the error is the text for the model.
async fn prepare<'t>(
    turn: &'t Turn<'_>,
    call: &ToolCall,
) -> Result<(&'t Arc<dyn Tool>, PendingToolCall), String> {
    let tool = find_tool(turn, &call.name)
        .ok_or_else(|| result_text::unknown_tool(&call.name, &turn.tool_schemas))?;
    if let Some(raw) = &call.invalid_arguments {
        return Err(result_text::invalid_json(&call.name, raw));
    }
    let arguments = tool.aliases().rename(call.arguments.clone());
    let arguments = fit_arguments(&tool.schema().parameters, arguments)
        .map_err(|problems| result_text::wrong_arguments(&call.name, &problems))?;
    let mut pending = PendingToolCall {
        tool_name: tool.schema().name.clone(),
        tool_call_id: call.id.clone(),
        arguments,
    };
    for hook in turn.hooks() {
        match unless_aborted(&turn.params.cancel, hook.tool_call(&mut pending)).await {
            Ok(ToolCallVerdict::Allow) => {
                pending.arguments = fit_arguments(&tool.schema().parameters, pending.arguments)
                    .map_err(|problems| result_text::unfit_change(hook.name(), &problems))?;
            }
            Ok(ToolCallVerdict::Block { reason }) => {
                return Err(result_text::blocked(hook.name(), &reason));
            }
            Err(error) => return Err(result_text::blocked(hook.name(), &error.to_string())),
        }
    }
    Ok((tool, pending))
}

async fn execute(turn: &Turn<'_>, tool: &Arc<dyn Tool>, pending: PendingToolCall) -> Finished {
    emit_start(
        turn,
        pending.tool_name.clone(),
        pending.tool_call_id.clone(),
        pending.arguments.clone(),
    );
    let started = std::time::Instant::now();
    let on_update = |update: ToolUpdate| {
        turn.emit(AgentRunEvent::ToolExecutionUpdate {
            tool_name: pending.tool_name.clone(),
            tool_call_id: pending.tool_call_id.clone(),
            text: update.text,
            details: update.details,
        });
    };
    let running = tool.execute(ToolInvocation {
        call_id: &pending.tool_call_id,
        arguments: pending.arguments.clone(),
        on_update: &on_update,
        context: &turn.tool_context,
        cancel: turn.params.cancel.clone(),
    });
    let outcome = tokio::select! {
        biased;
        outcome = running => outcome,
        () = abort_grace_is_over(turn) => Err(ToolError::Aborted(String::new())),
    };
    let mut output = match outcome {
        Ok(output) => output,
        Err(ToolError::Failed(text)) => ToolOutput::error(result_text::tool_failed(&text)),
        Err(ToolError::Aborted(text)) => {
            ToolOutput::error(result_text::aborted(&text, turn.stop().unwrap_or(Stop::User)))
        }
    };
    for hook in turn.hooks() {
        let outcome = tokio::select! {
            biased;
            outcome = hook.tool_result(&pending, &mut output) => outcome,
            () = abort_grace_is_over(turn) => Err(HookError("the run was aborted".to_owned())),
        };
        if let Err(error) = outcome {
            turn.notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::ToolResult,
                error: error.to_string(),
            });
        }
    }
    result_text::limit(&mut output.content, turn.tool_context.max_result_chars);
    Finished { output, took: started.elapsed() }
}

/// Completes some time after the run was aborted, for tools and hooks that do not end by themselves.
async fn abort_grace_is_over(turn: &Turn<'_>) {
    turn.params.cancel.cancelled().await;
    turn.params.clock.sleep(ABORT_GRACE).await;
}

fn find_tool<'t>(turn: &'t Turn<'_>, name: &str) -> Option<&'t Arc<dyn Tool>> {
    let tools = &turn.params.tools;
    let by_own_name = tools.iter().find(|tool| tool.schema().name == name);
    by_own_name.or_else(|| tools.iter().find(|tool| tool.aliases().names_tool(name)))
}

fn is_read_only(turn: &Turn<'_>, call: &ToolCall) -> bool {
    find_tool(turn, &call.name).is_some_and(|tool| tool.is_read_only())
}

pub(super) fn append_result(
    turn: &mut Turn<'_>,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<(), RunError> {
    let timestamp = turn.now_ms();
    turn.conversation.append(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: output.content,
        is_error: output.is_error,
        details: output.details,
        timestamp,
    }))?;
    Ok(())
}

fn emit_start(
    turn: &Turn<'_>,
    tool_name: String,
    tool_call_id: String,
    arguments: serde_json::Map<String, serde_json::Value>,
) {
    turn.emit(AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments });
}

fn emit_end(turn: &Turn<'_>, call: &ToolCall, took: Duration, output: &ToolOutput) {
    turn.emit(AgentRunEvent::ToolEnd {
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
        duration_ms: took.as_millis() as u64,
        is_error: output.is_error,
        text: joined_text(&output.content, "\n"),
        details: output.details.clone(),
    });
}

impl ToolOutput {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], details: None, is_error: true }
    }
}
