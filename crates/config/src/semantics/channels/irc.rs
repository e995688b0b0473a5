//! Mistakes in an account on a network of IRC.

use secrecy::SecretString;

use super::super::{Finding, finding};
use super::check_groups;
use super::email::is_of_this_machine;
use crate::config_path::ConfigPath;
use crate::schema::{ChannelConfig, ChatRules, IrcConfig};

/// Longest nickname and longest name of a channel, in bytes.
const MOST_NICK: usize = 30;
const MOST_CHANNEL: usize = 50;

impl ChannelConfig for IrcConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.sasl.iter().map(|sasl| &sasl.password).chain(&self.server_password).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_[]{}\\|^`".contains(c);
        let is_start = |c: char| is_plain(c) && !c.is_ascii_digit() && c != '-';
        if self.nick.len() > MOST_NICK
            || !self.nick.starts_with(is_start)
            || !self.nick.chars().all(is_plain)
        {
            findings.push(finding(
            path.clone().key("nick"),
            "this cannot be a nickname",
            format!(
                "use letters, digits, `-` and `_`, at most {MOST_NICK}, with a letter at the start"
            ),
        ));
        }
        if !self.tls && !is_of_this_machine(&self.host) {
            findings.push(finding(
                path.clone().key("tls"),
                "the password and all messages could be read on the way",
                "leave it out; false is for 127.0.0.1, ::1 and localhost",
            ));
        }
        if let Some(password) = &self.server_password
            && secrecy::ExposeSecret::expose_secret(password).contains(['\r', '\n', '\0'])
        {
            findings.push(finding(
                path.clone().key("serverPassword"),
                "a password has one line",
                "check the variable that it comes from",
            ));
        }
        let is_channel = |name: &str| {
            name.starts_with(['#', '&'])
                && name.len() <= MOST_CHANNEL
                && !name.contains([' ', ',', ':', '\u{7}'])
                && !name.contains(char::is_control)
                && *name == name.to_ascii_lowercase()
        };
        let words =
            ("expected the name of a channel in lower case, or `*`", "a name is such as \"#team\"");
        check_groups(&self.groups, path, is_channel, words, findings);
    }
}
