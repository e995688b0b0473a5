//! The account of e-mail.

use std::sync::Arc;

use myclaw_channels::{
    Channel, Credentials, EMAIL, Email, EmailOptions, Login, MailChat, Security, SenderCheck,
    ServerAddress,
};
use myclaw_config::{
    ConnectionSecurity, DEFAULT_ACCOUNT, EmailConfig, MailServerConfig, MailSession,
    SenderCheckConfig,
};
use myclaw_delivery::channels::ChannelSetup;

use super::{MEGABYTE, after_interruption, connection_of};

/// The usual ports: those with TLS from the start, and the others (RFC 8314).
#[derive(Clone, Copy)]
struct Ports {
    tls: u16,
    other: u16,
}

const IMAP: Ports = Ports { tls: 993, other: 143 };
const SMTP: Ports = Ports { tls: 465, other: 587 };

pub(super) fn set_up(config: &EmailConfig) -> ChannelSetup {
    let made = options(config).map(|options| Arc::new(Email::new(options)) as Arc<dyn Channel>);
    let fingerprint = connection_of(config, &[]);
    ChannelSetup { channel: EMAIL, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

fn options(config: &EmailConfig) -> Result<EmailOptions, String> {
    let login = match (&config.password, &config.access_token) {
        (Some(password), _) => Login::Password(password.clone()),
        (None, Some(token)) => Login::Token(token.clone()),
        // The check of the config has said so already.
        (None, None) => {
            return Err("channels.email has neither password nor accessToken".to_owned());
        }
    };
    let sender_check = match (config.sender_check, &config.authserv_id) {
        (SenderCheckConfig::None, _) => SenderCheck::Nobody,
        (SenderCheckConfig::Required, Some(server)) => SenderCheck::By(server.trim().to_owned()),
        (SenderCheckConfig::Required, None) => {
            return Err("channels.email.authservId is missing".to_owned());
        }
    };
    let user = config.user.as_ref().unwrap_or(&config.address).clone();
    Ok(EmailOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        address: config.address.clone(),
        display_name: config.display_name.clone(),
        imap: server(&config.imap, IMAP),
        smtp: server(&config.smtp, SMTP),
        credentials: Credentials { user, login },
        mailbox: config.mailbox.clone(),
        sender_check,
        chat: match config.session_per {
            MailSession::Person => MailChat::Person,
            MailSession::Thread => MailChat::Thread,
        },
        most_bytes: config.media_max_mb * MEGABYTE,
        after_interruption: after_interruption(config.uncertain),
    })
}

fn server(config: &MailServerConfig, usual: Ports) -> ServerAddress {
    let (security, port) = match config.security {
        ConnectionSecurity::Tls => (Security::Tls, usual.tls),
        ConnectionSecurity::StartTls => (Security::StartTls, usual.other),
        ConnectionSecurity::None => (Security::Plain, usual.other),
    };
    ServerAddress { host: config.host.clone(), port: config.port.unwrap_or(port), security }
}
