//! Collects the rules of the config, level by level.

use myclaw_config::{
    AgentEntry, AgentId, AgentToolRules, CommandRule, Config, ConfigPath, ExecRules, Paths,
    ProgramRule, SandboxRules, ToolRules,
};
use myclaw_policy::{ExecLevel, Level, LevelRules, allowlist_advice};

/// What decides which rules apply.
pub(super) struct Situation<'a> {
    /// The agent, and those on whose behalf it works.
    pub(super) agents: &'a [AgentId],
    /// `provider/model`.
    pub(super) model: Option<&'a str>,
    /// The channel of the session, and those of the sessions on whose behalf it works.
    pub(super) channels: &'a [String],
    /// Everybody whose messages the run may be about, as `channel:id`. The rules for each of them apply.
    pub(super) senders: &'a [String],
}

impl Situation<'_> {
    fn is_of(&self, level: &Level) -> bool {
        match level {
            Level::Global | Level::Sandbox | Level::CommandLine | Level::AgentFile => true,
            Level::Agent(id) => self.agents.iter().any(|agent| agent.as_str() == id),
            Level::Provider(name) => self.model.is_some_and(|model| {
                let provider = model.split_once('/').map_or(model, |(provider, _)| provider);
                name.eq_ignore_ascii_case(provider) || name.eq_ignore_ascii_case(model)
            }),
            Level::Channel(name) => {
                // In the main session, messages of several channels can come together.
                let is_of = |sender: &String| {
                    sender.split_once(':').is_some_and(|(channel, _)| channel == name)
                };
                self.channels.contains(name) || self.senders.iter().any(is_of)
            }
            Level::Sender(name) => self.senders.iter().any(|sender| {
                let id = sender.split_once(':').map_or(sender.as_str(), |(_, id)| id);
                name.eq_ignore_ascii_case(sender) || name.eq_ignore_ascii_case(id)
            }),
        }
    }
}

/// The rules for tools that apply in `situation`; with `None`, all rules of the config.
pub(super) fn tool_levels(config: &Config, situation: Option<&Situation<'_>>) -> Vec<LevelRules> {
    let tools = root().key("tools");
    let mut levels = vec![level(Level::Global, tools.clone(), config.tools.rules())];
    let mut of_agents = |owner: Level, path: ConfigPath, rules: &AgentToolRules| {
        if situation.is_some_and(|situation| !situation.is_of(&owner)) {
            return;
        }
        levels.push(level(owner, path.clone(), rules.rules()));
        for (name, rules) in &rules.by_provider {
            let path = path.clone().key("byProvider").key(name);
            levels.push(level(Level::Provider(name.clone()), path, rules.clone()));
        }
    };
    of_agents(Level::Global, defaults().key("tools"), &config.agents.defaults.tools);
    for (index, entry) in config.agents.list.iter().enumerate() {
        let id = AgentId::new(&entry.id).to_string();
        of_agents(Level::Agent(id), agent_path(index).key("tools"), &entry.tools);
    }
    for (name, rules) in &config.tools.by_provider {
        let path = tools.clone().key("byProvider").key(name);
        levels.push(level(Level::Provider(name.clone()), path, rules.clone()));
    }
    for (name, rules) in config.channels.chat_rules() {
        let path = root().key("channels").key(name).key("tools");
        levels.push(level(Level::Channel(name.to_owned()), path, rules.tools.clone()));
    }
    for (name, rules) in &config.tools.by_channel {
        let path = tools.clone().key("byChannel").key(name);
        levels.push(level(Level::Channel(name.clone()), path, rules.clone()));
    }
    for (name, rules) in &config.tools.by_sender {
        let path = tools.clone().key("bySender").key(name);
        levels.push(level(Level::Sender(name.clone()), path, rules.clone()));
    }
    levels.retain(|level| situation.is_none_or(|situation| situation.is_of(&level.level)));
    levels
}

