//! Mistakes in where the gateway listens, and whom it trusts.

use std::convert::Infallible;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};

use super::{Finding, finding, root};
use crate::KeySource;
use crate::config_path::ConfigPath;
use crate::schema::{Bind, Config, HostEntry, HostName, Network, PageOrigin};

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let gateway = &config.gateway;
    let path = root().key("gateway");
    if let Err(expected) = gateway.bind.trim().parse::<Bind>() {
        let help = "other values have no meaning here; the port is gateway.port";
        findings.push(finding(path.clone().key("bind"), expected, help));
    }
    if !gateway.bind().is_loopback() && gateway.tls.is_none() && !gateway.protected_link {
        findings.push(finding(
            path.clone().key("bind"),
            "the gateway would speak plain HTTP beyond this machine, so anybody in between could read the token",
            "set gateway.tls, leave gateway.bind out, or, if a VPN or a proxy encrypts the whole way, set \
             gateway.protectedLink to true",
        ));
    }
    if let Some(written) = &gateway.store {
        check_store(written, &path, findings);
    }
    if let Some(written) = &gateway.blobs {
        check_blobs(written, &path, findings);
    }
    check_list::<Network>(&gateway.trusted_proxies, &path.clone().key("trustedProxies"), findings);
    check_list::<HostName>(&gateway.allowed_hosts, &path.clone().key("allowedHosts"), findings);
    check_list::<PageOrigin>(&gateway.allowed_origins, &path.key("allowedOrigins"), findings);
}

fn check_store(written: &SecretString, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let schemes = ["postgresql://", "postgres://"];
    let expected = "expected the address of a PostgreSQL database";
    if let Some(problem) = problem_of(written, &schemes, expected) {
        let help = "write it as `postgresql://user:password@host/database`, or name a file (`file:PATH`) or a variable \
                    (`env:NAME`) that holds it; docs/operate/cluster.md";
        findings.push(finding(path.clone().key("store"), problem, help));
    }
}

fn check_blobs(written: &SecretString, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let schemes = ["s3://", "az://"];
    if let Some(problem) = problem_of(written, &schemes, "expected the address of a bucket") {
        let help = "write it as `s3://bucket/prefix` or `az://container/prefix`, or name a file (`file:PATH`) or a \
                    variable (`env:NAME`) that holds it; docs/operate/cluster.md";
        findings.push(finding(path.clone().key("blobs"), problem, help));
    }
}

/// What is wrong with an address. One that is kept elsewhere is checked when it is read.
fn problem_of(
    written: &SecretString,
    schemes: &[&str],
    expected: &'static str,
) -> Option<&'static str> {
    match KeySource::parse(written, |path| Ok::<_, Infallible>(path.into())) {
        Ok(KeySource::Literal(address)) => {
            let address = address.expose_secret();
            (!schemes.iter().any(|scheme| address.starts_with(scheme))).then_some(expected)
        }
        Ok(KeySource::Command(_) | KeySource::Keyring { .. }) => {
            Some("neither a command nor a keyring can hold this address")
        }
        Ok(KeySource::Environment(_) | KeySource::File(_)) | Err(_) => None,
    }
}

fn check_list<T: FromStr<Err = &'static str>>(
    entries: &[HostEntry],
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    for (index, HostEntry(text)) in entries.iter().enumerate() {
        if let Err(expected) = text.trim().parse::<T>() {
            findings.push(finding(path.clone().index(index), expected, "correct it, or remove it"));
        }
    }
}
