//! The address of the database, as the config or the environment gives it.

use std::fs;
use std::time::Duration;

use myclaw_agent::Home;
use myclaw_config::{Config, Environment, KeySource};
use myclaw_files::{tenants, variables};
use myclaw_store_postgres::Address;
use secrecy::{ExposeSecret, SecretString};

use crate::ClusterError;

/// How long what a gateway holds stays its own after its death.
const LEASE: Duration = Duration::from_secs(15);
/// The shortest and the longest lease, in milliseconds. A lease is renewed three times, over a network.
const LEASES_MS: std::ops::RangeInclusive<u64> = 1_000..=600_000;

/// The database that the config or the environment names; `None` if everything is in the state directory. Blocks.
///
/// # Errors
/// The address cannot be read.
pub fn address_of(home: &Home, config: &Config) -> Result<Option<Address>, ClusterError> {
    let tenant = &config.gateway.tenant;
    let Some(written) = config.store_address(&home.environment) else {
        if tenant == tenants::MAIN {
            return Ok(None);
        }
        return Err(ClusterError::Config(format!(
            "gateway.tenant is {tenant}, and no database is named; set gateway.store or MYCLAW_STORE_URL, or remove \
             gateway.tenant (docs/operate/cluster.md)"
        )));
    };
    let address = kept_text(home, &written, &SETTING)?;
    let address = Address::parse(address.expose_secret().trim())
        .map_err(|why| ClusterError::Config(format!("gateway.store: {why}")))?
        .of_tenant(tenant)
        .map_err(|why| ClusterError::Config(format!("gateway.tenant: {why}")))?;
    Ok(Some(address))
}

/// A text that the config or a variable holds, or says where it is kept.
pub(crate) struct Setting {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is, with an article.
    pub(crate) what: &'static str,
    /// Where it can be written.
    pub(crate) places: &'static str,
}

const SETTING: Setting = Setting {
    name: "gateway.store",
    what: "the address of the database",
    places: "gateway.store or MYCLAW_STORE_URL",
};

/// The text. Blocks.
pub(crate) fn kept_text(
    home: &Home,
    written: &SecretString,
    Setting { name: setting, what, places }: &Setting,
) -> Result<SecretString, ClusterError> {
    let resolve = |path: &str| home.paths.resolve_in_config(path);
    let source = KeySource::parse(written, resolve)
        .map_err(|error| ClusterError::Config(format!("{setting}: {error}")))?;
    match source {
        KeySource::Literal(text) => Ok(text),
        KeySource::Environment(name) => {
            home.environment.get(&name).map(SecretString::from).ok_or_else(|| {
                let why = format!("{setting} names the variable {name}, which is not set; set it to {what}");
                ClusterError::Config(why)
            })
        }
        KeySource::File(path) => {
            fs::read_to_string(&path).map(SecretString::from).map_err(|error| {
                ClusterError::Config(format!(
                    "{setting} names the file {}, which cannot be read ({error}); write {what} into it",
                    path.display()
                ))
            })
        }
        KeySource::Command(_) | KeySource::Keyring { .. } => Err(ClusterError::Config(format!(
            "{what} is kept by a command or a keyring; write it into {places}, or name a file (file:PATH) or a variable \
             (env:NAME)"
        ))),
    }
}

/// How long leases are.
///
/// # Errors
/// The variable holds something else.
pub fn lease_of(environment: &Environment) -> Result<Duration, ClusterError> {
    let Some(text) = environment.get(variables::STORE_LEASE_MS) else { return Ok(LEASE) };
    let given = text.trim().parse().ok().filter(|lease| LEASES_MS.contains(lease));
    given.map(Duration::from_millis).ok_or_else(|| {
        ClusterError::Config(format!(
            "{} is {text}; set it to milliseconds from {} to {}, the same on all machines, or remove it",
            variables::STORE_LEASE_MS,
            LEASES_MS.start(),
            LEASES_MS.end(),
        ))
    })
}
