//! The models that a run may ask, and the store of their keys.

use myclaw_auth::{AuthFile, AuthStore, CooldownRules};

use super::candidates::Sources;
use super::{Candidate, Candidates, Ledger, error_class};
use crate::{ActiveModel, AgentRunEvent, Notice, RunError, RunParams, window};

/// The models of a run and the store of their keys.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    first: ActiveModel,
    /// All of them, the first one too.
    choices: Vec<ActiveModel>,
    store: Option<AuthStore>,
    notices: Vec<Notice>,
}

impl Roster {
    /// The models that the caller gave, without those whose window is too small.
    ///
    /// # Errors
    /// There is no model, or none has a window that is large enough.
    pub(crate) fn new(params: &RunParams) -> Result<Self, RunError> {
        let (choices, notices) = window::guard(params.models.clone())?;
        let first = choices.first().ok_or(RunError::NoModel)?.clone();
        Ok(Self { first, choices, store: params.stores.keys.clone(), notices })
    }

    /// The model that is asked first if its keys allow.
    pub(crate) fn first(&self) -> &ActiveModel {
        &self.first
    }

    /// What the user should know about the models.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// What the store holds, and a notice where it cannot be read: that must not stop a run that has other keys.
    /// Blocks.
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
    pub(crate) fn ledger(&self, rules: CooldownRules) -> Ledger {
        Ledger::new(self.store.clone(), rules)
    }

    /// The model that answers, and those to ask when it cannot. Tells the user where that is not the first one.
    ///
    /// # Errors
    /// [`RunError::UnknownProfile`] if the profile that the caller insists on does not exist.
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
        if let Some(reason) = candidates.resting(wanted) {
            params.events().emit(AgentRunEvent::Fallback {
                from: wanted.reference(),
                to: answering.choice.reference(),
                reason: error_class(reason),
                message: "every key rests after earlier failures".to_owned(),
            });
        }
        Ok((answering, candidates))
    }
}
