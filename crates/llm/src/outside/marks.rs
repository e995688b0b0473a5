//! The marks with which models and this program tell one part of the conversation from another. Data only.
//!
//! Names are in lower case, without brackets and slashes. One that ends with `*` stands for every name that begins so.
//! The sources are the chat templates and the special tokens that the families publish.

/// How exactly a name must be written to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// In any case, with spaces at its brackets, and with more in the tag.
    Any,
    /// A word that is also a type, a variable or an element of a document: the tag must end behind it.
    Closed,
    /// Only as it stands here, in this case.
    Exact,
}

use Spelling::{Any, Closed, Exact};

/// Characters that stand for `<`: full-width, mathematical and CJK ones.
pub(super) const OPEN_ANGLES: [char; 8] = ['<', '＜', '﹤', '〈', '〈', '⟨', '‹', '❮'];
/// Characters that stand for `>`.
pub(super) const CLOSE_ANGLES: [char; 8] = ['>', '＞', '﹥', '〉', '〉', '⟩', '›', '❯'];
/// Characters that stand for `[`.
pub(super) const OPEN_SQUARES: [char; 6] = ['[', '［', '【', '〔', '⟦', '〚'];
/// Characters that stand for `]`.
pub(super) const CLOSE_SQUARES: [char; 6] = [']', '］', '】', '〕', '⟧', '〛'];
/// Characters that stand for `|`. DeepSeek writes its marks with the full-width one.
pub(super) const PIPES: [char; 8] = ['|', '｜', '￨', '∣', '│', '❘', 'ǀ', '︱'];
/// What DeepSeek writes for a space in its marks.
pub(super) const LOW_BLOCK: char = '▁';

/// The tag around text from the web.
pub(super) const EXTERNAL: &str = "external-content";

/// Names between angle brackets. Everything between `<|` and `|>` counts without being listed: ChatML (Qwen, Kimi,
/// InternLM, Yi), Llama 3 and 4, Phi, GLM, Command-R, Granite, Falcon 3, DeepSeek, gpt-oss.
pub(super) const TAGS: &[(&str, Spelling)] = &[
    // SentencePiece: Llama 1 and 2, Mistral, Gemma, Falcon.
    ("s", Closed),
    ("bos", Closed),
    ("eos", Closed),
    ("unk", Closed),
    ("pad", Closed),
    ("mask", Closed),
    ("cls", Closed),
    ("sep", Closed),
    ("eod", Closed),
    ("reserved_*", Any),
    ("unused*", Any),
    ("extra_id_*", Any),
    ("special_*", Any),
    ("0x0a", Closed),
    // Command-R.
    ("bos_token", Any),
    ("eos_token", Any),
    ("eop_token", Any),
    ("pad_token", Any),
    ("unk_token", Any),
    ("cls_token", Any),
    ("mask_token", Any),
    // Gemma.
    ("start_of_*", Any),
    ("end_of_*", Any),
    ("begin_of_*", Any),
    ("beginning_of_*", Any),
    ("start_function_*", Any),
    ("end_function_*", Any),
    ("escape", Closed),
    ("image", Closed),
    ("im_patch", Any),
    ("image_soft_token", Any),
    ("audio_soft_token", Any),
    // Other words for the same, which models have been trained on.
    ("im_start*", Any),
    ("im_end*", Any),
    ("endoftext", Any),
    ("startoftext", Any),
    ("fim_*", Any),
    ("turn", Closed),
    ("eot", Closed),
    ("eom", Closed),
    ("sop", Closed),
    ("eop", Closed),
    // Reserved names of Anthropic's models.
    ("function_calls", Any),
    ("function_results", Any),
    ("function_result", Any),
    ("function_call", Any),
    ("function_response", Any),
    ("invoke", Any),
    ("parameter", Any),
    ("system-reminder", Any),
    ("system_reminder", Any),
    ("system-prompt", Any),
    ("system_prompt", Any),
    ("system-message", Any),
    ("system_message", Any),
    ("user-message", Any),
    ("user_message", Any),
    // Qwen, Hermes, GLM, Granite, MiniMax, Seed.
    ("tool_call*", Any),
    ("tool_response*", Any),
    ("tool_result*", Any),
    ("tool_output*", Any),
    ("tool_code", Any),
    ("tool_use*", Any),
    ("tool_sep", Any),
    ("tool_def_*", Any),
    ("toolcall*", Any),
    ("functions", Closed),
    ("role", Closed),
    ("response", Closed),
    ("documents", Closed),
    ("tools", Closed),
    ("tool", Closed),
    ("function", Any),
    ("arg_key", Any),
    ("arg_value", Any),
    ("think", Closed),
    ("thinking", Closed),
    ("thought", Closed),
    ("reasoning", Closed),
    ("available_tools", Any),
    // Who is speaking.
    ("system", Closed),
    ("developer", Closed),
    ("user", Closed),
    ("assistant", Closed),
    ("human", Closed),
    // This program: the time of a message, and the sections of the system prompt.
    ("sent", Closed),
    (EXTERNAL, Any),
    ("bootstrap-files", Any),
    ("project-instructions", Any),
    ("available_skills", Any),
    ("safety", Closed),
    ("conversation", Closed),
];

