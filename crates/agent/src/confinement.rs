//! Decides where the tools of a session run: in this process, or in a helper that the operating system confines.

mod check;
mod network;
mod proxy;
mod slot;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_config::{Config, ConfinementConfig, ConfinementLevel, SandboxMode, SandboxNetwork};
use myclaw_engine::{SkillSummary, Tool, WorkPlace};
use myclaw_exec::EnvironmentPolicy;
use myclaw_executor::{CallHandler, Executor, ExecutorError, Launch, with_handler};
use myclaw_files::canonical_or_same;
use myclaw_mcp::NetworkSetUp;
use myclaw_policy::SandboxScope;
use myclaw_sandbox::{
    Confinement, ContainerEngine, Level, Limits, Network, OpenPaths, Sandbox, WorkspaceAccess,
    with_open_paths,
};
use myclaw_tools::CommandPlace;

use self::proxy::SessionProxy;
pub(crate) use self::slot::ExecutorSlot;
use self::slot::Placed;
use crate::blocking::blocking;
use crate::helper::{self, ToolSetup};
use crate::program::program;
use crate::workspace::{Quota, WorkspaceUse};
use crate::{AgentError, FailureClass, SessionConfig, permissions, workspace::Party};

/// An idle helper ends after this time: it uses some megabytes of memory, and the next one starts in milliseconds.
const IDLE: Duration = Duration::from_secs(300);
/// The tools of the helper read, write and search files. A search through a very large directory takes minutes.
const CALL_LIMIT: Duration = Duration::from_secs(600);
/// Variables that mean the same in a container as on the machine.
const CONTAINER_VARIABLES: [&str; 6] = ["LANG", "LANGUAGE", "TZ", "TERM", "NO_COLOR", "COLORTERM"];

pub use check::{SandboxProblem, StoppedRuns, sandbox_problems};

/// Where the built-in tools of a session run: in this process, or in the helper of the executor.
pub(crate) struct ToolPlace(Option<Placed>);

impl ToolPlace {
    /// Where commands run in a sandbox. The tools that start and look after them stay in this process, which keeps the
    /// records of jobs out of the sandbox and sees every process.
    pub(crate) fn sandbox(&self, session: &SessionConfig) -> Option<CommandPlace> {
        let Placed { executor, .. } = self.0.as_ref()?;
        Some(CommandPlace::Sandbox {
            runner: session.watched(executor),
            workspace: executor.launch().confinement.workspace.clone(),
            artifacts: executor.launch().scratch.clone(),
        })
    }

    /// The built-in tools as the session uses them.
    pub(crate) fn tools(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let Some(Placed { executor, proxy, .. }) = &self.0 else { return tools };
        let placed = |tool: Arc<dyn Tool>| match (tool.declaration().place, proxy) {
            (WorkPlace::ThroughCommands, Some(proxy)) => {
                with_handler(tool, Arc::clone(proxy) as Arc<dyn CallHandler>)
            }
            (WorkPlace::ThroughCommands, None) | (WorkPlace::Here, _) => tool,
            (WorkPlace::Helper, _) => executor.wrap(tool),
        };
        tools.into_iter().map(placed).collect()
    }
}

/// A description of a session's sandbox, for the user.
#[derive(Debug, Clone)]
pub struct SandboxReport {
    /// Which sessions of the agent are sandboxed.
    pub mode: SandboxMode,
    /// Whether this is the owner's main session.
    pub is_main: bool,
    /// Whether it works in a project and the mode `non-main` leaves such sessions alone.
    pub is_open_project: bool,
    /// Whether this session is sandboxed.
    pub is_sandboxed: bool,
    /// Who writes the messages of the session.
    pub party: Party,
    /// The workspace of the agent.
    pub agent_workspace: PathBuf,
    /// What the session may do there.
    pub agent_workspace_access: WorkspaceAccess,
    /// The files that its prompt is made of, whether they exist or not.
    pub prompt: Vec<PathBuf>,
    /// The file with its own notes, which its prompt shows as data.
    pub notes: Option<PathBuf>,
    /// What its own workspace holds, and what it may hold.
    pub workspace_use: Option<(WorkspaceUse, Quota)>,
    /// What is enforced in the sandboxed sessions of the agent. The socket of a proxy is known once it runs.
    pub confinement: Confinement,
    /// The hosts that can be reached through the proxy, if the network is one.
    pub allow_hosts: Vec<String>,
    /// Why this machine cannot enforce it.
    pub obstacle: Option<String>,
}

