//! What is open in a set-up: one list of checks for `myclaw doctor --security`, the gateway and its page.
//!
//! A check reads the config and looks at files. It starts nothing and contacts nobody. Each finding has one command that
//! closes it.

mod access;
mod files;
mod tools;

use std::path::Path;

use myclaw_config::Config;
use myclaw_policy::is_deceptive;
use serde::Serialize;
use serde_json::Value;

use crate::Home;

/// How much an open door matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Somebody whom you do not trust can read your keys or files, or can start programs as you.
    High,
    /// A second fault, or a text that deceives the model, is enough for that.
    Medium,
    /// Somebody can use what costs you, or a boundary is weaker than it could be.
    Low,
}

/// Something that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecurityFinding {
    /// The name of the check, which stays the same between versions.
    pub check: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence for a person.
    pub message: String,
    /// One command that closes it.
    pub fix: String,
}

/// What the checks look at.
struct Setup<'a> {
    config: &'a Config,
    /// The config with its defaults, as in its file. Secrets in it are placeholders.
    values: Value,
    home: &'a Home,
}

/// All checks.
const CHECKS: [fn(&Setup<'_>) -> Vec<SecurityFinding>; 22] = [
    access::open_direct_messages,
    access::open_groups,
    access::shared_main_session,
    access::shared_workspace,
    access::hidden_repositories,
    access::plain_connections,
    access::gateway_address,
    access::gateway_token,
    access::gateway_proxies,
    access::gateway_origins,
    tools::sandbox_off,
    tools::main_session,
    tools::sandbox_network,
    tools::sandbox_tools,
    tools::command_wildcards,
    tools::web_addresses,
    tools::state_directory,
    files::private_files,
    files::files_that_are_obeyed,
    files::synced_state_directory,
    tools::host_backend,
    tools::old_approvals,
];

/// What is open in this set-up, the worst first. It reads the config and the modes of files, and takes some milliseconds.
pub fn security_findings(config: &Config, home: &Home) -> Vec<SecurityFinding> {
    // A config that was read can be written.
    let values = serde_json::to_value(config).unwrap_or_default();
    let setup = Setup { config, values, home };
    let mut findings: Vec<SecurityFinding> =
        CHECKS.iter().flat_map(|check| check(&setup)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

impl Setup<'_> {
    /// The value at a path of keys; null if there is none.
    fn at(&self, path: &str) -> &Value {
        at(&self.values, path)
    }

    /// The channels of the config: name, and its values.
    fn channels(&self) -> Vec<(&str, &Value)> {
        let all = self.values["channels"].as_object().into_iter().flatten();
        all.filter(|(_, value)| value.is_object())
            .filter(|(name, _)| *name != "identityLinks")
            .map(|(name, value)| (name.as_str(), value))
            .collect()
    }

    /// Whether somebody else than the owner can write to an agent.
    fn has_channels(&self) -> bool {
        !self.channels().is_empty()
    }

    /// The places of the config that have rules for a sandbox: the path, and the values that count there.
    fn sandboxes(&self) -> Vec<(String, &Value)> {
        let defaults = "agents.defaults.sandbox";
        let mut all = vec![(defaults.to_owned(), self.at(defaults))];
        let agents = self.at("agents.list").as_array().into_iter().flatten().enumerate();
        all.extend(
            agents.map(|(at, agent)| (format!("agents.list[{at}].sandbox"), &agent["sandbox"])),
        );
        all
    }
}

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

fn finding(
    check: &'static str,
    severity: Severity,
    message: impl Into<String>,
    fix: impl Into<String>,
) -> SecurityFinding {
    SecurityFinding { check, severity, message: message.into(), fix: fix.into() }
}

/// What is open because of some entries of the list at `path`. The command leaves them out, and the list if there are no
/// others.
fn finding_in_list(
    (check, severity, message): (&'static str, Severity, impl Into<String>),
    path: &str,
    entries: Vec<&str>,
    is_open: impl Fn(&str) -> bool,
) -> Option<SecurityFinding> {
    let (open, rest): (Vec<&str>, Vec<&str>) = entries.into_iter().partition(|it| is_open(it));
    // An empty list may mean something else than none: without tools a sandboxed session can do nothing.
    let fix = || match rest.is_empty() {
        true => unset(path),
        false => set(path, &Value::from(rest).to_string()),
    };
    (!open.is_empty()).then(|| finding(check, severity, message, fix()))
}

/// The command that sets a key of the config.
fn set(path: &str, value: &str) -> String {
    format!("myclaw config set {} {}", quoted(path), quoted(value))
}

/// The command that takes a key out of the config.
fn unset(path: &str) -> String {
    format!("myclaw config unset {}", quoted(path))
}

/// A word as bash reads it, without characters that a terminal obeys.
fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@%+=,".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().any(is_deceptive) {
        let bytes = word.bytes().map(|byte| match byte {
            b' '..=b'~' if byte != b'\'' && byte != b'\\' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        });
        return format!("$'{}'", bytes.collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}
