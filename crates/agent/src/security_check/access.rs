//! Who can write to an agent, and who can reach the gateway.

use std::path::PathBuf;

use myclaw_config::{Bind, ExposeSecret as _, SandboxMode, WorkspaceAccessName};
use serde_json::Value;

use super::{SecurityFinding, Setup, Severity, finding, finding_in_list, quoted_path, set, unset};
use crate::permissions;

/// Shortest token that nobody guesses, in characters: 128 bits in hexadecimal digits.
const SHORTEST_TOKEN: usize = 32;
/// Shortest prefix of a network of proxies. A shorter one holds machines of strangers: the largest private network is
/// 10.0.0.0/8.
const SHORTEST_PREFIX: u8 = 8;

/// How bad it is that strangers may write: as bad as what their sessions may do.
fn of_strangers(setup: &Setup<'_>) -> Severity {
    let is_open = |(_, sandbox): &(String, &Value)| {
        sandbox["mode"] == "off" || sandbox["confinement"]["workspaceAccess"] == "rw"
    };
    match setup.sandboxes().iter().any(is_open) || setup.at("channels.dmScope") == "main" {
        true => Severity::High,
        false => Severity::Low,
    }
}

pub(super) fn open_direct_messages(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let severity = of_strangers(setup);
    let is_open = |channel: &&(&str, &Value)| channel.1["dmPolicy"] == "open";
    let channels = setup.channels();
    let found = channels.iter().filter(is_open).map(|(name, _)| {
        let closed = if *name == "email" { "allowlist" } else { "pairing" };
        finding(
            "open-direct-messages",
            severity,
            format!(
                "everybody who finds the bot of {name} can write to your agent and use your model"
            ),
            set(&format!("channels.{name}.dmPolicy"), closed),
        )
    });
    found.collect()
}

pub(super) fn open_groups(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let severity = of_strangers(setup);
    let channels = setup.channels();
    let open = channels.iter().filter(|(_, value)| value["groupPolicy"] == "open");
    let open = open.map(|(name, _)| {
        finding(
            "open-groups",
            severity,
            format!(
                "everybody can add the bot of {name} to a group, and its members can use your agent"
            ),
            set(&format!("channels.{name}.groupPolicy"), "allowlist"),
        )
    });
    let is_every = |value: &Value| {
        let every = &value["groups"]["*"];
        every.is_object() && every["allowFrom"].as_array().is_none_or(Vec::is_empty)
    };
    let every = channels.iter().filter(|(_, value)| is_every(value)).map(|(name, _)| {
        finding(
            "open-groups",
            severity,
            format!("the entry `*` in the groups of {name} lets every group use your agent"),
            unset(&format!("channels.{name}.groups.*")),
        )
    });
    open.chain(every).collect()
}

pub(super) fn shared_main_session(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let is_shared = setup.at("channels.dmScope") == "main" && setup.has_channels();
    if !is_shared {
        return Vec::new();
    }
    let mode = setup.at("agents.defaults.sandbox.mode");
    vec![finding(
        "shared-main-session",
        if mode == "all" { Severity::Medium } else { Severity::High },
        "everybody who may write directly is in your own main session, with its tools and what was said there",
        set("channels.dmScope", "per-account-peer"),
    )]
}

pub(super) fn shared_workspace(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    if !setup.has_channels() {
        return Vec::new();
    }
    let is_shared =
        |(_, sandbox): &(String, &Value)| sandbox["confinement"]["workspaceAccess"] == "rw";
    let found = setup.sandboxes().into_iter().filter(is_shared).map(|(path, _)| {
        finding(
            "shared-workspace",
            Severity::High,
            "the sessions of chats may change the files of the agent's workspace, which you and your agent use as well",
            unset(&format!("{path}.confinement.workspaceAccess")),
        )
    });
    found.collect()
}

/// Repositories of git that a sandboxed session may have put into a workspace in which programs of the owner work.
pub(super) fn hidden_repositories(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let mut found = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for id in setup.config.agent_ids() {
        let Ok(agent) = setup.config.resolve_agent(Some(id.as_str())) else { continue };
        let rules = permissions::sandbox_rules(setup.config, &agent);
        let severity = match rules.confinement.workspace_access {
            Some(WorkspaceAccessName::Rw) if setup.has_channels() => Severity::High,
            None | Some(WorkspaceAccessName::Rw) if rules.mode != SandboxMode::Off => {
                Severity::Medium
            }
            _ => continue,
        };
        if seen.contains(&agent.workspace) {
            continue;
        }
        let hidden = permissions::hidden_repositories(&agent.workspace);
        if let Some(message) = hidden.message() {
            let moved = hidden.found.iter().map(|repository| {
                let (mark, aside) = repository.mark();
                format!("mv -- {} {}", quoted_path(mark), quoted_path(&aside))
            });
            let fixes: Vec<String> = moved.collect();
            found.push(finding("hidden-repository", severity, message, fixes.join(" && ")));
        }
        if hidden.is_cut && severity == Severity::High {
            found.push(finding(
                "hidden-repository",
                Severity::Low,
                format!(
                    "{} holds more files than are looked through for repositories that others may have put there",
                    agent.workspace.display()
                ),
                format!("find {} -name HEAD -not -path '*/.git/*'", quoted_path(&agent.workspace)),
            ));
        }
        seen.push(agent.workspace);
    }
    found
}

