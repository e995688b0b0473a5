//! The command lines of `myclaw backup` and `myclaw restore`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write; `-` is standard output
    pub(crate) file: PathBuf,
    /// Read the file, which is a backup, and compare all digests; write nothing
    #[arg(long, conflicts_with_all = ["with_keys", "without_workspaces", "encrypt"])]
    pub(crate) check: bool,
    /// Include the keys and logins
    #[arg(long)]
    pub(crate) with_keys: bool,
    /// Leave out workspaces, your skills and commands, and the folders of groups
    #[arg(long)]
    pub(crate) without_workspaces: bool,
    /// Encrypt it with a passphrase, which is asked for
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// Where the passphrase comes from.
    #[command(flatten)]
    pub(crate) passphrase: PassphraseArgs,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup; `-` is standard input
    pub(crate) file: PathBuf,
    /// Put it in the place of the state directory that is there, which is kept next to it
    #[arg(long)]
    pub(crate) replace: bool,
    /// Where the passphrase comes from.
    #[command(flatten)]
    pub(crate) passphrase: PassphraseArgs,
}

/// Where the passphrase of a backup comes from.
#[derive(Debug, Args)]
pub(crate) struct PassphraseArgs {
    /// A file whose first line is the passphrase
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}
