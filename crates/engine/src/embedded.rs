//! The result of a run in the form that embedding programs of the field expect: payloads to show, and what is known
//! about the run.

use std::time::Instant;

use myclaw_llm::Usage;
use serde::Serialize;

use crate::{RunError, RunResult};

/// What a run gives to a program that shows payloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResult {
    /// What to show; `None` if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payloads: Option<Vec<Payload>>,
    /// About the run.
    pub meta: EmbeddedMeta,
}

/// One text to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Payload {
    /// The text.
    pub text: String,
    /// Whether it says what went wrong.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// What is known about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedMeta {
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Who answered in which session.
    pub agent_meta: AgentMeta,
    /// Whether it was aborted.
    pub aborted: bool,
    /// What the system prompt was made of; `None` where the run gave no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_report: Option<SystemPromptReport>,
}

/// Who answered in which session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentMeta {
    /// The session's id in the index; `None` if it is not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Provider of the model that answered last, or was to answer.
    pub provider: String,
    /// That model.
    pub model: String,
    /// Of the last call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a system prompt was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SystemPromptReport {
    /// The bootstrap files in it.
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
    /// Whether it was cut to that.
    pub truncated: bool,
}

impl EmbeddedResult {
    /// An overflow and an abort are results here; every other error stays one.
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
