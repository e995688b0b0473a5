//! Decides which tools may run.
//!
//! Each level of the config has rules of its own. A tool may run only if every level permits it, so that no level can
//! restore a tool that another level removed.

pub(crate) mod idle;

use std::fmt;

use myclaw_config::{ConfigPath, SandboxRules, ToolProfile, ToolRules, nearest};

use crate::names::{
    MCP_FINDER, MCP_GROUP, MCP_SCRIPT, alias_names, canonical_tool_name, group_members,
    group_names, known_tools, mcp_group, mcp_server_of, meant_tool, profile_members,
};
use crate::pattern::matches_name;
use crate::sandbox::{self, SessionFacts};
use crate::{PolicyError, PolicyProblem};

/// The level that rules come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Level {
    /// The rules apply to all agents.
    Global,
    /// For the agent with this id.
    Agent(String),
    /// For models of this provider.
    Provider(String),
    /// For messages of this channel.
    Channel(String),
    /// For messages of this sender.
    Sender(String),
    /// For sandboxed sessions.
    Sandbox,
    /// For one run, by options of its command.
    CommandLine,
    /// For a sub-agent, by the file that says what it is.
    AgentFile,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => formatter.write_str("all agents"),
            Self::Agent(id) => write!(formatter, "agent `{id}`"),
            Self::Provider(name) => write!(formatter, "provider `{name}`"),
            Self::Channel(name) => write!(formatter, "channel `{name}`"),
            Self::Sender(name) => write!(formatter, "sender `{name}`"),
            Self::Sandbox => formatter.write_str("sandboxed sessions"),
            Self::CommandLine => formatter.write_str("this command"),
            Self::AgentFile => formatter.write_str("this sub-agent"),
        }
    }
}

/// The rules of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelRules {
    /// Which level.
    pub level: Level,
    /// Path of the rules in the config, such as `agents.list[0].tools`; shown to users.
    pub place: ConfigPath,
    /// The rules.
    pub rules: ToolRules,
}

/// The rules of all levels that apply to one session.
#[derive(Debug, Clone)]
pub struct ToolPolicy {
    levels: Vec<Compiled>,
    context: String,
    /// Canonical names of tools that do not come with MyClaw.
    extra_tools: Vec<String>,
}

#[derive(Debug, Clone)]
struct Compiled {
    level: Level,
    place: ConfigPath,
    keys: ListKeys,
    profile: Option<ToolProfile>,
    allow: Option<Vec<Selector>>,
    /// Whether `allow` comes with MyClaw, which does not know the tools of others.
    allow_is_builtin: bool,
    deny: Vec<Selector>,
    ask: Vec<Selector>,
}

/// The config names of a level's two lists.
#[derive(Debug, Clone, Copy)]
struct ListKeys {
    allow: &'static str,
    deny: &'static str,
}

const TOOL_KEYS: ListKeys = ListKeys { allow: "allow", deny: "deny" };
const SANDBOX_KEYS: ListKeys = ListKeys { allow: "allowlist", deny: "denylist" };
const COMMAND_KEYS: ListKeys = ListKeys { allow: "--allow-tool", deny: "--deny-tool" };
const FILE_KEYS: ListKeys = ListKeys { allow: "tools of its file", deny: "tools of the caller" };

impl ListKeys {
    fn of(level: &Level) -> Self {
        match level {
            Level::Sandbox => SANDBOX_KEYS,
            Level::CommandLine => COMMAND_KEYS,
            Level::AgentFile => FILE_KEYS,
            _ => TOOL_KEYS,
        }
    }
}

/// One entry of a list.
#[derive(Debug, Clone)]
struct Selector {
    /// The entry as written in the config.
    entry: String,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    Name(String),
    Wildcard(String),
    Group(&'static [&'static str]),
    /// The tools of this MCP server, or of all.
    Mcp(Option<String>),
}

/// Whether a tool may run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The tool, by the requested name.
    pub tool: String,
    /// Whether it may run.
    pub allowed: bool,
    /// The rule that denies it; `None` for a tool that may run.
    pub rule: Option<DecisiveRule>,
    /// The kind of session, such as `non-main session, sandboxed`.
    pub context: String,
}

