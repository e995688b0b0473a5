//! How the config of a session is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use myclaw_browser::BrowserSlot;
use myclaw_config::Config;
use myclaw_engine::{CutAnswers, Mode, SessionMode};
use myclaw_session::SessionKey;

use super::{MAIN_SESSION, RunOptions, SessionConfig, SessionOptions};
use crate::config_check::load_checked;
use crate::jobs::BackgroundJobs;
use crate::known_agent::{agent_error, check_agent};
use crate::mode::stored_mode;
use crate::permissions::{self, Senders};
use crate::project::SeenInstructions;
use crate::workspace::{NoticePublisher, QuotaState, existing_directory, remembered_directory};
use crate::{AgentError, Home};

impl SessionConfig {
    /// Loads the config file and applies `options`.
    ///
    /// # Errors
    /// The config file has a mistake, or an option names something that does not exist.
    pub fn load(home: Home, options: &SessionOptions) -> Result<Self, AgentError> {
        let loaded = load_checked(&home.environment)?;
        Self::new(home, loaded.config, options)
    }

    /// Applies `options` to a config.
    ///
    /// # Errors
    /// An option names an agent, a directory or a profile that does not exist.
    pub fn new(
        home: Home,
        config: Arc<Config>,
        options: &SessionOptions,
    ) -> Result<Self, AgentError> {
        let mut agent = config.resolve_agent(options.agent.as_deref()).map_err(agent_error)?;
        let session_name = options.session.as_deref().unwrap_or(MAIN_SESSION);
        let session_key = SessionKey::parse_for_agent(agent.id.as_str(), session_name)
            .map_err(|error| AgentError::usage(error.to_string()))?;
        check_agent(&config, &**home.catalog(), &session_key)?;
        if options.agent.is_none()
            && let Ok(named) = config.resolve_agent(Some(&session_key.parts().agent_id))
        {
            agent = named;
        }
        let directory = match options.directory.as_deref() {
            Some(directory) => Some(existing_directory(directory)?),
            None => remembered_directory(&home, &session_key)?,
        };
        let mode = SessionMode::new(stored_mode(&**home.catalog(), &session_key)?);
        let (auth_profile, sender) = (options.auth_profile.clone(), options.sender.clone());
        let (background, executor) = (BackgroundJobs::new(home.clone()), Arc::default());
        let browser = BrowserSlot::default();
        let new = Self {
            home,
            config,
            agent,
            directory,
            own_workspace: None,
            quota_state: QuotaState::default(),
            notices: NoticePublisher::default(),
            session_key,
            auth_profile,
            executor,
            sender,
            senders: Senders::default(),
            principals: Vec::new(),
            run_packages: None,
            listed_with: Arc::default(),
            narrowed: Vec::new(),
            seen_instructions: SeenInstructions::default(),
            editor_servers: BTreeMap::new(),
            browser,
            language_servers: Arc::default(),
            background,
            cut_answers: CutAnswers::default(),
            options: RunOptions::default(),
            mode,
        };
        Ok(new.placed_anew())
    }

    /// The same for another session of the agent.
    #[must_use]
    pub fn for_session(&self, session_key: SessionKey) -> Self {
        let (executor, browser) = (Arc::default(), BrowserSlot::default());
        let senders = Senders::default();
        let seen_instructions = SeenInstructions::default();
        let catalog = self.home.catalog();
        // A new session works where this one does.
        let directory = match catalog.exists(&session_key) {
            true => catalog.directory_of(&session_key).unwrap_or_else(|_| self.directory.clone()),
            false => self.directory.clone(),
        };
        // What cannot be read may be narrower than this one.
        let mode = match catalog.exists(&session_key) {
            true => stored_mode(&**catalog, &session_key).unwrap_or(Some(Mode::ReadOnly)),
            false => self.mode.chosen(),
        };
        let mode = SessionMode::new(mode);
        let new = Self { session_key, directory, executor, browser, senders, mode, ..self.clone() };
        let quota_state = QuotaState::default();
        let notices = NoticePublisher::default();
        let language_servers = Arc::default();
        let listed_with = Arc::default();
        Self { seen_instructions, quota_state, notices, language_servers, listed_with, ..new }
            .placed_anew()
    }

    /// The same session with another environment and config file. What is open stays open: its jobs, its browser, and
    /// its sandbox unless other rules apply to that.
    ///
    /// # Errors
    /// The new config has no such agent, and no session of it is kept; or a session on whose behalf this one works is
    /// confined in another way by it.
    pub fn with_config(&self, home: Home, config: Arc<Config>) -> Result<Self, AgentError> {
        let options = SessionOptions {
            session: Some(self.session_key.as_str().to_owned()),
            directory: self.directory.clone(),
            auth_profile: self.auth_profile.clone(),
            sender: self.sender.clone(),
            ..SessionOptions::default()
        };
        let new = Self::new(home, config, &options)?.on_behalf_of(self.principals.clone())?;
        // Servers run where the tools do.
        let (executor, language_servers) = match self.has_same_place(&new) {
            true => (Arc::clone(&self.executor), Arc::clone(&self.language_servers)),
            false => (Arc::clone(&new.executor), Arc::clone(&new.language_servers)),
        };
        Ok(Self {
            executor,
            listed_with: Arc::clone(&self.listed_with),
            senders: self.senders.clone(),
            seen_instructions: self.seen_instructions.clone(),
            editor_servers: self.editor_servers.clone(),
            quota_state: self.quota_state.clone(),
            notices: self.notices.clone(),
            browser: self.browser.clone(),
            language_servers,
            background: Arc::clone(&self.background),
            cut_answers: self.cut_answers,
            options: self.options.clone(),
            mode: self.mode.clone(),
            narrowed: self.narrowed.clone(),
            ..new
        })
    }

    /// Whether tools of a sandboxed session run in the same place under the same rules.
    fn has_same_place(&self, other: &Self) -> bool {
        let rules = |of: &Self| permissions::sandbox_rules(&of.config, &of.agent);
        rules(self) == rules(other)
            && self.config.tools.web.fetch == other.config.tools.web.fetch
            && self.agent.workspace == other.agent.workspace
            && self.own_workspace == other.own_workspace
            && self.agent.agent_dir == other.agent.agent_dir
            && self.agent.memory_search == other.agent.memory_search
            && self.home.paths == other.home.paths
            && self.config.tools.bash.timeout_seconds == other.config.tools.bash.timeout_seconds
    }
}
