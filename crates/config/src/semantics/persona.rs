//! Mistakes in how agents appear in chats.

use super::{Finding, finding, root};
use crate::config_path::ConfigPath;
use crate::schema::{Config, GroupChatConfig, HumanDelayConfig, HumanDelayMode, mention_pattern};

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let agents = root().key("agents");
    let defaults = &config.agents.defaults;
    let path = agents.clone().key("defaults");
    check_groups(&defaults.group_chat, &path, findings);
    check_delay(&defaults.human_delay, &path, findings);
    for (index, entry) in config.agents.list.iter().enumerate() {
        let path = agents.clone().key("list").index(index);
        check_groups(&entry.group_chat, &path, findings);
        check_delay(&entry.human_delay, &path, findings);
    }
}

fn check_groups(config: &GroupChatConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let patterns = path.clone().key("groupChat").key("mentionPatterns");
    for (index, text) in config.mention_patterns.iter().flatten().enumerate() {
        if mention_pattern(text).is_err() {
            findings.push(finding(
                patterns.clone().index(index),
                "this is no regular expression that can be used",
                "such as \"@?claw\"; a backslash is written twice",
            ));
        }
    }
}

fn check_delay(config: &HumanDelayConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let path = path.clone().key("humanDelay");
    let has_times = config.min_ms.is_some() || config.max_ms.is_some();
    if has_times && !matches!(config.mode, Some(HumanDelayMode::Custom) | None) {
        findings.push(finding(
            path.clone().key("mode"),
            "`minMs` and `maxMs` have no effect with this mode",
            "use \"custom\", or remove the two keys",
        ));
    }
    if let (Some(min), Some(max)) = (config.min_ms, config.max_ms)
        && min > max
    {
        findings.push(finding(
            path.key("maxMs"),
            "the longest pause is shorter than the shortest",
            "raise `maxMs`, or lower `minMs`",
        ));
    }
}
