//! Mistakes in the MCP servers of the config.

use super::{finding, root};
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

fn check_server(
    server: &McpServerConfig,
    changes_another: bool,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    if server.command.is_none() && !changes_another {
        findings.push(finding(
            path.clone(),
            "this server has no program",
            "set `command`, such as \"npx\"",
        ));
    }
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
