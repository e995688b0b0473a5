//! `send_message` and `send_voice`: a file for the host, which delivers it at once.

use std::sync::Arc;

use myclaw_engine::{Power, Tool, ToolDeclaration, ToolError, ToolGroup, ToolOutput};
use myclaw_speech::{Speaker, SpeechError};
use serde_json::json;

use super::{Answer, Call, not_written, of_host, ready, schema, simple};
use crate::ipc::Ipc;

pub(super) fn tools(ipc: &Arc<Ipc>, speaker: Option<Speaker>) -> [Arc<dyn Tool>; 2] {
    [message(Arc::clone(ipc)), voice(Arc::clone(ipc), speaker)]
}

fn declaration() -> ToolDeclaration {
    of_host("Send a message", ToolGroup::Messaging, Power::SendsMessages)
}

fn message(ipc: Arc<Ipc>) -> Arc<dyn Tool> {
    let schema = schema(
        "send_message",
        "Send a message to the chat at once, while you go on working: progress, or several messages.",
        &json!({"text": {"type": "string"}}),
        &["text"],
    );
    let work = move |call: Call| {
        let text = text_of(call.text("text"));
        let ipc = Arc::clone(&ipc);
        let sent = text.and_then(|text| {
            ipc.send_message(&text).map_err(|error| not_written(&error))?;
            Ok(ToolOutput::text("The message is sent."))
        });
        ready(sent)
    };
    simple(schema, declaration(), work)
}

fn voice(ipc: Arc<Ipc>, speaker: Option<Speaker>) -> Arc<dyn Tool> {
    let schema = schema(
        "send_voice",
        "Send a voice message to the chat: the text is spoken. If speech is not available, it arrives as text.",
        &json!({
            "text": {"type": "string", "description": "What is said, in plain sentences"},
            "voice": {"type": "string", "description": "Name of a voice, if the user wants a certain one"},
        }),
        &["text"],
    );
    let speaker = speaker.map(Arc::new);
    let work = move |call: Call| -> Answer {
        let (ipc, speaker) = (Arc::clone(&ipc), speaker.clone());
        Box::pin(async move {
            let text = text_of(call.text("text"))?;
            let voice = Some(call.text("voice")).filter(|voice| !voice.trim().is_empty());
            let Some(speaker) = speaker else {
                ipc.send_voice(&text, voice, None).map_err(|error| not_written(&error))?;
                return Ok(ToolOutput::text("The voice message is sent."));
            };
            let (sent, said) = match speaker.speak(&text, voice, &call.cancel).await {
                Ok(audio) => (
                    ipc.send_voice(&text, voice, Some(&audio)),
                    "The voice message is sent.".to_owned(),
                ),
                Err(SpeechError::Aborted) => {
                    return Err(ToolError::Aborted("aborted while it was spoken".to_owned()));
                }
                Err(error) => (
                    ipc.send_message(&text),
                    format!("The message is sent as text, because it could not be spoken: {error}"),
                ),
            };
            sent.map_err(|error| not_written(&error))?;
            Ok(ToolOutput::text(said))
        })
    };
    simple(schema, declaration(), work)
}

/// The text of a call.
///
/// # Errors
/// It is blank, or not given.
pub(super) fn text_of(text: &str) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::Failed(
            "`text` is missing or empty; put into it what you want to say".to_owned(),
        ));
    }
    Ok(text.to_owned())
}