impl SessionConfig {
    /// Describes the session's sandbox. Blocks, because it asks the kernel and reads directories.
    ///
    /// # Errors
    /// The config of the sandbox cannot be used.
    pub fn sandbox_report(&self) -> Result<SandboxReport, AgentError> {
        let confinement = self.confinement()?;
        self.proxy_rules()?;
        let checked = own_sandbox()?.probe().check(&confinement);
        let rules = permissions::sandbox_rules(&self.config, &self.agent);
        let hosts = rules.confinement.allow_hosts.unwrap_or_default();
        let prompt = self.prompt_files();
        Ok(SandboxReport {
            mode: rules.mode,
            allow_hosts: hosts.into_iter().map(|host| host.0).collect(),
            is_main: permissions::is_main(self),
            is_open_project: permissions::is_open_project(self),
            is_sandboxed: permissions::scope(self) == SandboxScope::Sandboxed,
            party: self.party(),
            agent_workspace: self.agent.workspace.clone(),
            agent_workspace_access: self.agent_workspace_access(),
            prompt: prompt.names().map(|name| self.agent.workspace.join(name)).collect(),
            notes: prompt.notes(),
            workspace_use: self.workspace_use(),
            obstacle: checked.err().map(|error| error.to_string()),
            confinement,
        })
    }

    /// Where the built-in tools of the session run, and the skills for the prompt of a run.
    ///
    /// # Errors
    /// The sandbox that the config demands is not available here, or a directory of the config cannot be used.
    pub(crate) async fn place_and_skills(
        &self,
    ) -> Result<(ToolPlace, Vec<SkillSummary>), AgentError> {
        let this = self.clone();
        let looking = blocking(move || {
            this.make_working_directory()?;
            this.note_hidden_repositories();
            let placed = match permissions::scope(&this) {
                SandboxScope::Unsandboxed => None,
                SandboxScope::Sandboxed => Some(this.placed()?),
            };
            Ok::<_, AgentError>((placed, this.find_skills()?.summaries()))
        });
        let (placed, skills) = looking.await??;
        let Some(placed) = placed else { return Ok((ToolPlace(None), skills)) };
        let executor = &placed.executor;
        let Launch { sandbox, confinement, .. } = executor.launch();
        if confinement.level != Level::Landlock || placed.proxy.is_some() {
            // Another program, or a user namespace, sets up the sandbox. Only starting it shows whether that works.
            if let Err(error) = executor.start().await {
                return Err(
                    self.unavailable(&start_failure(sandbox, &confinement.level, &error).await)
                );
            }
        }
        Ok((ToolPlace(Some(placed)), skills))
    }

    /// Does `work` with the files that the session's tools may touch. In a sandboxed session the tools write the record
    /// of changes that undo follows, so the record may name any path.
    ///
    /// # Errors
    /// The session is sandboxed, and this kernel cannot confine a thread.
    pub(crate) fn as_its_tools<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, AgentError> {
        if permissions::scope(self) == SandboxScope::Unsandboxed {
            return Ok(work());
        }
        let Confinement {
            workspace,
            access,
            protected,
            protected_names,
            read_only,
            read_write,
            ..
        } = self.confinement()?;
        let protected = protected.iter().map(|path| workspace.join(path)).collect();
        let mut paths =
            OpenPaths { readable: read_only, writable: read_write, protected, protected_names };
        match access {
            WorkspaceAccess::None => {}
            WorkspaceAccess::Ro => paths.readable.push(workspace),
            WorkspaceAccess::Rw => paths.writable.push(workspace),
        }
        paths.writable.retain(|path| path.exists());
        with_open_paths(&paths, work).map_err(|error| {
            self.unavailable(&format!(
                "its files cannot be touched outside of the sandbox ({error})"
            ))
        })
    }

