//! What differs between the models behind the Converse API, as data.
//!
//! A model is known by a part of its id, because the same model has many: `anthropic.claude-…`, inference profiles
//! such as `us.anthropic.claude-…`, and ARNs that end with either. The ARN of an application inference profile does
//! not say which model it is for; like every unknown model it gets what all models understand.

/// Where a model takes cache points. One that it does not take makes it refuse the request.
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
pub(super) enum ThinkingForm {
    /// Not at all: it never thinks, or always.
    None,
    /// `thinking` with a budget of tokens.
    Budget,
    /// `thinking` of the type `adaptive`, with an effort.
    Adaptive,
    /// `reasoning_effort`.
    Effort,
}

/// What one family of models takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) cache_points: CachePoints,
    pub(super) thinking: ThinkingForm,
    /// Whether the `status` of a tool result is known; other models refuse it.
    pub(super) knows_result_status: bool,
}

const COMMON: Family = Family {
    cache_points: CachePoints::None,
    thinking: ThinkingForm::None,
    knows_result_status: false,
};

const CLAUDE: Family = Family {
    cache_points: CachePoints::Everywhere,
    thinking: ThinkingForm::Adaptive,
    knows_result_status: true,
};

const CLAUDE_WITH_BUDGET: Family = Family { thinking: ThinkingForm::Budget, ..CLAUDE };

const CLAUDE_WITHOUT_THINKING: Family = Family { thinking: ThinkingForm::None, ..CLAUDE };

const CLAUDE_WITHOUT_CACHE: Family =
    Family { cache_points: CachePoints::None, ..CLAUDE_WITHOUT_THINKING };

/// Parts of ids, the first that fits winning, from AWS's pages on prompt caching, on extended and adaptive thinking,
/// and on `ToolResultBlock`. Claude models that are not named are newer ones.
const FAMILIES: &[(&str, Family)] = &[
    ("claude-3-7-sonnet", CLAUDE_WITH_BUDGET),
    ("claude-3-5-haiku", CLAUDE_WITHOUT_THINKING),
    ("claude-3-5-sonnet-20241022", CLAUDE_WITHOUT_THINKING),
    ("claude-3-", CLAUDE_WITHOUT_CACHE),
    ("claude-v2", CLAUDE_WITHOUT_CACHE),
    ("claude-instant", CLAUDE_WITHOUT_CACHE),
    ("claude-opus-4-2", CLAUDE_WITH_BUDGET),
    ("claude-opus-4-1", CLAUDE_WITH_BUDGET),
    ("claude-opus-4-5", CLAUDE_WITH_BUDGET),
    ("claude-sonnet-4-2", CLAUDE_WITH_BUDGET),
    ("claude-sonnet-4-5", CLAUDE_WITH_BUDGET),
    ("claude-haiku-4-5", CLAUDE_WITH_BUDGET),
    ("anthropic.claude-", CLAUDE),
    (
        "amazon.nova-",
        Family {
            cache_points: CachePoints::SystemAndMessages,
            thinking: ThinkingForm::None,
            knows_result_status: true,
        },
    ),
    ("openai.gpt-oss-", Family { thinking: ThinkingForm::Effort, ..COMMON }),
];

impl Family {
    /// The family of the model with this id.
    pub(super) fn of(id: &str) -> Self {
        let row = FAMILIES.iter().find(|(part, _)| id.contains(part));
        row.map_or(COMMON, |&(_, family)| family)
    }
}
