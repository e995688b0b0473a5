//! Mistakes in `channels.identityLinks`.

use std::collections::HashMap;

use super::{Finding, channel_problem, finding, root};
use crate::locate::Target;
use crate::schema::{Config, DmScope};

/// Longest name of a person, in characters.
const MAX_NAME: usize = 64;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let path = root().key("channels").key("identityLinks");
    let links = &config.channels.identity_links;
    if config.channels.dm_scope == DmScope::Main && !links.is_empty() {
        findings.push(finding(
            path.clone(),
            "with `dmScope` \"main\" everybody shares one session, so links have no effect",
            "remove the links, or set `channels.dmScope` to \"per-account-peer\" or \"per-peer\"",
        ));
    }
    let mut owners: HashMap<(String, String), &str> = HashMap::new();
    for (name, ids) in links {
        let path = path.clone().key(name);
        let is_plain = |char: char| matches!(char, 'a'..='z' | '0'..='9' | '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    path.clone(),
                    "this name cannot be part of a session key",
                    "use lower-case letters, digits, `_` and `-`, at most 64",
                )
            });
        }
        for (index, id) in ids.iter().enumerate() {
            let path = path.clone().index(index);
            let Some((channel, peer)) = id.parts() else {
                findings.push(finding(
                    path,
                    "expected a person as `channel:id`",
                    "such as \"telegram:42\"; `myclaw pairing list` shows the ids of people who wrote",
                ));
                continue;
            };
            if let Some(found) = channel_problem(channel, path.clone()) {
                findings.push(found);
                continue;
            }
            let id = (channel.to_owned(), peer.to_lowercase());
            if let Some(other) = owners.insert(id, name) {
                let whose = if other == name { "this person" } else { "another person" };
                findings.push(finding(
                    path,
                    format!("this id belongs to {whose} already"),
                    "an id stands in one link, and once; remove it from one of them",
                ));
            }
        }
    }
}