/// A rule by which each call of a tool needs an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRule {
    /// The rule's level.
    pub level: Level,
    /// Path of the list in the config.
    pub place: ConfigPath,
    /// The matching entry, as written in the list.
    pub entry: String,
}

/// A rule that denies a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisiveRule {
    /// The tool is not part of the level's profile.
    Profile {
        /// The rule's level.
        level: Level,
        /// Path of the rule in the config.
        place: ConfigPath,
        /// The profile.
        profile: ToolProfile,
    },
    /// The tool is not in the level's list of permitted tools.
    NotAllowed {
        /// The rule's level.
        level: Level,
        /// Path of the list in the config.
        place: ConfigPath,
    },
    /// The tool is in the level's list of denied tools.
    Denied {
        /// The rule's level.
        level: Level,
        /// Path of the list in the config.
        place: ConfigPath,
        /// The matching entry, as written in the list.
        entry: String,
    },
}

impl ToolPolicy {
    /// The policy for a session: the rules of `levels`, and those of `sandbox` if `session` is sandboxed.
    /// `extra_tools` are names of tools that the program around MyClaw adds: profiles and the built-in list of the
    /// sandbox do not know them and do not apply to them; the lists of the config do. `sandbox_place` is the path of the
    /// sandbox's rules in the config.
    ///
    /// # Errors
    /// Every entry that names no known tool or group.
    pub fn for_session(
        levels: &[LevelRules],
        sandbox: &SandboxRules,
        sandbox_place: &ConfigPath,
        session: SessionFacts<'_>,
        extra_tools: &[&str],
    ) -> Result<Self, Vec<PolicyError>> {
        let mut errors = Vec::new();
        let mut compiled: Vec<Compiled> =
            levels.iter().map(|level| Compiled::new(level, extra_tools, &mut errors)).collect();
        // Checked even where it does not apply, so that a mistake is reported in every session.
        let level = sandbox_level(sandbox_place, sandbox);
        let mut sandbox_level = Compiled::new(&level, extra_tools, &mut errors);
        sandbox_level.allow_is_builtin = sandbox.allowlist.is_none();
        let scope = session.scope(sandbox.mode);
        if scope == sandbox::SandboxScope::Sandboxed {
            compiled.push(sandbox_level);
        }
        let kind = match session {
            _ if session.is_main() => "main session",
            SessionFacts { is_open_project: true, .. } => "session of a project",
            _ => "non-main session",
        };
        let context = format!("{kind}, {scope}");
        let extra_tools = extra_tools.iter().map(|name| canonical_tool_name(name)).collect();
        let policy = Self { levels: compiled, context, extra_tools };
        if errors.is_empty() { Ok(policy) } else { Err(errors) }
    }

    /// Decides whether `tool` may run. The first level that denies it is named. Within a level the profile is checked
    /// first, then the list of permitted tools, then the list of denied ones.
    pub fn decide(&self, tool: &str) -> Decision {
        let name = canonical_tool_name(tool);
        let rule = self.rule_against(&name, |_| true);
        Decision {
            tool: tool.to_owned(),
            allowed: rule.is_none(),
            rule,
            context: self.context.clone(),
        }
    }

    /// For each level, in order, its place in the config and the rule with which it denies `tool`, or `None`.
    pub fn explain(&self, tool: &str) -> Vec<(&Level, &ConfigPath, Option<DecisiveRule>)> {
        let name = canonical_tool_name(tool);
        let origin = self.origin(&name);
        let row = |level: &'_ Compiled| level.denies(&name, origin);
        self.levels.iter().map(|level| (&level.level, &level.place, row(level))).collect()
    }

    /// Whether `tool` is offered to the model. A tool that only a rule about the sender denies is offered, because
    /// another person of the session may use it.
    pub fn offers(&self, tool: &str) -> bool {
        let name = canonical_tool_name(tool);
        self.rule_against(&name, |level| !matches!(level, Level::Sender(_))).is_none()
    }

