//! The command line of `myclaw auth`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::help;

/// Arguments of `auth`.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
    /// Agent whose keys to use, by its id in the config file; the default is the default agent
    #[arg(short, long, value_name = "ID", global = true)]
    pub(crate) agent: Option<String>,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// List the keys in the order in which they are tried
    #[command(after_long_help = help::AUTH_LIST_EXAMPLES)]
    List {
        /// Only those of this provider
        provider: Option<String>,
        /// Print JSON, one key per line
        #[arg(long)]
        json: bool,
    },
    /// Keep a key from standard input, or the place where a key is found
    #[command(long_about = help::AUTH_ADD, after_long_help = help::AUTH_ADD_EXAMPLES)]
    Add(AddArgs),
    /// Log in at a provider in a browser, or with a code
    #[command(long_about = help::AUTH_LOGIN, after_long_help = help::AUTH_LOGIN_EXAMPLES)]
    Login(LoginArgs),
    /// Remove a key that is kept here
    #[command(after_long_help = help::AUTH_REMOVE_EXAMPLES)]
    Remove {
        /// The key, as `auth list` names it
        profile: String,
    },
    /// Make one tiny call with each key and show the result
    #[command(after_long_help = help::AUTH_TEST_EXAMPLES)]
    Test {
        /// Only this key, as `auth list` names it
        profile: Option<String>,
        /// Only the keys of this provider
        #[arg(long)]
        provider: Option<String>,
        /// Model to call instead of the provider's usual one, by its id there
        #[arg(short, long, value_name = "MODEL", requires = "provider")]
        model: Option<String>,
        /// Print JSON, one key per line
        #[arg(long)]
        json: bool,
    },
    /// End the cooldown of keys that failed, so that they are tried again at once
    #[command(after_long_help = help::AUTH_CLEAR_COOLDOWN_EXAMPLES)]
    ClearCooldown {
        /// Only this key, as `auth list` names it
        profile: Option<String>,
    },
    /// Set which keys of a provider are tried first; without keys, restore the usual order
    #[command(after_long_help = help::AUTH_ORDER_EXAMPLES)]
    Order {
        /// The provider
        provider: String,
        /// Its keys, the first one first
        profiles: Vec<String>,
    },
    /// Use one key of a provider and no other
    #[command(after_long_help = help::AUTH_PIN_EXAMPLES)]
    Pin {
        /// The key, as `auth list` names it
        profile: String,
    },
    /// Try one key of a provider before the others
    #[command(after_long_help = help::AUTH_PREFER_EXAMPLES)]
    Prefer {
        /// The key, as `auth list` names it
        profile: String,
    },
    /// Take back `pin` and `prefer`
    #[command(after_long_help = help::AUTH_UNPIN_EXAMPLES)]
    Unpin {
        /// The provider
        provider: String,
    },
}

/// Arguments of `auth login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// openrouter, openai, google, azure-openai, huggingface or github-copilot
    pub(crate) provider: String,
    /// Name of the login
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) profile: String,
    /// Replace a key or login of that name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Id of your own application at the provider, for azure-openai and huggingface
    #[arg(long, value_name = "ID", conflicts_with = "client_file")]
    pub(crate) client_id: Option<String>,
    /// File of your own OAuth client, as Google gives it, for google
    #[arg(long, value_name = "FILE")]
    pub(crate) client_file: Option<PathBuf>,
    /// Directory of your organization at Microsoft, by its id or domain, for azure-openai
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// A company's own GitHub to sign in at, such as company.ghe.com
    #[arg(long, value_name = "HOST")]
    pub(crate) github: Option<String>,
    /// Address of the server to log in at, if it is not the usual one, such as that of a national cloud
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Port of this machine to which the browser brings the answer, if any free one will not do
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
}

/// Arguments of `auth add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Provider of the key, as `myclaw models list` names it
    #[arg(required_unless_present = "provider_option")]
    provider: Option<String>,
    /// The same
    #[arg(short, long = "provider", value_name = "PROVIDER", conflicts_with = "provider")]
    provider_option: Option<String>,
    /// Name of the key
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) profile: String,
    /// Kind of credential
    #[arg(long = "type", value_enum, default_value_t = KeyType::ApiKey)]
    pub(crate) kind: KeyType,
    /// The place of the key, if it is not kept here.
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Replace a key of that name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Sign in on the provider's page, whatever standard input holds; github-copilot alone has such a login
    #[arg(long, conflicts_with_all = ["key_file", "command", "env", "keyring"])]
    pub(crate) login: bool,
    /// A company's own GitHub to sign in at, such as company.ghe.com
    #[arg(long, value_name = "HOST", conflicts_with_all = ["key_file", "command", "env", "keyring"])]
    pub(crate) github: Option<String>,
}

impl AddArgs {
    /// The provider of the key.
    pub(crate) fn provider(&self) -> &str {
        self.provider.as_deref().or(self.provider_option.as_deref()).unwrap_or_default()
    }
}

/// The place of a key that is not kept in the store.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct PlaceArgs {
    /// File that holds the key; it stays there and is read when it is needed
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Command that prints the key; it is run when the key is needed
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Variable that holds the key when it is needed
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Option<String>,
    /// Entry of the system's keyring, as ACCOUNT or SERVICE/ACCOUNT
    #[arg(long, value_name = "ENTRY")]
    pub(crate) keyring: Option<String>,
}

/// A kind of credential that can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyType {
    /// A key.
    #[value(name = "api_key")]
    ApiKey,
    /// A token that stands for a login.
    Token,
}
