//! Mistakes in channels and bindings.

mod phone;

use std::collections::{BTreeMap, HashSet};

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{Finding, finding, root};
use crate::agent::AgentId;
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{
    BindingMatch, ChannelConfig, ChannelsConfig, ChatId, ChatRules, Config, DEFAULT_ACCOUNT,
    DiscordConfig, DmPolicy, GroupConfig, MatrixConfig, SlackConfig, SocketConfig, TelegramConfig,
    WebhookConfig,
};
use crate::suggest::nearest;

mod email;
mod irc;
mod people;
mod xmpp;

/// Shortest secret of a webhook, in bytes. Shorter ones can be guessed.
const MIN_SECRET: usize = 16;

/// The names of all channels.
const NAMES: &[&str] = ChannelsConfig::NAMES;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    people::check(config, findings);
    let channels = root().key("channels");
    for (name, channel) in config.channels.all() {
        channel.check(&channels.clone().key(name), findings);
    }
    check_everybody(config, &channels, findings);
    check_bindings(config, findings);
    check_host_bindings(config, findings);
}

/// The mistake at `path`, if there is no channel with the name that stands there.
pub(super) fn channel_problem(name: &str, path: ConfigPath) -> Option<Finding> {
    let help = || match nearest(name, NAMES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the channels are {}", NAMES.join(", ")),
    };
    (!NAMES.contains(&name)).then(|| finding(path, "there is no channel of this name", help()))
}

impl ChannelConfig for TelegramConfig {
    fn accounts_if_absent() -> Vec<&'static str> {
        Vec::new()
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        let allowed_chat_ids = self.allowed_chat_ids.as_deref();
        Some(ChatRules { allowed_chat_ids, ..self.chat_rules() })
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.bots().map(|bot| bot.token).collect()
    }

    fn accounts(&self) -> Vec<&str> {
        self.bots().map(|bot| bot.account).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let urls = [("baseUrl", &self.base_url), ("webhookUrl", &self.webhook_url)];
        for (key, url) in urls {
            check_url(url.as_deref(), path.clone().key(key), findings);
        }
        let is_person = |name: &str| name.starts_with('@') || name.parse::<u64>().is_ok();
        phone::check_people(&self.allow_from, path, is_person, findings, |name| {
            let bare = name.rsplit(':').next().unwrap_or(name);
            match bare.parse::<u64>() {
                Ok(number) => format!("write {number}"),
                Err(_) => {
                    "write the number that `myclaw pairing list` shows, or `@name`".to_owned()
                }
            }
        });
        let accounts = path.clone().key("accounts");
        check_names(self.accounts.keys(), &accounts, findings);
        for (name, account) in &self.accounts {
            let account_path = accounts.clone().key(name);
            if name == DEFAULT_ACCOUNT {
                findings.push(Finding {
                    target: Target::Key,
                    ..finding(
                        account_path.clone(),
                        "the account `default` is that of channels.telegram.botToken",
                        "choose another name",
                    )
                });
            }
            check_url(account.webhook_url.as_deref(), account_path.key("webhookUrl"), findings);
        }
        let words = (
            "expected the number of a group, or `*`",
            "`myclaw channels status` shows the numbers of groups whose messages were dropped",
        );
        check_groups(&self.groups, path, |name| name.parse::<i64>().is_ok(), words, findings);
    }
}

impl ChannelConfig for MatrixConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.access_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let url = Some(self.homeserver_url.as_str());
        check_url(url, path.clone().key("homeserverUrl"), findings);
        let words = (
            "expected the id of a room, which begins with `!`, or `*`",
            "`myclaw channels status` shows the ids of rooms whose messages were dropped; \
                 an address such as #room:example.org can be moved to another room",
        );
        check_groups(&self.groups, path, |name| name.starts_with('!'), words, findings);
    }
}

impl ChannelConfig for SlackConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.app_token, &self.bot_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        for (key, token, wrong, start) in [
            ("appToken", &self.app_token, "xoxb-", "xapp-"),
            ("botToken", &self.bot_token, "xapp-", "xoxb-"),
        ] {
            if token.expose_secret().starts_with(wrong) {
                findings.push(finding(
                    path.clone().key(key),
                    format!("this is the app's other token: it begins with `{wrong}`"),
                    format!("a token for {key} begins with `{start}`"),
                ));
            }
        }
        let words = (
            "expected the id of a channel, which begins with `C` or `G`, or `*`",
            "Slack shows the id at the end of the channel's details; names of channels can change",
        );
        check_groups(&self.groups, path, |name| name.starts_with(['C', 'G']), words, findings);
    }
}

impl ChannelConfig for DiscordConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.bot_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        let words = (
            "expected the id of a channel, which is a number, or `*`",
            "switch on the developer mode of Discord; \"Copy Channel ID\" is in a channel's menu then",
        );
        check_groups(&self.groups, path, |name| name.parse::<u64>().is_ok(), words, findings);
    }
}

/// Whether an entry of `allowFrom` is `*`, which stands for everybody in other programs.
fn is_everybody(person: &ChatId) -> bool {
    matches!(person, ChatId::Name(name) if name.trim() == "*")
}

