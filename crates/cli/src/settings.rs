//! What the program knows before a command begins: the environment, the folders, the config file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_auth::{AuthFile, AuthStore};
use myclaw_config::{
    AgentSettings, Config, ConfigError, Environment, Paths, RenderStyle, ThinkingDefault,
    load_or_default,
};
use myclaw_llm::{HttpOptions, ThinkingLevel};
use myclaw_session::{SessionKey, SessionStore};

use crate::args::ConversationArgs;
use crate::config_check::load_checked;
use crate::exit::{CliError, Exit};
use crate::logging;
use crate::model_choice::{ChosenModel, Wanted, choose};
use crate::print::note;
use crate::terminal::Paint;

/// Name of the conversation where none is given.
pub(crate) const MAIN_SESSION: &str = "main";

/// The environment and the folders; enough for commands that must work while the config file has a mistake.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// Variables of the process and of the `.env` in the state folder.
    pub(crate) environment: Environment,
    /// Where things are.
    pub(crate) paths: Paths,
}

impl Home {
    /// Reads the environment.
    ///
    /// # Errors
    /// There is no home to keep anything in.
    pub(crate) fn find() -> Result<Self, CliError> {
        let environment = Environment::from_process();
        for warning in environment.warnings() {
            note(format_args!("myclaw: {warning}"));
        }
        logging::start_on_stderr(&environment);
        let paths = environment.paths().map_err(|error| config_error(&error))?;
        Ok(Self { environment, paths })
    }

    /// How commands make requests: as turns do. Proxies, keys and credentials are looked for in the environment.
    pub(crate) fn http_options(&self) -> HttpOptions {
        HttpOptions {
            user_agent: concat!("myclaw/", env!("CARGO_PKG_VERSION")).to_owned(),
            variables: self.environment.variables().collect(),
            ..HttpOptions::default()
        }
    }

    /// The conversations.
    pub(crate) fn session_store(&self) -> SessionStore {
        SessionStore::new(self.paths.sessions_dir())
    }

    /// As [`check_agent`]. Where the config file cannot be read, nothing is refused.
    ///
    /// # Errors
    /// There is no such agent.
    pub(crate) fn check_agent(&self, key: &SessionKey) -> Result<(), CliError> {
        match load_or_default(&self.environment) {
            Ok(loaded) => check_agent(&loaded.config, &self.session_store(), key),
            Err(_) => Ok(()),
        }
    }

    /// The agent that answers when none is named. Where the config file cannot be read, the built-in one: looking at
    /// conversations must work all the same.
    pub(crate) fn default_agent_id(&self) -> String {
        load_or_default(&self.environment)
            .map(|loaded| loaded.config.default_agent_id())
            .unwrap_or_default()
            .to_string()
    }
}

/// Everything that a conversation needs to begin.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Environment and folders.
    pub(crate) home: Home,
    /// The config file's settings, or the defaults.
    pub(crate) config: Arc<Config>,
    /// What holds for the agent that answers.
    pub(crate) agent: AgentSettings,
    /// Directory for the tools, if not the workspace; absolute.
    pub(crate) directory: Option<PathBuf>,
    /// Which conversation.
    pub(crate) session_key: SessionKey,
    /// The only auth profile to use, if the user insists on one.
    pub(crate) auth_profile: Option<String>,
}

impl Settings {
    /// Loads the config file and applies the command line.
    ///
    /// # Errors
    /// The config file has a mistake, or an argument names nothing that exists.
    pub(crate) fn load(args: &ConversationArgs) -> Result<Self, CliError> {
        Self::load_in(Home::find()?, args)
    }

