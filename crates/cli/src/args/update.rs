//! The command line of `myclaw update`.

use clap::Args;

/// Arguments of `update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Say whether there is a newer version, and change nothing
    #[arg(long, conflicts_with = "rollback")]
    pub(crate) check: bool,
    /// Install this version, and no other
    #[arg(long, value_name = "VERSION", conflicts_with = "rollback")]
    pub(crate) to: Option<String>,
    /// Go back to the version before the last update
    #[arg(long)]
    pub(crate) rollback: bool,
    /// The directory or the https:// address with the files of the release; default: where the installed one came from
    #[arg(long, value_name = "PLACE", conflicts_with = "rollback")]
    pub(crate) from: Option<String>,
    /// Print the numbers of the formats that this version writes, for the version that is updated
    #[arg(long, hide = true, exclusive = true)]
    pub(crate) formats: bool,
}
