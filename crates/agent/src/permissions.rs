//! Which tools and commands a session may use: the rules of the config that apply to it, and the verdict on each call.
//!
//! The rules are decided by `myclaw-policy`, which knows no files. This module collects the rules of all levels, finds
//! programs, and asks the policy before each call.

mod bound;
mod confined;
mod effects;
mod hook;
mod levels;
mod mistakes;
mod modes;
mod principal;
mod programs;
mod repository;
mod senders;
mod special;
mod start_places;
mod terms;
mod tree;
mod unanswered;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::{AgentId, Config, ConfigPath, ResolvedAgent, SandboxRules, ToolRules};
use myclaw_engine::{
    ActiveModel, CallEffect, CallSubject, CommandLine, Mode, PreparedCall, RunParams, SessionMode,
};
use myclaw_exec::EnvironmentPolicy;
use myclaw_policy::{
    Decision, ExecPolicy, Level, LevelRules, PolicyError, SandboxScope, SessionFacts, ToolPolicy,
};
use myclaw_session::{CLI_CHANNEL, PeerKind, SessionKey};

pub use myclaw_policy::{
    alias_names, canonical_tool_name, group_members, group_names, known_tools,
};

use crate::{AgentError, RunAdditions, SessionConfig};
use confined::Confined;
pub(crate) use hook::apply;
pub(crate) use levels::advice;
use levels::{Situation, exec_levels, tool_levels};
pub(crate) use mistakes::mistakes;
use modes::in_mode;
pub(crate) use repository::hidden_repositories;
pub use senders::{Principal, Senders};
pub(crate) use special::{contradictions, is_of_heartbeats, provider_rules};
pub use unanswered::unanswered_questions;

/// Name of the hook that asks the policy; the reason of a question begins with it.
pub(crate) const POLICY: &str = "policy";

/// The verdict on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allowed,
    /// It may run if somebody approves it, because of these rules.
    NeedsApproval(String),
    /// It may not run; the text names the tool, the kind of session and the rule.
    Denied(String),
}

impl Verdict {
    /// That of a call which these rules ask about.
    fn of_reasons(reasons: &[String]) -> Self {
        match reasons.is_empty() {
            true => Self::Allowed,
            false => Self::NeedsApproval(reasons.join("; ")),
        }
    }
}

/// The rules that apply to a session.
#[derive(Debug, Clone)]
pub struct Permissions {
    tools: ToolPolicy,
    /// Which tools the model is shown: the mode of the session changes nothing of that.
    shown: ToolPolicy,
    exec: ExecPolicy,
    directory: PathBuf,
    confined: Confined,
    /// The variables of commands.
    environment: EnvironmentPolicy,
    scope: SandboxScope,
    rules: Arc<Rules>,
}

/// The inputs from which the rules for another model are made.
#[derive(Debug)]
struct Rules {
    config: Arc<Config>,
    agent: ResolvedAgent,
    session: SessionKey,
    is_open_project: bool,
    /// The sender that the caller named, or the other side of a direct chat.
    sender: Option<String>,
    /// Those that come and go while the session is open.
    senders: Senders,
    /// The sessions on whose behalf this one works.
    principals: Vec<Principal>,
    extra_tools: Vec<String>,
    /// Those of the command that runs.
    of_command: ToolRules,
    /// Those of the agent files of this session and of the sessions above it.
    of_agent_files: Vec<ToolRules>,
    mode: SessionMode,
    /// The narrowest mode of the principals when the run began.
    mode_of_principals: Option<Mode>,
}

/// Whether the session is sandboxed.
pub fn scope(config: &SessionConfig) -> SandboxScope {
    scope_of(config, is_open_project(config))
}

fn scope_of(config: &SessionConfig, is_open_project: bool) -> SandboxScope {
    let main_key = main_key(&config.agent);
    SessionFacts { is_open_project, ..facts(&config.session_key, &[main_key.as_str()]) }
        .scope(in_mode(sandbox_rules(&config.config, &config.agent), config.mode.get()).mode)
}

