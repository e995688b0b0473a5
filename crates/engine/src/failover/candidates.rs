//! The models of a run: the active model, and the fallbacks.

use std::collections::VecDeque;
use std::time::Duration;

use myclaw_auth::{AuthFile, FailureReason, OrderRules, arrange};
use myclaw_llm::ModelError;

use super::ProfileRotation;
use crate::error::CandidateFailure;
use crate::{ActiveModel, RunError};

/// Longest wait for a key while there is another model to ask: long enough for a short outage of the server, and short
/// compared with the time of an answer.
pub(crate) const LONGEST_WAIT_BEFORE_FALLBACK: Duration = Duration::from_secs(10);

/// A model that may answer, with its keys.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) choice: &'a ActiveModel,
    pub(crate) rotation: ProfileRotation,
    /// If all its keys are in a long cooldown from an earlier run: the reason.
    pub(crate) cooldown_reason: Option<FailureReason>,
}

/// The models that are still to be asked, and the failures of those that were asked.
#[derive(Debug, Default)]
pub(crate) struct Candidates<'a> {
    waiting: VecDeque<Candidate<'a>>,
    failures: Vec<CandidateFailure>,
}

/// The inputs from which the candidates of a run are made.
pub(crate) struct Sources<'a, 's> {
    /// The models, the first one first. Never empty.
    pub(crate) choices: &'a [ActiveModel],
    /// The content of the agent's key store.
    pub(crate) store: &'s AuthFile,
    /// The only profile to use for the first model's provider.
    pub(crate) pinned: Option<&'s str>,
    /// The current time, in milliseconds since the Unix epoch.
    pub(crate) now_ms: u64,
}

impl<'a> Candidates<'a> {
    /// Sorts the candidates into the order in which they are asked: that of the config, except that models come last if
    /// all of their keys are in a long cooldown from an earlier run.
    ///
    /// # Errors
    /// [`RunError::UnknownProfile`] if the pinned profile does not exist.
    pub(crate) fn line_up(sources: &Sources<'a, '_>) -> Result<Self, RunError> {
        let mut waiting = VecDeque::with_capacity(sources.choices.len());
        let mut cooldown = Vec::new();
        let first_provider = sources.choices.first().map(|choice| &choice.model.provider);
        for choice in sources.choices {
            let provider = &choice.model.provider;
            let rules = OrderRules {
                provider,
                model: &choice.model.id,
                pinned: sources.pinned.filter(|_| first_provider == Some(provider)),
                now_ms: sources.now_ms,
            };
            let arranged = arrange(&choice.profiles, sources.store, &rules);
            if arranged.is_empty() {
                return Err(unknown_profile(choice, sources, &rules));
            }
            let cooldown_is_long = arranged.iter().all(|entry| {
                let until = entry.cooldown.map_or(0, |(until, _)| until);
                let remaining = Duration::from_millis(until.saturating_sub(sources.now_ms));
                remaining > LONGEST_WAIT_BEFORE_FALLBACK
            });
            let cooldown_reason =
                arranged.first().and_then(|entry| entry.cooldown).filter(|_| cooldown_is_long);
            let candidate = Candidate {
                choice,
                rotation: ProfileRotation::new(arranged),
                cooldown_reason: cooldown_reason.map(|(_, reason)| reason),
            };
            if cooldown_is_long {
                cooldown.push(candidate);
            } else {
                waiting.push_back(candidate);
            }
        }
        waiting.extend(cooldown);
        Ok(Self { waiting, failures: Vec::new() })
    }

    /// The next model to ask.
    pub(crate) fn next(&mut self) -> Option<Candidate<'a>> {
        self.waiting.pop_front()
    }

    /// Swaps a model and its keys with those at `place` in the order.
    pub(crate) fn exchange(
        &mut self,
        place: usize,
        choice: &mut &'a ActiveModel,
        rotation: &mut ProfileRotation,
    ) {
        if let Some(candidate) = self.waiting.get_mut(place) {
            std::mem::swap(&mut candidate.choice, choice);
            std::mem::swap(&mut candidate.rotation, rotation);
        }
    }

    /// The models that are still to be asked, the next one first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Candidate<'a>> {
        self.waiting.iter()
    }

    /// If the keys of a model that is still to be asked are in a long cooldown: the reason.
    pub(crate) fn cooldown(&self, choice: &ActiveModel) -> Option<FailureReason> {
        let of_choice = |candidate: &&Candidate<'_>| std::ptr::eq(candidate.choice, choice);
        self.waiting.iter().find(of_choice)?.cooldown_reason
    }

    /// Whether there is another model to ask.
    pub(crate) fn is_any_left(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Removes a profile from every remaining model of its provider.
    pub(crate) fn exhaust(&mut self, provider: &str, profile_id: &str) {
        let of_provider =
            |candidate: &&mut Candidate<'_>| candidate.choice.model.provider == provider;
        for candidate in self.waiting.iter_mut().filter(of_provider) {
            candidate.rotation.exhaust(profile_id);
        }
    }

    /// Records why a model could not answer.
    pub(crate) fn give_up_on(&mut self, choice: &ActiveModel, error: &ModelError) {
        self.failures.push(CandidateFailure {
            model: choice.reference(),
            reason: error.class,
            name: error.name(),
            message: error.message.clone(),
        });
    }

    /// The error when no model is left: the error of the only model, or one line for each model.
    pub(crate) fn exhausted(&mut self, last: ModelError) -> RunError {
        match self.failures.len() {
            0 | 1 => RunError::Model(last),
            _ => RunError::AllModelsFailed(std::mem::take(&mut self.failures)),
        }
    }
}

fn unknown_profile(
    choice: &ActiveModel,
    sources: &Sources<'_, '_>,
    rules: &OrderRules<'_>,
) -> RunError {
    let all = OrderRules { pinned: None, ..*rules };
    let mut unpinned = sources.store.clone();
    unpinned.pinned.clear();
    let arranged = arrange(&choice.profiles, &unpinned, &all).into_iter();
    let mut known: Vec<String> = arranged.map(|arranged| arranged.profile.id).collect();
    known.sort();
    RunError::UnknownProfile {
        provider: choice.model.provider.clone(),
        profile: rules.pinned.unwrap_or_default().to_owned(),
        known,
    }
}