    /// Like [`Settings::load`], where the environment was read before.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn load_in(home: Home, args: &ConversationArgs) -> Result<Self, CliError> {
        let loaded = load_checked(&home.environment).map_err(|error| config_error(&error))?;
        let config = loaded.config;
        let mut agent = config.agent_settings(args.agent.as_deref()).map_err(agent_error)?;
        let session_name = args.session.as_deref().unwrap_or(MAIN_SESSION);
        let session_key = SessionKey::parse_for_agent(agent.id.as_str(), session_name)
            .map_err(|error| CliError::usage(error.to_string()))?;
        check_agent(&config, &home.session_store(), &session_key)?;
        if args.agent.is_none()
            && let Ok(named) = config.agent_settings(Some(&session_key.parts().agent_id))
        {
            agent = named;
        }
        let directory = args.directory.as_deref().map(existing_directory).transpose()?;
        let auth_profile = args.auth_profile.clone();
        logging::start_with_config(&config, &agent, &home);
        tracing::info!(
            config = %loaded.path.display(),
            found = loaded.found,
            agent = %agent.id,
            session = %session_key,
            "config loaded"
        );
        Ok(Self { home, config, agent, directory, session_key, auth_profile })
    }
}

impl Settings {
    /// How much the model is to think: as the user says, else as the settings do.
    pub(crate) fn requested_thinking(&self, asked: Option<ThinkingLevel>) -> ThinkingLevel {
        let configured = self.agent.thinking.map(ThinkingDefault::as_str);
        asked.or_else(|| configured.and_then(|level| level.parse().ok())).unwrap_or_default()
    }

    /// The model that answers: the one that the user names now, else what the settings or this machine give.
    ///
    /// # Errors
    /// See [`choose`].
    pub(crate) async fn choose_model(
        &self,
        requested: Option<&str>,
    ) -> Result<ChosenModel, CliError> {
        let stored = stored_keys(&self.agent);
        let wanted = Wanted {
            requested,
            configured: self.agent.model.as_deref(),
            fallbacks: &self.agent.fallbacks,
            stored: &stored,
        };
        choose(&self.config, &self.home.environment, wanted).await
    }
}

/// Refuses the conversation of an agent that is neither in the config file nor has any conversation, as imported ones
/// have: its name is misspelt.
///
/// # Errors
/// There is no such agent.
pub(crate) fn check_agent(
    config: &Config,
    store: &SessionStore,
    key: &SessionKey,
) -> Result<(), CliError> {
    let agent = key.parts().agent_id;
    let Err(error) = config.agent_settings(Some(&agent)) else { return Ok(()) };
    let kept = store.index().keys().unwrap_or_default();
    if kept.iter().any(|key| key.parts().agent_id == agent) {
        return Ok(());
    }
    Err(agent_error(error))
}

fn agent_error(error: ConfigError) -> CliError {
    match error {
        // The name came from the command line, so the file is not at fault.
        ConfigError::UnknownAgent { .. } => CliError::usage(error.to_string()),
        error => config_error(&error),
    }
}

/// The keys that the agent's store holds. What is wrong with it is told by the turn, and by `myclaw auth`.
pub(crate) fn stored_keys(agent: &AgentSettings) -> AuthFile {
    let store = agent.agent_dir.as_deref().map(AuthStore::in_agent_dir);
    store.and_then(|store| store.load().ok()).unwrap_or_default()
}

/// The directory that the user named, absolute. It is never made: a misspelt one should be noticed.
fn existing_directory(path: &Path) -> Result<PathBuf, CliError> {
    let unusable = |error: std::io::Error| {
        CliError::usage(format!(
            "cannot work in {}: {error}; -C wants a directory that exists",
            path.display()
        ))
    };
    let directory = std::fs::canonicalize(path).map_err(unusable)?;
    if !directory.is_dir() {
        return Err(unusable(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(directory)
}

/// A failure of the config room: with the lines of the file that are wrong, where that is the matter.
pub(crate) fn config_error(error: &ConfigError) -> CliError {
    let message = match error.report() {
        Some(_) => {
            let style = match Paint::for_stream(&std::io::stderr()) {
                Paint::Styled => RenderStyle::Coloured,
                Paint::Plain => RenderStyle::Plain,
            };
            format!("the config file has to be changed\n{}", error.render(style))
        }
        None => error.to_string(),
    };
    let exit = match error {
        ConfigError::Unwritable { .. } => Exit::Failure,
        _ => Exit::Config,
    };
    CliError { exit, class: "config", message }
}