    /// The rule by which each call of `tool` needs an approval, if there is one.
    pub fn asks(&self, tool: &str) -> Option<AskRule> {
        let name = canonical_tool_name(tool);
        if matches!(name.as_str(), MCP_FINDER | MCP_SCRIPT) {
            return None;
        }
        self.levels.iter().find_map(|level| {
            let selector = level.ask.iter().find(|selector| selector.matches(&name))?;
            Some(AskRule {
                level: level.level.clone(),
                place: level.place.clone().key("ask"),
                entry: selector.entry.clone(),
            })
        })
    }

    /// The first rule that denies the tool with that canonical name, among the levels that `counts` selects.
    fn rule_against(&self, name: &str, counts: impl Fn(&Level) -> bool) -> Option<DecisiveRule> {
        if matches!(name, MCP_FINDER | MCP_SCRIPT) {
            return None;
        }
        let origin = self.origin(name);
        let mut levels = self.levels.iter().filter(|level| counts(&level.level));
        levels.find_map(|level| level.denies(name, origin))
    }

    fn origin(&self, name: &str) -> Origin {
        let is_extra = self.extra_tools.iter().any(|extra| extra == name);
        if is_extra && !known_tools().contains(&name) { Origin::Elsewhere } else { Origin::Builtin }
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It has the name of a tool that comes with MyClaw.
    Builtin,
    /// The program around MyClaw adds it.
    Elsewhere,
}

impl Compiled {
    fn new(level: &LevelRules, extra_tools: &[&str], errors: &mut Vec<PolicyError>) -> Self {
        let LevelRules { level, place, rules } = level;
        let keys = ListKeys::of(level);
        let mut compile = |key: &str, entries: &[String]| -> Vec<Selector> {
            let place = place.clone().key(key);
            let mut selectors = Vec::with_capacity(entries.len());
            for (index, entry) in entries.iter().enumerate() {
                match Selector::new(entry, extra_tools) {
                    Ok(selector) => selectors.push(selector),
                    Err(problem) => {
                        errors.push(PolicyError { place: place.clone().index(index), problem });
                    }
                }
            }
            selectors
        };
        Self {
            level: level.clone(),
            place: place.clone(),
            keys,
            profile: rules.profile,
            allow: rules.allow.as_ref().map(|entries| compile(keys.allow, entries)),
            allow_is_builtin: false,
            deny: compile(keys.deny, rules.deny.as_deref().unwrap_or_default()),
            ask: compile("ask", rules.ask.as_deref().unwrap_or_default()),
        }
    }

