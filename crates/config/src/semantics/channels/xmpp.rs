//! Mistakes in an account of XMPP.

use secrecy::SecretString;

use super::super::{Finding, finding};
use super::check_groups;
use super::email::is_of_this_machine;
use crate::config_path::ConfigPath;
use crate::schema::{ChannelConfig, ChatRules, ConnectionSecurity, XmppConfig};

impl ChannelConfig for XmppConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.password]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_address = |address: &str| {
            let is_odd = |c: char| c.is_control() || c.is_whitespace() || "/\"&'<>".contains(c);
            let parts = address.split('@').collect::<Vec<_>>();
            matches!(parts[..], [local, domain] if !local.is_empty() && !domain.is_empty())
                && !address.contains(is_odd)
        };
        if !is_address(&self.address) {
            findings.push(finding(
                path.clone().key("address"),
                "expected an address without a resource",
                "an address is such as \"claw@example.org\"",
            ));
        }
        let domain = self.address.split('@').next_back().unwrap_or_default();
        let host = self.host.as_deref().unwrap_or(domain);
        if self.security == ConnectionSecurity::None && !is_of_this_machine(host) {
            findings.push(finding(
                path.clone().key("security"),
                "the password and all messages could be read on the way",
                "use \"starttls\" or \"tls\"; \"none\" is for 127.0.0.1, ::1 and localhost",
            ));
        }
        if host.contains(['/', ':']) && host.parse::<std::net::IpAddr>().is_err() {
            findings.push(finding(
                path.clone().key("host"),
                "expected the name of a server, not a URL",
                "a name is such as \"xmpp.example.org\"; `port` is for the port",
            ));
        }
        let is_room = |name: &str| is_address(name) && *name == name.to_lowercase();
        let words = (
            "expected the address of a room in lower case, or `*`",
            "an address is such as \"team@rooms.example.org\"",
        );
        check_groups(&self.groups, path, is_room, words, findings);
    }
}
