//! Sessions of one purpose: those of heartbeats have few tools, and sub-agents that may have sub-agents have the tools for
//! them.

use myclaw_config::{AgentId, Config, ConfigPath, ResolvedAgent, SandboxRules, ToolRules};
use myclaw_policy::{
    DEFAULT_SANDBOX_ALLOWLIST, Level, LevelRules, canonical_tool_name, group_members,
};
use myclaw_session::{SessionKey, SessionKeyParts};

use super::levels;
use crate::session_config::{CRON_CHANNEL, HEARTBEAT_PEER, SUBAGENT_CHANNEL};

/// The tools that a session with sub-agents needs.
const FOR_SUBAGENTS: [&str; 2] = ["sessions_spawn", "subagents"];

/// Whether a session is that of an agent's heartbeats.
pub(crate) fn is_of_heartbeats(key: &SessionKey) -> bool {
    let SessionKeyParts { channel, peer_id, .. } = key.parts();
    channel == CRON_CHANNEL && peer_id == HEARTBEAT_PEER
}

/// The level of rules that only the session of heartbeats has.
pub(super) fn of_heartbeats(
    config: &Config,
    agent: &ResolvedAgent,
    key: &SessionKey,
) -> Option<LevelRules> {
    let heartbeat = config.heartbeat(&agent.id).filter(|_| is_of_heartbeats(key))?;
    let own = levels::entry_of(config, &agent.id).filter(|(_, entry)| entry.heartbeat.is_some());
    let place = match own {
        Some((index, _)) => levels::agent_path(index),
        None => ConfigPath::default().key("agents").key("defaults"),
    };
    let rules = ToolRules { allow: Some(heartbeat.tools), ..ToolRules::default() };
    Some(LevelRules { level: Level::Global, place: place.key("heartbeat"), rules })
}

/// The rules of the sandbox for a session. Where sub-agents may have sub-agents, the built-in lists have the tools for that.
pub(super) fn with_subagents(
    config: &Config,
    agent: &ResolvedAgent,
    key: &SessionKey,
    mut rules: SandboxRules,
) -> SandboxRules {
    let is_child = key.parts().channel == SUBAGENT_CHANNEL;
    if is_child && config.subagents(&agent.id).max_depth > 1 && rules.allowlist.is_none() {
        let usual = DEFAULT_SANDBOX_ALLOWLIST.iter().chain(&FOR_SUBAGENTS);
        rules.allowlist = Some(usual.map(|name| (*name).to_owned()).collect());
    }
    rules
}

/// The places of rules for tools about a provider or model, each with its name.
pub(crate) fn provider_rules(config: &Config) -> Vec<(ConfigPath, String)> {
    let levels = levels::tool_levels(config, None).into_iter();
    let of_provider = |level: LevelRules| match level.level {
        Level::Provider(name) => Some((level.place, name)),
        _ => None,
    };
    levels.filter_map(of_provider).collect()
}

/// Rules of the config that cancel each other, one line each.
pub(crate) fn contradictions(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let defaults = &config.agents.defaults.sandbox;
    let mut agents = vec![(config.default_agent_id(), None)];
    agents.extend(config.agents.list.iter().map(|entry| (AgentId::new(&entry.id), Some(entry))));
    for (id, entry) in agents {
        let sandbox = entry.map_or_else(|| defaults.clone(), |entry| defaults.with(&entry.sandbox));
        let nests = config.subagents(&id).max_depth > 1;
        let spawn = FOR_SUBAGENTS[0];
        let is_in = |list: &Option<Vec<String>>| list.as_ref().map(|list| names(list, spawn));
        let is_taken =
            is_in(&sandbox.allowlist) == Some(false) || is_in(&sandbox.denylist) == Some(true);
        if nests && is_taken {
            found.push(format!(
                "subagents.maxSpawnDepth of the agent {id} is more than 1, but the lists of its sandbox keep {spawn} from \
                 sub-agents: add {spawn} and subagents to sandbox.allowlist, or leave maxSpawnDepth out"
            ));
        }
        if config.heartbeat(&id).is_some() && !config.cron.enabled && heartbeat_is_set(config, &id)
        {
            found.push(format!(
                "the agent {id} has a heartbeat, but cron.enabled is false, which stops heartbeats too"
            ));
        }
    }
    let tools = levels::tool_levels(config, None).into_iter();
    let tools = tools.map(|level| (level.place, level.rules.allow, level.rules.deny));
    let sandboxes = levels::all_sandboxes(config).into_iter();
    let sandboxes = sandboxes.map(|(place, rules)| (place, rules.allowlist, rules.denylist));
    for (place, allow, deny) in tools.chain(sandboxes) {
        let deny: Vec<_> = deny.iter().flatten().map(|name| canonical_tool_name(name)).collect();
        let allow = allow.unwrap_or_default();
        for name in allow.iter().filter(|name| deny.contains(&canonical_tool_name(name))) {
            found.push(format!(
                "{place} allows and denies {name}: deny wins, so remove one of the two"
            ));
        }
    }
    found.dedup();
    found
}

/// Whether the config says something about the heartbeat of an agent.
fn heartbeat_is_set(config: &Config, id: &AgentId) -> bool {
    let own = levels::entry_of(config, id).is_some_and(|(_, entry)| entry.heartbeat.is_some());
    own || config.agents.defaults.heartbeat != Default::default()
}

/// Whether a list of tools and groups names a tool.
fn names(list: &[String], tool: &str) -> bool {
    list.iter().any(|entry| {
        entry == "*"
            || canonical_tool_name(entry) == tool
            || group_members(entry).is_some_and(|members| members.contains(&tool))
    })
}
