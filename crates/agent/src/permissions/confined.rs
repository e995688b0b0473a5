//! What confines a session: as a text for digests, and in words for questions.

use myclaw_config::{ConfinementConfig, ConfinementLevel, ConfinementLimits, SandboxNetwork};
use myclaw_policy::SandboxScope;
use myclaw_sandbox::WorkspaceAccess;

use super::{sandbox_rules, scope_of};
use crate::SessionConfig;

/// What confines the commands and tools of a session. An approval holds only under the same confinement.
#[derive(Debug, Clone)]
pub(super) struct Confined {
    /// Differs when something of it does.
    pub(super) bound: String,
    /// For people.
    pub(super) words: String,
}

impl Confined {
    pub(super) fn of(config: &SessionConfig, is_open_project: bool) -> Self {
        let scope = scope_of(config, is_open_project);
        if scope == SandboxScope::Unsandboxed {
            return Self { bound: scope.to_string(), words: scope.to_string() };
        }
        let rules = sandbox_rules(&config.config, &config.agent).confinement;
        let bound = format!("{scope}: {}", serde_json::to_string(&rules).unwrap_or_default());
        let workspace = match (config.agent_workspace_access(), config.own_workspace()) {
            (WorkspaceAccess::Rw, _) => "changes the agent's workspace",
            (WorkspaceAccess::Ro, Some(_)) => "has a workspace of its own and reads the agent's",
            (WorkspaceAccess::Ro, None) => "reads the agent's workspace",
            (WorkspaceAccess::None, _) => {
                "has a workspace of its own and sees nothing of the agent's"
            }
        };
        Self { bound, words: format!("{scope} ({}): {workspace}; {}", level(&rules), more(&rules)) }
    }
}

fn level(rules: &ConfinementConfig) -> String {
    let name = match rules.level.unwrap_or_default() {
        ConfinementLevel::Landlock => "Landlock",
        ConfinementLevel::Bubblewrap => "bubblewrap",
        ConfinementLevel::Podman => "podman",
        ConfinementLevel::Docker => "docker",
    };
    match &rules.image {
        Some(image) => format!("{name}, image {image}"),
        None => name.to_owned(),
    }
}

/// The network, further files, and limits that the config sets.
fn more(rules: &ConfinementConfig) -> String {
    let network = match rules.network.unwrap_or_default() {
        SandboxNetwork::None => "no network".to_owned(),
        SandboxNetwork::Open => "the whole network".to_owned(),
        SandboxNetwork::Allowlist => {
            let hosts = rules.allow_hosts.iter().flatten().map(|host| host.0.as_str());
            format!("of the network only {}", listed(hosts))
        }
    };
    let paths = |what: &str, paths: &Option<Vec<String>>| {
        let paths = paths.as_deref().filter(|paths| !paths.is_empty())?;
        Some(format!("{what} {}", listed(paths.iter().map(String::as_str))))
    };
    let further = [paths("also reads", &rules.read_only), paths("also changes", &rules.read_write)];
    let parts = [network].into_iter().chain(further.into_iter().flatten());
    let parts: Vec<String> = parts.chain(limits(&rules.limits)).collect();
    parts.join("; ")
}

fn limits(limits: &ConfinementLimits) -> Option<String> {
    let known = [
        (limits.memory_mb, "MB of memory for each process"),
        (limits.processes, "processes"),
        (limits.file_size_mb, "MB for each file"),
        (limits.open_files, "open files for each process"),
        (limits.cpu_seconds, "seconds of processor time for each process"),
        (limits.workspace_mb, "MB in its workspace"),
        (limits.workspace_files, "files in its workspace"),
    ];
    let set = known.iter().filter_map(|(limit, what)| Some((limit.as_ref()?, what)));
    let words: Vec<String> = set
        .map(|(limit, what)| match limit {
            0 => format!("no limit of {what}"),
            limit => format!("at most {limit} {what}"),
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