/// Whether the owner works here in the directory of a project, outside of a sandbox unless the mode is `all`. Only programs
/// of the owner on this machine begin such sessions.
pub(crate) fn is_open_project(config: &SessionConfig) -> bool {
    config.session_key.parts().channel == CLI_CHANNEL
        && config.project_directory().is_some()
        && !config.config.project.sandbox
}

/// Whether it is the owner's main session.
pub(crate) fn is_main(config: &SessionConfig) -> bool {
    facts(&config.session_key, &[main_key(&config.agent).as_str()]).is_main()
}

/// The rules of the sandbox for an agent: its own before those of all agents.
pub fn sandbox_rules(config: &Config, agent: &ResolvedAgent) -> SandboxRules {
    let defaults = &config.agents.defaults.sandbox;
    match levels::entry_of(config, &agent.id) {
        Some((_, entry)) => defaults.with(&entry.sandbox),
        None => defaults.clone(),
    }
}

/// The key of the config that says what is enforced in the sandboxed sessions of an agent.
pub(crate) fn confinement_place(config: &Config, agent: &ResolvedAgent) -> ConfigPath {
    let own = levels::entry_of(config, &agent.id)
        .filter(|(_, entry)| entry.sandbox.confinement != Default::default());
    let sandbox = match own {
        Some((index, _)) => levels::agent_path(index).key("sandbox"),
        None => levels::sandbox_defaults(),
    };
    sandbox.key("confinement")
}

/// The key of the agent's main session. `agent:<id>:main` is another way to write it.
fn main_key(agent: &ResolvedAgent) -> SessionKey {
    SessionKey::for_cli(agent.id.as_str(), crate::MAIN_SESSION)
}

fn facts<'a>(key: &'a SessionKey, main_keys: &'a [&'a str]) -> SessionFacts<'a> {
    SessionFacts { key: key.as_str(), main_keys, host_says_main: false, is_open_project: false }
}

impl Permissions {
    /// The rules for a session whose messages `model` (`provider/model`) answers. `extra_tools` are the names of tools
    /// that do not come with MyClaw.
    ///
    /// # Errors
    /// An entry of the config names no tool, group or program.
    pub fn new(
        config: &SessionConfig,
        model: Option<&str>,
        extra_tools: &[&str],
    ) -> Result<Self, AgentError> {
        // It reads the file system.
        let is_open_project = is_open_project(config);
        let rules = Rules {
            config: Arc::clone(&config.config),
            agent: config.agent.clone(),
            session: config.session_key.clone(),
            is_open_project,
            sender: config.sender.clone().or_else(|| direct_sender(&config.session_key)),
            senders: config.senders.clone(),
            principals: config.principals.clone(),
            extra_tools: extra_tools.iter().map(|name| (*name).to_owned()).collect(),
            of_command: config.options.tools.clone(),
            of_agent_files: config.narrowed.clone(),
            mode: config.mode.clone(),
            mode_of_principals: config.mode_of_principals(),
        };
        let mode = rules.mode.get();
        let failed = |errors: Vec<PolicyError>| config_error(&errors);
        let (tools, exec) = rules.policies(model, mode).map_err(failed)?;
        let shown = match mode {
            Mode::Sandbox => rules.policies(model, Mode::Auto).map_err(failed)?.0,
            _ => tools.clone(),
        };
        Ok(Self {
            tools,
            shown,
            exec,
            directory: config.working_directory().to_owned(),
            confined: Confined::of(config, is_open_project),
            environment: EnvironmentPolicy::inherited(),
            scope: scope_of(config, is_open_project),
            rules: Arc::new(rules),
        })
    }

    /// Whether the session is sandboxed.
    pub fn scope(&self) -> SandboxScope {
        self.scope
    }

    /// The rules for a run with the models of `params` and the tools that its caller adds.
    ///
    /// # Errors
    /// As [`Permissions::new`].
    pub(crate) fn of_run(
        config: &SessionConfig,
        added: &RunAdditions,
        params: &RunParams,
    ) -> Result<Self, AgentError> {
        let model = params.models.first().map(ActiveModel::reference);
        let names: Vec<&str> = added.tools.iter().map(|tool| tool.schema().name.as_str()).collect();
        Self::new(config, model.as_deref(), &names)
    }

