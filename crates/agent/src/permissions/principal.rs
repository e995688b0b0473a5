//! Sessions that work on behalf of others, as sub-agents do: they may do no more than those.

use myclaw_config::{AgentId, SandboxMode, SandboxRules};
use myclaw_policy::SandboxScope;

use super::senders::Principal;
use super::{direct_sender, sandbox_rules, scope};
use crate::{AgentError, SessionConfig};

impl SessionConfig {
    /// This session, and those on whose behalf it works, at this moment. The last one is this session.
    pub fn principals(&self) -> Vec<Principal> {
        let mut senders = self.senders.get();
        senders.extend(self.sender.clone().or_else(|| direct_sender(&self.session_key)));
        let own = Principal { session: self.session_key.clone(), senders };
        self.principals.iter().cloned().chain([own]).collect()
    }

    /// The same session, working on behalf of others: every rule for their agents, channels and senders holds in it too,
    /// besides its own.
    ///
    /// # Errors
    /// One of them is sandboxed, and this one would not be confined in the same way.
    pub fn on_behalf_of(mut self, principals: Vec<Principal>) -> Result<Self, AgentError> {
        for principal in &principals {
            self.check_confined_like(principal)?;
        }
        self.principals = principals;
        // It works where they do.
        Ok(self.placed_anew())
    }

    /// Whether it is sandboxed.
    pub fn is_sandboxed(&self) -> bool {
        scope(self) == SandboxScope::Sandboxed
    }

    fn check_confined_like(&self, principal: &Principal) -> Result<(), AgentError> {
        let parts = principal.session.parts();
        let agent = self.config.resolve_agent(Some(&parts.agent_id)).map_err(|_| {
            let id = AgentId::new(&parts.agent_id);
            AgentError::config(format!(
                "the agent {id}, on whose behalf {} works, is not in the config any more",
                self.session_key
            ))
        })?;
        let other = Self { agent, ..self.for_session(principal.session.clone()) };
        if !other.is_sandboxed() {
            return Ok(());
        }
        let rules = |config: &Self| SandboxRules {
            mode: SandboxMode::default(),
            ..sandbox_rules(&config.config, &config.agent)
        };
        if self.is_sandboxed() && rules(self) == rules(&other) {
            return Ok(());
        }
        Err(AgentError::config(format!(
            "{} is sandboxed, so what works on its behalf needs the same sandbox, and the agent {} has another one; use \
             the agent {}, or give both the same `sandbox` in the config file",
            principal.session, self.agent.id, other.agent.id
        )))
    }
}
