//! The account of e-mail.

use std::sync::Arc;

use myclaw_agent::config::{
    ConnectionSecurity, DEFAULT_ACCOUNT, EmailConfig, ExposeSecret as _, MailServerConfig,
    MailSession, SenderCheckConfig, UncertainDelivery,
};
use myclaw_channels::{
    AfterInterruption, Channel, Credentials, EMAIL, Email, EmailOptions, Login, MailChat, Security,
    SenderCheck, ServerAddress,
};

use super::{ChannelSetup, MEGABYTE, fingerprint};

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
    let secret = config.password.as_ref().or(config.access_token.as_ref());
    let fingerprint = fingerprint(&[
        secret.map_or("", |secret| secret.expose_secret()),
        &format!("{:?} {}", config.display_name, config.password.is_some()),
        &format!("{:?} {:?}", (&config.address, &config.user, &config.mailbox), config.imap),
        &format!("{:?} {:?} {:?}", config.smtp, config.sender_check, config.authserv_id),
        &format!("{:?} {:?} {}", config.session_per, config.uncertain, config.media_max_mb),
    ]);
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
        after_interruption: match config.uncertain {
            UncertainDelivery::Report => AfterInterruption::Report,
            UncertainDelivery::Again => AfterInterruption::SendMarked,
        },
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
