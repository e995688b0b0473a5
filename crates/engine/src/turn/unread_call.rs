//! Part of step `call`: a model that writes its call as text is told so, once for each message of the user.
//!
//! The server of such a model does not read the marks of its calls. The answer would be those marks, for the user to read.

use myclaw_llm::{AssistantMessage, ErrorClass, ModelError, StopReason};
use myclaw_session::{Role, TranscriptMessage};
use serde_json::json;

use super::Shared;
use crate::transcript::{CORRECTION, with_meta};
use crate::{ActiveModel, Notice, RunError};

const INSTRUCTION: &str = include_str!("../../prompts/written-call.md");

/// A call that a model wrote as text.
pub(super) struct WrittenCall {
    pub(super) tool: String,
    /// Whether it is the first since the last user message.
    pub(super) is_first: bool,
}

/// Marks a message that is no answer. The log then says so too, for whoever looks for the answer there.
pub(super) fn mark_as_failed(message: &mut AssistantMessage) {
    message.stop_reason = StopReason::Error;
    message.error_message = Some("the model wrote its call as text, so it did not run".to_owned());
}

/// Tells the model, which is then called again.
///
/// # Errors
/// [`RunError::Model`] if it was told already: marks of a template are no answer.
pub(super) fn correct(
    shared: &mut Shared,
    model: &ActiveModel,
    written: WrittenCall,
) -> Result<(), RunError> {
    let WrittenCall { tool, is_first } = written;
    if !is_first {
        let message = format!(
            "the model writes its calls of tools as text, as here of `{tool}`, so they do not run: its server needs a tool \
             parser (vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja); see docs/use/models.md"
        );
        return Err(RunError::Model(ModelError::new(ErrorClass::Unknown, message)));
    }
    let text = INSTRUCTION.trim_end().replace("{tool}", &tool);
    shared.notice(Notice::CallWrittenAsText { model: model.reference(), tool });
    let row = TranscriptMessage::new(Role::User, text, shared.now_ms());
    Ok(shared.log.append_user_rows(vec![with_meta(row, CORRECTION, json!(true))])?)
}
