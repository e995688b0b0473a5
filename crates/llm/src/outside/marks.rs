//! The marks with which models and this program tell one part of the conversation from another. Data only.
//!
//! Names are in lower case, without brackets and slashes. One that ends with `*` stands for every name that begins so, one
//! that ends with `#` for those with a number behind it. The tags and notes of this program are in [`super::own`].
//! The sources are the chat templates and the special tokens that the families publish.

/// How exactly a name must be written to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// In any case, with spaces at its brackets, and with more in the tag.
    Any,
    /// A word that is also a type, a variable or an element of a document: the tag must end behind it.
    Closed,
    /// The tag must end behind it, or have an attribute.
    Element,
    /// The tag must have an attribute, or be the one that closes.
    Attribute,
    /// Only as it stands here, in this case.
    Exact,
}

use Spelling::{Any, Attribute, Closed, Element, Exact};

use super::own::EXTERNAL;

/// Characters that stand for `<`: full-width, mathematical and CJK ones.
pub const OPEN_ANGLES: [char; 15] =
    ['<', '＜', '﹤', '〈', '〈', '⟨', '‹', '❮', '❬', '❰', '⦑', '⧼', '≺', '˂', 'ᐸ'];
/// Characters that stand for `>`.
pub(super) const CLOSE_ANGLES: [char; 15] =
    ['>', '＞', '﹥', '〉', '〉', '⟩', '›', '❯', '❭', '❱', '⦒', '⧽', '≻', '˃', 'ᐳ'];
/// Characters that stand for `[`.
pub(super) const OPEN_SQUARES: [char; 10] = ['[', '［', '【', '〔', '⟦', '〚', '〖', '❲', '⁅', '⦋'];
/// Characters that stand for `]`.
pub(super) const CLOSE_SQUARES: [char; 10] =
    [']', '］', '】', '〕', '⟧', '〛', '〗', '❳', '⁆', '⦌'];
/// Those of them with which a mark of MiniMax may begin. The one that stands behind the number of a hidden character is
/// none of them.
pub(super) const BEGINNING_CLOSE_SQUARES: [char; 3] = [']', '］', '】'];
/// Characters that stand for `|`. DeepSeek writes its marks with the full-width one.
pub(super) const PIPES: [char; 33] = [
    '|', '｜', '￨', '∣', '│', '❘', 'ǀ', '︱', '¦', '‖', '∥', 'ǁ', '║', '┃', '┆', '┊', '╎', '╏',
    '▏', '▕', '❙', '❚', '⎮', '⏐', '⎸', '⎹', '⎢', '⎥', '丨', 'ㅣ', '׀', '।', '॥',
];
/// Most pipes at one place.
pub(super) const MOST_PIPES: usize = 3;
/// What DeepSeek writes for a space in its marks.
pub(super) const LOW_BLOCK: char = '▁';

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
    // InternLM, SenseNova, StarCoder, MiniCPM, LongCat.
    ("eoh", Closed),
    ("eoa", Closed),
    ("tokens_unused*", Any),
    ("b_sys", Closed),
    ("e_sys", Closed),
    ("b_inst", Closed),
    ("e_inst", Closed),
    ("file_sep", Closed),
    ("ai", Exact),
    ("longcat_*", Any),
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
    // This program. Every section of the system prompt is here or in `own::PROMPT_TAGS`.
    (EXTERNAL, Any),
    // What other programs write around text from outside, and around what their users say.
    ("untrusted*", Any),
    ("external_untrusted*", Any),
    ("external-untrusted*", Any),
    ("trusted", Closed),
    ("environment_context", Any),
    ("environment_details", Any),
    ("user_instructions", Any),
    ("user_query", Any),
    ("user-prompt-submit-hook", Any),
    ("local-command-stdout", Any),
    ("command-message", Any),
    ("command-name", Any),
    ("file", Attribute),
    ("sent", Closed),
    ("available_skills", Any),
    ("instructions", Element),
    ("conversation", Closed),
];

/// Words of which families make names for the beginning and the end of a part, such as `turn_end`, `end-of-message`
/// and `assistant_header_start`. A tag of two and more counts if all of its words are here or in [`EDGES`], and one is
/// in [`EDGES`].
pub(super) const PARTS: &[&str] = &[
    "system",
    "developer",
    "user",
    "assistant",
    "human",
    "bot",
    "ai",
    "model",
    "tool",
    "tools",
    "function",
    "functions",
    "observation",
    "message",
    "msg",
    "role",
    "speaker",
    "prompt",
    "response",
    "answer",
    "instruction",
    "inst",
    "sys",
    "im",
    "of",
    "conversation",
    "chat",
    "dialog",
    "dialogue",
    "thought",
    "think",
    "thinking",
    "reasoning",
    "inner",
    "sentence",
    "utterance",
    "text",
    "call",
    "calls",
    "result",
    "results",
    "output",
    "outputs",
];
/// See [`PARTS`].
pub(super) const EDGES: &[&str] = &[
    "start",
    "end",
    "begin",
    "beginning",
    "turn",
    "header",
    "bos",
    "eos",
    "sep",
    "prefix",
    "suffix",
    "round",
];

/// Names between angle brackets in other scripts: MiniCPM, and what Chinese and Russian families write.
pub(super) const OTHER_SCRIPTS: &[&str] =
    &["用户", "助手", "系统", "пользователь", "ассистент", "система"];

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
    // Pangu.
    ("unused#", Closed),
    // Skywork, and what people write who imitate one.
    ("user", Exact),
    ("bot", Exact),
    ("system", Exact),
    ("assistant", Exact),
    ("human", Exact),
    ("developer", Exact),
    // BERT's, which embedding and classifier models keep.
    ("mask", Exact),
    ("cls", Exact),
    ("sep", Exact),
    ("pad", Exact),
    ("unk", Exact),
    ("bos", Exact),
    ("eos", Exact),
];

/// Names between `[|` and `|]`: EXAONE. In other places such brackets hold lists of OCaml and F#.
pub(super) const PIPED_SQUARES: &[&str] = &[
    "system*",
    "user*",
    "assistant*",
    "developer*",
    "human*",
    "bot*",
    "tool*",
    "function*",
    "thought*",
    "think*",
    "endof*",
    "end_*",
    "startof*",
    "start_*",
    "begin*",
    "im_*",
    "bos",
    "eos",
    "eot",
    "turn*",
];

/// Marks of MiniMax, behind their first bracket: one that opens, and one that closes.
pub(super) const BEHIND_OPEN_SQUARE: [&str; 1] = ["e~["];
/// See [`BEHIND_OPEN_SQUARE`].
pub(super) const BEHIND_CLOSE_SQUARE: [&str; 4] = ["~b]", "~!b[", "!p~[", "!d~["];

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
/// Words for a speaker in other scripts, in lower case: YandexGPT, and Chinese families. They count like [`SPEAKERS`].
pub(super) const SPEAKERS_OF_OTHER_SCRIPTS: [&str; 5] =
    ["пользователь", "ассистент", "用户", "助手", "系统"];
