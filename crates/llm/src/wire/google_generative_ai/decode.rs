//! The answer in the Generative Language format.
//!
//! A stream is a series of whole responses, each with the next parts of the message. Text comes in pieces, calls come
//! whole. The last response has the stop reason; a stream without one was cut.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{self, Text};
use crate::wire::{FormatDecoder, MessageBuilder, Progress, cut_stream};
use crate::{AssistantMessage, ErrorClass, EventSink, ModelError, StopReason, classify};

/// Most characters of the service's explanation of a stop reason that are shown.
const MAX_FINISH_MESSAGE: usize = 300;

/// Longest media type that is shown, in characters; real ones have at most about 30.
const MAX_MEDIA_TYPE: usize = 100;

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    builder: MessageBuilder<'a>,
    /// The text or thought that may still grow.
    prose: Option<OpenProse>,
    counters: Counters,
    stop_reason: Option<StopReason>,
}

#[derive(Debug, Clone, Copy)]
struct OpenProse {
    kind: Prose,
    /// Position in the message.
    index: usize,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Text,
    Thought,
}

/// Whether the signature of a part has come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signature {
    Missing,
    Present,
}

/// One response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    finish_message: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

/// Large and rare fields are boxed, because a part is moved more than once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    function_call: Option<Box<FunctionCall<'a>>>,
    #[serde(borrow, alias = "fileData")]
    inline_data: Option<Blob<'a>>,
    #[serde(borrow)]
    executable_code: Option<Box<Code<'a>>>,
    #[serde(borrow)]
    code_execution_result: Option<CodeResult<'a>>,
}

/// Data of some kind, in the answer or at an address.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(borrow)]
    mime_type: Option<Text<'a>>,
}

/// Code that the service runs for the model.
#[derive(Deserialize)]
struct Code<'a> {
    #[serde(borrow)]
    language: Option<Text<'a>>,
    #[serde(borrow)]
    code: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct CodeResult<'a> {
    #[serde(borrow)]
    output: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Text<'a>>,
}

