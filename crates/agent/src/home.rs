//! What is known before a command begins: the environment, and where things are kept.

use myclaw_config::{Environment, Paths, load_or_default};
use myclaw_llm::HttpOptions;
use myclaw_session::{SessionKey, SessionStore};

use crate::AgentError;
use crate::session_config::check_agent;

/// The environment and the directories; enough for what must work while the config file has a mistake.
#[derive(Debug, Clone)]
pub struct Home {
    /// Variables of the process and of the `.env` in the state directory.
    pub environment: Environment,
    /// Where things are.
    pub paths: Paths,
}

impl Home {
    /// Reads the environment of the process. What is wrong with the `.env` is in [`Environment::warnings`].
    ///
    /// # Errors
    /// There is no home to keep anything in.
    pub fn find() -> Result<Self, AgentError> {
        let environment = Environment::from_process();
        let paths = environment.paths()?;
        Ok(Self { environment, paths })
    }

    /// How requests are made. Proxies, keys and credentials are looked for in the environment.
    pub fn http_options(&self) -> HttpOptions {
        HttpOptions {
            // Servers are told which program calls, as their operators expect.
            user_agent: concat!("myclaw/", env!("CARGO_PKG_VERSION")).to_owned(),
            variables: self.environment.variables().collect(),
            ..HttpOptions::default()
        }
    }

    /// The sessions.
    pub fn session_store(&self) -> SessionStore {
        SessionStore::new(self.paths.sessions_dir())
    }

    /// As [`check_agent`]. Where the config file cannot be read, nothing is refused.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn check_agent(&self, key: &SessionKey) -> Result<(), AgentError> {
        match load_or_default(&self.environment) {
            Ok(loaded) => check_agent(&loaded.config, &self.session_store(), key),
            Err(_) => Ok(()),
        }
    }

    /// The agent that answers when none is named. Where the config file cannot be read, the built-in one: looking at
    /// sessions must work all the same.
    pub fn default_agent_id(&self) -> String {
        load_or_default(&self.environment)
            .map(|loaded| loaded.config.default_agent_id())
            .unwrap_or_default()
            .to_string()
    }
}
