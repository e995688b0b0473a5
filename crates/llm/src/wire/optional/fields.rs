//! Which fields may be left out, by the format, and how hosts call them.

use crate::Api;

/// A field that a request can do without.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OptionalField {
    /// Its name, below the name of the object that holds it.
    pub(super) path: &'static [&'static str],
    /// How hosts call it, in small letters.
    pub(super) spellings: &'static [Spelling],
    pub(super) if_refused: IfRefused,
    /// Whether it is left out if its value is refused, too.
    pub(super) has_values: bool,
}

/// A name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// One that stands for nothing else.
    Name(&'static str),
    /// A word that sentences have too: it counts where it is marked as a name.
    Word(&'static str),
}

/// What is sent instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfRefused {
    /// Nothing.
    LeaveOut,
    /// Nothing, if it has one of these values, which say no more than the absence of the field.
    LeaveOutIf(&'static [&'static str]),
    /// The same under another name, unless that is refused too.
    Rename(&'static str),
}

impl Spelling {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Name(text) | Self::Word(text) => text,
        }
    }
}

use IfRefused::{LeaveOut, LeaveOutIf, Rename};
use Spelling::{Name, Word};

const fn field(path: &'static [&'static str], spellings: &'static [Spelling]) -> OptionalField {
    OptionalField { path, spellings, if_refused: LeaveOut, has_values: false }
}

/// A field that asks for thinking. Its levels differ between models, so a refused level is left out like a refused field.
const fn thinking(path: &'static [&'static str], spellings: &'static [Spelling]) -> OptionalField {
    OptionalField { path, spellings, if_refused: LeaveOut, has_values: true }
}

/// A field that says how calls are chosen. A choice that leaves it to the model is what hosts do anyway; without one that
/// forbids calls, a call is refused when it comes.
const fn choice(
    path: &'static [&'static str],
    spellings: &'static [Spelling],
    values: &'static [&'static str],
) -> OptionalField {
    OptionalField { path, spellings, if_refused: LeaveOutIf(values), has_values: true }
}

const TEMPERATURE: OptionalField = field(&["temperature"], &[Name("temperature")]);
const TOP_P: OptionalField = field(&["top_p"], &[Name("top_p")]);
const TOOL_CHOICE: OptionalField = choice(
    &["tool_choice"],
    &[Name("tool_choice"), Name("tool choice")],
    &["\"auto\"", "\"none\""],
);
const PARALLEL_CALLS: OptionalField =
    field(&["parallel_tool_calls"], &[Name("parallel_tool_calls"), Name("parallel tool calls")]);

/// Chat Completions.
static CHAT: [OptionalField; 16] = [
    field(&["stream_options"], &[Name("stream_options"), Name("stream_options.include_usage")]),
    PARALLEL_CALLS,
    TOOL_CHOICE,
    OptionalField {
        if_refused: Rename("max_tokens"),
        ..field(&["max_completion_tokens"], &[Name("max_completion_tokens")])
    },
    OptionalField {
        if_refused: Rename("max_completion_tokens"),
        ..field(&["max_tokens"], &[Name("max_tokens")])
    },
    TEMPERATURE,
    TOP_P,
    field(&["presence_penalty"], &[Name("presence_penalty"), Name("presencepenalty")]),
    field(&["frequency_penalty"], &[Name("frequency_penalty"), Name("frequencypenalty")]),
    field(&["seed"], &[Word("seed")]),
    field(&["store"], &[Word("store")]),
    thinking(
        &["reasoning_effort"],
        &[
            Name("reasoning_effort"),
            Name("reasoning effort"),
            Name("reasoning.effort"),
            Name("reasoning"),
            Name("thinking"),
            Name("think value"),
            Name("think"),
        ],
    ),
    thinking(
        &["reasoning"],
        &[Name("reasoning"), Name("reasoning.effort"), Name("reasoning.enabled"), Name("thinking")],
    ),
    thinking(
        &["thinking"],
        &[Name("thinking"), Name("thinking.type"), Name("enable_thinking"), Name("reasoning")],
    ),
    thinking(&["enable_thinking"], &[Name("enable_thinking"), Name("thinking"), Name("reasoning")]),
    thinking(
        &["chat_template_kwargs"],
        &[Name("chat_template_kwargs"), Name("enable_thinking"), Name("thinking")],
    ),
];

