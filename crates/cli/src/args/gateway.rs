//! The command line of `myclaw gateway`.

use clap::{Args, Subcommand, ValueEnum};

use super::help;

/// Arguments of `gateway`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// What to do; without it the gateway runs until it is stopped.
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
}

/// What can be done with a gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show whether a gateway runs, where it listens, and how many messages wait
    #[command(after_long_help = help::GATEWAY_STATUS_EXAMPLES)]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make the gateway a service that starts with your session
    #[command(long_about = help::GATEWAY_INSTALL, after_long_help = help::GATEWAY_INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// Stop the service, and remove its file
    #[command(after_long_help = help::GATEWAY_UNINSTALL_EXAMPLES)]
    Uninstall(UninstallArgs),
    /// Print a link that signs you in to the page, once and within ten minutes
    #[command(long_about = help::GATEWAY_LINK, after_long_help = help::GATEWAY_LINK_EXAMPLES)]
    Link(LinkArgs),
    /// Show the newest lines of the log, or of the service's journal
    #[command(after_long_help = help::GATEWAY_LOGS_EXAMPLES)]
    Logs(LogsArgs),
}

/// Arguments of `gateway link`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Draw the last link as a QR code too, for the camera of a phone
    #[arg(long)]
    pub(crate) qr: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "qr")]
    pub(crate) json: bool,
}

/// Arguments of `gateway install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Print the file that would be written, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace a file that differs
    #[arg(long)]
    pub(crate) force: bool,
    /// Which program runs services; by default that of this system
    #[arg(long, value_enum)]
    pub(crate) manager: Option<ServiceManager>,
}

/// Arguments of `gateway uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the file also if another program wrote it
    #[arg(long)]
    pub(crate) force: bool,
    /// Which program runs services; by default that of this system
    #[arg(long, value_enum)]
    pub(crate) manager: Option<ServiceManager>,
}

/// Arguments of `gateway logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// How many lines are shown
    #[arg(long, short = 'n', default_value_t = 100)]
    pub(crate) lines: usize,
    /// Go on with what is added, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// A program that runs services of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceManager {
    /// A unit of systemd
    Systemd,
    /// An agent of launchd
    Launchd,
}

impl ServiceManager {
    /// That of this system.
    pub(crate) fn of_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// For people and programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }
}
