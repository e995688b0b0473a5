//! In place of `cluster.rs` in a program that was built without PostgreSQL.

use std::sync::Arc;

use myclaw_agent::{Home, SessionConfig, SessionOptions};
use myclaw_config::Config;
use myclaw_gateway::{GatewayError, MakeHost, Running};
use myclaw_gateway_client::Say;
use tokio_util::sync::CancellationToken;

use crate::args::{ClusterArgs, StoreArgs};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;

/// A shared database, which this program cannot open.
pub(crate) enum Shared {}

/// The presence in a cluster, which this program cannot have.
pub(crate) enum Presence {}

impl Shared {
    pub(crate) fn find(home: &Home, config: &Arc<Config>) -> Result<Option<Self>, CliError> {
        config.store_address(&home.environment).map_or(Ok(None), |_| Err(unbuilt()))
    }

    pub(crate) fn home(&self, _home: Home) -> Home {
        match *self {}
    }

    pub(crate) async fn start(
        &self,
        _home: Home,
        _host: MakeHost,
        _stop: CancellationToken,
        _say: Say,
    ) -> Result<(Running, Presence), GatewayError> {
        match *self {}
    }

    pub(crate) fn use_config(&self, _config: &Config) {
        match *self {}
    }
}

impl Presence {
    pub(crate) async fn leave(self) {
        match self {}
    }
}

pub(crate) fn home_of_sessions() -> Result<Home, CliError> {
    let home = find_home()?;
    if let Ok(config) = SessionConfig::load(home.clone(), &SessionOptions::default()) {
        Shared::find(&home, &config.config)?;
    }
    Ok(home)
}

pub(crate) fn with_shared_keys(home: Home, config: &Arc<Config>) -> Result<Home, CliError> {
    Shared::find(&home, config)?;
    Ok(home)
}

pub(crate) fn run(_args: &ClusterArgs) -> Result<(), CliError> {
    Err(unbuilt())
}

pub(crate) fn store(_args: &StoreArgs) -> Result<(), CliError> {
    Err(unbuilt())
}

fn unbuilt() -> CliError {
    CliError::config(
        "this program was built without PostgreSQL, so it cannot share a database; build it with the cargo feature \
         postgres, or remove gateway.store and MYCLAW_STORE_URL",
    )
}