/// The Responses API.
static RESPONSES: [OptionalField; 9] = [
    field(&["store"], &[Word("store")]),
    field(
        &["include"],
        &[Word("include"), Name("reasoning.encrypted_content"), Name("encrypted content")],
    ),
    thinking(
        &["reasoning", "summary"],
        &[Name("reasoning.summary"), Name("reasoning summaries"), Name("reasoning summary")],
    ),
    thinking(
        &["reasoning"],
        &[
            Name("reasoning"),
            Name("reasoning.effort"),
            Name("reasoning_effort"),
            Name("reasoning effort"),
            Name("thinking"),
        ],
    ),
    field(&["max_output_tokens"], &[Name("max_output_tokens")]),
    TOOL_CHOICE,
    PARALLEL_CALLS,
    TEMPERATURE,
    TOP_P,
];

/// The Messages API. It requires a limit of the output.
static MESSAGES: [OptionalField; 5] = [
    thinking(
        &["thinking"],
        &[
            Name("thinking"),
            Name("thinking.type"),
            Name("thinking.type.enabled"),
            Name("adaptive thinking"),
        ],
    ),
    thinking(
        &["output_config", "effort"],
        &[Name("effort"), Name("output_config.effort"), Name("output_config")],
    ),
    TEMPERATURE,
    TOP_P,
    choice(
        &["tool_choice"],
        &[Name("tool_choice"), Name("tool choice")],
        &["{\"type\":\"auto\"}", "{\"type\":\"none\"}"],
    ),
];

/// Google's API.
static GOOGLE: [OptionalField; 7] = [
    thinking(
        &["generationConfig", "thinkingConfig"],
        &[
            Name("thinkingconfig"),
            Name("thinking_config"),
            Name("thinkinglevel"),
            Name("thinking_level"),
            Name("thinking level"),
            Name("thinkingbudget"),
            Name("thinking_budget"),
            Name("thinking budget"),
            Name("include_thoughts"),
            Name("includethoughts"),
            Name("thinking"),
        ],
    ),
    field(&["generationConfig", "temperature"], &[Name("temperature")]),
    field(&["generationConfig", "topP"], &[Name("topp"), Name("top_p")]),
    field(
        &["generationConfig", "presencePenalty"],
        &[Name("presencepenalty"), Name("presence_penalty"), Name("penalty")],
    ),
    field(
        &["generationConfig", "frequencyPenalty"],
        &[Name("frequencypenalty"), Name("frequency_penalty"), Name("penalty")],
    ),
    field(&["generationConfig", "seed"], &[Word("seed")]),
    choice(
        &["toolConfig"],
        &[Name("toolconfig"), Name("tool_config"), Name("function_calling_config")],
        &[
            "{\"functionCallingConfig\":{\"mode\":\"AUTO\"}}",
            "{\"functionCallingConfig\":{\"mode\":\"NONE\"}}",
        ],
    ),
];

/// Amazon Bedrock.
static BEDROCK: [OptionalField; 4] = [
    field(
        &["inferenceConfig", "temperature"],
        &[Name("temperature"), Name("inferenceconfig.temperature")],
    ),
    field(
        &["inferenceConfig", "topP"],
        &[Name("topp"), Name("top_p"), Name("inferenceconfig.topp")],
    ),
    choice(
        &["toolConfig", "toolChoice"],
        &[
            Name("toolchoice"),
            Name("tool_choice"),
            Name("toolconfig.toolchoice"),
            Name("toolconfig.toolchoice.auto"),
        ],
        &["{\"auto\":{}}"],
    ),
    thinking(
        &["additionalModelRequestFields"],
        &[
            Name("additionalmodelrequestfields"),
            Name("thinking"),
            Name("thinking.type"),
            Name("thinking.type.enabled"),
            Name("adaptive thinking"),
            Name("reasoning_config"),
            Name("reasoningconfig"),
            Name("reasoning_effort"),
            Name("output_config"),
            Name("output_config.effort"),
            Name("effort"),
            Name("anthropic_beta"),
        ],
    ),
];

impl OptionalField {
    /// The fields of a format.
    pub(super) fn of(api: Api) -> &'static [Self] {
        match api {
            Api::OpenaiCompletions => &CHAT,
            Api::OpenaiResponses => &RESPONSES,
            Api::AnthropicMessages => &MESSAGES,
            Api::GoogleGenerativeAi => &GOOGLE,
            Api::BedrockConverse => &BEDROCK,
            Api::Builtin => &[],
        }
    }

    /// Its names, in small letters.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spellings.iter().map(|spelling| spelling.text())
    }

    /// Its name for people.
    pub(crate) fn label(&self) -> String {
        self.path.join(".")
    }
}
