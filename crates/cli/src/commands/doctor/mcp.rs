//! The MCP servers of the config: which were not approved, and which cannot be started. None is started.

use std::sync::Arc;

use myclaw_agent::{Home, SessionConfig, SessionOptions};
use myclaw_config::Config;

use super::Check;

const NAME: &str = "mcp";

pub(super) fn check(config: &Arc<Config>, home: &Home) -> Vec<Check> {
    let mut checks: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    for agent in config.agent_ids() {
        let options =
            SessionOptions { agent: Some(agent.to_string()), ..SessionOptions::default() };
        // Other checks report an agent that cannot be resolved.
        let Ok(session) = SessionConfig::new(home.clone(), Arc::clone(config), &options) else {
            continue;
        };
        for server in session.mcp_servers().iter().filter(|server| server.config.is_enabled()) {
            count += 1;
            let name = &server.name;
            let problem = match (server.obstacle(), server.approved()) {
                (Some(problem), _) => (problem, format!("then `myclaw mcp test {name}`")),
                (None, Err(error)) => (error.message, format!("run `myclaw mcp approve {name}`")),
                (None, Ok(None)) => (
                    format!(
                        "the tools of the server {name} were not approved, so they are not offered"
                    ),
                    format!("run `myclaw mcp approve {name} --agent {agent}`"),
                ),
                (None, Ok(Some(_))) => continue,
            };
            if !checks.iter().any(|(known, _)| *known == problem.0) {
                checks.push(problem);
            }
        }
    }
    if checks.is_empty() && count > 0 {
        return vec![Check::ok(NAME, format!("{count} servers, approved"))];
    }
    checks.into_iter().map(|(problem, next)| Check::warn(NAME, problem, next)).collect()
}