/// Connections to models and MCP servers that everybody on the way can read. Channels refuse them by themselves.
pub(super) fn plain_connections(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let mut found = Vec::new();
    let providers = setup.at("models.providers").as_object().into_iter().flatten();
    let addresses = providers
        .map(|(name, provider)| (format!("models.providers.{name}.baseUrl"), &provider["baseUrl"]))
        .chain([("provider.baseUrl".to_owned(), setup.at("provider.baseUrl"))]);
    let agents = setup.at("agents.list").as_array().into_iter().flatten().enumerate();
    let own = agents.map(|(at, agent)| (format!("agents.list[{at}].mcp.servers"), &agent["mcp"]));
    let servers =
        own.chain([("mcp.servers".to_owned(), setup.at("mcp"))]).flat_map(|(path, mcp)| {
            let servers = mcp["servers"].as_object().into_iter().flatten();
            servers.map(move |(name, server)| (format!("{path}.{name}.url"), &server["url"]))
        });
    for (path, address) in addresses.chain(servers) {
        let Some(rest) = address.as_str().and_then(|address| address.strip_prefix("http://"))
        else {
            continue;
        };
        if !is_near(rest) {
            found.push(finding(
                "plain-connection",
                Severity::High,
                format!("`{path}` sends keys and everything that is said in the clear"),
                set(&path, &format!("https://{}", without_login(rest))),
            ));
        }
    }
    found
}

/// Whether an address without its scheme is of this machine or of a private network.
pub(super) fn is_near(address: &str) -> bool {
    let host = without_login(address).split(['/', '?']).next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(std::net::IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => !host.contains('.') || host.ends_with(".local") || host.ends_with(".localhost"),
    }
}

/// An address without its scheme, and without the name and the password in it: they belong in no command line.
fn without_login(address: &str) -> &str {
    let authority = address.split(['/', '?']).next().unwrap_or_default();
    authority.rfind('@').map_or(address, |at| &address[at + 1..])
}

pub(super) fn gateway_address(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let gateway = &setup.config.gateway;
    let is_loopback = match gateway.bind() {
        Bind::Loopback => true,
        Bind::All => false,
        Bind::Address(address) => address.is_loopback(),
    };
    if is_loopback || gateway.tls.is_some() {
        return Vec::new();
    }
    let (severity, message) = match gateway.protected_link {
        true => (
            Severity::Medium,
            "the gateway listens beyond this machine without TLS and relies on something else to encrypt",
        ),
        false => (Severity::High, "the gateway listens beyond this machine without TLS"),
    };
    vec![finding("gateway-without-tls", severity, message, set("gateway.bind", "loopback"))]
}

pub(super) fn gateway_token(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let token = setup.config.gateway.token.as_ref();
    let is_short =
        token.is_some_and(|token| token.expose_secret().chars().count() < SHORTEST_TOKEN);
    let found = is_short.then(|| {
        finding(
            "short-gateway-token",
            Severity::High,
            format!("the token of the gateway is shorter than {SHORTEST_TOKEN} characters, so it can be guessed"),
            unset("gateway.token"),
        )
    });
    found.into_iter().collect()
}

pub(super) fn gateway_proxies(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let is_wide = |entry: &str| {
        let prefix = entry.rsplit_once('/').and_then(|(_, prefix)| prefix.parse::<u8>().ok());
        prefix.is_some_and(|prefix| prefix < SHORTEST_PREFIX)
    };
    let message = "the gateway believes what strangers say about their address, because `gateway.trustedProxies` names a \
                   network of strangers";
    let path = "gateway.trustedProxies";
    let about = ("wide-trusted-proxies", Severity::High, message);
    finding_in_list(about, path, texts(setup.at(path)), is_wide).into_iter().collect()
}

pub(super) fn gateway_origins(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let is_plain = |entry: &str| entry.strip_prefix("http://").is_some_and(|rest| !is_near(rest));
    let message =
        "a page without TLS may use the gateway, so everybody on the way to that page can";
    let path = "gateway.allowedOrigins";
    let about = ("plain-origin", Severity::High, message);
    finding_in_list(about, path, texts(setup.at(path)), is_plain).into_iter().collect()
}

/// The texts in a list.
pub(super) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
