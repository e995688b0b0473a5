//! Where the database is, and how the connection to it is protected.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

#[cfg_attr(unix, path = "address/unix.rs")]
#[cfg_attr(windows, path = "address/windows.rs")]
mod basis;

use self::basis::{is_socket, name_of};
use crate::tenant::Tenant;
use crate::tls::Tls;

/// How long the kernel waits for a sign of life: `keepalives_idle`, then three more every `keepalives_interval`.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
/// How long bytes may stay unconfirmed by the other side.
const UNCONFIRMED: Duration = Duration::from_secs(20);

/// The address of a database. It holds the password, which no output shows.
#[derive(Clone)]
pub struct Address {
    /// One for each host, so that each has its own time to answer.
    pub(crate) configs: Vec<Config>,
    /// The host that took the last connection. It is asked first: another one may not answer at all.
    pub(crate) last: Arc<AtomicUsize>,
    pub(crate) tls: Tls,
    pub(crate) tenant: Tenant,
    server: String,
}

impl Address {
    /// Reads `postgresql://user:password@host:port/database`, with the parameters of libpq behind a `?`. Several hosts are
    /// separated by commas; the one that takes writes is used.
    ///
    /// `sslmode` is `verify-full` or `disable`. Without it, connections to other machines are encrypted and the certificate is
    /// verified; those over the loopback interface or a Unix socket are not encrypted. `sslrootcert` names a PEM file with
    /// the certificates to trust instead of those of the system.
    ///
    /// # Errors
    /// A sentence that says what is wrong. It does not contain the password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if !["postgresql://", "postgres://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err("the address of the database must begin with postgresql://".to_owned());
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut mode, mut roots) = (Vec::new(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => roots = Some(value).filter(|roots| roots != "system"),
                _ => rest.push(pair),
            }
        }
        let query = rest.join("&");
        let text = if query.is_empty() { base.to_owned() } else { format!("{base}?{query}") };
        let config = config_of(&text)?;
        check_parts(&config)?;
        let encrypts = match mode.as_deref() {
            Some("disable") => false,
            Some("verify-full" | "verify-ca" | "require") => true,
            None => roots.is_some() || !is_local(&config),
            Some(other) => {
                return Err(format!(
                    "sslmode={other} would accept a connection that is not protected; use sslmode=verify-full, or \
                     sslmode=disable for one that is protected in another way"
                ));
            }
        };
        let tls = if encrypts { Tls::verified(roots.as_deref())? } else { Tls::none() };
        let server = server_of(&config);
        let mut configs =
            each_host(&text).iter().map(|text| config_of(text)).collect::<Result<Vec<_>, _>>()?;
        for config in &mut configs {
            config
                .ssl_mode(if encrypts { SslMode::Require } else { SslMode::Disable })
                .target_session_attrs(TargetSessionAttrs::ReadWrite)
                .keepalives_idle(KEEPALIVE_IDLE)
                .keepalives_interval(KEEPALIVE_INTERVAL)
                .keepalives_retries(3)
                .tcp_user_timeout(UNCONFIRMED);
            if config.get_application_name().is_none() {
                config.application_name("myclaw");
            }
        }
        Ok(Self { configs, last: Arc::default(), tls, tenant: Tenant::default(), server })
    }

    /// The same, for the tables of the tenant with this name instead of those of `main`.
    ///
    /// # Errors
    /// A sentence that says how names of tenants look.
    pub fn of_tenant(mut self, name: &str) -> Result<Self, String> {
        self.tenant = Tenant::new(name)?;
        if !self.tenant.is_main() {
            self.server = format!("{} (tenant {name})", self.server);
        }
        Ok(self)
    }

    /// The name of the tenant.
    pub fn tenant(&self) -> &str {
        self.tenant.name()
    }

    /// The server, the database, and the tenant if it is another one than `main`, for people.
    pub fn server(&self) -> &str {
        &self.server
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Address").field(&self.server).finish()
    }
}

/// Reads an address. Messages of the library name the parameter, not its value.
fn config_of(text: &str) -> Result<Config, String> {
    text.parse().map_err(|error: tokio_postgres::Error| {
        let why = std::error::Error::source(&error).map(ToString::to_string);
        let why = why.unwrap_or_else(|| error.to_string());
        format!("the address of the database cannot be read: {why}")
    })
}

/// Says what is wrong with parts that can be read, and would lead elsewhere or show the password.
fn check_parts(config: &Config) -> Result<(), String> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("the address of the database names no host".to_owned());
    }
    // What is before it is the end of the password.
    if config.get_hosts().iter().any(|host| !is_socket(host) && name_of(host).contains('@')) {
        let why = "the address of the database has more than one @; write one in the user or the password as %40";
        return Err(why.to_owned());
    }
    let hosts = config.get_hosts().iter().map(name_of);
    let names = [config.get_dbname(), config.get_user(), config.get_application_name()];
    let password = config.get_password().map(String::from_utf8_lossy);
    let parts = hosts.chain(names.into_iter().flatten().map(str::to_owned));
    if parts.chain(password.map(Into::into)).any(|part| part.contains(char::is_control)) {
        let why =
            "the address of the database has a control character, such as a line end; remove it";
        return Err(why.to_owned());
    }
    Ok(())
}

/// The same address with each of its hosts alone. Hosts in parameters stay together.
fn each_host(text: &str) -> Vec<String> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find(['/', '?']).map_or(text.len(), |at| start + at);
    let start = text[start..end].rfind('@').map_or(start, |at| start + at + 1);
    let (before, after) = (&text[..start], &text[end..]);
    if ["host=", "hostaddr=", "port="].iter().any(|name| after.contains(name)) {
        return vec![text.to_owned()];
    }
    text[start..end].split(',').map(|host| format!("{before}{host}{after}")).collect()
}

/// Whether nothing of the connection leaves this machine.
fn is_local(config: &Config) -> bool {
    let host = |host: &Host| {
        let name = name_of(host);
        is_socket(host)
            || name == "localhost"
            || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    };
    // An address decides where a connection goes, whatever name stands next to it.
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(host),
        addresses => addresses.iter().all(std::net::IpAddr::is_loopback),
    }
}

fn server_of(config: &Config) -> String {
    let port = |at: usize| {
        let ports = config.get_ports();
        ports.get(at).or(ports.first()).copied().unwrap_or(5432)
    };
    let mut hosts: Vec<String> = config.get_hosts().iter().map(name_of).collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let hosts: Vec<String> =
        hosts.iter().enumerate().map(|(at, host)| format!("{host}:{}", port(at))).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests;
