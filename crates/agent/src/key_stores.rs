//! The stores of keys: one of each agent, and one of the logins at MCP servers.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use myclaw_auth::AuthStore;
use myclaw_config::{Paths, ResolvedAgent};
use parking_lot::Mutex;

/// Directory in the state directory with the logins at MCP servers.
const SERVER_LOGINS: &str = "mcp/logins";

/// Gives the stores of keys.
pub trait KeyStores: fmt::Debug + Send + Sync {
    /// That of an agent, with the cooldowns of its keys.
    fn of_agent(&self, agent: &ResolvedAgent) -> AuthStore;

    /// That of the logins at MCP servers.
    fn of_servers(&self) -> AuthStore;
}

/// Files in the directories of the agents.
#[derive(Debug)]
pub(crate) struct KeyFiles(pub(crate) Paths);

impl KeyStores for KeyFiles {
    fn of_agent(&self, agent: &ResolvedAgent) -> AuthStore {
        let default: PathBuf = self.0.agent_dir(&agent.id);
        AuthStore::in_agent_dir(agent.agent_dir.as_ref().unwrap_or(&default))
    }

    fn of_servers(&self) -> AuthStore {
        AuthStore::in_agent_dir(&self.0.state_dir().join(SERVER_LOGINS))
    }
}

/// Stores that end with the process, by the agents' ids; that of the servers has none.
#[derive(Debug, Default)]
pub(crate) struct KeysInMemory(Mutex<HashMap<Option<String>, AuthStore>>);

impl KeysInMemory {
    fn of(&self, owner: Option<String>) -> AuthStore {
        self.0.lock().entry(owner).or_insert_with(AuthStore::in_memory).clone()
    }
}

impl KeyStores for KeysInMemory {
    fn of_agent(&self, agent: &ResolvedAgent) -> AuthStore {
        self.of(Some(agent.id.to_string()))
    }

    fn of_servers(&self) -> AuthStore {
        self.of(None)
    }
}
