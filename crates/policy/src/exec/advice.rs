//! Entries of an allowlist that do less than their author may think.

use myclaw_config::{CommandRule, ConfigPath, ProgramRule};

use crate::harmless;

/// One line for each entry that permits nothing as it is written, and for each pattern that once matched paths. `place` is
/// the list in the config.
pub fn allowlist_advice(rules: &[CommandRule], place: &ConfigPath) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let place = place.clone().index(index);
        let (program, patterns) = match rule {
            CommandRule::Program(program) => (program, None),
            CommandRule::WithArguments(ProgramRule { program, args }) => (program, args.as_ref()),
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_open =
            patterns.is_none_or(|all| all.iter().all(|it| it.trim_matches(['*', '.']).is_empty()));
        if is_open && harmless::description(name).is_some_and(|it| it.needs_spelled_arguments()) {
            lines.push(format!(
                "{place}: {name} runs what its arguments or the directory say, so this entry permits nothing without a \
                 question; spell out what may run, as in {{ program: \"{name}\", args: [\"test\"] }}"
            ));
        } else if patterns.is_some_and(|all| all.iter().any(|it| it == "*")) {
            lines.push(format!(
                "{place}: `*` in args does not match an argument with a `/`; write `**` if paths are meant"
            ));
        }
    }
    lines
}