    /// The rule with which this level denies the tool with that canonical name.
    fn denies(&self, name: &str, origin: Origin) -> Option<DecisiveRule> {
        let (level, place) = (|| self.level.clone(), |key| self.place.clone().key(key));
        let is_known = origin == Origin::Builtin;
        if let Some(profile) = self.profile
            && is_known
            && !is_in_profile(profile, name)
        {
            let place = place("profile");
            return Some(DecisiveRule::Profile { level: level(), place, profile });
        }
        if let Some(allow) = &self.allow
            && (is_known || !self.allow_is_builtin)
            && !allow.iter().any(|selector| selector.matches(name))
        {
            let place = place(self.keys.allow);
            return Some(DecisiveRule::NotAllowed { level: level(), place });
        }
        let selector = self.deny.iter().find(|selector| selector.matches(name))?;
        Some(DecisiveRule::Denied {
            level: level(),
            place: place(self.keys.deny),
            entry: selector.entry.clone(),
        })
    }
}

/// The level of a sandboxed session, with the rules at `place` in the config.
pub fn sandbox_level(place: &ConfigPath, sandbox: &SandboxRules) -> LevelRules {
    let rules = sandbox::tool_rules(sandbox);
    LevelRules { level: Level::Sandbox, place: place.clone(), rules }
}

fn is_in_profile(profile: ToolProfile, name: &str) -> bool {
    profile_members(profile).is_none_or(|members| {
        members.iter().any(|member| {
            *member == name
                || group_members(member).is_some_and(|group| group.contains(&name))
                || (*member == MCP_GROUP && mcp_server_of(name).is_some())
        })
    })
}

/// Whether the wildcards of `pattern` stand for the name of some tool.
fn any_tool(pattern: &str, extra_tools: &[&str]) -> bool {
    let is_match = |name: &str| matches_name(pattern, name);
    known_tools().iter().copied().chain(alias_names()).any(is_match)
        || extra_tools.iter().any(|extra| is_match(&canonical_tool_name(extra)))
}

/// Whether a pattern can stand for tools of MCP servers. Other programs name them `mcp__server__tool`.
fn is_mcp_pattern(pattern: &str) -> bool {
    pattern.contains("__") && !pattern.starts_with("mcp__")
}

/// Whether the wildcards of `pattern` stand for another name of the tool, as `ba*` does for `exec`.
fn is_alias_match(pattern: &str, name: &str) -> bool {
    alias_names().any(|alias| canonical_tool_name(alias) == name && matches_name(pattern, alias))
}

/// Checks an entry that names tools: a name, a name with `*`, or a group.
///
/// # Errors
/// It names no tool.
pub fn check_tool_entry(entry: &str) -> Result<(), PolicyProblem> {
    Selector::new(entry, &[]).map(drop)
}

/// Whether an entry that names tools names this one. An entry that names none, such as a tool of another program, is compared
/// as it is.
pub fn matches_tool(entry: &str, name: &str) -> bool {
    matches_name(entry, name)
        || Selector::new(entry, &[name])
            .is_ok_and(|selector| selector.matches(&canonical_tool_name(name)))
}

impl Selector {
    fn new(entry: &str, extra_tools: &[&str]) -> Result<Self, PolicyProblem> {
        let name = canonical_tool_name(entry);
        let matcher = if name.is_empty() {
            return Err(PolicyProblem::EmptyEntry);
        } else if let Some(server) = mcp_group(&name) {
            Matcher::Mcp(server.map(str::to_owned))
        } else if name.starts_with("group:") {
            let Some(members) = group_members(&name) else {
                return Err(PolicyProblem::UnknownGroup {
                    suggestion: nearest(&name, group_names()).map(str::to_owned),
                    name,
                });
            };
            Matcher::Group(members)
        } else if name.contains(['(', ')']) {
            return Err(PolicyProblem::NotATool { name: entry.trim().to_owned() });
        } else if name.contains('*') && (is_mcp_pattern(&name) || any_tool(&name, extra_tools)) {
            Matcher::Wildcard(name)
        } else if known_tools().contains(&name.as_str())
            // Which servers and tools there are is not known here.
            || (mcp_server_of(&name).is_some() && meant_tool(&name).is_none())
            || extra_tools.iter().any(|extra| canonical_tool_name(extra) == name)
        {
            Matcher::Name(name)
        } else {
            let known = known_tools().iter().copied().chain(alias_names());
            let suggestion = meant_tool(&name)
                .or_else(|| nearest(&name, known))
                .or_else(|| nearest(&name, extra_tools.iter().copied()))
                .map(str::to_owned);
            return Err(PolicyProblem::UnknownTool { suggestion, name: entry.trim().to_owned() });
        };
        Ok(Self { entry: entry.to_owned(), matcher })
    }

    fn matches(&self, name: &str) -> bool {
        match &self.matcher {
            Matcher::Name(own) => own == name,
            Matcher::Wildcard(pattern) => {
                matches_name(pattern, name) || is_alias_match(pattern, name)
            }
            Matcher::Group(members) => members.contains(&name),
            Matcher::Mcp(wanted) => mcp_server_of(name)
                .is_some_and(|server| wanted.as_deref().is_none_or(|wanted| wanted == server)),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, rule, context, .. } = self;
        match rule {
            None => write!(formatter, "Tool '{tool}' is allowed ({context}): no rule denies it"),
            Some(rule) => write!(
                formatter,
                "Tool '{tool}' is not allowed in current security context ({context}): {rule}"
            ),
        }
    }
}

impl fmt::Display for AskRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, place, entry } = self;
        write!(formatter, "`{entry}` in `{place}` asks before each call, for {level}")
    }
}

impl fmt::Display for DecisiveRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile { level, place, profile } => write!(
                formatter,
                "it is not in the profile `{}` set by `{place}` for {level}",
                profile.as_str()
            ),
            Self::NotAllowed { level, place } => {
                write!(formatter, "it is not in `{place}` for {level}")
            }
            Self::Denied { level, place, entry } => {
                write!(formatter, "`{entry}` in `{place}` denies it for {level}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
