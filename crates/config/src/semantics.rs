//! Mistakes that involve more than one value of the config.

mod approvals;
mod channels;
mod gateway;
mod keys;
pub(crate) mod mcp;
mod persona;
mod rules;
mod subagents;

use std::collections::HashMap;
use std::path::{Component, Path};

use jiff::tz::TimeZone;
use url::Url;

use crate::agent::AgentId;
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{CommandLine, Config, HeartbeatConfig, ModelChoice};
use crate::validate::{Finding, finding};

/// Every such mistake.
pub(crate) fn check(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_provider(config, &mut findings);
    check_agents(config, &mut findings);
    check_models(config, &mut findings);
    check_hooks(config, &mut findings);
    check_speech(config, &mut findings);
    approvals::check(config, &mut findings);
    channels::check(config, &mut findings);
    gateway::check(config, &mut findings);
    keys::check(config, &mut findings);
    check_heartbeats(config, &mut findings);
    subagents::check(config, &mut findings);
    persona::check(config, &mut findings);
    rules::check(config, &mut findings);
    mcp::check(config, &mut findings);
    check_state_directories(config, &mut findings);
    findings
}

fn root() -> ConfigPath {
    ConfigPath::default()
}

fn check_provider(config: &Config, findings: &mut Vec<Finding>) {
    let Some(provider) = &config.provider else {
        return;
    };
    let path = root().key("provider");
    if provider.name.contains('/') {
        findings.push(finding(
            path.clone().key("name"),
            "a provider's name may not hold `/`",
            "the model's id belongs into `provider.model`",
        ));
    }
    check_base_url(provider.base_url.as_deref(), &path, findings);
    let profiles = path.key("authProfiles");
    let ids = provider.auth_profiles.iter().map(|profile| profile.id.as_str());
    check_unique(ids, |index| profiles.clone().index(index).key("id"), findings);
}

fn check_agents(config: &Config, findings: &mut Vec<Finding>) {
    let has_provider = config.provider.is_some();
    let agents = root().key("agents");
    if let Some(model) = &config.agents.defaults.model {
        check_model(model, has_provider, &agents.clone().key("defaults").key("model"), findings);
    }
    if let Some(models) = &config.agents.defaults.models {
        let path = agents.clone().key("defaults").key("models");
        check_allowed_models(models, &path, findings);
    }
    if let Some(zone) = &config.agents.defaults.user_timezone
        && TimeZone::get(zone.trim()).is_err()
    {
        findings.push(finding(
            agents.clone().key("defaults").key("userTimezone"),
            "there is no time zone of this name",
            "a time zone is such as \"Europe/Berlin\" or \"UTC\"",
        ));
    }
    let list = agents.key("list");
    for (index, entry) in config.agents.list.iter().enumerate() {
        let path = list.clone().index(index);
        if !entry.id.contains(|c: char| c.is_ascii_alphanumeric()) {
            findings.push(finding(
                path.clone().key("id"),
                "expected an id with a letter or digit in it",
                "use letters a to z, digits, `_` and `-`",
            ));
        }
        if let Some(model) = &entry.model {
            check_model(model, has_provider, &path.key("model"), findings);
        }
    }
    let ids: Vec<_> = config.agents.list.iter().map(|entry| AgentId::new(&entry.id)).collect();
    check_unique(
        ids.iter().map(AgentId::as_str),
        |index| list.clone().index(index).key("id"),
        findings,
    );
}

fn check_heartbeats(config: &Config, findings: &mut Vec<Finding>) {
    let agents = root().key("agents");
    check_heartbeat(
        &config.agents.defaults.heartbeat,
        &agents.clone().key("defaults").key("heartbeat"),
        findings,
    );
    for (index, entry) in config.agents.list.iter().enumerate() {
        if let Some(heartbeat) = &entry.heartbeat {
            let path = agents.clone().key("list").index(index).key("heartbeat");
            check_heartbeat(heartbeat, &path, findings);
        }
    }
}

fn check_heartbeat(heartbeat: &HeartbeatConfig, path: &ConfigPath, findings: &mut Vec<Finding>) {
    if heartbeat.every.is_some() && heartbeat.interval_minutes.is_some() {
        findings.push(finding(
            path.clone().key("intervalMinutes"),
            "`every` sets the interval already",
            "keep one of the two keys",
        ));
    }
    if let Err(error) = heartbeat.interval() {
        let help = "such as \"30m\"; \"0m\" for no heartbeat";
        findings.push(finding(path.clone().key("every"), error.to_string(), help));
    }
    if let Some(hours) = &heartbeat.active_hours
        && let Err(error) = hours.resolve(&TimeZone::UTC)
    {
        let help = "such as {\"start\": \"08:00\", \"end\": \"22:00\"}";
        findings.push(finding(path.clone().key("activeHours"), error.to_string(), help));
    }
}

