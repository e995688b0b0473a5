//! Sessions of one purpose: those of heartbeats have few tools, and sub-agents that may have sub-agents have the tools for
//! them.

use myclaw_config::{AgentId, Config, ConfigPath, ResolvedAgent, SandboxRules, ToolRules};
use myclaw_policy::{
    DEFAULT_SANDBOX_ALLOWLIST, Level, LevelRules, SessionFacts, ToolPolicy, idle_entries,
    sandbox_level,
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
    if is_child && config.subagents(&agent.id).max_depth > 1 {
        add_tools_for_subagents(&mut rules);
    }
    rules
}

fn add_tools_for_subagents(rules: &mut SandboxRules) {
    let usual = || DEFAULT_SANDBOX_ALLOWLIST.iter().chain(&FOR_SUBAGENTS);
    rules.allowlist.get_or_insert_with(|| usual().map(|name| (*name).to_owned()).collect());
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
    let mut ids = vec![config.default_agent_id()];
    ids.extend(config.agents.list.iter().map(|entry| AgentId::new(&entry.id)));
    let levels = levels::tool_levels(config, None);
    for id in ids {
        found.extend(denied_subagents(config, &id, &levels));
        if config.heartbeat(&id).is_some() && !config.cron.enabled && heartbeat_is_set(config, &id)
        {
            found.push(format!(
                "the agent {id} has a heartbeat, but cron.enabled is false, which stops heartbeats too"
            ));
        }
    }
    let mut all = levels.clone();
    let sandboxes = levels::all_sandboxes(config).into_iter();
    all.extend(sandboxes.filter_map(|(place, rules)| {
        // What a list of this entry says nothing about is that of all agents.
        let is_set = rules.allowlist.is_some();
        let denylist = rules.denylist.or_else(|| config.agents.defaults.sandbox.denylist.clone());
        is_set.then(|| sandbox_level(&place, &SandboxRules { denylist, ..rules }))
    }));
    for level in &all {
        let always: Vec<_> =
            levels.iter().filter(|other| applies_with(level, other)).cloned().collect();
        found.extend(idle_entries(level, &always).iter().map(ToString::to_string));
    }
    found.dedup();
    found
}

/// Whether `other` applies wherever `level` does.
fn applies_with(level: &LevelRules, other: &LevelRules) -> bool {
    let (place, other_place) = (level.place.to_string(), other.place.to_string());
    let agent = |place: &str| -> Option<String> {
        place.strip_prefix("agents.list[")?.split_once(']').map(|(index, _)| index.to_owned())
    };
    place != other_place
        && match other.level {
            Level::Global => true,
            Level::Agent(_) => agent(&place).is_some() && agent(&place) == agent(&other_place),
            _ => false,
        }
}

/// What keeps the sub-agents of an agent from sub-agents of their own, although the config gives them some.
fn denied_subagents(config: &Config, id: &AgentId, levels: &[LevelRules]) -> Option<String> {
    if config.subagents(id).max_depth < 2 {
        return None;
    }
    let spawn = FOR_SUBAGENTS[0];
    let of_agent = |level: &&LevelRules| match &level.level {
        Level::Global => true,
        Level::Agent(agent) => agent == id.as_str(),
        _ => false,
    };
    let levels: Vec<_> = levels.iter().filter(of_agent).cloned().collect();
    let defaults = &config.agents.defaults.sandbox;
    let own = levels::entry_of(config, id);
    let mut sandbox = own.map_or_else(|| defaults.clone(), |(_, own)| defaults.with(&own.sandbox));
    let place = match own {
        Some((index, own)) if own.sandbox.allowlist.is_some() || own.sandbox.denylist.is_some() => {
            levels::agent_path(index).key("sandbox")
        }
        _ => levels::sandbox_defaults(),
    };
    add_tools_for_subagents(&mut sandbox);
    let facts = SessionFacts {
        key: SUBAGENT_CHANNEL,
        main_keys: &[],
        host_says_main: false,
        is_open_project: false,
    };
    // Rules that name nothing are reported elsewhere.
    let policy = ToolPolicy::for_session(&levels, &sandbox, &place, facts, &[]).ok()?;
    let rule = policy.decide(spawn).rule?;
    Some(format!(
        "subagents.maxSpawnDepth of the agent {id} is more than 1, but sub-agents have no {spawn}: {rule}; permit {spawn} and \
         {subagents} there, or leave maxSpawnDepth out",
        subagents = FOR_SUBAGENTS[1]
    ))
}

/// Whether the config says something about the heartbeat of an agent.
fn heartbeat_is_set(config: &Config, id: &AgentId) -> bool {
    let own = levels::entry_of(config, id).is_some_and(|(_, entry)| entry.heartbeat.is_some());
    own || config.agents.defaults.heartbeat != Default::default()
}
