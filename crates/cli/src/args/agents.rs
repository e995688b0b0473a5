//! The command line of `myclaw agents`.

use std::path::PathBuf;

use clap::Args;
use myclaw_agent::SessionOptions;

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Agent whose workspace is searched too, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Directory of a project, if not the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON, one agent or mistake per line
    #[arg(long)]
    pub(crate) json: bool,
}

impl AgentsArgs {
    /// The same in the form of the agent crate.
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions {
            agent: self.agent.clone(),
            directory: self.directory.clone(),
            ..SessionOptions::default()
        }
    }
}
