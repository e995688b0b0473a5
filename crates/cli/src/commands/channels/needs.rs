//! What each kind of channel needs, for `channels add` and `onboard`.

use clap::ValueEnum as _;
use serde_json::{Value, json};

use crate::args::{AddChannelArgs, ChannelKind, DISCORD_BOT, SLACK_APP, SLACK_BOT};

/// What a kind of channel needs.
pub(in crate::commands) struct Needs {
    pub(in crate::commands) kind: ChannelKind,
    pub(in crate::commands) fields: &'static [Field],
    /// The first is the one whose variable an option can name.
    pub(in crate::commands) secrets: &'static [Secret],
}

/// A value that is no secret.
pub(in crate::commands) struct Field {
    /// Its key in the config, with a dot before one within it.
    pub(in crate::commands) key: &'static str,
    pub(in crate::commands) given: Given,
    /// What it is, for people; `None` if the channel works without it.
    pub(in crate::commands) what: Option<&'static str>,
}

/// A secret.
pub(in crate::commands) struct Secret {
    pub(in crate::commands) key: &'static str,
    /// The usual variable for it.
    pub(in crate::commands) usual: &'static str,
    /// How to get it.
    pub(in crate::commands) whence: &'static str,
}

/// The option of `channels add` that gives a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Given {
    Url,
    Address,
    Imap,
    Smtp,
    AuthservId,
    Id,
    Host,
    Nick,
}

impl Given {
    pub(super) const ALL: [Self; 8] = [
        Self::Url,
        Self::Address,
        Self::Imap,
        Self::Smtp,
        Self::AuthservId,
        Self::Id,
        Self::Host,
        Self::Nick,
    ];

    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Url => "--url",
            Self::Address => "--address",
            Self::Imap => "--imap",
            Self::Smtp => "--smtp",
            Self::AuthservId => "--authserv-id",
            Self::Id => "--id",
            Self::Host => "--host",
            Self::Nick => "--nick",
        }
    }

    pub(super) fn of(self, args: &AddChannelArgs) -> Option<&String> {
        let given = match self {
            Self::Url => &args.url,
            Self::Address => &args.address,
            Self::Imap => &args.imap,
            Self::Smtp => &args.smtp,
            Self::AuthservId => &args.authserv_id,
            Self::Id => &args.id,
            Self::Host => &args.host,
            Self::Nick => &args.nick,
        };
        given.as_ref()
    }
}

const fn field(key: &'static str, given: Given, what: &'static str) -> Field {
    Field { key, given, what: Some(what) }
}

const fn optional(key: &'static str, given: Given) -> Field {
    Field { key, given, what: None }
}

const fn secret(key: &'static str, usual: &'static str, whence: &'static str) -> Secret {
    Secret { key, usual, whence }
}

const ADDRESS: Field =
    field("address", Given::Address, "the account's own address, such as claw@example.org");
/// The vendor's own unless it is given.
const BASE_URL: Field = optional("baseUrl", Given::Url);

static NEEDS: [Needs; 11] = [
    Needs {
        kind: ChannelKind::Telegram,
        fields: &[BASE_URL],
        secrets: &[secret(
            "botToken",
            "TELEGRAM_BOT_TOKEN",
            "Talk with @BotFather on Telegram to make a bot; it gives you a token.",
        )],
    },
    Needs {
        kind: ChannelKind::Matrix,
        fields: &[field(
            "homeserverUrl",
            Given::Url,
            "the address of the homeserver, such as https://matrix.example.org",
        )],
        secrets: &[secret(
            "accessToken",
            "MATRIX_ACCESS_TOKEN",
            "Make an account for the agent, and log in with it once; docs/channels/matrix.md has the command.",
        )],
    },
    Needs {
        kind: ChannelKind::Email,
        fields: &[
            ADDRESS,
            field(
                "imap.host",
                Given::Imap,
                "the server where mails are read, such as imap.example.org",
            ),
            field(
                "smtp.host",
                Given::Smtp,
                "the server where mails are sent, such as smtp.example.org",
            ),
            field(
                "authservId",
                Given::AuthservId,
                "the first word of the field Authentication-Results in the mails that it receives (docs/channels/email.md)",
            ),
        ],
        secrets: &[secret(
            "password",
            "EMAIL_PASSWORD",
            "It is the password of the account; many providers want one for this program alone.",
        )],
    },
    Needs {
        kind: ChannelKind::WhatsApp,
        fields: &[
            field(
                "phoneNumberId",
                Given::Id,
                "the id of the phone number, from the page API Setup of the app",
            ),
            BASE_URL,
        ],
        secrets: &[
            secret(
                "accessToken",
                "WHATSAPP_ACCESS_TOKEN",
                "It is the permanent token of a system user; docs/channels/whatsapp.md says how to get it.",
            ),
            secret(
                "appSecret",
                "WHATSAPP_APP_SECRET",
                "It is the app secret, in the basic settings of the app at developers.facebook.com.",
            ),
            secret(
                "verifyToken",
                "WHATSAPP_VERIFY_TOKEN",
                "It is a random text, such as the output of `openssl rand -hex 32`, which you also enter at Meta.",
            ),
        ],
    },
    Needs {
        kind: ChannelKind::Signal,
        fields: &[
            field("account", Given::Id, "the phone number, such as +4915112345678"),
            BASE_URL,
        ],
        secrets: &[],
    },
    Needs {
        kind: ChannelKind::Irc,
        fields: &[
            field("host", Given::Host, "the server, such as irc.example.org"),
            field("nick", Given::Nick, "the nickname"),
        ],
        secrets: &[],
    },
    Needs {
        kind: ChannelKind::Xmpp,
        fields: &[ADDRESS, optional("host", Given::Host), optional("nick", Given::Nick)],
        secrets: &[secret("password", "XMPP_PASSWORD", "It is the password of the account.")],
    },
    Needs {
        kind: ChannelKind::Slack,
        fields: &[BASE_URL],
        secrets: &[
            secret("botToken", "SLACK_BOT_TOKEN", SLACK_BOT),
            secret("appToken", "SLACK_APP_TOKEN", SLACK_APP),
        ],
    },
    Needs {
        kind: ChannelKind::Discord,
        fields: &[BASE_URL],
        secrets: &[secret("botToken", "DISCORD_BOT_TOKEN", DISCORD_BOT)],
    },
    Needs {
        kind: ChannelKind::Webhook,
        fields: &[field(
            "url",
            Given::Url,
            "where answers are posted, such as http://127.0.0.1:8080/answers",
        )],
        secrets: &[secret(
            "secret",
            "WEBHOOK_SECRET",
            "It is a random secret, such as the output of `openssl rand -hex 32`.",
        )],
    },
    Needs { kind: ChannelKind::Socket, fields: &[], secrets: &[] },
];

/// What a kind needs.
pub(in crate::commands) fn needs(kind: ChannelKind) -> &'static Needs {
    let [.., nothing] = &NEEDS;
    NEEDS.iter().find(|needs| needs.kind == kind).unwrap_or(nothing)
}

/// The name of a kind in the config and for people.
pub(in crate::commands) fn name(kind: ChannelKind) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// A reference to a variable, as the config writes it.
pub(in crate::commands) fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
}

/// Puts `new` into the config of a channel under a key such as `imap.host`.
pub(in crate::commands) fn put(value: &mut Value, key: &str, new: Value) {
    match key.split_once('.') {
        Some((outer, inner)) if value[outer].is_object() => value[outer][inner] = new,
        Some((outer, inner)) => value[outer] = json!({inner: new}),
        None => value[key] = new,
    }
}
