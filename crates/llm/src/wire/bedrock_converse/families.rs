//! Differences between the models of the Converse API, as data.
//!
//! A model is recognised by a part of its id, because the same model has many ids: `anthropic.claude-…`, inference
//! profiles such as `us.anthropic.claude-…`, and ARNs that end with either. The ARN of an application inference profile
//! does not say which model it is for; like every unknown model it gets what all models understand.

use crate::Model;
use crate::wire::{Off, ThinkingControl};

/// The places where a model accepts cache points. It refuses a request with a cache point in another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePoints {
    /// Nowhere.
    None,
    /// Behind the system prompt and in messages.
    SystemAndMessages,
    /// Behind the tools as well.
    Everywhere,
}

/// How a model is asked to think, in the fields that Converse passes on unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingFields {
    /// Not at all: it never thinks, or always.
    None,
    /// With Claude's own fields, as the catalog says of each model ([`crate::ThinkingForm`]).
    Claude,
    /// `reasoning_effort`.
    Effort,
}

/// What one family of models accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) cache_points: CachePoints,
    pub(super) thinking: ThinkingFields,
    /// Whether it accepts the `status` of a tool result; other models refuse it.
    pub(super) knows_result_status: bool,
}

const COMMON: Family = Family {
    cache_points: CachePoints::None,
    thinking: ThinkingFields::None,
    knows_result_status: false,
};

const CLAUDE: Family = Family {
    cache_points: CachePoints::Everywhere,
    thinking: ThinkingFields::Claude,
    knows_result_status: true,
};

const CLAUDE_WITHOUT_CACHE: Family = Family { cache_points: CachePoints::None, ..CLAUDE };

/// Parts of ids; the first that fits is used. From AWS's pages on prompt caching and on `ToolResultBlock`.
const FAMILIES: &[(&str, Family)] = &[
    ("claude-3-7-sonnet", CLAUDE),
    ("claude-3-5-haiku", CLAUDE),
    ("claude-3-5-sonnet-20241022", CLAUDE),
    ("claude-3-", CLAUDE_WITHOUT_CACHE),
    ("claude-v2", CLAUDE_WITHOUT_CACHE),
    ("claude-instant", CLAUDE_WITHOUT_CACHE),
    ("anthropic.claude-", CLAUDE),
    (
        "amazon.nova-",
        Family {
            cache_points: CachePoints::SystemAndMessages,
            thinking: ThinkingFields::None,
            knows_result_status: true,
        },
    ),
    ("openai.gpt-oss-", Family { thinking: ThinkingFields::Effort, ..COMMON }),
];

/// How a request controls the thinking of `model`. Effort begins with `low`, and models with an effort always think.
pub(in crate::wire) fn thinking_control(model: &Model) -> ThinkingControl {
    match Family::of(&model.id).thinking {
        ThinkingFields::None => ThinkingControl::Nothing,
        ThinkingFields::Claude => ThinkingControl::levels(Off::Always),
        ThinkingFields::Effort => ThinkingControl::words(model),
    }
}

impl Family {
    /// The family of the model with this id.
    pub(super) fn of(id: &str) -> Self {
        let row = FAMILIES.iter().find(|(part, _)| id.contains(part));
        row.map_or(COMMON, |&(_, family)| family)
    }
}
