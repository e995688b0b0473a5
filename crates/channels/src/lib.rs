//! Ways to reach the agent: the trait [`Channel`], and one module for each channel behind it.
//!
//! A channel receives messages from its vendor and hands each to an [`Intake`], which returns only when the message is
//! on disk; only then does the channel acknowledge it. It sends the parts of replies, and says what happens to a part
//! whose sending was interrupted. Which session a message belongs to, who may write, and what is said is decided
//! elsewhere: this crate does not know the gateway, sessions, models or the config file.
#![forbid(unsafe_code)]

mod arrival;
mod channel;
mod discord;
mod email;
mod form;
mod hook;
pub mod http;
mod irc;
#[cfg(test)]
mod kinds;
mod lanes;
mod marks;
mod markup;
mod matrix;
mod mention;
mod pace;
mod part_file;
mod passage;
mod pause;
mod recent;
mod send_failure;
mod shell;
mod signal;
mod signature;
mod slack;
#[cfg_attr(windows, path = "socket/windows.rs")]
mod socket;
mod split;
mod table;
mod taking;
mod telegram;
mod walk;
mod webhook;
mod whatsapp;
mod wire;
mod ws;
mod xmpp;

pub use arrival::{
    Arrival, Attachment, AttachmentContent, Chat, ChatKind, FileOf, Intake, Quoted, Receipt,
    Refusal, Sender, Target,
};
pub use channel::{
    Account, Action, AfterInterruption, Button, Capabilities, Change, Channel, Choices,
    DEFAULT_ACCOUNT, Live, Part, PartKind, Poll, ProbeFailure, State,
};
pub use discord::{DISCORD, DISCORD_BASE_URL, Discord, DiscordOptions};
pub use email::{
    Credentials, EMAIL, Email, EmailOptions, Login, MailChat, SenderCheck, imap_response,
};
pub use futures_util::future::BoxFuture;
pub use hook::{HookAnswer, HookRequest};
pub use irc::{IRC, Irc, IrcOptions, MOST_CHANNEL, MOST_NICK};
pub use matrix::{AcceptsInvite, MATRIX, Matrix, MatrixOptions};
pub use part_file::{FileContent, PartFile};
pub use passage::{Earlier, Passage, PassageKind};
pub use send_failure::SendFailure;
pub use signal::{
    SIGNAL, SIGNAL_BASE_URL, Signal, SignalOptions, begin_signal_link, finish_signal_link,
};
pub use slack::{SLACK, SLACK_BASE_URL, Slack, SlackOptions};
pub use socket::{SOCKET, SocketChannel, SocketOptions};
pub use split::{split, utf16_units};
pub use telegram::{TELEGRAM, TELEGRAM_BASE_URL, Telegram, TelegramOptions};
pub use webhook::{WEBHOOK, Webhook, WebhookOptions};
pub use whatsapp::{
    WHATSAPP, WHATSAPP_BASE_URL, WHATSAPP_VERSION, WhatsApp, WhatsAppApp, WhatsAppOptions,
    WhatsAppTemplate,
};
pub use wire::{Security, ServerAddress};
pub use xmpp::{AcceptsContact, FetchFile, XMPP, Xmpp, XmppOptions};
