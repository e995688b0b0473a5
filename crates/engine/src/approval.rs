//! Approval of a tool call before it runs, by a person or by a program acting for them.
//!
//! Hooks decide which calls require an approval, by answering [`crate::ToolCallVerdict::Ask`]. The engine asks, waits,
//! and binds the answer to what was shown: what has changed when the answer comes is asked about again.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_session::SessionKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PreparedCall, RunId, ShownFact, WantedWords};

/// Decides about tool calls that need an approval.
pub trait Approver: Send + Sync {
    /// Called before the tool call is made, possibly for several calls at once. The time until the answer does not
    /// count against the run's time limit. When the run is aborted the future is dropped.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval>;

    /// What a question about the call shows, what an answer is bound to, and what "always" can cover. `reason` is why
    /// it is asked about. Called again when the answer has come.
    fn terms<'a>(
        &'a self,
        call: &'a PreparedCall,
        reason: &'a str,
    ) -> BoxFuture<'a, ApprovalTerms> {
        Box::pin(async move { ApprovalTerms::of_call(call, reason) })
    }

    /// Whether an earlier answer covers the call, so that nobody is asked.
    fn has_approved<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Whether an earlier run ended, because its process was killed, while it waited for the answer about this call. The
    /// call had not begun then, so it is asked about again.
    fn was_asked<'a>(
        &'a self,
        _session: &'a SessionKey,
        _tool_call_id: &'a str,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Called when the call gets a result without an answer, because the run was aborted.
    fn forget<'a>(&'a self, _session: &'a SessionKey, _tool_call_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// Most bytes that a question shows. A call that needs a longer one is not made: nobody would read it.
pub const MAX_SHOWN_BYTES: usize = 256 * 1024;

/// A tool call that needs an approval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The session of the call.
    pub session: Arc<SessionKey>,
    /// The run of the call.
    pub run: Option<RunId>,
    /// The call as it would be made.
    pub call: PreparedCall,
    /// Why the call needs an approval: one line for each hook that asks.
    pub reason: String,
    /// Everything that decides what happens, to be shown in this order and in full.
    pub shown: Vec<ShownFact>,
    /// What the answer [`Approval::Always`] can cover, the least first. Empty if the call cannot be approved for good.
    pub always: Vec<AlwaysScope>,
    /// What has changed since an earlier answer to the same question; empty if this is the first.
    pub changes: Vec<ShownFact>,
    /// See [`ApprovalTerms::command_id`].
    pub command_id: Option<String>,
    /// The words that answer it. Then it is answered with [`Approval::Said`] and not with a yes.
    pub wants: Option<WantedWords>,
}

impl ApprovalRequest {
    /// A request that shows nothing yet and cannot be approved for good.
    pub fn new(session: Arc<SessionKey>, call: PreparedCall, reason: impl Into<String>) -> Self {
        let (shown, always, changes) = Default::default();
        let (reason, run, command_id, wants) = (reason.into(), None, None, None);
        Self { session, run, call, reason, shown, always, changes, command_id, wants }
    }

    /// The answer "always" with the scope of this kind, or with the least one; `None` if the question does not offer it.
    pub fn always(&self, kind: Option<ScopeKind>) -> Option<Approval> {
        let mut offered = self.always.iter();
        let scope = offered.find(|scope| kind.is_none_or(|kind| scope.kind == kind));
        scope.cloned().map(Approval::Always)
    }
}

/// What a question shows, and what its answer is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalTerms {
    /// See [`ApprovalRequest::shown`].
    pub shown: Vec<ShownFact>,
    /// See [`ApprovalRequest::always`].
    pub always: Vec<AlwaysScope>,
    /// What the answer depends on besides what is shown.
    pub bound: Vec<BoundFact>,
    /// What commands have in common that differ only in the content of the programs and scripts that they run. An answer
    /// "no" to one of them withdraws the answers "always" for all of them.
    pub command_id: Option<String>,
}

/// Something that an approval is bound to, such as the program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundFact {
    /// What it is, such as `program /usr/bin/git`.
    pub label: String,
    /// Its identity and content, in a form that differs when one of them does.
    pub state: String,
    /// Its content, if that is a text whose changes can be shown.
    pub text: Option<String>,
}

/// What an answer "always" covers. Only the answers that a question offers count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlwaysScope {
    kind: ScopeKind,
    covers: String,
    #[serde(skip)]
    id: String,
}

/// How much an answer "always" covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The same call.
    Call,
    /// Every call of the tool for the same files.
    Path,
    /// Every call of the tool for files of the same directory.
    Directory,
}

