//! What a program that asks may bring with it: tools of its own, and options of the answer.
//!
//! A call of such a tool is not made here. Its result says that it was handed over, and the turn ends: the log has no open
//! call, and the program sends the real result as a message, whenever it likes.

use futures_util::future::BoxFuture;
use myclaw_llm::{AnswerOptions, Message, ToolCall, ToolSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Tool, ToolContext, ToolError, ToolInvocation, ToolOutput};

/// The result of a call that was handed over, for the model.
const HANDED_OVER: &str = "The program that sent the message makes this call. Its result comes with the program's next message.";
/// Field of such a result's details.
const MARK: &str = "handedOver";

/// What the program that sent the message asks of the run besides an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProgramRequest {
    /// What is asked of each message of the model.
    pub options: AnswerOptions,
    /// Tools that the program has. One with the name of another tool takes its place.
    pub tools: Vec<ToolSchema>,
    /// Whether these are all the tools of the run.
    pub has_only_these: bool,
    /// The model to use, as `provider/model`, if not that of the session.
    pub model: Option<String>,
}

/// A tool of the program that asks.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramTool(pub ToolSchema);

impl Tool for ProgramTool {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn is_of_program(&self) -> bool {
        true
    }

    fn execute<'a>(
        &'a self,
        _invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok(handed_over())))
    }

    /// A call that a killed process left is handed over all the same.
    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        _asked_at: u64,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        let output = call.invalid_arguments.is_none().then(handed_over);
        Box::pin(std::future::ready(output))
    }
}

/// The result of a call that the program makes.
pub(crate) fn handed_over() -> ToolOutput {
    ToolOutput { details: Some(json!({MARK: true})), ..ToolOutput::text(HANDED_OVER) }
}

/// Whether a result with these details says that the program makes the call.
pub(crate) fn is_handed_over(details: Option<&Value>) -> bool {
    details.and_then(|details| details.get(MARK)) == Some(&Value::Bool(true))
}

/// The details of a stored result that decide the next step.
pub(crate) fn deciding_details(details: Option<Map<String, Value>>) -> Option<Value> {
    details.map(Value::Object).filter(|details| is_handed_over(Some(details)))
}

/// Whether the newest of these messages are results of which one says that the program makes the call.
pub(crate) fn ends_with_hand_over(messages: &[Message]) -> bool {
    let results = messages.iter().rev().map_while(|message| match message {
        Message::ToolResult(result) => Some(result),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.into_iter().any(|result| is_handed_over(result.details.as_ref()))
}
