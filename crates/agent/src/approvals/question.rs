//! A question about a call, in the one form that all front-ends show or send on.

use myclaw_engine::{AlwaysScope, ApprovalRequest, ScopeKind, ShownFact, WantedWords};
use myclaw_policy::escape;
use serde::{Deserialize, Serialize};

use super::words::{CANCEL, DECLINE, NO_WORDS, read_words};
use super::{WrittenAnswer, read_answer};
use crate::plan::NAME as PLAN_TOOL;

/// What the model reads after a no.
const REFUSED: &str = "the user said no";

/// A question. Characters that hide or move text are written out in all of its texts, so each front-end may show them as
/// they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Question {
    /// The session of the call.
    pub session: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// The tool that is called.
    pub tool_name: String,
    /// Why the call needs an approval: one line for each rule or hook that asks.
    pub reason: String,
    /// Everything that decides what happens, in full and in this order.
    pub shown: Vec<ShownFact>,
    /// What is different since an earlier answer to the same question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ShownFact>,
    /// What the answer "always" can cover, the least first. Empty if the call cannot be approved for good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<AlwaysScope>,
    /// The words that answer it. Then there is no yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wants: Option<WantedWords>,
}

impl From<&ApprovalRequest> for Question {
    fn from(request: &ApprovalRequest) -> Self {
        let offered = |scope: &AlwaysScope| {
            AlwaysScope::new(scope.kind(), escape(scope.covers()), scope.id())
        };
        Self {
            session: request.session.to_string(),
            tool_call_id: request.call.tool_call_id.clone(),
            tool_name: escape(&request.call.tool_name),
            reason: escape_lines(&request.reason),
            shown: request.shown.iter().map(escape_fact).collect(),
            changes: request.changes.iter().map(escape_fact).collect(),
            always: request.always.iter().map(offered).collect(),
            wants: request.wants.as_ref().map(|wants| WantedWords {
                label: escape(&wants.label),
                choices: wants.choices.iter().map(|choice| escape(choice)).collect(),
                without: wants.without.as_deref().map(escape_lines),
            }),
        }
    }
}

impl Question {
    /// Whether it proposes a plan. The answer may change its steps.
    pub fn is_plan(&self) -> bool {
        self.tool_name == PLAN_TOOL && self.is_first("plan")
    }

    /// Whether it is about a command. The answer may name another command.
    pub fn has_command(&self) -> bool {
        self.is_first("command")
    }

    fn is_first(&self, label: &str) -> bool {
        self.shown.first().is_some_and(|fact| fact.label == label)
    }

    /// Whether "always" is offered with this scope, or at all.
    pub fn offers(&self, scope: Option<ScopeKind>) -> bool {
        self.always.iter().any(|offered| scope.is_none_or(|scope| offered.kind() == scope))
    }

    /// The answer that a line gives, if it is one.
    pub fn read(&self, line: &str) -> Option<WrittenAnswer> {
        match self.wants {
            Some(_) => read_words(line),
            None => read_answer(line),
        }
    }

    /// The line that asks for words: what can be answered.
    pub fn asking_for_words(&self) -> Option<String> {
        let WantedWords { label, choices, without } = self.wants.as_ref()?;
        let choices = match choices.as_slice() {
            [] => String::new(),
            choices => format!(" ({})", choices.join(", ")),
        };
        let without =
            without.as_ref().map_or(String::new(), |what| format!(", {NO_WORDS} for {what}"));
        Some(format!("Write {label}{choices}{without}, {DECLINE} or {CANCEL}:"))
    }
}

/// What the model reads after a no, with the reason that the user gave.
pub fn refusal(reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{REFUSED}: {reason}"),
        None => REFUSED.to_owned(),
    }
}

fn escape_fact(fact: &ShownFact) -> ShownFact {
    ShownFact {
        label: escape(&fact.label).into(),
        text: escape_lines(&fact.text),
        form: fact.form,
        is_whole: fact.is_whole,
    }
}

/// A text of several lines with hidden and deceptive characters written out. Line feeds and tabs stay.
fn escape_lines(text: &str) -> String {
    let of_line = |line: &str| line.split('\t').map(escape).collect::<Vec<_>>().join("\t");
    text.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
