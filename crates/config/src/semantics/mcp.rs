//! Mistakes in the MCP servers of the config.

use secrecy::ExposeSecret as _;
use url::Url;

use super::{finding, is_header_name, root};
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{Config, McpConfig, McpServerConfig, SandboxNetwork};
use crate::validate::Finding;

/// Longest name of a server. It begins the names of its tools, which have at most 64 characters.
const MAX_NAME: usize = 24;
/// The name before the tool that finds other tools.
const RESERVED: &str = "mcp";

/// Whether a server may have this name.
pub fn is_mcp_server_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_NAME
        && name != RESERVED
        && name.bytes().next().is_some_and(is_part)
        && name.bytes().next_back().is_some_and(is_part)
        && name.bytes().all(|byte| is_part(byte) || matches!(byte, b'-' | b'_'))
        && !name.contains("__")
}

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    check_servers(&config.mcp, None, &root().key("mcp").key("servers"), findings);
    for (index, entry) in config.agents.list.iter().enumerate() {
        let path = root().key("agents").key("list").index(index).key("mcp").key("servers");
        check_servers(&entry.mcp, Some(&config.mcp), &path, findings);
    }
}

/// Checks servers, those of `others` being known too.
fn check_servers(
    servers: &McpConfig,
    others: Option<&McpConfig>,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    for (name, server) in &servers.servers {
        let path = path.clone().key(name);
        if !is_mcp_server_name(name) {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    path.clone(),
                    "this cannot be the name of a server",
                    "use at most 24 of a-z, 0-9, `-` and `_`, with a letter or digit at both ends, and not `__` or `mcp`",
                )
            });
        }
        let changes_another = others.is_some_and(|others| others.servers.contains_key(name));
        check_server(server, changes_another, &path, findings);
    }
}

/// Why nothing can be sent to an address.
fn address_problem(text: &str) -> Option<String> {
    match Url::parse(text) {
        Err(error) => Some(error.to_string()),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("it does not begin with https:// or http://".to_owned())
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("it holds a password, which belongs into `headers`".to_owned())
        }
        Ok(_) => None,
    }
}

fn check_headers(server: &McpServerConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    let headers = path.clone().key("headers");
    if server.url.is_none() && !server.headers.is_empty() {
        findings.push(Finding {
            target: Target::Key,
            ..finding(
                headers.clone(),
                "only a server with an address has headers",
                "set `url`, or take them out",
            )
        });
    }
    for (name, value) in &server.headers {
        if !is_header_name(name) {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    headers.clone().key(name),
                    "this cannot be the name of a header",
                    "use letters, digits and `-`",
                )
            });
        }
        if !value.expose_secret().bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            findings.push(finding(
                headers.clone().key(name),
                "a header cannot hold this value",
                "use letters, digits, blanks and signs of ASCII, on one line",
            ));
        }
    }
}

fn check_server(
    server: &McpServerConfig,
    changes_another: bool,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    match (&server.command, &server.url) {
        (None, None) if !changes_another => findings.push(finding(
            path.clone(),
            "this server has no program and no address",
            "set `command`, such as \"npx\", or `url`, such as \"https://example.com/mcp\"",
        )),
        (Some(_), Some(_)) => findings.push(finding(
            path.clone().key("url"),
            "this server has a program and an address",
            "take out `command` or `url`",
        )),
        _ => {}
    }
    if let Some(problem) = server.url.as_deref().and_then(address_problem) {
        findings.push(finding(
            path.clone().key("url"),
            format!("no request can be sent to this address: {problem}"),
            "an address is such as \"https://example.com/mcp\"",
        ));
    }
    check_headers(server, path, findings);
    for name in server.env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
        findings.push(Finding {
            target: Target::Key,
            ..finding(
                path.clone().key("env").key(name),
                "this cannot be the name of a variable",
                "use letters, digits and `_`",
            )
        });
    }
    let sandbox = &server.sandbox;
    let hosts = sandbox.allow_hosts.as_deref().unwrap_or_default();
    if sandbox.network == Some(SandboxNetwork::Allowlist) && hosts.is_empty() {
        findings.push(finding(
            path.clone().key("sandbox").key("network"),
            "`allowHosts` names no host",
            "add hosts such as \"api.github.com\" to `allowHosts`, or set the network to \"none\" or \"open\"",
        ));
    }
}
