//! Implements the trait's methods: the input of a command, and the effect of its answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::HookEvent;
use myclaw_engine::{
    AgentStart, CompactionReport, CompactionVerdict, Hook, HookError, PendingCompaction,
    PendingToolCall, PreparedCall, RunError, RunResult, ToolCallVerdict, ToolOutput,
};
use myclaw_llm::{ContentBlock, Message, joined_text};
use myclaw_policy::matches_tool;
use serde_json::{Map, Value, json};

use crate::answer::{
    self, CallAnswer, CompactionAnswer, ContextAnswer, Gate, ResultAnswer, StartAnswer,
};
use crate::command::{Command, Printed};
use crate::run_info::RunInfo;

/// One command for one event.
pub(crate) struct CommandHook {
    event: HookEvent,
    command: Command,
    /// Patterns of tool names; `None` for every tool.
    tools: Option<Vec<String>>,
    run: Arc<RunInfo>,
}

impl CommandHook {
    pub(crate) fn new(
        event: HookEvent,
        command: Command,
        tools: Option<Vec<String>>,
        run: Arc<RunInfo>,
    ) -> Self {
        Self { event, command, tools, run }
    }

    fn is_for_tool(&self, event: HookEvent, name: &str) -> bool {
        let named = |tools: &Vec<String>| tools.iter().any(|tool| matches_tool(tool, name));
        self.event == event && self.tools.as_ref().is_none_or(named)
    }

    /// Runs the command with `fields` and the fields that all events have.
    async fn notify(&self, mut fields: Value, printed: Printed) -> Result<String, HookError> {
        let RunInfo { session_key, agent, working_directory, start_directory } = &*self.run;
        let mut input = json!({
            "event": self.event.as_str(),
            "sessionKey": session_key,
            "agent": agent,
            "workingDirectory": working_directory.to_string_lossy(),
        });
        if let (Some(input), Some(fields)) = (input.as_object_mut(), fields.as_object_mut()) {
            input.append(fields);
        }
        self.command.run(start_directory, &input, printed).await
    }

    async fn ask<T: serde::de::DeserializeOwned + Default>(
        &self,
        fields: Value,
    ) -> Result<T, HookError> {
        answer::read(&self.notify(fields, Printed::Answer).await?)
    }
}

impl Hook for CommandHook {
    fn name(&self) -> &str {
        self.command.name()
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if self.event != HookEvent::BeforeAgentStart {
                return Ok(());
            }
            let fields = json!({
                "systemPrompt": start.system_prompt,
                "userMessage": joined_text(&start.user_message, "\n"),
                "queuedMessages": start
                    .queued_messages
                    .iter()
                    .map(|blocks| joined_text(blocks, "\n"))
                    .collect::<Vec<_>>(),
            });
            let mut answer: StartAnswer = self.ask(fields).await?;
            if let Some(reason) = answer.block_reason()? {
                return Err(HookError(reason));
            }
            if let Some(prompt) = answer.system_prompt {
                start.system_prompt = prompt;
            }
            if let Some(more) = answer.append_system_prompt {
                start.system_prompt.push_str("\n\n");
                start.system_prompt.push_str(&more);
            }
            if let Some(text) = answer.user_message {
                start.user_message.retain(|block| !matches!(block, ContentBlock::Text(_)));
                start.user_message.insert(0, ContentBlock::text(text));
            }
            Ok(())
        })
    }

    fn context<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<Option<Vec<Message>>, HookError>> {
        Box::pin(async move {
            if self.event != HookEvent::Context {
                return Ok(None);
            }
            let answer: ContextAnswer = self.ask(json!({ "messages": messages })).await?;
            Ok(answer.messages)
        })
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            if !self.is_for_tool(HookEvent::ToolCall, &call.tool_name) {
                return Ok(ToolCallVerdict::Allow);
            }
            let mut answer: CallAnswer =
                self.ask(fields_of(&call.tool_name, &call.tool_call_id, &call.arguments)).await?;
            let question = answer.approval_reason();
            if let Some(reason) = answer.block_reason()? {
                return Ok(ToolCallVerdict::Block { reason });
            }
            if let Some(arguments) = answer.arguments {
                call.arguments = arguments;
            }
            Ok(question.map_or(ToolCallVerdict::Allow, |reason| ToolCallVerdict::Ask { reason }))
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if !self.is_for_tool(HookEvent::ToolResult, &call.tool_name) {
                return Ok(());
            }
            let mut fields =
                fields_of(&call.tool_name, &call.tool_call_id, call.arguments.as_map());
            fields["content"] = json!(output.content);
            fields["isError"] = json!(output.is_error);
            let answer: ResultAnswer = self.ask(fields).await?;
            if let Some(content) = answer.content {
                output.content = content;
            }
            output.is_error = answer.is_error.unwrap_or(output.is_error);
            Ok(())
        })
    }

    fn before_session_compact<'a>(
        &'a self,
        compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async move {
            if self.event != HookEvent::BeforeSessionCompact {
                return Ok(CompactionVerdict::Proceed);
            }
            let mut answer: CompactionAnswer = self.ask(json!(compaction)).await?;
            if let Some(reason) = answer.block_reason()? {
                return Ok(CompactionVerdict::Veto { reason });
            }
            if answer.focus.is_some() {
                compaction.focus = answer.focus;
            }
            Ok(answer.summary.map_or(CompactionVerdict::Proceed, CompactionVerdict::Summary))
        })
    }

    fn session_compact<'a>(
        &'a self,
        report: &'a CompactionReport,
        summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if self.event != HookEvent::SessionCompact {
                return Ok(());
            }
            let mut fields = json!(report);
            fields["summary"] = json!(summary);
            self.notify(fields, Printed::Ignored).await.map(drop)
        })
    }

    fn agent_end<'a>(
        &'a self,
        outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if self.event != HookEvent::AgentEnd {
                return Ok(());
            }
            let fields = match outcome {
                Ok(result) => json!({ "result": result }),
                Err(error) => {
                    json!({ "error": { "class": error.class(), "message": error.to_string() } })
                }
            };
            self.notify(fields, Printed::Ignored).await.map(drop)
        })
    }
}

fn fields_of(tool_name: &str, tool_call_id: &str, arguments: &Map<String, Value>) -> Value {
    json!({ "toolName": tool_name, "toolCallId": tool_call_id, "arguments": arguments })
}
