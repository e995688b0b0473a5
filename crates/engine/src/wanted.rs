//! Words that a question wants in place of a yes.

use serde::{Deserialize, Serialize};

/// Words that a question wants in place of a yes, such as the value of a field in a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedWords {
    /// What they are, such as the name of the field.
    pub label: String,
    /// The answers that can be chosen, if there is a choice. Several may be chosen if the question says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What no words mean, for people, such as `the default: main`; `None` if words are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}
