//! The command line of `myclaw onboard`.

use std::path::PathBuf;

use clap::Args;

use super::ChannelKind;

/// Arguments of `onboard`.
#[derive(Debug, Args)]
pub(crate) struct OnboardArgs {
    /// Provider of the model, as `myclaw models list` names it
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// Its model; the provider's usual one by default
    #[arg(long, value_name = "MODEL", requires = "provider")]
    pub(crate) model: Option<String>,
    /// Address of a server that MyClaw does not know
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) base_url: Option<String>,
    /// Variable that holds the key; it is read from there from now on
    #[arg(long, value_name = "NAME", requires = "provider")]
    pub(crate) key_env: Option<String>,
    /// Read the key from standard input, and keep it
    #[arg(long, requires = "provider", conflicts_with = "key_env")]
    pub(crate) key_stdin: bool,
    /// Directory in which the agent works; made if it does not exist
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) workspace: Option<PathBuf>,
    /// A channel to add, tried before it is kept
    #[arg(long)]
    pub(crate) channel: Option<ChannelKind>,
    /// A value of the channel's config, such as `address=claw@example.org` or `imap.host=imap.example.org`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "channel")]
    pub(crate) channel_set: Vec<String>,
    /// Address of the homeserver (matrix), of the API (telegram, slack, discord, whatsapp), of signal-cli (signal), or for answers (webhook)
    #[arg(long, value_name = "URL", requires = "channel")]
    pub(crate) channel_url: Option<String>,
    /// Variable that holds the token or the secret of the channel
    #[arg(long, value_name = "NAME", requires = "channel")]
    pub(crate) channel_token_env: Option<String>,
    /// Make the gateway a service that starts with your session
    #[arg(long)]
    pub(crate) install_service: bool,
    /// Ask nothing: do what the options say, and keep everything else as it is
    #[arg(long, short, visible_alias = "non-interactive")]
    pub(crate) yes: bool,
}
