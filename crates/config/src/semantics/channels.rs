//! Mistakes in channels and bindings.

mod phone;

use std::collections::{BTreeMap, HashSet};

use secrecy::ExposeSecret as _;
use url::Url;

use super::{Finding, finding, root};
use crate::agent::AgentId;
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{
    BindingMatch, ChatId, Config, DEFAULT_ACCOUNT, DiscordConfig, DmPolicy, GroupConfig,
    MatrixConfig, SlackConfig, TelegramConfig, WebhookConfig, WhatsAppConfig,
};
use crate::suggest::nearest;

mod email;
mod irc;
mod people;
mod xmpp;

/// The channels that messages can come from.
const CHANNELS: [&str; 11] = [
    "telegram", "matrix", "email", "slack", "discord", "whatsapp", "signal", "irc", "xmpp",
    "webhook", "socket",
];
/// Shortest secret of a webhook, in bytes. Shorter ones can be guessed.
const MIN_SECRET: usize = 16;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    people::check(config, findings);
    let channels = root().key("channels");
    if let Some(telegram) = &config.channels.telegram {
        check_telegram(telegram, &channels.clone().key("telegram"), findings);
    }
    if let Some(matrix) = &config.channels.matrix {
        check_matrix(matrix, &channels.clone().key("matrix"), findings);
    }
    if let Some(account) = &config.channels.email {
        email::check(account, findings);
    }
    phone::check(&config.channels, &channels, findings);
    config.channels.irc.iter().for_each(|account| irc::check(account, findings));
    config.channels.xmpp.iter().for_each(|account| xmpp::check(account, findings));
    if let Some(slack) = &config.channels.slack {
        check_slack(slack, &channels.clone().key("slack"), findings);
    }
    if let Some(discord) = &config.channels.discord {
        check_discord(discord, &channels.clone().key("discord"), findings);
    }
    check_everybody(config, &channels, findings);
    check_webhooks(&config.channels.webhook, &channels.key("webhook"), findings);
    check_bindings(config, findings);
    check_host_bindings(config, findings);
}

/// The mistake at `path`, if there is no channel with the name that stands there.
pub(super) fn channel_problem(name: &str, path: ConfigPath) -> Option<Finding> {
    let help = || match nearest(name, CHANNELS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the channels are {}", CHANNELS.join(", ")),
    };
    (!CHANNELS.contains(&name)).then(|| finding(path, "there is no channel of this name", help()))
}

fn check_telegram(telegram: &TelegramConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let urls = [("baseUrl", &telegram.base_url), ("webhookUrl", &telegram.webhook_url)];
    for (key, url) in urls {
        check_url(url.as_deref(), path.clone().key(key), findings);
    }
    let is_person = |name: &str| name.starts_with('@') || name.parse::<u64>().is_ok();
    phone::check_people(&telegram.allow_from, path, is_person, findings, |name| {
        let bare = name.rsplit(':').next().unwrap_or(name);
        match bare.parse::<u64>() {
            Ok(number) => format!("write {number}"),
            Err(_) => "write the number that `myclaw pairing list` shows, or `@name`".to_owned(),
        }
    });
    let accounts = path.clone().key("accounts");
    check_names(telegram.accounts.keys(), &accounts, findings);
    for (name, account) in &telegram.accounts {
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
    check_groups(&telegram.groups, path, |name| name.parse::<i64>().is_ok(), words, findings);
}

fn check_matrix(matrix: &MatrixConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let url = Some(matrix.homeserver_url.as_str());
    check_url(url, path.clone().key("homeserverUrl"), findings);
    let words = (
        "expected the id of a room, which begins with `!`, or `*`",
        "`myclaw channels status` shows the ids of rooms whose messages were dropped; \
                 an address such as #room:example.org can be moved to another room",
    );
    check_groups(&matrix.groups, path, |name| name.starts_with('!'), words, findings);
}

fn check_slack(slack: &SlackConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    check_url(slack.base_url.as_deref(), path.clone().key("baseUrl"), findings);
    for (key, token, wrong, start) in [
        ("appToken", &slack.app_token, "xoxb-", "xapp-"),
        ("botToken", &slack.bot_token, "xapp-", "xoxb-"),
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
    check_groups(&slack.groups, path, |name| name.starts_with(['C', 'G']), words, findings);
}

fn check_discord(discord: &DiscordConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    check_url(discord.base_url.as_deref(), path.clone().key("baseUrl"), findings);
    let words = (
        "expected the id of a channel, which is a number, or `*`",
        "switch on the developer mode of Discord; \"Copy Channel ID\" is in a channel's menu then",
    );
    check_groups(&discord.groups, path, |name| name.parse::<u64>().is_ok(), words, findings);
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

fn check_webhooks(
    webhooks: &BTreeMap<String, WebhookConfig>,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    check_names(webhooks.keys(), path, findings);
    for (name, webhook) in webhooks {
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
    if !CHANNELS.contains(&channel.as_str()) {
        let help = match nearest(channel, CHANNELS) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("channels: {}", CHANNELS.join(", ")),
        };
        findings.push(finding(path.clone().key("channel"), "there is no such channel", help));
    } else if let Some(account) = account {
        let known = accounts(config, channel);
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

fn accounts<'a>(config: &'a Config, channel: &str) -> Vec<&'a str> {
    match channel {
        "webhook" => config.channels.webhook.keys().map(String::as_str).collect(),
        "telegram" => config
            .channels
            .telegram
            .iter()
            .flat_map(TelegramConfig::bots)
            .map(|bot| bot.account)
            .collect(),
        "whatsapp" => {
            let whatsapp = config.channels.whatsapp.iter();
            whatsapp.flat_map(WhatsAppConfig::numbers).map(|number| number.account).collect()
        }
        _ => vec![DEFAULT_ACCOUNT],
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
