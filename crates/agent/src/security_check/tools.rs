//! What sessions may do: sandboxes, commands, web tools.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_exec::HidingRunner;
use serde_json::{Value, json};

use super::access::texts;
use super::{SecurityFinding, Setup, Severity, finding, finding_in_list, quoted, set, unset};
use crate::approvals::Grant;

/// From this age on, an answer "always" is worth another look.
const OLD_APPROVAL: Duration = Duration::from_secs(182 * 24 * 60 * 60);
/// Characters of a digest by which `approvals list` names an answer.
const SHOWN_DIGEST: usize = 12;
/// Most answers that one command revokes.
const MOST_REVOKED: usize = 20;

/// Tools of sandboxed sessions that reach beyond their own session, as names and groups of the policy.
const FAR_TOOLS: [&str; 9] = [
    "*",
    "group:automation",
    "cron",
    "gateway",
    "group:nodes",
    "nodes",
    "group:sessions",
    "sessions_history",
    "sessions_send",
];

pub(super) fn sandbox_off(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let severity = if setup.has_channels() { Severity::High } else { Severity::Medium };
    let off = setup.sandboxes().into_iter().filter(|(_, sandbox)| sandbox["mode"] == "off");
    let found = off.map(|(path, _)| {
        finding(
            "sandbox-off",
            severity,
            format!("`{path}.mode` is off, so every session can read your files and start programs as you"),
            set(&format!("{path}.mode"), "non-main"),
        )
    });
    found.collect()
}

/// Whether commands outside a sandbox are asked about or limited.
fn is_restricted(setup: &Setup<'_>) -> bool {
    let exec = setup.at("tools.exec");
    exec["ask"] == "always" || matches!(exec["security"].as_str(), Some("allowlist" | "deny"))
}

/// The main session has everything that its owner has, and reads pages of strangers.
pub(super) fn main_session(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let is_confined = setup.at("agents.defaults.sandbox.mode") == "all";
    let denied = texts(setup.at("tools.deny"));
    let is_reading = setup.at("tools.web.fetch.enabled") != &json!(false)
        && !denied.iter().any(|tool| matches!(*tool, "web_fetch" | "group:web" | "*"));
    if is_confined || is_restricted(setup) || !is_reading {
        return Vec::new();
    }
    vec![finding(
        "main-session-reads-the-web",
        Severity::Medium,
        "your main session runs commands as you without a question and reads web pages, so a page that deceives the model \
         can do what you can",
        set("tools.exec.ask", "always"),
    )]
}

pub(super) fn sandbox_network(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let severity = if setup.has_channels() { Severity::Medium } else { Severity::Low };
    let mut found = Vec::new();
    for (path, sandbox) in setup.sandboxes() {
        let confinement = &sandbox["confinement"];
        if confinement["network"] == "open" {
            found.push(finding(
                "sandbox-network-open",
                severity,
                "commands of sandboxed sessions reach every address, also those of your own network",
                set(&format!("{path}.confinement.network"), "none"),
            ));
        }
        found.extend(finding_in_list(
            (
                "sandbox-hosts-wide",
                severity,
                "the hosts that sandboxed commands reach have an entry for hosts of everybody",
            ),
            &format!("{path}.confinement.allowHosts"),
            texts(&confinement["allowHosts"]),
            |host| matches!(host, "*" | "*.*") || is_top_level(host),
        ));
        for key in ["readOnly", "readWrite"] {
            let place = format!("{path}.confinement.{key}");
            let message =
                format!("`{place}` shares a whole home directory with sandboxed sessions");
            found.extend(finding_in_list(
                ("sandbox-shares-home", Severity::High, message),
                &place,
                texts(&confinement[key]),
                |path| matches!(path.trim_end_matches('/'), "" | "~" | "/home" | "/root"),
            ));
        }
    }
    found
}

/// Whether a pattern such as `*.org` is for all hosts of a top-level domain.
fn is_top_level(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    name.strip_prefix("*.").is_some_and(|rest| !rest.contains('.'))
}

pub(super) fn sandbox_tools(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let severity = if setup.has_channels() { Severity::Medium } else { Severity::Low };
    let mut found = Vec::new();
    for (path, sandbox) in setup.sandboxes() {
        let place = format!("{path}.allowlist");
        let message = format!(
            "`{place}` gives sandboxed sessions tools that reach other sessions, jobs or machines"
        );
        found.extend(finding_in_list(
            ("sandbox-tools-wide", severity, message),
            &place,
            texts(&sandbox["allowlist"]),
            |tool| FAR_TOOLS.contains(&tool),
        ));
    }
    for (key, values) in
        [("tools.sessions.others", &["agent", "all"][..]), ("tools.message.otherChats", &["all"])]
    {
        if setup.at(key).as_str().is_some_and(|value| values.contains(&value)) {
            let message = format!("`{key}` lets sessions of chats reach those of other people");
            found.push(finding("sessions-reach-others", severity, message, unset(key)));
        }
    }
    found
}

pub(super) fn command_wildcards(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let mut places = vec![
        "tools.exec".to_owned(),
        "agents.defaults.tools.exec".to_owned(),
        "agents.defaults.sandbox.exec".to_owned(),
    ];
    let agents = setup.at("agents.list").as_array().map_or(0, Vec::len);
    places.extend((0..agents).map(|at| format!("agents.list[{at}].tools.exec")));
    let is_wide = |entry: &&Value| {
        let program = entry.as_str().or_else(|| entry["program"].as_str()).unwrap_or_default();
        let rest = program.trim_start_matches(['~', '/']);
        !program.is_empty() && (rest == "*" || rest.starts_with("**"))
    };
    let mut found = Vec::new();
    for place in places {
        let path = place.replace('[', ".").replace(']', "");
        let list = list_at(&setup.values, &path);
        if list.iter().any(is_wide) {
            let rest: Vec<&Value> = list.into_iter().filter(|entry| !is_wide(entry)).collect();
            found.push(finding(
                "command-wildcard",
                Severity::High,
                format!("an entry of `{place}.allowlist` permits every program"),
                set(&format!("{place}.allowlist"), &json!(rest).to_string()),
            ));
        }
    }
    found
}

