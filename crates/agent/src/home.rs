//! The environment and the directories, which are known before the config is read.

use std::sync::{Arc, OnceLock};

use myclaw_auth::{AuthFile, AuthStore, KeyResolver};
use myclaw_config::{Environment, Paths, ResolvedAgent, load_or_default};
use myclaw_engine::KnownSecrets;
use myclaw_llm::HttpOptions;
use myclaw_mcp::Servers;
use myclaw_session::{Catalog, SessionKey, Sessions, SideFiles};

use crate::AgentError;
use crate::export::Redactors;
use crate::known_agent::check_agent;
use crate::memory::Models;
use crate::stores::Stores;

/// Operators of servers expect the name of the program here.
pub(crate) const USER_AGENT: &str = concat!("myclaw/", env!("CARGO_PKG_VERSION"));

/// The environment and the directories. Commands that must work with a broken config file need nothing else.
#[derive(Debug, Clone)]
pub struct Home {
    /// Variables of the process and of the `.env` in the state directory.
    pub environment: Environment,
    /// The directories and files.
    pub paths: Paths,
    /// The models that compare meanings, which the sessions of a program share.
    pub(crate) meanings: Models,
    /// The keys that are removed from the results of tools.
    pub(crate) known_secrets: Arc<KnownSecrets>,
    /// The MCP servers that the program has started, which its sessions share.
    pub(crate) mcp: Arc<Servers>,
    /// Renews the logins at those servers.
    pub(crate) server_keys: Arc<OnceLock<KeyResolver>>,
    /// The keys that are removed from what people are shown.
    pub(crate) redactors: Arc<Redactors>,
    stores: Stores,
}

impl Home {
    /// Reads the environment of the process. Mistakes in the `.env` are in [`Environment::warnings`].
    ///
    /// # Errors
    /// There is no home directory.
    pub fn find() -> Result<Self, AgentError> {
        let environment = Environment::from_process();
        let paths = environment.paths()?;
        Ok(Self::new(environment, paths))
    }

    /// An environment and directories that are known already.
    pub fn new(environment: Environment, paths: Paths) -> Self {
        let (meanings, known_secrets) = (Models::default(), Arc::default());
        let (mcp, redactors, stores) = (Arc::default(), Arc::default(), Stores::in_files(&paths));
        let server_keys = Arc::default();
        Self { environment, paths, meanings, known_secrets, mcp, server_keys, redactors, stores }
    }

    /// The same with other stores than the files below its state directory.
    #[must_use]
    pub fn with_stores(self, stores: Stores) -> Self {
        Self { stores, ..self }
    }

    /// The same home, with the MCP servers that another one has started.
    #[must_use]
    pub fn with_servers_of(self, other: &Self) -> Self {
        let (mcp, server_keys) = (Arc::clone(&other.mcp), Arc::clone(&other.server_keys));
        Self { mcp, server_keys, ..self }
    }

    /// How requests are made. Proxies, keys and credentials are looked for in the environment.
    pub fn http_options(&self) -> HttpOptions {
        Self::http_options_of(&self.environment)
    }

    /// The same for a program that has an environment and no directories.
    pub fn http_options_of(environment: &Environment) -> HttpOptions {
        HttpOptions {
            user_agent: USER_AGENT.to_owned(),
            variables: environment.variables().collect(),
            ..HttpOptions::default()
        }
    }

    /// The stores of what outlives a run.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The sessions, as runs use them.
    pub fn sessions(&self) -> &Arc<dyn Sessions> {
        &self.stores.sessions
    }

    /// The directories in which the tools of sessions work.
    pub fn side_files(&self) -> &Arc<dyn SideFiles> {
        &self.stores.side_files
    }

    /// The stored sessions: to list, read, search and delete them.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.stores.catalog
    }

    /// The store of an agent's keys.
    pub fn keys_of(&self, agent: &ResolvedAgent) -> AuthStore {
        self.stores().keys.of_agent(agent)
    }

    /// The keys in the agent's store. Problems with it are reported by the run, and by `myclaw auth`.
    pub fn stored_keys(&self, agent: &ResolvedAgent) -> AuthFile {
        self.keys_of(agent).load().unwrap_or_default()
    }

    /// Like [`check_agent`]; if the config file cannot be read, every agent is accepted.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn check_agent(&self, key: &SessionKey) -> Result<(), AgentError> {
        match load_or_default(&self.environment) {
            Ok(loaded) => check_agent(&loaded.config, &**self.catalog(), key),
            Err(_) => Ok(()),
        }
    }

    /// The default agent. If the config file cannot be read, the built-in one, so that sessions can still be listed and
    /// shown.
    pub fn default_agent_id(&self) -> String {
        load_or_default(&self.environment)
            .map(|loaded| loaded.config.default_agent_id())
            .unwrap_or_default()
            .to_string()
    }
}
