//! Questions of chats that nobody can answer there.

use myclaw_config::{Config, ConfigPath, ExecAsk, ExecRules, ExecSecurity};
use myclaw_policy::Level;

use super::levels;

/// Where nothing can be answered: letters may be forged, and come late.
const LETTERS: &str = "email";

/// Questions of chats that nobody can answer there, and people and chats of channels that are not set up: what is wrong, and
/// what to do about it.
pub fn unanswered_questions(config: &Config) -> Vec<(String, String)> {
    let approvals = &config.tools.approvals;
    let names = config.channels.chat_rules().map(|(name, _)| name);
    let chats: Vec<&str> = names.filter(|name| *name != LETTERS).collect();
    let mut found = Vec::new();
    for name in chats.iter().filter(|name| !approvals.has_owner(name)) {
        let Some(place) = asks_in(config, name) else { continue };
        // The owner's own chat gets the questions of sessions in which others write.
        let elsewhere = match approvals.chat() {
            Some((channel, _)) if approvals.has_owner(channel) => {
                "; the chat tools.approvals.sendTo answers those of other people"
            }
            _ => "",
        };
        found.push((
            format!("{place} asks in chats of {name}, where nobody can answer{elsewhere}"),
            format!(
                "add yourself to tools.approvals.owners as \"{name}:ID\" (/status in the chat shows the ID), or answer in \
                 the web chat or with `myclaw attach`"
            ),
        ));
    }
    let is_set_up = |channel: &str| chats.contains(&channel);
    let channel_of = |entry: &str| entry.split(':').next().unwrap_or_default().to_owned();
    for owner in approvals.owners.iter().filter(|owner| !is_set_up(&channel_of(owner))) {
        found.push((
            format!("tools.approvals.owners names {owner}, whose channel is not set up"),
            format!("set up channels.{}, or take the entry out", channel_of(owner)),
        ));
    }
    if let Some(chat) = &approvals.send_to {
        let channel = channel_of(chat);
        if !is_set_up(&channel) {
            found.push((
                format!("tools.approvals.sendTo is {chat}, whose channel is not set up"),
                format!("set up channels.{channel}, or name another chat of yours"),
            ));
        } else if !approvals.has_owner(&channel) {
            found.push((
                format!("nobody can answer in {chat}, the chat of tools.approvals.sendTo"),
                format!("add yourself to tools.approvals.owners as \"{channel}:ID\""),
            ));
        }
    }
    found
}

/// The first rule that asks about calls in the chats of a channel.
fn asks_in(config: &Config, channel: &str) -> Option<ConfigPath> {
    let is_of = |level: &Level| match level {
        Level::Channel(name) => name == channel,
        Level::Sender(name) => name.split_once(':').is_none_or(|(of, _)| of == channel),
        _ => true,
    };
    let tools = levels::tool_levels(config, None).into_iter();
    let mut tools = tools.filter(|it| is_of(&it.level));
    let of_tools = tools.find(|it| it.rules.ask.as_ref().is_some_and(|ask| !ask.is_empty()));
    let of_tools = of_tools.map(|it| it.place.key("ask"));
    let exec = levels::exec_levels(config, None).into_iter().map(|it| (it.place, it.rules));
    let sandboxes = levels::all_sandboxes(config).into_iter();
    let sandboxes = sandboxes.map(|(place, rules)| (place.key("exec"), rules.exec));
    let of_commands = || exec.chain(sandboxes).find(|(_, rules)| asks(rules));
    of_tools.or_else(|| of_commands().map(|(place, _)| place))
}

/// Whether rules ask about commands.
fn asks(rules: &ExecRules) -> bool {
    rules.ask == Some(ExecAsk::Always)
        || rules.security == Some(ExecSecurity::Allowlist) && rules.ask != Some(ExecAsk::Off)
}
