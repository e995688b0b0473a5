//! The checks of `myclaw doctor` for the agents that are not the default one.

use myclaw_agent::Home;
use myclaw_config::{Config, ResolvedAgent};

use super::{Check, Status, check_answers, check_workspace, keys};
use myclaw_front::exit::Exit;

/// For each agent but the default one: its model, and every problem that turns with it would have. The default agent
/// can still answer, so these problems are only warnings.
pub(super) async fn check_others(
    default: Option<&ResolvedAgent>,
    config: &Config,
    home: &Home,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let of_all: Vec<String> =
        keys::check_files(config, default, home).into_iter().map(|check| check.message).collect();
    for id in config.agent_ids() {
        let Ok(agent) = config.resolve_agent(Some(id.as_str())) else { continue };
        if default.is_some_and(|default| default.id == agent.id) {
            continue;
        }
        let mut of_agent = check_answers(Some(&agent), config, home).await;
        let files = keys::check_files(config, Some(&agent), home);
        of_agent.extend(files.into_iter().filter(|check| !of_all.contains(&check.message)));
        of_agent.push(check_workspace(Some(&agent), home));
        checks.extend(of_agent.into_iter().filter_map(|check| about(&agent, check)));
    }
    checks
}

/// A check with the name of its agent; `None` for a check that repeats one of the default agent.
fn about(agent: &ResolvedAgent, check: Check) -> Option<Check> {
    if check.status == Status::Ok && check.check != "model" {
        return None;
    }
    let status = if check.status == Status::Fail { Status::Warn } else { check.status };
    let message = format!("agent {}: {}", agent.id, check.message);
    Some(Check { status, message, exit: Exit::Success, ..check })
}
