//! Mistakes in an account of e-mail.

use secrecy::SecretString;

use super::super::{Finding, finding};
use crate::config_path::ConfigPath;
use crate::schema::{
    ChannelConfig, ChatRules, ConnectionSecurity, EmailConfig, MailServerConfig, SenderCheckConfig,
};

impl ChannelConfig for EmailConfig {
    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.password.iter().chain(&self.access_token).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_address = |address: &str| {
            let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"<>()[]\\,;:\"".contains(&byte);
            let parts = address.split('@').collect::<Vec<_>>();
            matches!(parts[..], [local, domain] if !local.is_empty() && !domain.is_empty())
                && !address.bytes().any(is_odd)
        };
        if !is_address(&self.address) {
            findings.push(finding(
                path.clone().key("address"),
                "expected one address, without a name",
                "an address is such as \"claw@example.org\"; `displayName` is for the name",
            ));
        }
        match (&self.password, &self.access_token) {
            (None, None) => findings.push(finding(
                path.clone(),
                "there is neither `password` nor `accessToken`",
                "add one, such as password: \"${EMAIL_PASSWORD}\"",
            )),
            (Some(_), Some(_)) => findings.push(finding(
                path.clone().key("accessToken"),
                "there is a `password` as well",
                "keep one of both",
            )),
            _ => {}
        }
        if self.sender_check == SenderCheckConfig::Required && self.authserv_id.is_none() {
            findings.push(finding(
            path.clone(),
            "`authservId` is missing, so nobody can tell forged senders",
            "open a mail of this account, show its source, and use the first word of the field Authentication-Results; \
             if there is none, every sender can be forged: docs/channels/email.md says what senderCheck: \"none\" means",
        ));
        }
        check_server(&self.imap, path.clone().key("imap"), findings);
        check_server(&self.smtp, path.clone().key("smtp"), findings);
        if !self.mailbox.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            findings.push(finding(
                path.clone().key("mailbox"),
                "only names in ASCII can be used",
                "write the name as IMAP does, such as \"Entw&APw-rfe\"",
            ));
        }
    }
}

fn check_server(server: &MailServerConfig, path: ConfigPath, findings: &mut Vec<Finding>) {
    if server.security == ConnectionSecurity::None && !is_of_this_machine(&server.host) {
        findings.push(finding(
            path.clone().key("security"),
            "the password and all messages could be read on the way",
            "use \"tls\" or \"starttls\"; \"none\" is for 127.0.0.1, ::1 and localhost",
        ));
    }
    if server.host.contains("://") || server.host.contains('/') {
        findings.push(finding(
            path.key("host"),
            "expected the name of a server, not a URL",
            "a name is such as \"mail.example.org\"; `port` is for the port",
        ));
    }
}

/// Whether whatever is sent there stays on this machine.
pub(super) fn is_of_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
