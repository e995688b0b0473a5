//! Mistakes in what is said about sub-agents.

use super::{check_allowed_models, finding, root};
use crate::AgentId;
use crate::config_path::ConfigPath;
use crate::schema::{Config, SubagentsConfig};
use crate::validate::Finding;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let agents = root().key("agents");
    let of_defaults = agents.clone().key("defaults").key("subagents");
    check_one(config, &config.agents.defaults.subagents, &of_defaults, findings);
    for (index, entry) in config.agents.list.iter().enumerate() {
        let path = agents.clone().key("list").index(index).key("subagents");
        check_one(config, &entry.subagents, &path, findings);
    }
}

fn check_one(
    config: &Config,
    subagents: &SubagentsConfig,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let known = config.agent_ids();
    for (index, name) in subagents.allow_agents.iter().flatten().enumerate() {
        if name.trim() == "*" || known.contains(&AgentId::new(name)) {
            continue;
        }
        let path = path.clone().key("allowAgents").index(index);
        let names: Vec<&str> = known.iter().map(AgentId::as_str).collect();
        let help = format!("the agents are {}; \"*\" stands for all", names.join(", "));
        findings.push(finding(path, "there is no agent of this name", help));
    }
    if let Some(model) = &subagents.model
        && !is_model(model)
    {
        findings.push(super::no_model(path.clone().key("model")));
    }
    check_allowed_models(
        subagents.models.as_deref().unwrap_or_default(),
        &path.clone().key("models"),
        findings,
    );
}

fn is_model(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(provider, model)| !provider.trim().is_empty() && !model.trim().is_empty())
}
