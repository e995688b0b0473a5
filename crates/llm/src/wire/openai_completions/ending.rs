//! The finish reasons of answers.

use crate::wire::WINDOW_EXCEEDED;
use crate::{ErrorClass, StopReason};

/// The meaning of a finish reason.
pub(super) enum Ending {
    Stop(StopReason),
    Failure(ErrorClass),
}

pub(super) fn ending(name: &str) -> Ending {
    // Gemini's compatible endpoint adds the cause after the word: `function_call_filter: MALFORMED_FUNCTION_CALL`.
    let name = name.split_once(": ").map_or(name, |(word, _)| word);
    match name {
        "length" | "max_tokens" | "model_length" => Ending::Stop(StopReason::Length),
        "tool_calls" | "function_call" => Ending::Stop(StopReason::ToolUse),
        // `sensitive` is Z.ai's word, the rest those of Google's models behind gateways.
        "content_filter" | "refusal" | "sensitive" | "safety" | "SAFETY" | "RECITATION"
        | "PROHIBITED_CONTENT" => Ending::Stop(StopReason::Refusal),
        // A gateway's, Z.ai's, DeepSeek's, and that of vLLM and SGLang when their engine gives up.
        "error" | "network_error" | "insufficient_system_resource" | "abort" => {
            Ending::Failure(ErrorClass::Timeout)
        }
        // Mistakes of Gemini, which it does not repeat on a retry.
        "function_call_filter"
        | "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL" => Ending::Failure(ErrorClass::Timeout),
        WINDOW_EXCEEDED => Ending::Failure(ErrorClass::ContextOverflow),
        // `stop`, `end_turn`, `eos`, and other normal ends.
        _ => Ending::Stop(StopReason::Stop),
    }
}