/// Counters are cumulative, and each response brings those that are known by then.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Counters {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(builder: MessageBuilder<'a>) -> Self {
        Self { builder, prose: None, counters: Counters::default(), stop_reason: None }
    }

    /// Takes one response, or the list of responses from a server that does not stream.
    fn take_any(&mut self, data: &str, sink: EventSink<'_>) -> Result<Progress, ModelError> {
        if !data.trim_start().starts_with('[') {
            return self.take_text(data, sink);
        }
        let mut unused = String::new();
        let responses: Vec<&RawValue> = json::parse(data, &mut unused)?;
        responses.iter().try_fold(Progress::KeepAlive, |furthest, response| {
            Ok(furthest.max(self.take_text(response.get(), sink)?))
        })
    }

    fn take_text(&mut self, data: &str, sink: EventSink<'_>) -> Result<Progress, ModelError> {
        let mut repaired = String::new();
        self.take(&json::parse(data, &mut repaired)?, data, sink)
    }

    fn take(
        &mut self,
        response: &Response<'_>,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        if json::is_present(response.error) {
            return Err(classify::stream_error(data));
        }
        let mut progress = Progress::KeepAlive;
        if let Some(counters) = json::optional::<Counters>(response.usage_metadata) {
            self.take_counters(&counters);
            progress = Progress::Advanced;
        }
        let blocked = response.prompt_feedback.as_ref();
        if blocked.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.builder.start(sink);
            self.stop_reason = Some(StopReason::Refusal);
        }
        // More than one candidate is never asked for.
        let candidate = response.candidates.as_ref().and_then(|all| all.first());
        let goes_on = match candidate {
            Some(candidate) => self.take_candidate(candidate, sink)?,
            None => false,
        };
        if candidate.is_some() {
            progress = Progress::Advanced;
        }
        let is_over = !goes_on && self.builder.may_end(self.stop_reason);
        Ok(if is_over { Progress::Complete } else { progress })
    }

    /// Takes the next parts; returns whether there were any before the last one.
    fn take_candidate(
        &mut self,
        candidate: &Candidate<'_>,
        sink: EventSink<'_>,
    ) -> Result<bool, ModelError> {
        self.builder.start(sink);
        let parts = candidate.content.as_ref().and_then(|content| content.parts.as_deref());
        let parts = parts.unwrap_or_default();
        for part in parts {
            self.take_part(part, sink);
        }
        let reason = json::text(&candidate.finish_reason);
        if !reason.is_empty() {
            self.stop_reason = Some(stop_reason(reason, candidate)?);
        }
        // Counts as the stop reason only if nothing more comes.
        Ok(!parts.is_empty() && matches!(reason, "" | "FINISH_REASON_UNSPECIFIED"))
    }

    /// Takes one part. Pictures within thoughts are skipped; other content that a message cannot hold is replaced by a
    /// note.
    fn take_part(&mut self, part: &Part<'_>, sink: EventSink<'_>) {
        let signature = json::text(&part.thought_signature);
        if let Some(call) = &part.function_call {
            self.take_call(call, signature, sink);
        } else if let Some(text) = &part.text {
            let kind = if part.thought == Some(true) { Prose::Thought } else { Prose::Text };
            self.take_prose(kind, text.as_str(), signature, sink);
        } else if let Some(blob) = &part.inline_data
            && part.thought != Some(true)
        {
            self.close_prose(sink);
            let kind = classify::one_line(json::text(&blob.mime_type), MAX_MEDIA_TYPE);
            self.builder.add_omission(if kind.is_empty() { "file" } else { &kind }, sink);
        } else if let Some(Code { language, code }) = part.executable_code.as_deref() {
            let language = json::text(language).to_ascii_lowercase();
            self.take_fenced(&language, json::text(code), sink);
        } else if let Some(CodeResult { output }) = &part.code_execution_result {
            self.take_fenced("", json::text(output), sink);
        }
    }

    /// Code that the service ran, or its output: some models run code without being asked to.
    fn take_fenced(&mut self, language: &str, code: &str, sink: EventSink<'_>) {
        if !code.is_empty() {
            let text = format!("\n```{language}\n{}\n```\n", code.trim_end());
            self.take_prose(Prose::Text, &text, "", sink);
        }
    }

    /// Adds to the open text or thought. The pieces of one part share one signature: Gemini 2.5 sends it with the first
    /// piece, Gemini 3 with the last, whose text may be empty. So a second signature begins another part.
    fn take_prose(&mut self, kind: Prose, text: &str, signature: &str, sink: EventSink<'_>) {
        if text.is_empty() && signature.is_empty() {
            return;
        }
        let continues = |open: &OpenProse| {
            open.kind == kind && (signature.is_empty() || open.signature == Signature::Missing)
        };
        let mut open = match self.prose.filter(continues) {
            Some(open) => open,
            None => {
                self.close_prose(sink);
                let index = match kind {
                    Prose::Text => self.builder.start_text(sink),
                    Prose::Thought => self.builder.start_thinking(sink),
                };
                OpenProse { kind, index, signature: Signature::Missing }
            }
        };
        self.builder.delta(open.index, text, sink);
        if !signature.is_empty() {
            self.builder.add_signature(open.index, signature);
            open.signature = Signature::Present;
        }
        self.prose = Some(open);
    }

    fn close_prose(&mut self, sink: EventSink<'_>) {
        if let Some(open) = self.prose.take() {
            self.builder.end(open.index, sink);
        }
    }

    fn take_call(&mut self, call: &FunctionCall<'_>, signature: &str, sink: EventSink<'_>) {
        let name = json::text(&call.name);
        // Without a name there is nothing to call.
        if name.is_empty() {
            return;
        }
        self.close_prose(sink);
        let id = json::text(&call.id);
        let index = self.builder.start_call(id, name, sink);
        if let Some(arguments) = call.args {
            self.builder.delta(index, arguments.get(), sink);
        }
        self.builder.add_signature(index, signature);
        self.builder.end(index, sink);
    }

    fn take_counters(&mut self, news: &Counters) {
        let known = &mut self.counters;
        // A total says nothing of counters that come after it.
        known.total_token_count = None;
        for (counter, reported) in [
            (&mut known.prompt_token_count, news.prompt_token_count),
            (&mut known.cached_content_token_count, news.cached_content_token_count),
            (&mut known.candidates_token_count, news.candidates_token_count),
            (&mut known.thoughts_token_count, news.thoughts_token_count),
            (&mut known.tool_use_prompt_token_count, news.tool_use_prompt_token_count),
            (&mut known.total_token_count, news.total_token_count),
        ] {
            // A gateway fills in 0 for what a chunk does not say.
            *counter = reported.filter(|count| *count > 0).or(*counter);
        }
        let prompt = known
            .prompt_token_count
            .unwrap_or(0)
            .saturating_add(known.tool_use_prompt_token_count.unwrap_or(0));
        let cached = known.cached_content_token_count.unwrap_or(0).min(prompt);
        let answer = known.candidates_token_count.unwrap_or(0);
        let thoughts = known.thoughts_token_count.unwrap_or(0);
        // Google counts thoughts in addition to the answer; some gateways to it count them in it. The total shows which.
        let counts_within = thoughts > 0
            && thoughts <= answer
            && known.total_token_count == Some(prompt.saturating_add(answer));
        let usage = self.builder.usage_mut();
        usage.input = prompt - cached;
        usage.cache_read = cached;
        usage.output = if counts_within { answer } else { answer.saturating_add(thoughts) };
        usage.reasoning = thoughts;
    }
}

