//! Entries of the rules that name nothing.

use myclaw_config::{Config, ConfigPath, Mistake};
use myclaw_policy::{ExecPolicy, PolicyError, ToolPolicy, check_tool_entry};
use myclaw_session::SessionKey;

use super::facts;
use super::levels::{self, exec_levels, tool_levels};

/// The entries of the config that name no tool, group or program, whichever session they are for.
pub(crate) fn mistakes(config: &Config) -> Vec<Mistake> {
    let key = SessionKey::for_cli(crate::MAIN_SESSION, crate::MAIN_SESSION);
    let session = facts(&key, &[]);
    let tools = tool_levels(config, None);
    let exec = exec_levels(config, None);
    let mut errors = Vec::new();
    for (place, rules) in levels::all_sandboxes(config) {
        let checked = ToolPolicy::for_session(&tools, &rules, &place, session, &[]);
        errors.extend(checked.err().unwrap_or_default());
        let rules = levels::with_home(rules, config.paths.as_ref());
        let checked = ExecPolicy::for_session(&exec, &rules, &place, session);
        errors.extend(checked.err().unwrap_or_default());
    }
    let mut mistakes: Vec<Mistake> = Vec::new();
    for PolicyError { place, problem } in errors {
        // Each sandbox is checked with the rules of all levels, which are the same each time.
        if !mistakes.iter().any(|mistake| mistake.path == place) {
            mistakes.push(Mistake { path: place, message: problem.to_string(), help: None });
        }
    }
    for (event, index, hook) in config.hooks.commands() {
        let place =
            ConfigPath::default().key("hooks").key(event.as_str()).index(index).key("match");
        for (entry, pattern) in hook.tools.unwrap_or_default().iter().enumerate() {
            if let Err(problem) = check_tool_entry(pattern) {
                let path = place.clone().index(entry);
                mistakes.push(Mistake { path, message: problem.to_string(), help: None });
            }
        }
    }
    mistakes
}
