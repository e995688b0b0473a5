//! Which agents there are.

use myclaw_config::{Config, ConfigError};
use myclaw_session::{Catalog, SessionKey};

use crate::AgentError;

/// Refuses the session of an agent that is neither in the config file nor has any session, as imported ones have: its
/// name is misspelt.
///
/// # Errors
/// There is no such agent.
pub fn check_agent(
    config: &Config,
    catalog: &dyn Catalog,
    key: &SessionKey,
) -> Result<(), AgentError> {
    let agent = key.parts().agent_id;
    let Err(error) = config.resolve_agent(Some(&agent)) else { return Ok(()) };
    let prefix = format!("agent:{agent}:");
    let kept = catalog.latest_keys(1, &|key| key.starts_with(&prefix)).unwrap_or_default();
    if !kept.is_empty() {
        return Ok(());
    }
    Err(agent_error(error))
}

pub(crate) fn agent_error(error: ConfigError) -> AgentError {
    match error {
        // The caller named the agent, so this is not a mistake in the config file.
        ConfigError::UnknownAgent { .. } => AgentError::usage(error.to_string()),
        error => error.into(),
    }
}