impl AlwaysScope {
    /// A scope that `covers` says in words. Two calls are covered by the same answer if their scopes have the same `id`.
    pub fn new(kind: ScopeKind, covers: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind, covers: covers.into(), id: id.into() }
    }

    /// How much it covers.
    pub fn kind(&self) -> ScopeKind {
        self.kind
    }

    /// What it covers, in words that follow "always for".
    pub fn covers(&self) -> &str {
        &self.covers
    }

    /// What calls have in common that the same answer covers.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl ApprovalTerms {
    /// The terms of an engine without a policy: the call as its tool describes it.
    pub fn of_call(call: &PreparedCall, reason: &str) -> Self {
        let arguments = Value::Object(call.arguments.as_map().clone());
        let facts = &call.subject.facts;
        let id = format!("{}\n{reason}\n{arguments}\n{facts:?}", call.tool_name);
        let always = AlwaysScope::new(ScopeKind::Call, "the same call in this run", id);
        let shown = call.subject.facts.clone();
        Self { shown, always: vec![always], ..Self::default() }.checked()
    }

    /// The same, without "always" if something cannot be shown whole.
    #[must_use]
    pub fn checked(mut self) -> Self {
        if self.shown.iter().any(|fact| !fact.is_whole) {
            self.always.clear();
        }
        self
    }

    /// What is different in `later` terms for the same call. Each difference is one fact.
    pub(crate) fn changes(&self, later: &Self) -> Vec<ShownFact> {
        let shown = |terms: &Self| -> Vec<BoundFact> {
            let of_fact = |fact: &ShownFact| BoundFact {
                label: fact.label.to_string(),
                state: fact.text.clone(),
                text: Some(fact.text.clone()),
            };
            terms.shown.iter().map(of_fact).chain(terms.bound.iter().cloned()).collect()
        };
        let (before, after) = (shown(self), shown(later));
        let labels: BTreeSet<&str> =
            before.iter().chain(&after).map(|fact| fact.label.as_str()).collect();
        let find = |facts: &[BoundFact], label: &str| -> Vec<BoundFact> {
            facts.iter().filter(|fact| fact.label == label).cloned().collect()
        };
        let differs = |label: &str| {
            let (before, after) = (find(&before, label), find(&after, label));
            (before != after).then(|| BoundFact::change(label, &before, &after))
        };
        labels.into_iter().filter_map(differs).collect()
    }
}

impl BoundFact {
    /// The difference between what had a label before and after.
    fn change(label: &str, before: &[Self], after: &[Self]) -> ShownFact {
        let text = |facts: &[Self]| -> Option<String> {
            facts
                .iter()
                .map(|fact| fact.text.clone())
                .collect::<Option<Vec<_>>>()
                .map(|it| it.concat())
        };
        let label = format!("changed: {label}");
        match (text(before), text(after)) {
            (Some(old), Some(new)) => ShownFact::diff(label, line_diff(&old, &new)),
            _ => {
                let state = |facts: &[Self]| match facts {
                    [] => "nothing".to_owned(),
                    facts => {
                        facts.iter().map(|fact| fact.state.as_str()).collect::<Vec<_>>().join(", ")
                    }
                };
                ShownFact::text(label, format!("was {}, is {}", state(before), state(after)))
            }
        }
    }
}

/// The lines that are only in `old`, then those that are only in `new`, between the first and the last that differ.
fn line_diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let first = same(&mut old.iter().zip(&new));
    let last = same(&mut old[first..].iter().rev().zip(new[first..].iter().rev()));
    let mut text = String::new();
    for (sign, lines) in
        [('-', &old[first..old.len() - last]), ('+', &new[first..new.len() - last])]
    {
        for line in lines {
            text.push_str(&format!("{sign}{line}\n"));
        }
    }
    text
}

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// The call is made.
    Once,
    /// The call is made, and no call that this scope of the request covers needs a further approval in this run. An
    /// approver that wants this to hold longer has to remember it. A scope that the request does not offer counts as
    /// [`Approval::Once`].
    Always(AlwaysScope),
    /// The call is not made.
    Denied {
        /// The reason, for the model to read.
        reason: String,
    },
    /// The words that [`ApprovalRequest::wants`]; empty if the user gives none.
    Said {
        /// As the user wrote them.
        words: String,
    },
    /// The user closed the question without an answer. The call is not made.
    Cancelled,
    /// Another command runs in its place, which whoever answers has written.
    Instead {
        /// The command.
        command: String,
    },
}

#[cfg(test)]
mod tests;
