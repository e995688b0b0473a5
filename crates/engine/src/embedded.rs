//! The result of a run in the form that embedding programs expect: payloads to show, and facts about the run.

use std::time::Instant;

use myclaw_llm::Usage;
use serde::Serialize;

use crate::{RunError, RunResult};

/// The result of a run for programs that show payloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResult {
    /// The payloads to show; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payloads: Option<Vec<Payload>>,
    /// Facts about the run.
    pub meta: EmbeddedMeta,
}

/// One text to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Payload {
    /// The text.
    pub text: String,
    /// Whether the text describes a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Facts about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedMeta {
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The model that answered, and the session.
    pub agent_meta: AgentMeta,
    /// Whether the run was aborted.
    pub aborted: bool,
    /// The contents of the system prompt; `None` if the run gave no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_report: Option<SystemPromptReport>,
}

/// The model that answered, and the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentMeta {
    /// The session's id in the index; `None` if it is not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Provider of the model that answered last; if there was no answer, of the model that was asked first.
    pub provider: String,
    /// Id of that model.
    pub model: String,
    /// Usage of the last call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The contents of a system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SystemPromptReport {
    /// The bootstrap files in the prompt.
    pub files: Vec<BootstrapFileReport>,
    /// Characters of the whole prompt, as it was sent.
    pub total_chars: usize,
}

/// A bootstrap file in a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BootstrapFileReport {
    /// Its name.
    pub name: &'static str,
    /// Characters of it that are in the prompt.
    pub chars: usize,
    /// Whether the file was cut to that length.
    pub truncated: bool,
    /// Size of the whole file, in bytes.
    pub file_bytes: u64,
}

impl EmbeddedResult {
    /// Turns an overflow and an abort into results; every other error remains an error.
    pub(crate) fn of(
        outcome: Result<RunResult, RunError>,
        agent_meta: AgentMeta,
        began: Instant,
    ) -> Result<Self, RunError> {
        let mut meta = EmbeddedMeta {
            duration_ms: began.elapsed().as_millis() as u64,
            agent_meta,
            aborted: false,
            system_prompt_report: None,
        };
        let payload = match outcome {
            Ok(result) => {
                meta.agent_meta.provider = result.provider;
                meta.agent_meta.model = result.model;
                meta.agent_meta.usage = Some(result.last_call_usage);
                meta.system_prompt_report = Some(result.system_prompt_report);
                Payload { text: result.reply, is_error: false }
            }
            Err(error @ RunError::ContextOverflow { .. }) => Payload {
                text: format!("Context overflow: prompt too large for the model. {error}"),
                is_error: true,
            },
            Err(RunError::Aborted) => {
                meta.aborted = true;
                Payload { text: String::new(), is_error: false }
            }
            Err(error) => return Err(error),
        };
        let payloads = (!payload.text.trim().is_empty()).then(|| vec![payload]);
        Ok(Self { payloads, meta })
    }
}
