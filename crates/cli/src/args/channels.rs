//! The command lines of `myclaw channels` and `myclaw pairing`.

use clap::builder::{
    PossibleValue, PossibleValuesParser, TypedValueParser as _, ValueParser, ValueParserFactory,
};
use clap::{Args, Subcommand};
use myclaw_config::{ChannelDeclaration, ChannelsConfig};

use super::help;

/// Arguments of `channels`.
#[derive(Debug, Args)]
pub(crate) struct ChannelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ChannelsCommand,
}

/// What can be done with channels.
#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// List the channels of the config file
    #[command(after_long_help = help::CHANNELS_LIST_EXAMPLES)]
    List {
        /// Print JSON, one channel per line
        #[arg(long)]
        json: bool,
    },
    /// Add a channel to the config file; its comments stay
    #[command(after_long_help = help::channels_add_examples())]
    Add(Box<AddChannelArgs>),
    /// Show how the channels of the running gateway are, what they could not deliver, and what was dropped
    #[command(after_long_help = help::CHANNELS_STATUS_EXAMPLES)]
    Status {
        /// Show all that could not be delivered, not the newest 50 only
        #[arg(long)]
        all: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Ask the vendor of each channel whether it knows the account; the exit code is 1 if one does not
    #[command(after_long_help = help::CHANNELS_PROBE_EXAMPLES)]
    Probe {
        /// Only this channel
        channel: Option<String>,
    },
    /// Remove a channel from the config file; its comments stay
    #[command(after_long_help = help::CHANNELS_REMOVE_EXAMPLES)]
    Remove {
        /// The channel, as `channels list` prints it
        channel: String,
        /// Its account
        #[arg(default_value = "default")]
        account: String,
        /// Print what would be removed, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// Arguments of `channels add`.
#[derive(Debug, Args)]
pub(crate) struct AddChannelArgs {
    /// The channel
    pub(crate) channel: ChannelKind,
    /// Name of the account: a further bot on Telegram or number on WhatsApp, or the webhook's name
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// Address of the homeserver (Matrix), of signal-cli (Signal) or of the API (Telegram, WhatsApp, Slack, Discord), or to which answers are posted (webhook)
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The account's own address (e-mail, XMPP)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// The server where mails are read (e-mail)
    #[arg(long, value_name = "HOST")]
    pub(crate) imap: Option<String>,
    /// The server where mails are sent (e-mail)
    #[arg(long, value_name = "HOST")]
    pub(crate) smtp: Option<String>,
    /// The first word of the field Authentication-Results in the mails that the account receives (e-mail)
    #[arg(long, value_name = "HOST")]
    pub(crate) authserv_id: Option<String>,
    /// Id of the phone number (WhatsApp), or the phone number itself (Signal)
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Link the account of a phone, which scans a QR code, in place of --id (Signal)
    #[arg(long, conflicts_with_all = ["id", "dry_run"])]
    pub(crate) link: bool,
    /// The server (IRC, XMPP: if it is not the domain of the address)
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// The nickname (IRC), or the name in rooms (XMPP)
    #[arg(long, value_name = "NAME")]
    pub(crate) nick: Option<String>,
    /// A person who may write directly, by id; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) allow_from: Vec<String>,
    /// Variable that holds the token or the secret; that of the bot on Slack
    #[arg(long, value_name = "NAME")]
    pub(crate) variable: Option<String>,
    /// Print what would be added, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A kind of channel, as the config declares it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChannelKind {
    pub(crate) name: &'static str,
    pub(crate) declaration: ChannelDeclaration,
}

impl ChannelKind {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let declared = ChannelsConfig::declared().into_iter();
        declared.map(|(name, declaration)| Self { name, declaration })
    }

    /// The kind of this name, in capital letters or not.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name.eq_ignore_ascii_case(name))
    }
}

impl ValueParserFactory for ChannelKind {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        let values =
            Self::all().map(|kind| PossibleValue::new(kind.name).help(kind.declaration.about));
        let read = |name: String| Self::named(&name).ok_or("there is no such channel");
        ValueParser::new(PossibleValuesParser::new(values).try_map(read))
    }
}

/// Arguments of `pairing`.
#[derive(Debug, Args)]
pub(crate) struct PairingArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: PairingCommand,
}

/// What can be done with pairings.
#[derive(Debug, Subcommand)]
pub(crate) enum PairingCommand {
    /// List the people who asked to write, and those who may
    #[command(after_long_help = help::PAIRING_LIST_EXAMPLES)]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let the person with a code write
    #[command(after_long_help = help::PAIRING_APPROVE_EXAMPLES)]
    Approve {
        /// The code that the person was given
        code: String,
    },
    /// Refuse the person with a code, or take the permission of a person away
    #[command(after_long_help = help::PAIRING_DENY_EXAMPLES)]
    Deny {
        /// The code, or the person as `pairing list` prints it, such as `telegram:42`
        code_or_person: String,
    },
}