    /// Whether a tool is offered to the model.
    pub fn offers(&self, tool: &str) -> bool {
        self.shown.offers(tool)
    }

    /// Whether the tool may run at all, and the rule that denies it.
    pub fn decide(&self, tool: &str) -> Decision {
        self.tools.decide(tool)
    }

    /// Whether some commands may not run without a question.
    pub(crate) fn restricts_commands(&self) -> bool {
        !self.exec.is_open()
    }

    /// The policy for tools.
    pub fn tools(&self) -> &ToolPolicy {
        &self.tools
    }

    /// The verdict on a call. It reads the file system to find the programs of a command.
    pub fn check(&self, call: &PreparedCall) -> Verdict {
        let mut reasons = Vec::new();
        for verdict in
            [self.of_mode(call), self.check_subject(&call.tool_name, &call.subject, &call.model)]
        {
            match verdict {
                Verdict::Allowed => {}
                Verdict::NeedsApproval(reason) => reasons.push(reason),
                denied @ Verdict::Denied(_) => return denied,
            }
        }
        Verdict::of_reasons(&reasons)
    }

    /// The verdict on a call of `tool` by `model` (`provider/model`) that does what `subject` says.
    pub fn check_subject(&self, tool: &str, subject: &CallSubject, model: &str) -> Verdict {
        match self.rules.other_policies(model) {
            None => self.verdict(&self.tools, &self.exec, tool, subject),
            Some(Ok((tools, exec))) => self.verdict(&tools, &exec, tool, subject),
            Some(Err(errors)) => Verdict::Denied(config_error(&errors).message),
        }
    }

    /// A command in the session's directory, as the tool for commands would run it.
    pub fn command(&self, command: &str) -> CallSubject {
        let directory = self.root();
        CallSubject::default().with(CallEffect::Run(CommandLine {
            command: command.to_owned(),
            directory,
            environment: BTreeMap::new(),
            terminal: false,
            background: false,
        }))
    }

    fn verdict(
        &self,
        tools: &ToolPolicy,
        exec: &ExecPolicy,
        tool: &str,
        subject: &CallSubject,
    ) -> Verdict {
        let decision = tools.decide(tool);
        if !decision.allowed {
            return Verdict::Denied(decision.to_string());
        }
        let mut reasons: Vec<String> = Vec::new();
        for effect in &subject.effects {
            match self.judge(exec, tool, effect) {
                Verdict::Allowed => {}
                Verdict::NeedsApproval(reason) if reasons.contains(&reason) => {}
                Verdict::NeedsApproval(reason) => reasons.push(reason),
                Verdict::Denied(reason) => return Verdict::Denied(reason),
            }
        }
        reasons.extend(tools.asks(tool).map(|rule| rule.to_string()));
        Verdict::of_reasons(&reasons)
    }

    /// All variables of a command that count.
    fn environment_of(&self, command: &CommandLine) -> BTreeMap<String, String> {
        let mut environment = programs::environment(&self.environment);
        environment.extend(command.environment.clone());
        environment
    }

    /// Whether no rule can refuse a command or ask about it, so that no program has to be found.
    fn is_open_for(&self, call: &PreparedCall) -> bool {
        !call.subject.effects.iter().any(CallEffect::is_the_owners)
            && self.exec.is_open()
            && !self.rules.can_change()
            && self.tools.decide(&call.tool_name).allowed
            && self.tools.asks(&call.tool_name).is_none()
            && self.of_mode(call) == Verdict::Allowed
    }
}

impl Rules {
    /// Everybody whose messages the session works on at this moment.
    fn all_senders(&self) -> Vec<String> {
        let mut senders = self.senders.get();
        senders.extend(self.sender.clone());
        senders.extend(self.linked_ids());
        senders.extend(self.principals.iter().flat_map(|one| one.senders.iter().cloned()));
        senders
    }

