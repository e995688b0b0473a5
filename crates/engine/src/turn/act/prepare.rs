//! What comes before a call: its tool and arguments, what it will do, the hooks, and the question about it.

use std::sync::Arc;

use myclaw_llm::ToolCall;

use super::super::approval_gate::Passed;
use super::super::{RunContext, result_text};
use super::{Toolbox, find};
use crate::hook::unless_aborted;
use crate::{
    CallArguments, Hook, HookError, Notice, PendingToolCall, PreparedCall, Tool, ToolCallVerdict,
};

/// The argument with the command of a call that runs one.
const COMMAND: &str = "command";

impl Toolbox {
    /// Reads what a call will do, and asks whoever decides about it if a hook wants that. If another command runs in the place of
    /// that of the call, says so for the model. The error is the text for the model.
    pub(super) async fn prepare(
        &self,
        run: &RunContext,
        call: &ToolCall,
        model: &str,
    ) -> Result<(Arc<dyn Tool>, PreparedCall, Option<String>), String> {
        let (tool, prepared, questions) = self.judged(run, call, model).await?;
        if questions.is_empty() {
            return Ok((tool, prepared, None));
        }
        let again = |call: &PreparedCall| {
            let origin = (call.tool_call_id.clone(), call.model.clone());
            self.read(&tool, origin, call.arguments.clone())
        };
        match self.gate.pass(run, prepared, &questions.join("\n"), again).await? {
            Passed::Call(approved) => Ok((tool, approved, None)),
            Passed::Instead(asked, command) => {
                let (changed, said) = in_place(&*tool, call, &asked, &command)?;
                // What a rule denies stays denied. What it asks about is approved by whoever wrote the command.
                let judged = self.judged(run, &changed, model).await;
                let (tool, prepared, _) = judged.map_err(|why| format!("{said}\n{why}"))?;
                Ok((tool, prepared, Some(said)))
            }
        }
    }

    /// Finds the tool, fits the arguments, calls the hooks, and reads what the call will do, with the questions of the hooks; the
    /// error is the text for the model.
    async fn judged(
        &self,
        run: &RunContext,
        call: &ToolCall,
        model: &str,
    ) -> Result<(Arc<dyn Tool>, PreparedCall, Vec<String>), String> {
        let Some(tool) = find(&self.tools, &call.name) else {
            if let Some(withheld) = self.withheld(&call.name) {
                let reason = (withheld.reason)(&withheld.tool.schema().name);
                return Err(refuse(run, &call.name, &reason));
            }
            let names: Vec<&str> =
                self.tools.iter().map(|tool| tool.schema().name.as_str()).collect();
            return Err(result_text::unknown_tool(&call.name, &names));
        };
        if let Some(raw) = &call.invalid_arguments {
            return Err(result_text::invalid_json(&call.name, raw));
        }
        let (tool, name, given) = match tool.stands_for(&call.arguments) {
            None => (Arc::clone(tool), call.name.clone(), call.arguments.clone()),
            Some(Ok((meant, given))) => {
                let name = meant.schema().name.clone();
                (meant, name, given)
            }
            Some(Err(why)) => return Err(result_text::tool_failed(&why)),
        };
        let mut arguments = CallArguments::of(&*tool, given)
            .map_err(|problems| result_text::wrong_arguments(&name, &problems))?;
        let mut questions = Vec::new();
        let mut pending = PendingToolCall {
            tool_name: tool.schema().name.clone(),
            tool_call_id: call.id.clone(),
            arguments: arguments.as_map().clone(),
            model: model.to_owned(),
        };
        for hook in &run.hooks {
            let verdict = unless_aborted(run.cancel.token(), hook.tool_call(&mut pending)).await;
            questions.extend(question(run, &**hook, &name, verdict)?);
            if pending.arguments != *arguments.as_map() {
                arguments = CallArguments::of(&*tool, pending.arguments)
                    .map_err(|problems| result_text::unfit_change(hook.name(), &problems))?;
                pending.arguments = arguments.as_map().clone();
            }
        }
        let origin = (call.id.clone(), model.to_owned());
        let prepared = self.read(&tool, origin, arguments).await?;
        for hook in &run.hooks {
            let verdict = unless_aborted(run.cancel.token(), hook.judge(&prepared)).await;
            questions.extend(question(run, &**hook, &prepared.tool_name, verdict)?);
        }
        Ok((tool, prepared, questions))
    }

    /// Reads what a call will do, off the async threads unless that is quick; the error is the text for the model.
    async fn read(
        &self,
        tool: &Arc<dyn Tool>,
        origin: (String, String),
        arguments: CallArguments,
    ) -> Result<PreparedCall, String> {
        if tool.has_quick_subject() {
            let read = PreparedCall::read(&**tool, origin, arguments, &self.context);
            return read.map_err(|error| result_text::tool_failed(&error.to_string()));
        }
        let (tool, context) = (Arc::clone(tool), self.context.clone());
        let reading = tokio::task::spawn_blocking(move || {
            PreparedCall::read(&*tool, origin, arguments, &context)
        });
        match reading.await {
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(error)) => Err(result_text::tool_failed(&error.to_string())),
            Err(error) => Err(result_text::tool_failed(&error.to_string())),
        }
    }
}

/// The call with what a person wrote in the place of what it does, and what the model reads of that; the error is the text for
/// the model.
fn in_place(
    tool: &dyn Tool,
    call: &ToolCall,
    asked: &PreparedCall,
    text: &str,
) -> Result<(ToolCall, String), String> {
    let mut arguments = asked.arguments.as_map().clone();
    let (arguments, said) = match (arguments.get_mut(COMMAND), asked.subject.commands().next()) {
        (Some(own), Some(_)) => {
            *own = text.into();
            (arguments, result_text::instead(text))
        }
        _ => tool.replaced(&asked.arguments, text).ok_or_else(|| {
            result_text::denied("the call has no command that another one could replace")
        })?,
    };
    Ok((ToolCall { name: asked.tool_name.clone(), arguments, ..call.clone() }, said))
}

/// The question of a hook that lets a call of `tool` run if somebody approves it; the error is the text for the model.
fn question(
    run: &RunContext,
    hook: &dyn Hook,
    tool: &str,
    verdict: Result<ToolCallVerdict, HookError>,
) -> Result<Option<String>, String> {
    match verdict {
        Ok(ToolCallVerdict::Allow) => Ok(None),
        Ok(ToolCallVerdict::Ask { reason }) => Ok(Some(format!("{}: {reason}", hook.name()))),
        Ok(ToolCallVerdict::Deny { reason }) => Err(refuse(run, tool, &reason)),
        Ok(ToolCallVerdict::Block { reason }) => Err(result_text::blocked(hook.name(), &reason)),
        Err(error) => Err(result_text::blocked(hook.name(), &error.to_string())),
    }
}

/// Reports that a rule denies a call; returns the text for the model.
fn refuse(run: &RunContext, tool: &str, reason: &str) -> String {
    run.events.notice(Notice::ToolDenied { tool: tool.to_owned(), reason: reason.to_owned() });
    result_text::refused(reason)
}
