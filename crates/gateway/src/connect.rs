//! Makes the channels that the config names.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_channels::{
    AcceptsInvite, AfterInterruption, Channel, DISCORD, DISCORD_BASE_URL, Discord, DiscordOptions,
    MATRIX, Matrix, MatrixOptions, SIGNAL, SIGNAL_BASE_URL, SLACK, SLACK_BASE_URL, SOCKET, Signal,
    SignalOptions, Slack, SlackOptions, SocketChannel, SocketOptions, TELEGRAM, TELEGRAM_BASE_URL,
    Telegram, TelegramOptions, WEBHOOK, WHATSAPP, WHATSAPP_BASE_URL, WHATSAPP_VERSION, Webhook,
    WebhookOptions, WhatsApp, WhatsAppApp, WhatsAppOptions, WhatsAppTemplate,
};
use myclaw_config::{
    Config, DEFAULT_ACCOUNT, DiscordConfig, DmPolicy, GroupPolicy, MatrixConfig, SignalConfig,
    SlackConfig, TelegramBot, TelegramConfig, UncertainDelivery, WhatsAppConfig, WhatsAppNumber,
    digest, secret_digest,
};
use myclaw_delivery::channels::ChannelSetup;
use myclaw_gateway_client::gateway_directory;
use serde::Serialize;

use crate::GatewayError;

mod email;
mod irc;
mod xmpp;

/// The socket in the gateway's directory.
const SOCKET_FILE: &str = "socket";
/// The keys of encrypted rooms in the gateway's directory.
const MATRIX_KEYS_FILE: &str = "matrix-keys.sqlite";
const MEGABYTE: u64 = 1024 * 1024;

/// The channels of a config. Nothing is sent yet.
pub fn channels_of(home: &Home, config: &Config) -> Vec<ChannelSetup> {
    let mut setups = Vec::new();
    if let Some(telegram) = &config.channels.telegram {
        setups.extend(telegram.bots().map(|bot| telegram_of(telegram, bot)));
    }
    setups.extend(config.channels.matrix.as_ref().map(|matrix| matrix_of(home, matrix)));
    setups.extend(config.channels.email.as_ref().map(email::set_up));
    if let Some(whatsapp) = &config.channels.whatsapp {
        let app = WhatsAppApp::default();
        setups.extend(whatsapp.numbers().map(|number| whatsapp_of(whatsapp, number, &app)));
    }
    setups.extend(config.channels.signal.as_ref().map(signal_of));
    setups.extend(config.channels.irc.as_ref().map(irc::set_up));
    setups.extend(config.channels.xmpp.as_ref().map(|account| xmpp::set_up(config, account)));
    setups.extend(config.channels.slack.as_ref().map(slack_of));
    setups.extend(config.channels.discord.as_ref().map(discord_of));
    for (name, webhook) in &config.channels.webhook {
        let fingerprint = digest(webhook, &[]);
        let options = WebhookOptions {
            account: name.clone(),
            secret: webhook.secret.clone(),
            url: webhook.url.clone(),
        };
        let made = Webhook::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
        setups.push(ChannelSetup { channel: WEBHOOK, account: name.clone(), made, fingerprint });
    }
    if let Some(socket) = &config.channels.socket {
        let path = socket_path(home, socket.path.as_deref());
        let fingerprint = digest(socket, &[]);
        let made = path
            .map(|path| Arc::new(SocketChannel::new(SocketOptions { path })) as Arc<dyn Channel>);
        let account = DEFAULT_ACCOUNT.to_owned();
        let made = made.map_err(|error| error.to_string());
        setups.push(ChannelSetup { channel: SOCKET, account, made, fingerprint });
    }
    setups
}

fn telegram_of(config: &TelegramConfig, bot: TelegramBot<'_>) -> ChannelSetup {
    let mut options = TelegramOptions::new(bot.account, bot.token.clone());
    options.base_url = config.base_url.clone().unwrap_or_else(|| TELEGRAM_BASE_URL.to_owned());
    options.webhook = bot.webhook_url.map(str::to_owned);
    options.preview = config.preview;
    options.most_file_bytes = config.media_max_mb * MEGABYTE;
    options.after_interruption = after_interruption(config.uncertain);
    let token = secret_digest(bot.token).to_string();
    let fingerprint =
        connection_of(config, &["allowedChatIds", "botToken", "accounts", "webhookUrl"])
            ^ digest(&(bot.account, token, bot.webhook_url), &[]);
    let made = Telegram::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: TELEGRAM, account: bot.account.to_owned(), made, fingerprint }
}

fn after_interruption(choice: UncertainDelivery) -> AfterInterruption {
    match choice {
        UncertainDelivery::Report => AfterInterruption::Report,
        UncertainDelivery::Again => AfterInterruption::SendMarked,
    }
}

