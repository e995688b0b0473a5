//! The models that a run may ask, and the store with their keys.

use myclaw_auth::{AuthFile, AuthStore, CooldownRules};

use super::candidates::Sources;
use super::{Candidate, Candidates, KeyLedger, error_class};
use crate::{ActiveModel, AgentRunEvent, Notice, RunError, RunParams, window};

/// The models of a run and the store with their keys.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    first: ActiveModel,
    /// All models, including the first.
    choices: Vec<ActiveModel>,
    store: Option<AuthStore>,
    notices: Vec<Notice>,
}

impl Roster {
    /// The models that the caller gave, except those whose window is too small.
    ///
    /// # Errors
    /// There is no model, or no model has a large enough window.
    pub(crate) fn new(params: &RunParams) -> Result<Self, RunError> {
        let (choices, notices) = window::guard(params.models.clone())?;
        let first = choices.first().ok_or(RunError::NoModel)?.clone();
        Ok(Self { first, choices, store: params.stores.keys.clone(), notices })
    }

    /// The model that is asked first if one of its keys is available.
    pub(crate) fn first(&self) -> &ActiveModel {
        &self.first
    }

    /// Notices about the models.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The content of the store, and a notice if it cannot be read, since a run may have other keys. Blocks.
    pub(crate) fn read_store(&self) -> (AuthFile, Option<Notice>) {
        match self.store.as_ref().map(AuthStore::load) {
            None => (AuthFile::default(), None),
            Some(Ok(file)) => (file, None),
            Some(Err(error)) => {
                (AuthFile::default(), Some(Notice::KeyStoreUnreadable { error: error.to_string() }))
            }
        }
    }

    /// The ledger of a run.
    pub(crate) fn ledger(&self, rules: CooldownRules) -> KeyLedger {
        KeyLedger::new(self.store.clone(), rules)
    }

    /// The order in which the models are asked. Emits a notice if the first model is not the first in it.
    ///
    /// # Errors
    /// [`RunError::UnknownProfile`] if the profile that the caller requires does not exist.
    pub(crate) fn line_up<'a>(
        &'a self,
        params: &RunParams,
        store: &AuthFile,
    ) -> Result<(Candidate<'a>, Candidates<'a>), RunError> {
        let mut candidates = Candidates::line_up(&Sources {
            choices: &self.choices,
            store,
            pinned: params.auth_profile.as_deref(),
            now_ms: params.clock.now_ms(),
        })?;
        let answering = candidates.next().ok_or(RunError::NoModel)?;
        let wanted = self.choices.first().unwrap_or(&self.first);
        if let Some(reason) = candidates.cooldown(wanted) {
            params.events().emit(AgentRunEvent::Fallback {
                from: wanted.reference(),
                to: answering.choice.reference(),
                reason: error_class(reason).as_str(),
                cause: error_class(reason).words(),
                message: "every key is in cooldown after earlier failures".to_owned(),
            });
        }
        Ok((answering, candidates))
    }
}