    /// Where the tools of the session run. The executor of an earlier run is used again while its rules are the same.
    /// They depend on the session's config, with which [`SessionConfig::with_config`] replaces the executor, and on the
    /// directories of skills that exist. One without a helper is not used when the program's file was replaced.
    fn placed(&self) -> Result<Placed, AgentError> {
        let (skills, program) = (self.present_skills()?, program()?);
        let mut place = self.executor.placed.lock();
        let fits = |placed: &&Placed| {
            let executor = &placed.executor;
            placed.skills == skills
                && (executor.is_running() || executor.launch().program == program)
        };
        if let Some(placed) = place.as_ref().filter(fits) {
            return Ok(placed.clone());
        }
        let mut confinement = self.confinement()?;
        let sandbox = own_sandbox()?;
        sandbox
            .probe()
            .check(&confinement)
            .map_err(|error| self.unavailable(&error.to_string()))?;
        let proxy = self.proxy_rules()?.map(SessionProxy::start).transpose()?;
        if let Some(proxy) = &proxy {
            confinement.network = Network::Proxy { socket: proxy.socket() };
        }
        let setup = ToolSetup { command_timeout_seconds: self.config.tools.bash.timeout_seconds };
        let executor = Executor::new(Launch {
            sandbox,
            environment: environment(&confinement.level),
            confinement,
            program,
            arguments: vec![OsString::from(helper::SERVE)],
            setup: serde_json::to_value(setup)
                .map_err(|error| AgentError::new(FailureClass::Internal, error.to_string()))?,
            scratch: self.artifacts(),
            idle: IDLE,
            call_limit: CALL_LIMIT,
        });
        Ok(place.insert(Placed { executor, proxy, skills }).clone())
    }

    /// The hosts that the session's proxy permits, if there is a proxy.
    fn proxy_rules(&self) -> Result<Option<myclaw_web::ProxyRules>, AgentError> {
        let rules = permissions::sandbox_rules(&self.config, &self.agent);
        network::proxy_rules(&self.config, &rules.confinement)
    }

    /// The existing directories of skills, with all links followed. One of the workspace that leads out of it is none: a
    /// sandboxed session could have made the link.
    fn present_skills(&self) -> Result<Vec<PathBuf>, AgentError> {
        let workspace = real(&self.agent.workspace);
        let present = self.skill_directories()?.into_iter().filter(|path| path.is_dir());
        let present = present.map(|path| (path.starts_with(&self.agent.workspace), real(&path)));
        let fits = |(is_workspaces, real): &(bool, PathBuf)| {
            !is_workspaces || real.starts_with(&workspace)
        };
        Ok(present.filter(fits).map(|(_, real)| real).collect())
    }

    /// What the operating system enforces in the session, if it is sandboxed. A proxy has no socket yet.
    fn confinement(&self) -> Result<Confinement, AgentError> {
        let config = permissions::sandbox_rules(&self.config, &self.agent).confinement;
        let mut confinement = Confinement::new(level(&config)?, real(self.working_directory()));
        let access = self.agent_workspace_access();
        confinement.protected = self.protected(&confinement.level);
        confinement.protected_names = self.protected_names(&confinement.level);
        if self.own_workspace().is_none() {
            confinement.access = access;
        } else if access == WorkspaceAccess::Ro && self.agent.workspace.is_dir() {
            confinement.read_only.push(real(&self.agent.workspace));
        }
        confinement.network = match config.network.unwrap_or_default() {
            SandboxNetwork::None => Network::None,
            SandboxNetwork::Allowlist => Network::Proxy { socket: PathBuf::new() },
            SandboxNetwork::Open => Network::Open,
        };
        confinement.limits = limits(&config);
        if let Some(quota) = self.quota().and_then(|quota| quota.bytes) {
            let limit = confinement.limits.file_size.map_or(quota, |limit| limit.min(quota));
            confinement.limits.file_size = Some(limit);
        }
        confinement.read_only.extend(self.named_paths(config.read_only.as_deref(), "readOnly")?);
        confinement.read_write = self.named_paths(config.read_write.as_deref(), "readWrite")?;
        // The model reads the files of skills, wherever these are.
        confinement.read_only.extend(self.present_skills()?);
        self.refuse_own_directories(&confinement)?;
        confinement.read_only.push(program()?);
        confinement.read_write.push(self.artifacts());
        Ok(confinement)
    }

