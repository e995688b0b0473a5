//! A session with the planner, with made-up tool results.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::*;
use crate::{
    CallLimits, ContentBlock, Message, PairedMessages, StreamEvent, ThinkingLevel, ToolCall,
    ToolResultMessage, ToolSchema, UserMessage,
};

pub(super) const ALL_TOOLS: &[&str] =
    &["read", "bash", "write", "grep", "find", "ls", "memory_search", "memory_write"];

pub(super) struct PlannerSession {
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSchema>,
    pub(super) tool_use: crate::ToolUse,
    pub(super) max_output: Option<u64>,
    time: u64,
}

/// One answer with the events that brought it.
pub(super) struct Answer {
    pub(super) message: AssistantMessage,
    pub(super) events: Vec<StreamEvent>,
}

impl Answer {
    /// The only call of the message.
    pub(super) fn call(&self) -> &ToolCall {
        let mut calls = self.message.tool_calls();
        let call = calls.next().expect("a call");
        assert_eq!(calls.next(), None, "one call at a time");
        call
    }

    /// The text of a message without calls.
    pub(super) fn text(&self) -> String {
        assert_eq!(self.message.tool_calls().count(), 0, "{:?}", self.message);
        self.message.text()
    }
}

impl PlannerSession {
    pub(super) fn new(message: &str) -> Self {
        let tool = |name: &&str| ToolSchema {
            name: (*name).to_owned(),
            description: "a tool".to_owned(),
            parameters: json!({"type": "object"}),
        };
        let tools = ALL_TOOLS.iter().map(tool).collect();
        let mut session = Self {
            messages: Vec::new(),
            tools,
            tool_use: crate::ToolUse::Auto,
            max_output: None,
            time: 1_000,
        };
        session.user(message);
        session
    }

    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    pub(super) fn user(&mut self, text: &str) {
        let timestamp = self.tick();
        self.messages.push(Message::User(UserMessage::text(text, timestamp)));
    }

    /// One call of the provider; nothing is added to the session.
    pub(super) async fn ask(&self) -> Answer {
        let (outcome, events) = self.ask_with(&CancellationToken::new(), |_| {}).await;
        Answer { message: outcome.expect("an answer"), events }
    }

    pub(super) async fn ask_with(
        &self,
        cancel: &CancellationToken,
        mut on_event: impl FnMut(&StreamEvent) + Send,
    ) -> (Result<AssistantMessage, CallFailure>, Vec<StreamEvent>) {
        let model = demo_model();
        let messages = PairedMessages::repair(self.messages.clone());
        let request = ModelRequest {
            model: &model,
            system_prompt: "You are MyClaw.",
            messages: &messages,
            tools: &self.tools,
            tool_use: self.tool_use,
            max_output: self.max_output,
            options: None,
            thinking: ThinkingLevel::Off,
            api_key: None,
            limits: CallLimits::default(),
        };
        let mut events = Vec::new();
        let mut sink = |event: StreamEvent| {
            on_event(&event);
            events.push(event);
        };
        let outcome = DemoProvider.call(request, cancel, &mut sink).await;
        (outcome, events)
    }

    /// Asks, adds the answer's call and this result of it, and gives the call.
    pub(super) async fn step(&mut self, result: &str) -> ToolCall {
        self.step_as(result, false).await
    }

    pub(super) async fn fail(&mut self, error: &str) -> ToolCall {
        self.step_as(error, true).await
    }

    async fn step_as(&mut self, result: &str, is_error: bool) -> ToolCall {
        let answer = self.ask().await;
        let call = answer.call().clone();
        self.messages.push(Message::Assistant(answer.message));
        let timestamp = self.tick();
        self.messages.push(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![ContentBlock::text(result)],
            is_error,
            details: None,
            timestamp,
        }));
        call
    }
}
