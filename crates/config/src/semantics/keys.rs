//! Keys of the chat that cannot be bound, or are bound twice.

use crate::schema::Config;
use crate::validate::{Finding, finding};

use super::root;

/// Keys that terminals and the line editor need, with what they do.
const RESERVED: [(&str, &str); 6] = [
    ("ctrl-c", "aborts"),
    ("ctrl-d", "leaves"),
    ("ctrl-h", "is the key that deletes, in some terminals"),
    ("ctrl-i", "is Tab"),
    ("ctrl-m", "is Enter"),
    ("alt-o", "begins other keys, in some terminals"),
];

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let all = config.terminal.bindings.all();
    let path = root().key("terminal").key("bindings");
    for (at, (action, key)) in all.iter().enumerate() {
        let name = key.as_str();
        if let Some((_, why)) = RESERVED.iter().find(|(reserved, _)| *reserved == name) {
            findings.push(finding(
                path.clone().key(action),
                format!("{name} cannot be bound, because it {why}"),
                "choose another key, such as `alt-x` or `f5`",
            ));
        }
        if let Some((other, _)) = all[..at].iter().find(|(_, other)| *other == *key) {
            findings.push(finding(
                path.clone().key(action),
                format!("{name} is the key for `{other}` too"),
                format!("choose another key for one of them; `terminal.bindings.{other}` moves the other"),
            ));
        }
    }
}