    /// The directory of the session's large outputs, as it is named inside.
    pub(crate) fn artifacts(&self) -> PathBuf {
        let directory = self.home.side_files().artifact_directory(&self.session_key);
        // It need not exist yet, but the state directory does.
        match directory.strip_prefix(self.home.paths.state_dir()) {
            Ok(rest) => real(self.home.paths.state_dir()).join(rest),
            Err(_) => directory,
        }
    }

    fn named_paths(&self, paths: Option<&[String]>, key: &str) -> Result<Vec<PathBuf>, AgentError> {
        let resolve = |path: &String| {
            let resolved = self.home.paths.resolve_in_config(path)?;
            // The path as the config has it, even if it is a link: programs inside look for it there.
            resolved.metadata().map(|_| resolved.clone()).map_err(|error| {
                AgentError::config(format!(
                    "`sandbox.confinement.{key}` names {}, which cannot be used: {error}; correct the path or remove it",
                    resolved.display()
                ))
            })
        };
        paths.unwrap_or_default().iter().map(resolve).collect()
    }

    /// Refuses to share a directory that holds the keys and the config of this program.
    fn refuse_own_directories(&self, confinement: &Confinement) -> Result<(), AgentError> {
        let paths = &self.home.paths;
        let own =
            [Some(paths.state_dir()), Some(paths.config_file()), self.agent.agent_dir.as_deref()];
        let own: Vec<PathBuf> = own.into_iter().flatten().map(real).collect();
        let workspace =
            (confinement.access != WorkspaceAccess::None).then_some(&confinement.workspace);
        let shared = confinement.read_only.iter().chain(&confinement.read_write).chain(workspace);
        for path in shared {
            if let Some(own) = own.iter().find(|own| own.starts_with(real(path))) {
                return Err(AgentError::new(
                    FailureClass::Sandbox,
                    format!(
                        "the sandbox of session {} would open {}, which holds {}: a sandboxed session could read keys and \
                         change the config. Choose another directory, or set `agents.defaults.sandbox.mode` to \"off\"",
                        self.session_key,
                        path.display(),
                        own.display()
                    ),
                ));
            }
        }
        Ok(())
    }

    fn unavailable(&self, reason: &str) -> AgentError {
        let message = format!(
            "session {} is sandboxed, and {reason}. Nothing was run. `myclaw sandbox explain` shows what the config \
             demands (`agents.defaults.sandbox`)",
            self.session_key
        );
        AgentError::new(FailureClass::Sandbox, message)
    }
}

/// The network of a program that has an allowlist of hosts; `None` if it has none.
///
/// # Errors
/// The list is empty, or an entry names no host.
pub(crate) fn proxy_network(
    config: &Config,
    wanted: &ConfinementConfig,
) -> Result<Option<Arc<NetworkSetUp>>, AgentError> {
    let Some(rules) = network::proxy_rules(config, wanted)? else { return Ok(None) };
    Ok(Some(Arc::new(move || -> Result<_, String> {
        let proxy = SessionProxy::start(rules.clone()).map_err(|error| error.message)?;
        let network = Network::Proxy { socket: proxy.socket() };
        Ok((network, Box::new(proxy) as Box<dyn std::any::Any + Send + Sync>))
    })))
}

