//! The command line of `myclaw config`.

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What can be done with the config file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the config file and show each mistake with its line and column
    #[command(after_long_help = help::CONFIG_CHECK_EXAMPLES)]
    Check,
    /// Print a value of the config file, without its secrets
    #[command(after_long_help = help::CONFIG_GET_EXAMPLES)]
    Get {
        /// The key, such as agents.defaults.model; the default is the whole file
        #[arg(default_value = "")]
        key: String,
    },
    /// Set a value; comments and the order of the file stay
    #[command(after_long_help = help::CONFIG_SET_EXAMPLES)]
    Set {
        /// The key, such as agents.defaults.model
        key: String,
        /// The value as JSON5; anything that is not JSON5 is taken as text
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value, so that its default counts again
    #[command(after_long_help = help::CONFIG_UNSET_EXAMPLES)]
    Unset {
        /// The key, such as agents.defaults.model
        key: String,
    },
    /// Open the file in $VISUAL or $EDITOR; the result is checked before it is kept
    #[command(after_long_help = help::CONFIG_EDIT_EXAMPLES)]
    Edit,
    /// Print the path of the config file, whether or not it exists
    #[command(after_long_help = help::CONFIG_PATH_EXAMPLES)]
    Path,
    /// Print the JSON Schema of the config file, for editors
    #[command(after_long_help = help::CONFIG_SCHEMA_EXAMPLES)]
    Schema,
}