/// Tags of calls. With a prefix before them, as in `x:invoke`, they count too.
pub(super) const CALL_TAGS: &[&str] = &[
    "function_calls",
    "function_results",
    "function_result",
    "function_call",
    "invoke",
    "parameter",
    "tool_call",
    "tool_calls",
];

/// What stands before the colon in the names of some families: Anthropic's, Seed's and MiniMax's. Everything behind it
/// counts.
pub(super) const PREFIXES: &[&str] = &["antml", "seed", "mm", "minimax"];

/// Names between square brackets.
pub(super) const SQUARES: &[(&str, Spelling)] = &[
    // Llama 2 and Mistral.
    ("inst", Closed),
    ("sys", Exact),
    ("system_prompt", Closed),
    ("available_tools", Closed),
    ("tool_calls", Closed),
    ("tool_results", Closed),
    ("tool_result", Closed),
    ("tool_content", Closed),
    ("model_settings", Closed),
    ("call_id", Exact),
    ("args", Exact),
    ("think", Exact),
    ("img", Exact),
    ("img_break", Closed),
    ("img_end", Closed),
    ("audio", Exact),
    ("begin_audio", Closed),
    ("prefix", Exact),
    ("middle", Exact),
    ("suffix", Exact),
    ("control_*", Closed),
    // GLM, InternLM.
    ("gmask", Closed),
    ("smask", Closed),
    ("unused_token_*", Closed),
    // BERT's, which embedding and classifier models keep.
    ("mask", Exact),
    ("cls", Exact),
    ("sep", Exact),
    ("pad", Exact),
    ("unk", Exact),
    ("bos", Exact),
    ("eos", Exact),
];

/// How the notes begin that this program puts between square brackets into messages, after the bracket.
pub(super) const NOTES: &[&str] = &[
    // Channels.
    "message from",
    "in reply to",
    "attached:",
    "a later version of a message",
    "the person edited",
    "the file \"",
    "the voice note",
    "transcript of",
    "earlier messages of this group",
    "end of the earlier messages",
    "earlier messages, as the program",
    "file \"",
    "end of file",
    // Sessions, sub-agents and scheduled jobs.
    "conversation summary",
    "the sub-agent",
    "task \"",
    "scheduled message",
    "the user has",
    "the user ran",
    "these messages arrived",
    "an earlier message was dropped",
    "empty message",
];

/// The word between `<<` and `>>` of Llama 2.
pub(super) const DOUBLE_ANGLE: &str = "sys";

/// Words that name a speaker at the beginning of a line, before a colon: Anthropic's first models, Falcon, Vicuna,
/// OpenChat, Alpaca and everything that was trained on transcripts. In lower case the first group counts wherever a
/// line may begin, the second one only without indentation, because configs have such keys.
pub(super) const SPEAKERS: [&str; 3] = ["human", "assistant", "falcon"];
/// See [`SPEAKERS`].
pub(super) const SPEAKERS_AND_KEYS: [&str; 3] = ["user", "system", "developer"];
/// What may stand before such a word: OpenChat's speakers.
pub(super) const BEFORE_SPEAKER: &str = "gpt4 correct ";
/// Words that name a speaker only in a heading, as `### Instruction:`.
pub(super) const HEADINGS: [&str; 3] = ["instruction", "response", "input"];