fn whatsapp_of(
    config: &WhatsAppConfig,
    number: WhatsAppNumber<'_>,
    app: &WhatsAppApp,
) -> ChannelSetup {
    let template = config.template.as_ref().map(|template| WhatsAppTemplate {
        name: template.name.clone(),
        language: template.language.clone(),
    });
    let options = WhatsAppOptions {
        account: number.account.to_owned(),
        phone_number_id: number.phone_number_id.to_owned(),
        base_url: config.base_url.clone().unwrap_or_else(|| WHATSAPP_BASE_URL.to_owned()),
        version: config.api_version.clone().unwrap_or_else(|| WHATSAPP_VERSION.to_owned()),
        token: config.access_token.clone(),
        app_secret: config.app_secret.clone(),
        verify_token: config.verify_token.clone(),
        after_interruption: after_interruption(config.uncertain),
        most_file_bytes: config.media_max_mb * MEGABYTE,
        template,
    };
    // Each number hands on what is posted for another one, so all of them are connected again if one changes.
    let fingerprint = connection_of(config, &[]);
    let made = WhatsApp::new(options, app).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: WHATSAPP, account: number.account.to_owned(), made, fingerprint }
}

fn signal_of(config: &SignalConfig) -> ChannelSetup {
    let options = SignalOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        number: config.account.clone(),
        base_url: config.base_url.clone().unwrap_or_else(|| SIGNAL_BASE_URL.to_owned()),
        after_interruption: after_interruption(config.uncertain),
        most_file_bytes: config.media_max_mb * MEGABYTE,
    };
    let fingerprint = connection_of(config, &[]);
    let made = Signal::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: SIGNAL, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

/// Keys that say who may write and what a model gets of it. They are read for each message, so no connection depends on them.
const RULES: [&str; 7] =
    ["allowFrom", "dmHistoryLimit", "dmPolicy", "groupPolicy", "groups", "historyLimit", "tools"];

/// The fingerprint of a channel that connects in the same way whatever its rules and `others` are.
fn connection_of(config: &impl Serialize, others: &[&str]) -> u64 {
    digest(config, &[&RULES, others].concat())
}

fn matrix_of(home: &Home, config: &MatrixConfig) -> ChannelSetup {
    let options = MatrixOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        base_url: config.homeserver_url.clone(),
        token: config.access_token.clone(),
        accepts_invite: accepts_invite(config),
        most_file_bytes: config.media_max_mb * MEGABYTE,
        preview: config.preview,
        keys: gateway_directory(home).join(MATRIX_KEYS_FILE),
    };
    // Who may invite is a rule.
    let fingerprint = digest(config, &[]);
    let made = Matrix::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: MATRIX, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

fn slack_of(config: &SlackConfig) -> ChannelSetup {
    let options = SlackOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        app_token: config.app_token.clone(),
        bot_token: config.bot_token.clone(),
        base_url: config.base_url.clone().unwrap_or_else(|| SLACK_BASE_URL.to_owned()),
        most_file_bytes: config.media_max_mb * MEGABYTE,
        preview: config.preview,
    };
    let fingerprint = connection_of(config, &[]);
    let made = Slack::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: SLACK, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

fn discord_of(config: &DiscordConfig) -> ChannelSetup {
    let options = DiscordOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        token: config.bot_token.clone(),
        base_url: config.base_url.clone().unwrap_or_else(|| DISCORD_BASE_URL.to_owned()),
        most_file_bytes: config.media_max_mb * MEGABYTE,
        preview: config.preview,
    };
    let fingerprint = connection_of(config, &[]);
    let made = Discord::new(options).map(|channel| Arc::new(channel) as Arc<dyn Channel>);
    ChannelSetup { channel: DISCORD, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

/// A room is joined if something in it can be answered. Whether a room is for two people only shows later, so an invitation
/// counts as one to a direct chat as well.
fn accepts_invite(config: &MatrixConfig) -> AcceptsInvite {
    let config = config.clone();
    Arc::new(move |room, inviter| {
        let is_group = match config.group_policy {
            GroupPolicy::Disabled => false,
            GroupPolicy::Open => true,
            GroupPolicy::Allowlist => [room, "*"].iter().any(|id| config.groups.contains_key(*id)),
        };
        let is_person = match config.dm_policy {
            DmPolicy::Disabled => false,
            DmPolicy::Allowlist => config.allow_from.iter().any(|id| id.is(inviter, None)),
            DmPolicy::Open | DmPolicy::Pairing => true,
        };
        config.auto_join && (is_group || is_person)
    })
}

fn socket_path(home: &Home, configured: Option<&str>) -> Result<PathBuf, GatewayError> {
    match configured {
        Some(path) => home
            .paths
            .resolve_in_config(path)
            .map_err(|error| GatewayError::Unusable(error.to_string())),
        None => Ok(gateway_directory(home).join(SOCKET_FILE)),
    }
}