/// Checks that a model and its fallbacks are `provider/model`, or a bare model if a provider is configured.
fn check_model(
    model: &ModelChoice,
    has_provider: bool,
    path: &ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let well_formed = |name: &str| match name.split_once('/') {
        Some((provider, name)) => !provider.trim().is_empty() && !name.trim().is_empty(),
        None => has_provider,
    };
    let primary = match model {
        ModelChoice::Name(_) => path.clone(),
        ModelChoice::Primary(_) => path.clone().key("primary"),
    };
    if model.primary().is_some_and(|name| !well_formed(name)) {
        findings.push(no_model(primary));
    }
    for (index, name) in model.fallbacks().unwrap_or_default().iter().enumerate() {
        if !well_formed(&name.0) {
            findings.push(no_model(path.clone().key("fallbacks").index(index)));
        }
    }
}

fn no_model(path: ConfigPath) -> Finding {
    finding(
        path,
        "expected a model as \"provider/model\"",
        "such as \"anthropic/claude-sonnet-4-6\"",
    )
}

/// Checks that each allowed model is `provider/model` or `provider/*`.
fn check_allowed_models(models: &[String], path: &ConfigPath, findings: &mut Vec<Finding>) {
    for (index, model) in models.iter().enumerate() {
        let parts = model.split_once('/').map(|(provider, name)| (provider.trim(), name.trim()));
        if parts.is_none_or(|(provider, name)| provider.is_empty() || name.is_empty()) {
            findings.push(finding(
                path.clone().index(index),
                "expected a model as \"provider/model\", or \"provider/*\"",
                "such as \"anthropic/*\"",
            ));
        }
    }
}

fn check_models(config: &Config, findings: &mut Vec<Finding>) {
    let providers = root().key("models").key("providers");
    for (name, provider) in &config.models.providers {
        let path = providers.clone().key(name);
        if name.trim().is_empty() || name.contains('/') {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    path.clone(),
                    "a provider's name may not be empty or hold `/`",
                    "choose another name",
                )
            });
        }
        for header in provider.headers.keys().filter(|name| !is_header_name(name)) {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    path.clone().key("headers").key(header),
                    "this cannot be the name of a header",
                    "use letters, digits and `-`",
                )
            });
        }
        check_base_url(provider.base_url.as_deref(), &path, findings);
        let models = path.key("models");
        let ids = provider.models.iter().map(|model| model.id.as_str());
        check_unique(ids, |index| models.clone().index(index).key("id"), findings);
    }
}

/// Checks that a request can be sent to the base URL. The schema has already checked its form.
fn check_base_url(base_url: Option<&str>, provider: &ConfigPath, findings: &mut Vec<Finding>) {
    // `{region}` is a placeholder that is filled in when a request is made.
    let filled_in = base_url.map(|text| text.replace(['{', '}'], ""));
    if let Some(Err(error)) = filled_in.map(|text| Url::parse(&text)) {
        findings.push(finding(
            provider.clone().key("baseUrl"),
            format!("no request can be sent to this base URL: {error}"),
            "a base URL is such as \"https://example.com/v1\"",
        ));
    }
}

/// The characters of an HTTP token.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Checks that the first word of each command is a program.
fn check_hooks(config: &Config, findings: &mut Vec<Finding>) {
    for (event, index, command) in config.hooks.commands() {
        if let CommandLine::Program(words) = command.command
            && words.first().is_none_or(|program| program.trim().is_empty())
        {
            findings.push(finding(
                root().key("hooks").key(event.as_str()).index(index).key("command").index(0),
                "expected the name or path of a program",
                "a list begins with the program; its arguments follow",
            ));
        }
    }
}

/// Checks that the commands name programs, and that requests can be sent to the servers.
fn check_speech(config: &Config, findings: &mut Vec<Finding>) {
    let (speech, transcription) = (&config.speech, &config.transcription);
    let sections = [
        ("speech", &speech.command, &speech.base_url),
        ("transcription", &transcription.command, &transcription.base_url),
    ];
    for (name, command, base_url) in sections {
        let path = root().key(name);
        if let Some(CommandLine::Program(words)) = command
            && words.first().is_none_or(|program| program.trim().is_empty())
        {
            findings.push(finding(
                path.clone().key("command").index(0),
                "expected the name or path of a program",
                "a list begins with the program; its arguments follow",
            ));
        }
        check_base_url(base_url.as_deref(), &path, findings);
    }
}

/// Checks that each directory that is opened to tools is one below the state directory.
fn check_state_directories(config: &Config, findings: &mut Vec<Finding>) {
    let path = root().key("tools").key("fs").key("stateDirectories");
    for (index, directory) in config.tools.fs.state_directories.iter().enumerate() {
        let mut parts = Path::new(directory.trim()).components();
        // A shell would take `~` for a home directory, which holds the state directory itself.
        let is_below = parts.clone().next().is_some()
            && !directory.trim().starts_with('~')
            && parts.all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            findings.push(finding(
                path.clone().index(index),
                "expected the name of a directory below the state directory",
                "write for example \"skills\"; all of the state directory cannot be opened, because its keys are in it",
            ));
        }
    }
}

fn check_unique<'a>(
    ids: impl Iterator<Item = &'a str>,
    path_of: impl Fn(usize) -> ConfigPath,
    findings: &mut Vec<Finding>,
) {
    let mut seen = HashMap::new();
    for (index, id) in ids.enumerate() {
        if let Some(first) = seen.get(id) {
            let message = format!("the same id as `{}`", path_of(*first));
            findings.push(finding(path_of(index), message, "give each its own id"));
        } else {
            seen.insert(id, index);
        }
    }
}
