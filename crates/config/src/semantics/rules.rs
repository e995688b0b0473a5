//! Rules that nothing can match.

use super::channels::channel_problem;
use super::{Finding, finding, root};
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{CommandRule, Config, ExecRules};

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let tools = root().key("tools");
    check_exec(&config.tools.exec, &tools.clone().key("exec"), findings);
    let defaults = root().key("agents").key("defaults");
    let exec = defaults.clone().key("tools").key("exec");
    check_exec(&config.agents.defaults.tools.exec, &exec, findings);
    let sandbox = defaults.key("sandbox").key("exec");
    check_exec(&config.agents.defaults.sandbox.exec, &sandbox, findings);
    for (index, entry) in config.agents.list.iter().enumerate() {
        let path = root().key("agents").key("list").index(index).key("tools").key("exec");
        check_exec(&entry.tools.exec, &path, findings);
    }
    for name in config.tools.by_channel.keys() {
        let path = tools.clone().key("byChannel").key(name);
        findings.extend(
            channel_problem(name, path.clone())
                .map(|found| Finding { target: Target::Key, ..found }),
        );
    }
}

/// A program with arguments in its name is never started.
fn check_exec(rules: &ExecRules, path: &ConfigPath, findings: &mut Vec<Finding>) {
    for (index, rule) in rules.allowlist.iter().flatten().enumerate() {
        let path = path.clone().key("allowlist").index(index);
        let (path, program) = match rule {
            CommandRule::Program(program) => (path, program),
            CommandRule::WithArguments(rule) => (path.key("program"), &rule.program),
        };
        let Some((name, arguments)) = program.trim().split_once(char::is_whitespace) else {
            continue;
        };
        // Names of directories may have spaces.
        if !name.contains('/') || arguments.trim() == "*" {
            let message = "expected a program, found a program with arguments";
            let help = "write the arguments as `{ program: \"git\", args: [\"log\", \"...\"] }`; a program alone may have any";
            findings.push(finding(path, message, help));
        }
    }
}