/// Starts confined processes with this program as their helper.
///
/// # Errors
/// The program's `main` does not begin with `helper_main`, or its file is gone.
pub fn own_sandbox() -> Result<Sandbox, AgentError> {
    if !helper::is_available() {
        return Err(AgentError::new(
            FailureClass::Sandbox,
            "this program cannot run sandboxed sessions, because its `main` does not begin with \
             `myclaw_agent::helper_main()`; add the call, or set `agents.defaults.sandbox.mode` to \"off\"",
        ));
    }
    Ok(Sandbox::new(program()?, [OsString::from(helper::CONFINE)]))
}

/// Why the helper did not start. What a container's program says about a missing image does not help to get it.
async fn start_failure(sandbox: &Sandbox, level: &Level, error: &ExecutorError) -> String {
    if let Level::Container { engine, image } = level
        && let Err(missing) = sandbox.check_image(*engine, image).await
    {
        return missing.to_string();
    }
    error.to_string()
}

/// The table of attempts to leave a sandbox of this level, tried on this machine. Blocks for some seconds.
///
/// # Errors
/// The level is not available here, or the attempts cannot be made.
#[cfg(target_os = "linux")]
pub fn try_escapes(level: Level) -> Result<Vec<myclaw_sandbox::escapes::Row>, AgentError> {
    let hidden = [OsString::from(helper::ATTEMPT)];
    myclaw_sandbox::escapes::try_all(&own_sandbox()?, &program()?, &hidden, level)
        .map_err(|error| AgentError::new(FailureClass::Sandbox, error.to_string()))
}

fn level(config: &ConfinementConfig) -> Result<Level, AgentError> {
    let container = |engine: ContainerEngine| match &config.image {
        Some(image) => Ok(Level::Container { engine, image: image.clone() }),
        None => Err(AgentError::config(format!(
            "`sandbox.confinement.level` is \"{}\", and no image is named; set `sandbox.confinement.image` to an image on \
             this machine",
            engine.program()
        ))),
    };
    match config.level.unwrap_or_default() {
        ConfinementLevel::Landlock => Ok(Level::Landlock),
        ConfinementLevel::Bubblewrap => Ok(Level::Bubblewrap),
        ConfinementLevel::Podman => container(ContainerEngine::Podman),
        ConfinementLevel::Docker => container(ContainerEngine::Docker),
    }
}

/// The limits of the config; 0 means none.
pub(crate) fn limits(config: &ConfinementConfig) -> Limits {
    const MEGABYTE: u64 = 1 << 20;
    let (wanted, default) = (&config.limits, Limits::default());
    let choose = |wanted: Option<u64>, unit: u64, default: Option<u64>| match wanted {
        Some(0) => None,
        Some(value) => Some(value.saturating_mul(unit)),
        None => default,
    };
    Limits {
        memory: choose(wanted.memory_mb, MEGABYTE, default.memory),
        processes: choose(wanted.processes, 1, default.processes),
        file_size: choose(wanted.file_size_mb, MEGABYTE, default.file_size),
        open_files: choose(wanted.open_files, 1, default.open_files),
        cpu_seconds: choose(wanted.cpu_seconds, 1, default.cpu_seconds),
    }
}

/// The variables of a helper. Paths and programs of this machine mean nothing in an image.
fn environment(level: &Level) -> EnvironmentPolicy {
    match level {
        Level::Container { .. } => {
            let shared = std::env::vars_os().filter(|(name, _)| {
                name.to_str().is_some_and(|name| CONTAINER_VARIABLES.contains(&name))
            });
            EnvironmentPolicy::filtered(shared, &[])
        }
        _ => EnvironmentPolicy::inherited(),
    }
}

/// The path with all links followed, as the kernel compares it; unchanged if it does not exist.
pub(crate) fn real(path: &Path) -> PathBuf {
    canonical_or_same(path)
}

#[cfg(test)]
mod tests;