/// Refuses `*` in `allowFrom`, where it would let nobody in. With an open policy it changes nothing.
fn check_everybody(config: &Config, channels: &ConfigPath, findings: &mut Vec<Finding>) {
    for (name, rules) in config.channels.chat_rules() {
        let place = channels.clone().key(name);
        let found = rules.allow_from.iter().position(is_everybody);
        if let Some(index) = found.filter(|_| rules.dm_policy != DmPolicy::Open) {
            findings.push(finding(
                place.clone().key("allowFrom").index(index),
                "`*` names nobody here",
                format!("to answer everybody, set `channels.{name}.dmPolicy` to \"open\""),
            ));
        }
        for (id, group) in rules.groups {
            let found = group.allow_from.iter().flatten().position(is_everybody);
            if let Some(index) = found {
                findings.push(finding(
                    place.clone().key("groups").key(id).key("allowFrom").index(index),
                    "`*` names nobody here",
                    "to answer everybody in this group, leave `allowFrom` out",
                ));
            }
        }
    }
}

/// Checks that each group is named as the channel names it. `*` stands for all others.
fn check_groups(
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

impl ChannelConfig for SocketConfig {
    fn check(&self, _: &ConfigPath, _: &mut Vec<Finding>) {}
}

impl ChannelConfig for BTreeMap<String, WebhookConfig> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.values().map(|webhook| &webhook.secret).collect()
    }

    fn accounts(&self) -> Vec<&str> {
        self.keys().map(String::as_str).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_names(self.keys(), path, findings);
        for (name, webhook) in self {
            let path = path.clone().key(name);
            check_url(Some(&webhook.url), path.clone().key("url"), findings);
            if webhook.secret.expose_secret().len() < MIN_SECRET {
                findings.push(finding(
                    path.key("secret"),
                    format!("the secret has fewer than {MIN_SECRET} bytes, so it can be guessed"),
                    "use a longer one, such as the output of `openssl rand -hex 32`",
                ));
            }
        }
    }
}

fn check_bindings(config: &Config, findings: &mut Vec<Finding>) {
    let agents = config.agent_ids();
    for (index, binding) in config.bindings.iter().enumerate() {
        let path = root().key("bindings").index(index);
        let id = AgentId::new(&binding.agent_id);
        if !agents.contains(&id) {
            let known = agents.iter().map(AgentId::as_str);
            let help = match nearest(id.as_str(), known.clone()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("known agents: {}", known.collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no agent `{id}`");
            findings.push(finding(path.clone().key("agentId"), message, help));
        }
        check_match(config, &binding.matches, &path.key("match"), findings);
    }
}

/// A group of the host has one chat: what it sends goes there.
fn check_host_bindings(config: &Config, findings: &mut Vec<Finding>) {
    let mut folders = HashSet::new();
    let bindings = config.host.iter().flat_map(|host| &host.bindings);
    for (index, binding) in bindings.enumerate() {
        let path = root().key("host").key("bindings").index(index);
        if !folders.insert(&binding.folder) {
            findings.push(finding(
                path.clone().key("folder"),
                "a group of the host has one chat",
                "add a group for each chat with `myclaw groups add`",
            ));
        }
        let path = path.key("match");
        if binding.matches.peer.is_none() && binding.matches.group.is_none() {
            findings.push(finding(
                path.clone(),
                "a group of the host has one chat, and this names none",
                "add `peer` with the id of a person, or `group` with that of a group",
            ));
        }
        check_match(config, &binding.matches, &path, findings);
    }
}

fn check_match(
    config: &Config,
    rule: &BindingMatch,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let BindingMatch { channel, account, peer, group } = rule;
    if !NAMES.contains(&channel.as_str()) {
        let help = match nearest(channel, NAMES.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("channels: {}", NAMES.join(", ")),
        };
        findings.push(finding(path.clone().key("channel"), "there is no such channel", help));
    } else if let Some(account) = account {
        let all = config.channels.all().into_iter();
        let known = all.filter(|(name, _)| name == channel).flat_map(|(_, found)| found.accounts());
        let known: Vec<&str> = known.collect();
        if !known.contains(&account.as_str()) {
            let help = match nearest(account, known.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("accounts of {channel}: {}", known.join(", ")),
            };
            findings.push(finding(path.clone().key("account"), "there is no such account", help));
        }
    }
    if peer.is_some() && group.is_some() {
        findings.push(finding(
            path.clone().key("group"),
            "a message comes from a person or from a group, not from both",
            "make two bindings",
        ));
    }
}

/// Names of accounts are part of addresses and session keys.
fn check_names<'a>(
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

fn check_url(url: Option<&str>, path: ConfigPath, findings: &mut Vec<Finding>) {
    if let Some(Err(error)) = url.map(Url::parse) {
        let message = format!("no request can be sent to this URL: {error}");
        findings.push(finding(path, message, "a URL is such as \"https://example.com/path\""));
    }
}

impl ChatId {
    /// Whether this is the chat or person with the id `id`, or with the name `handle`, which has no `@`.
    pub fn is(&self, id: &str, handle: Option<&str>) -> bool {
        match self {
            Self::Number(number) => number.to_string() == id,
            Self::Name(name) if name.trim() == id => true,
            Self::Name(name) => match name.trim().strip_prefix('@') {
                Some(name) => handle.is_some_and(|handle| handle.eq_ignore_ascii_case(name)),
                None => false,
            },
        }
    }
}