    /// The person of a session for several channels, on each of them: the rules for all of them apply, also where no
    /// message is at work.
    fn linked_ids(&self) -> impl Iterator<Item = String> {
        let parts = self.session.parts();
        let is_person = parts.channel == crate::PERSON_CHANNEL;
        let links = &self.config.channels.identity_links;
        let ids = links.get(parts.peer()).filter(|_| is_person).into_iter().flatten();
        ids.filter_map(|id| id.parts().map(|(channel, id)| format!("{channel}:{id}")))
    }

    fn policies(
        &self,
        model: Option<&str>,
        mode: Mode,
    ) -> Result<(ToolPolicy, ExecPolicy), Vec<PolicyError>> {
        let senders = self.all_senders();
        let (mut agents, mut channels) =
            (vec![self.agent.id.clone()], vec![self.session.parts().channel]);
        for parts in self.principals.iter().map(|one| one.session.parts()) {
            agents.push(AgentId::new(&parts.agent_id));
            channels.push(parts.channel);
        }
        let situation =
            Situation { agents: &agents, model, channels: &channels, senders: &senders };
        let (config, agent) = (&self.config, &self.agent);
        let sandbox = sandbox_rules(config, agent);
        let sandbox = special::with_subagents(config, agent, &self.session, in_mode(sandbox, mode));
        let place = sandbox_place(&self.config, &self.agent, &sandbox);
        let main_key = main_key(&self.agent);
        let main_keys = [main_key.as_str()];
        let session = SessionFacts {
            is_open_project: self.is_open_project,
            ..facts(&self.session, &main_keys)
        };
        let extra: Vec<&str> = self.extra_tools.iter().map(String::as_str).collect();
        let mut levels = tool_levels(&self.config, Some(&situation));
        levels.extend(special::of_heartbeats(config, agent, &self.session));
        levels.push(LevelRules {
            level: Level::CommandLine,
            place: ConfigPath::default(),
            rules: self.of_command.clone(),
        });
        levels.extend(self.of_agent_files.iter().map(|rules| LevelRules {
            level: Level::AgentFile,
            place: ConfigPath::default(),
            rules: rules.clone(),
        }));
        let tools = ToolPolicy::for_session(&levels, &sandbox, &place, session, &extra);
        let exec = ExecPolicy::for_session(
            &exec_levels(&self.config, Some(&situation)),
            &levels::with_home(sandbox, self.config.paths.as_ref()),
            &levels::sandbox_defaults(),
            session,
        );
        match (tools, exec) {
            (Ok(tools), Ok(exec)) => Ok((tools, exec)),
            (tools, exec) => {
                let mut errors = tools.err().unwrap_or_default();
                errors.extend(exec.err().unwrap_or_default());
                Err(errors)
            }
        }
    }

    /// Whether the rules can differ from call to call: by the model that makes it, or because a message of another sender
    /// joined the run.
    fn can_change(&self) -> bool {
        levels::depend_on_provider(&self.config) || self.senders.are_used()
    }

    /// The policies for a call by `model`, if they can differ from those at the start of the run.
    fn other_policies(
        &self,
        model: &str,
    ) -> Option<Result<(ToolPolicy, ExecPolicy), Vec<PolicyError>>> {
        self.can_change().then(|| self.policies(Some(model), self.mode.get()))
    }
}

/// The other side of a direct chat.
fn direct_sender(key: &SessionKey) -> Option<String> {
    let parts = key.parts();
    (parts.peer_kind == PeerKind::Direct).then(|| format!("{}:{}", parts.channel, parts.peer()))
}

/// Where the lists of the sandbox come from, for messages.
fn sandbox_place(config: &Config, agent: &ResolvedAgent, rules: &SandboxRules) -> ConfigPath {
    let own = levels::entry_of(config, &agent.id).filter(|(_, entry)| {
        let own = &entry.sandbox;
        (own.allowlist.is_some() && own.allowlist == rules.allowlist)
            || (own.denylist.is_some() && own.denylist == rules.denylist)
    });
    match own {
        Some((index, _)) => levels::agent_path(index).key("sandbox"),
        None => levels::sandbox_defaults(),
    }
}

fn config_error(errors: &[PolicyError]) -> AgentError {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    AgentError::config(lines.join("\n"))
}

#[cfg(test)]
pub(crate) mod tests;
