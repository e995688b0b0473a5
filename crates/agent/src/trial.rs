//! One small call with one key, to see whether a model or a key works.

use std::time::{Duration, Instant};

use myclaw_auth::{AuthProfile, KeyResolver};
use myclaw_engine::{Clock, Providers, SystemClock};
use myclaw_llm::{
    AssistantMessage, CallFailure, CallLimits, ContentBlock, HttpOptions, ImageContent, Message,
    Model, ModelError, ModelRequest, PairedMessages, StreamEvent, ThinkingLevel, ToolSchema,
    ToolUse, UserMessage,
};
use tokio_util::sync::CancellationToken;

use crate::{HttpProviders, key_resolver};

/// The request of a trial.
#[derive(Debug, Clone, Copy)]
pub struct TrialQuestion<'a> {
    /// The message.
    pub text: &'a str,
    /// A picture after the message.
    pub picture: Option<&'a ImageContent>,
    /// The tools on offer.
    pub tools: &'a [ToolSchema],
    /// Longest answer, in tokens.
    pub max_output: u64,
}

/// The result of a successful trial.
#[derive(Debug)]
pub struct TrialAnswer {
    /// The answer.
    pub message: AssistantMessage,
    /// The level at which the model was asked to think: the lowest that it offers.
    pub thinking: ThinkingLevel,
    /// The options that the host refused, and that were left out.
    pub left_out: Vec<String>,
    /// Number of pieces in which the answer arrived.
    pub pieces: u32,
    /// Time until the first piece.
    pub first_piece: Duration,
    /// Time until the answer was complete.
    pub total: Duration,
}

/// Why there was no answer.
#[derive(Debug)]
pub enum TrialFailure {
    /// The key cannot be read.
    Key(String),
    /// The call failed.
    Call(Box<ModelError>),
    /// The caller aborted it.
    Aborted,
}

/// Makes trial calls.
pub struct Trial {
    providers: HttpProviders,
    keys: KeyResolver,
}

impl Trial {
    /// Makes calls and looks up keys with `options`.
    pub fn new(options: HttpOptions) -> Self {
        Self { keys: key_resolver(options.clone()), providers: HttpProviders::new(options) }
    }

    /// Calls `model` with the key of `profile`, or without a key.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn call(
        &self,
        model: &Model,
        profile: Option<&AuthProfile>,
        question: TrialQuestion<'_>,
        limits: CallLimits,
        cancel: &CancellationToken,
    ) -> Result<TrialAnswer, TrialFailure> {
        let now_ms = SystemClock.now_ms();
        let key = match profile {
            Some(profile) => self
                .keys
                .resolve(profile, now_ms, cancel)
                .await
                .map_err(|error| TrialFailure::Key(error.to_string()))?,
            None => None,
        };
        let mut asked = UserMessage::text(question.text, now_ms);
        asked.content.extend(question.picture.cloned().map(ContentBlock::Image));
        let messages = PairedMessages::repair(vec![Message::User(asked)]);
        let thinking = model.thinking_level(ThinkingLevel::Off);
        let request = ModelRequest {
            model,
            system_prompt: "",
            messages: &messages,
            tools: question.tools,
            tool_use: ToolUse::Auto,
            max_output: Some(question.max_output.min(model.max_output)),
            options: None,
            thinking,
            api_key: key.as_ref(),
            limits,
        };
        let began = Instant::now();
        let (mut pieces, mut first_piece, mut left_out) = (0, None, Vec::new());
        let mut sink = |event: StreamEvent| match event {
            StreamEvent::OptionLeftOut { option, .. } => left_out.push(option),
            event if event.is_visible_output() => {
                pieces += 1;
                first_piece.get_or_insert_with(|| began.elapsed());
            }
            _ => {}
        };
        let outcome = self.providers.provider(model).call(request, cancel, &mut sink).await;
        let total = began.elapsed();
        match outcome {
            Ok(message) => {
                let first_piece = first_piece.unwrap_or(total);
                Ok(TrialAnswer { message, thinking, left_out, pieces, first_piece, total })
            }
            Err(CallFailure::Failed { error, .. }) => Err(TrialFailure::Call(error)),
            Err(CallFailure::Aborted { .. }) => Err(TrialFailure::Aborted),
        }
    }
}