/// The rules for commands that apply in `situation`; with `None`, all rules of the config.
pub(super) fn exec_levels(config: &Config, situation: Option<&Situation<'_>>) -> Vec<ExecLevel> {
    let home = config.paths.as_ref();
    let exec = |level: Level, path: ConfigPath, rules: &ExecRules| ExecLevel {
        level,
        place: path.key("tools").key("exec"),
        rules: exec_with_home(rules.clone(), home),
    };
    let mut levels = vec![
        exec(Level::Global, root(), &config.tools.exec),
        exec(Level::Global, defaults(), &config.agents.defaults.tools.exec),
    ];
    for (index, entry) in config.agents.list.iter().enumerate() {
        let level = Level::Agent(AgentId::new(&entry.id).to_string());
        levels.push(exec(level, agent_path(index), &entry.tools.exec));
    }
    levels.retain(|level| situation.is_none_or(|situation| situation.is_of(&level.level)));
    levels
}

/// Entries of allowlists that permit less than they seem to, one line each.
pub(crate) fn advice(config: &Config) -> Vec<String> {
    let sandboxes = all_sandboxes(config).into_iter();
    let of_sandboxes = sandboxes.map(|(place, rules)| (place.key("exec"), rules.exec));
    let levels = exec_levels(config, None).into_iter().map(|level| (level.place, level.rules));
    let advise = |(place, rules): (ConfigPath, ExecRules)| {
        allowlist_advice(&rules.allowlist.unwrap_or_default(), &place.key("allowlist"))
    };
    levels.chain(of_sandboxes).flat_map(advise).collect()
}

/// Whether rules about providers exist, so that another model can mean other rules.
pub(super) fn depend_on_provider(config: &Config) -> bool {
    !config.tools.by_provider.is_empty()
        || !config.agents.defaults.tools.by_provider.is_empty()
        || config.agents.list.iter().any(|entry| !entry.tools.by_provider.is_empty())
}

/// The rules of every sandbox in the config, with their places.
pub(super) fn all_sandboxes(config: &Config) -> Vec<(ConfigPath, SandboxRules)> {
    let defaults = &config.agents.defaults.sandbox;
    let mut all = vec![(sandbox_defaults(), defaults.clone())];
    for (index, entry) in config.agents.list.iter().enumerate() {
        // Only the entry's own lists, so that a mistake of the defaults is reported once, where it is.
        let own = SandboxRules {
            allowlist: entry.sandbox.allowlist.clone(),
            denylist: entry.sandbox.denylist.clone(),
            ..SandboxRules::default()
        };
        all.push((agent_path(index).key("sandbox"), own));
    }
    all
}

/// The entry of an agent in the list, with its position.
pub(super) fn entry_of<'a>(config: &'a Config, id: &AgentId) -> Option<(usize, &'a AgentEntry)> {
    config.agents.list.iter().enumerate().find(|(_, entry)| AgentId::new(&entry.id) == *id)
}

pub(super) fn agent_path(index: usize) -> ConfigPath {
    root().key("agents").key("list").index(index)
}

pub(super) fn sandbox_defaults() -> ConfigPath {
    defaults().key("sandbox")
}

/// The rules with `~` replaced in the programs of the allowlist.
pub(super) fn with_home(mut rules: SandboxRules, paths: Option<&Paths>) -> SandboxRules {
    rules.exec = exec_with_home(rules.exec, paths);
    rules
}

fn exec_with_home(mut rules: ExecRules, paths: Option<&Paths>) -> ExecRules {
    let Some(home) = paths.and_then(Paths::home).and_then(|home| home.to_str()) else {
        return rules;
    };
    for rule in rules.allowlist.iter_mut().flatten() {
        let (CommandRule::Program(program)
        | CommandRule::WithArguments(ProgramRule { program, .. })) = rule;
        if let Some(rest) = program.trim().strip_prefix("~/") {
            *program = format!("{}/{rest}", home.trim_end_matches('/'));
        }
    }
    rules
}

fn level(level: Level, place: ConfigPath, rules: ToolRules) -> LevelRules {
    LevelRules { level, place, rules }
}

fn root() -> ConfigPath {
    ConfigPath::default()
}

fn defaults() -> ConfigPath {
    root().key("agents").key("defaults")
}
