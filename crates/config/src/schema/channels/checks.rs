//! Mistakes that several channels can have.

use std::collections::BTreeMap;

use url::Url;

use super::GroupConfig;
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::values::ChatId;
use crate::validate::{Finding, finding};

/// Whether an entry of `allowFrom` is `*`, which stands for everybody in other programs.
pub(crate) fn is_everybody(person: &ChatId) -> bool {
    matches!(person, ChatId::Name(name) if name.trim() == "*")
}

/// Checks that each group is named as the channel names it. `*` stands for all others.
pub(crate) fn check_groups(
    groups: &BTreeMap<String, GroupConfig>,
    path: &ConfigPath,
    is_name: impl Fn(&str) -> bool,
    (message, help): (&str, &str),
    findings: &mut Vec<Finding>,
) {
    for name in groups.keys().filter(|name| *name != "*" && !is_name(name)) {
        findings.push(Finding {
            target: Target::Key,
            ..finding(path.clone().key("groups").key(name), message, help)
        });
    }
}

/// Names of accounts are part of addresses and session keys.
pub(crate) fn check_names<'a>(
    names: impl Iterator<Item = &'a String>,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let is_plain = |name: &str| {
        let is_part = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        !name.is_empty() && name.len() <= 64 && name.bytes().all(is_part)
    };
    for name in names.filter(|name| !is_plain(name)) {
        findings.push(Finding {
            target: Target::Key,
            ..finding(
                path.clone().key(name),
                "this cannot be the name of an account",
                "use lower-case letters, digits, `-` and `_`, at most 64",
            )
        });
    }
}

/// Checks that requests can be sent to an address.
pub(crate) fn check_url(url: Option<&str>, path: ConfigPath, findings: &mut Vec<Finding>) {
    if let Some(Err(error)) = url.map(Url::parse) {
        let message = format!("no request can be sent to this URL: {error}");
        findings.push(finding(path, message, "a URL is such as \"https://example.com/path\""));
    }
}

/// Checks that each person is named as the channel names people.
pub(crate) fn check_people(
    people: &[ChatId],
    path: &ConfigPath,
    is_person: impl Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
    help: impl Fn(&str) -> String,
) {
    let people = people.iter().enumerate().filter(|(_, person)| !is_everybody(person));
    for (index, person) in people {
        let name = match person {
            ChatId::Number(number) => number.to_string(),
            ChatId::Name(name) => name.trim().to_owned(),
        };
        if !is_person(&name) {
            let place = path.clone().key("allowFrom").index(index);
            findings.push(finding(place, "nobody has such an id in this channel", help(&name)));
        }
    }
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether whatever is sent there stays on this machine.
pub(crate) fn is_of_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