impl<'a> FormatDecoder<'a> for Decoder<'a> {
    fn feed(
        &mut self,
        event_name: &str,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        if event_name == "error" {
            return Err(classify::stream_error(data));
        }
        self.take_any(data, sink)
    }

    fn feed_end_marker(&mut self) -> Progress {
        if self.stop_reason.is_some() { Progress::Ended } else { Progress::KeepAlive }
    }

    fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError> {
        match self.take_any(body, sink)? {
            Progress::KeepAlive => Err(classify::stream_error(body)),
            Progress::Advanced | Progress::Complete | Progress::Ended => Ok(()),
        }
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        let reason = self.stop_reason.ok_or_else(cut_stream)?;
        Ok(self.builder.finish(reason, sink))
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.builder
    }
}

/// The meaning of the service's stop reasons, from its API reference
/// (<https://ai.google.dev/api/generate-content#FinishReason>).
///
/// # Errors
/// The answer was broken off, neither finished nor refused.
fn stop_reason(name: &str, candidate: &Candidate<'_>) -> Result<StopReason, ModelError> {
    let class = match name {
        "MAX_TOKENS" => return Ok(StopReason::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => return Ok(StopReason::Refusal),
        // Mistakes of the model, which it does not repeat on a retry.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "OTHER" => ErrorClass::Timeout,
        "PUP_LIMITED_DISABLED" => ErrorClass::Auth,
        "MISSING_THOUGHT_SIGNATURE" | "IMAGE_OTHER" | "NO_IMAGE" => ErrorClass::Unknown,
        // `STOP`, and other normal ends.
        _ => return Ok(StopReason::Stop),
    };
    let why = match &candidate.finish_message {
        Some(why) => format!(": {}", classify::one_line(why.as_str(), MAX_FINISH_MESSAGE)),
        None => String::new(),
    };
    Err(ModelError {
        status: Some(200),
        code: Some(name.to_owned()),
        ..ModelError::new(class, format!("gave the answer up ({name}){why}"))
    })
}