/// The allowlist at a path, in which numbers are places in lists.
fn list_at<'a>(values: &'a Value, path: &str) -> Vec<&'a Value> {
    let step = |value: &'a Value, key: &str| match key.parse::<usize>() {
        Ok(at) => &value[at],
        Err(_) => &value[key],
    };
    let place = path.split('.').fold(values, step);
    place["allowlist"].as_array().into_iter().flatten().collect()
}

pub(super) fn web_addresses(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let fetch = setup.at("tools.web.fetch");
    let mut found = Vec::new();
    if fetch["allowPrivate"] == json!(true) {
        found.push(finding(
            "web-reaches-private-addresses",
            Severity::High,
            "web tools reach every address of this machine and of your network, also those of cloud metadata",
            set("tools.web.fetch.allowPrivate", "false"),
        ));
    }
    found.extend(finding_in_list(
        (
            "web-reaches-private-addresses",
            Severity::High,
            "an entry of `tools.web.fetch.allowHosts` is for all hosts, so names can lead web tools into your own network",
        ),
        "tools.web.fetch.allowHosts",
        texts(&fetch["allowHosts"]),
        |host| matches!(host, "*" | "0.0.0.0/0" | "::/0") || is_top_level(host),
    ));
    if setup.at("logging.redactSensitive") == &json!(false) {
        found.push(finding(
            "log-keeps-keys",
            Severity::Medium,
            "the log file keeps keys that errors contain",
            set("logging.redactSensitive", "true"),
        ));
    }
    let endpoint = setup.at("gateway.telemetry.endpoint").as_str().unwrap_or_default();
    if endpoint.starts_with("http://") && !super::access::is_near(&endpoint["http://".len()..]) {
        found.push(finding(
            "plain-telemetry",
            Severity::Low,
            "traces go to another machine in the clear",
            unset("gateway.telemetry"),
        ));
    }
    found
}

/// The rules of the agent, which its own tools should not reach.
pub(super) fn state_directory(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let mut found = Vec::new();
    let is_confined = setup.at("agents.defaults.sandbox.mode") == "all";
    // Where `auto` hides nothing: see `hiding`.
    let is_open = match setup.at("tools.bash.stateDirectory").as_str() {
        Some("hidden") => false,
        Some("open") => true,
        _ => !HidingRunner::is_root() && !is_restricted(setup),
    };
    if is_open && !is_confined {
        found.push(finding(
            "state-directory-open",
            Severity::High,
            "commands outside a sandbox find the config, the keys and the sessions of everybody",
            set("tools.bash.stateDirectory", "hidden"),
        ));
    }
    let is_wide = |path: &str| {
        let first = path.trim_start_matches("./").split('/').next().unwrap_or_default();
        first.starts_with(['.', '~'])
            || matches!(first, "" | "sessions" | "gateway" | "agents" | "hooks" | "logs" | "jobs")
            || first.ends_with(".json")
    };
    let message = "`tools.fs.stateDirectories` lets tools change directories that hold keys, sessions or rules";
    found.extend(finding_in_list(
        ("state-directory-open", Severity::High, message),
        "tools.fs.stateDirectories",
        texts(setup.at("tools.fs.stateDirectories")),
        is_wide,
    ));
    found
}

/// Runners of other people's chats without a wall.
pub(super) fn host_backend(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let has_chats = setup.config.host.as_ref().is_some_and(|host| !host.bindings.is_empty());
    let severity = if has_chats { Severity::High } else { Severity::Medium };
    let options = texts(setup.at("host.options"));
    let mut fixed = options.clone();
    let mut is_open = false;
    for at in 0..options.len() {
        let is_value = options.get(at.wrapping_sub(1)) == Some(&"--backend");
        match options[at] {
            "--backend=process" => fixed[at] = "--backend=sandbox",
            "process" if is_value => fixed[at] = "sandbox",
            _ => continue,
        }
        is_open = true;
    }
    let found = is_open.then(|| {
        finding(
            "host-without-sandbox",
            severity,
            "the host starts runners as plain processes, so a chat that deceives the model can do what you can",
            set("host.options", &Value::from(fixed).to_string()),
        )
    });
    found.into_iter().collect()
}

/// Answers "always" that are old, or that record less than those of this version do.
pub(super) fn old_approvals(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let store = &setup.home.stores().approvals;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let oldest = now.saturating_sub(OLD_APPROVAL).as_millis();
    // `approvals list` reports a file that cannot be read.
    let (grants, _) = store.list().unwrap_or_default();
    let old: Vec<Grant> =
        grants.into_iter().filter(|it| it.is_old() || u128::from(it.ts) < oldest).collect();
    if old.is_empty() {
        return Vec::new();
    }
    let revoke = |grant: &Grant| {
        let id = grant.digest.get(..SHOWN_DIGEST).unwrap_or(&grant.digest);
        format!("myclaw approvals revoke {}", quoted(id))
    };
    let fixes: Vec<String> = old.iter().take(MOST_REVOKED).map(revoke).collect();
    vec![finding(
        "old-approvals",
        Severity::Low,
        format!(
            "{} answers \"always\" are older than half a year, or of an earlier version; `myclaw approvals list` shows them",
            old.len()
        ),
        fixes.join(" && "),
    )]
}
