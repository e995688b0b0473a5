//! What the asker of an answer may ask for besides it: how freely the model chooses its words, where it stops, which form
//! the answer has, and which tool it calls.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Api, ModelRequest, ToolUse};

/// What is asked of an answer. The default asks for nothing: then the model decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnswerOptions {
    /// How freely words are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of likely words to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How much words that were used before are avoided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// How much words that were used often are avoided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Makes answers to the same request alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts at which the answer ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Most tokens of one message of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The form of the answer; `None` means text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// A call that must be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_call: Option<ForcedCall>,
    /// Whether a message may have one call at most.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_calls: bool,
}

/// The form of an answer that is JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Any object.
    JsonObject,
    /// A value that a schema describes.
    JsonSchema {
        /// Name of the schema.
        name: String,
        /// What it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The schema.
        schema: Value,
        /// Whether nothing else than what it describes may come, where the provider distinguishes that.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// A call that the model must make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForcedCall {
    /// Of any tool on offer.
    Any,
    /// Of the tool with this name.
    Tool(String),
}

impl AnswerOptions {
    /// The first of these options that requests of a format cannot carry, under the name that OpenAI's protocols have for
    /// it.
    pub fn unsupported(&self, api: Api) -> Option<&'static str> {
        use Api::{
            AnthropicMessages as Anthropic, BedrockConverse as Bedrock, Builtin,
            GoogleGenerativeAi as Google, OpenaiCompletions as Chat, OpenaiResponses as Responses,
        };
        let is_in = |apis: &[Api]| apis.contains(&api);
        let has_schema = matches!(self.format, Some(AnswerFormat::JsonSchema { .. }));
        let choices = is_in(&[Chat, Responses, Anthropic, Google, Bedrock]);
        let penalties = is_in(&[Chat, Google]);
        let formats = is_in(&[Chat, Responses, Google]) || (has_schema && is_in(&[Anthropic]));
        [
            ("temperature", self.temperature.is_some(), choices),
            ("top_p", self.top_p.is_some(), choices),
            ("presence_penalty", self.presence_penalty.is_some(), penalties),
            ("frequency_penalty", self.frequency_penalty.is_some(), penalties),
            ("seed", self.seed.is_some(), penalties),
            ("stop", !self.stop.is_empty(), is_in(&[Chat, Anthropic, Google, Bedrock])),
            ("max_tokens", self.max_output.is_some(), choices || is_in(&[Builtin])),
            ("response_format", self.format.is_some(), formats),
            ("tool_choice", self.forced_call.is_some(), choices),
            ("parallel_tool_calls", self.single_calls, is_in(&[Chat, Responses, Anthropic])),
        ]
        .into_iter()
        .find_map(|(name, is_asked, is_carried)| (is_asked && !is_carried).then_some(name))
    }
}

/// The options of a request that has none.
static NONE: AnswerOptions = AnswerOptions {
    temperature: None,
    top_p: None,
    presence_penalty: None,
    frequency_penalty: None,
    seed: None,
    stop: Vec::new(),
    max_output: None,
    format: None,
    forced_call: None,
    single_calls: false,
};

impl<'a> ModelRequest<'a> {
    /// What is asked of the answer.
    pub(crate) fn asked(&self) -> &'a AnswerOptions {
        self.options.unwrap_or(&NONE)
    }

    /// The call that the model must make, if it may make calls.
    pub(crate) fn forced_call(&self) -> Option<&'a ForcedCall> {
        let may_call = self.tool_use == ToolUse::Auto && !self.tools.is_empty();
        self.asked().forced_call.as_ref().filter(|_| may_call)
    }

    /// The value of `tool_choice` in OpenAI's formats, which name a function in different ways; `None` without tools.
    pub(crate) fn openai_tool_choice(&self, named: impl Fn(&str) -> Value) -> Option<Value> {
        let choice = match self.forced_call() {
            Some(ForcedCall::Any) => json!("required"),
            Some(ForcedCall::Tool(name)) => named(name),
            None => json!(self.tool_use.choice()),
        };
        (!self.tools.is_empty()).then_some(choice)
    }

    /// The value of `parallel_tool_calls` in OpenAI's formats.
    pub(crate) fn openai_parallel_calls(&self) -> Option<bool> {
        (self.asked().single_calls && !self.tools.is_empty()).then_some(false)
    }
}
