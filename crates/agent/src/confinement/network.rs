//! The hosts that the commands of a sandboxed session may reach.
//!
//! Commands have a network of their own, whose only way out is a proxy in this process. It belongs to the session.

use myclaw_config::{Config, ConfinementConfig, SandboxNetwork};
use myclaw_web::{AddressGuard, AllowedHost, InvalidHost, ProxyHosts, ProxyLimits, ProxyRules};

use super::proxy::KEY;
use crate::AgentError;
use crate::web_tools::address_rules;

/// What the proxy of a session lets through; `None` if there is no allowlist.
///
/// # Errors
/// The list is empty, or an entry names no host.
pub(super) fn proxy_rules(
    config: &Config,
    confinement: &ConfinementConfig,
) -> Result<Option<ProxyRules>, AgentError> {
    if confinement.network.unwrap_or_default() != SandboxNetwork::Allowlist {
        return Ok(None);
    }
    let entries = confinement.allow_hosts.as_deref().unwrap_or_default();
    if entries.is_empty() {
        return Err(AgentError::config(format!(
            "`sandbox.confinement.network` is \"allowlist\", and `{KEY}` names no host; add hosts such as \"crates.io\", \
             or set the network to \"none\""
        )));
    }
    let listed: Result<Vec<AllowedHost>, InvalidHost> =
        entries.iter().map(|entry| entry.0.parse()).collect();
    let listed = listed.map_err(|error| AgentError::config(format!("`{KEY}`: {error}")))?;
    let guard = address_rules(config)
        .map_err(|error| AgentError::config(format!("tools.web.fetch.allowHosts: {error}")))?;
    Ok(Some(ProxyRules {
        guard: AddressGuard::new(guard),
        hosts: ProxyHosts::Only(listed),
        limits: ProxyLimits::default(),
    }))
}
