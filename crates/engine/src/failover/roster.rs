//! Whom a run may ask: the models and the store of keys that the settings or the caller name.

use myclaw_auth::{AuthFile, AuthStore, CooldownRules};
use myclaw_config::{AgentSettings, Config};
use myclaw_llm::parse_model_ref;

use super::candidates::Sources;
use super::{Candidate, Candidates, Ledger, error_class};
use crate::{AgentRunEvent, ModelChoice, Notice, RunAgentParams, RunError, window};

/// The models of a run and the store of their keys.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    first: ModelChoice,
    /// All of them, the first one too.
    choices: Vec<ModelChoice>,
    store: Option<AuthStore>,
    notices: Vec<Notice>,
}

impl Roster {
    /// What the caller gave, else what the settings name for the agent.
    ///
    /// # Errors
    /// No model is named, a name is none, or no model has a window that is large enough.
    pub(crate) fn new(params: &RunAgentParams, settings: &AgentSettings) -> Result<Self, RunError> {
        let (allowed, excluded) = allowed(choices(params, settings)?, &params.config)?;
        let (choices, mut notices) = window::guard(allowed)?;
        notices.extend(excluded);
        let first = choices.first().ok_or(RunError::NoModel)?.clone();
        let agent_dir = params.agent_dir.as_deref().or(settings.agent_dir.as_deref());
        Ok(Self { first, choices, store: agent_dir.map(AuthStore::in_agent_dir), notices })
    }

    /// The model that is asked first if its keys allow.
    pub(crate) fn first(&self) -> &ModelChoice {
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
    pub(crate) fn ledger(&self, config: &Config) -> Ledger {
        Ledger::new(self.store.clone(), CooldownRules::from(&config.auth.cooldowns))
    }

    /// The model that answers, and those to ask when it cannot. Tells the user where that is not the first one.
    ///
    /// # Errors
    /// [`RunError::UnknownProfile`] if the profile that the caller insists on does not exist.
    pub(crate) fn line_up<'a>(
        &'a self,
        params: &RunAgentParams,
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

/// The models that the settings allow, and a notice for each fallback that they exclude.
///
/// # Errors
/// [`RunError::ModelNotAllowed`] about the first model.
fn allowed(
    choices: Vec<ModelChoice>,
    config: &Config,
) -> Result<(Vec<ModelChoice>, Vec<Notice>), RunError> {
    let is_allowed =
        |choice: &ModelChoice| config.allows_model(&choice.model.provider, &choice.model.id);
    if let Some(first) = choices.first().filter(|first| !is_allowed(first)) {
        return Err(RunError::ModelNotAllowed { model: first.reference() });
    }
    let (allowed, excluded): (Vec<_>, Vec<_>) = choices.into_iter().partition(is_allowed);
    let notices =
        excluded.iter().map(|choice| Notice::FallbackNotAllowed { model: choice.reference() });
    Ok((allowed, notices.collect()))
}

/// The models that may answer, the first one first.
fn choices(
    params: &RunAgentParams,
    settings: &AgentSettings,
) -> Result<Vec<ModelChoice>, RunError> {
    if let Some(model) = &params.model {
        return Ok(std::iter::once(model).chain(&params.fallbacks).cloned().collect());
    }
    let first = settings.model.as_ref().ok_or(RunError::NoModel)?;
    std::iter::once(first)
        .chain(&settings.fallbacks)
        .map(|name| Ok(ModelChoice::from_config(&params.config, &parse_model_ref(name)?)))
        .collect()
}
