//! Entries of lists that can have no effect, because other rules deny all of their tools.

use std::fmt;

use myclaw_config::ConfigPath;

use super::{Compiled, DecisiveRule, LevelRules, Matcher, Origin, Selector};
use crate::names::known_tools;

/// An entry of `allow` or `ask` without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEntry {
    /// Path of the entry in the config.
    pub place: ConfigPath,
    /// The entry, as written there.
    pub entry: String,
    /// One of the rules that deny its tools.
    pub rule: DecisiveRule,
}

impl fmt::Display for IdleEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, entry, rule } = self;
        write!(formatter, "{place}: `{entry}` has no effect: {rule}; change one of the two")
    }
}

/// The entries with which `level` permits tools, or asks about them, that itself or one of `others` denies. `others` are the
/// levels that apply wherever `level` does. Entries that name nothing are left out.
pub fn idle_entries(level: &LevelRules, others: &[LevelRules]) -> Vec<IdleEntry> {
    let compile = |rules: &LevelRules| Compiled::new(rules, &[], &mut Vec::new());
    let (own, others) = (compile(level), others.iter().map(compile).collect::<Vec<_>>());
    let levels = || std::iter::once(&own).chain(&others);
    let against = |tool: &str| levels().find_map(|level| level.denies(tool, Origin::Builtin));
    let lists = [(own.keys.allow, level.rules.allow.as_ref()), ("ask", level.rules.ask.as_ref())];
    let entries = lists.into_iter().flat_map(|(key, list)| {
        list.into_iter().flatten().enumerate().map(move |(index, entry)| (key, index, entry))
    });
    let idle = entries.filter_map(|(key, index, entry)| {
        let rules = Selector::new(entry, &[]).ok()?.examples().into_iter();
        let rules: Option<Vec<_>> = rules.map(|tool| against(&tool)).collect();
        let rule = rules?.into_iter().next()?;
        let place = level.place.clone().key(key).index(index);
        Some(IdleEntry { place, entry: entry.clone(), rule })
    });
    idle.collect()
}

impl Selector {
    /// The tools that come with MyClaw and match, or else a name that a tool of a server could have.
    fn examples(&self) -> Vec<String> {
        let known = known_tools().iter().filter(|name| self.matches(name));
        let known: Vec<String> = known.map(|name| (*name).to_owned()).collect();
        if !known.is_empty() {
            return known;
        }
        vec![match &self.matcher {
            Matcher::Name(name) => name.clone(),
            Matcher::Wildcard(pattern) => pattern.replace('*', "any"),
            Matcher::Mcp(server) => format!("{}__any", server.as_deref().unwrap_or("any")),
            Matcher::Group(_) => return Vec::new(),
        }]
    }
}
