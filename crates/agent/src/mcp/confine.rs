//! What the program of a server may do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_config::{Config, ConfinementConfig, Paths, SandboxNetwork};
use myclaw_exec::ChildSpec;
use myclaw_files::{ClosedPaths, Opening, PathUse};
use myclaw_mcp::NetworkSetUp;
use myclaw_sandbox::{Confinement, Level, Network, WorkspaceAccess};

use super::ConfiguredServer;
use crate::confinement::{limits, own_sandbox, proxy_network, real};
use crate::{AgentError, FailureClass};

/// Directory of packages for Node, whose modules read each other.
const NODE_MODULES: &str = "node_modules";
/// Marks a directory with a Python of its own.
const PYTHON_ENVIRONMENT: &str = "pyvenv.cfg";
/// Where a server keeps temporary files, in its own directory.
const TEMPORARY: &str = "tmp";

impl ConfiguredServer {
    /// The confinement of its program: it reads the system, its own installation and the paths among its arguments, and
    /// changes the directory in which it starts. The keys of the config permit more.
    ///
    /// # Errors
    /// A path of the config does not exist or leads to keys, or the machine cannot confine.
    pub(super) fn confinement(
        &self,
        child: &ChildSpec,
    ) -> Result<(Confinement, Option<Arc<NetworkSetUp>>), AgentError> {
        let wanted = &self.config.sandbox;
        let shared = ConfinementConfig {
            network: wanted.network,
            allow_hosts: wanted.allow_hosts.clone(),
            limits: wanted.limits.clone(),
            ..ConfinementConfig::default()
        };
        let mut confinement = self.unconfined(child);
        confinement.level = Level::Landlock;
        confinement.limits = limits(&shared);
        confinement.network = match wanted.network.unwrap_or_default() {
            SandboxNetwork::Open => Network::Open,
            SandboxNetwork::None | SandboxNetwork::Allowlist => Network::None,
        };
        let closed = self.closed.get_or_init(|| self.session.closed_paths());
        if self.config.cwd.is_some() {
            self.refuse_closed(closed, &child.directory, "cwd")?;
        }
        let temporary = child.directory.join(TEMPORARY);
        if self.config.cwd.is_none() && myclaw_files::create_private_directory(&temporary).is_ok() {
            confinement.temporary = Some(temporary);
        }
        let guard = Guard { home: real_home(), closed };
        if let Ok(program) = child.resolve_program() {
            guard.add_installation(&program, &mut confinement.read_only);
        }
        for argument in self.config.args.iter().filter(|argument| argument.starts_with('/')) {
            guard.add_argument(Path::new(argument), &mut confinement.read_only);
        }
        for path in self.named_paths(&wanted.read_only, "readOnly")? {
            self.refuse_closed(closed, &path, "sandbox.readOnly")?;
            confinement.read_only.push(path);
        }
        for path in self.named_paths(&wanted.read_write, "readWrite")? {
            self.refuse_closed(closed, &path, "sandbox.readWrite")?;
            confinement.read_write.push(path);
        }
        own_sandbox()?.probe().check(&confinement).map_err(|error| {
            AgentError::new(
                FailureClass::Sandbox,
                format!(
                    "the MCP server {} cannot be confined here: {error}. To run it with all your rights, set \
                     `mcp.servers.{}.sandbox.enabled` to false",
                    self.name, self.name
                ),
            )
        })?;
        Ok((confinement, proxy_network(&self.session.config, &shared)?))
    }

    /// No confinement but the one that ends everything which the program starts.
    pub(super) fn unconfined(&self, child: &ChildSpec) -> Confinement {
        let mut confinement = Confinement::new(Level::Limits, real(&child.directory));
        confinement.access = WorkspaceAccess::Rw;
        confinement.network = Network::Open;
        confinement
    }

    /// What to try if it fails at the start.
    pub(super) fn advice(&self, is_confined: bool) -> String {
        if !is_confined {
            return String::new();
        }
        let name = &self.name;
        let reaches = match self.config.sandbox.network.unwrap_or_default() {
            SandboxNetwork::None => "reaches no host",
            SandboxNetwork::Allowlist => "reaches the hosts of `allowHosts`",
            SandboxNetwork::Open => "reaches every host",
        };
        format!(
            "It runs in a sandbox that {reaches} and sees few files; `mcp.servers.{name}.sandbox` permits more, \
             docs/use/mcp.md"
        )
    }

    fn named_paths(&self, paths: &[String], key: &str) -> Result<Vec<PathBuf>, AgentError> {
        let resolve = |path: &String| {
            let resolved = self.session.home.paths.resolve_in_config(path)?;
            resolved.metadata().map(|_| resolved.clone()).map_err(|error| {
                AgentError::config(format!(
                    "`mcp.servers.{}.sandbox.{key}` names {}, which cannot be used: {error}; correct the path or remove it",
                    self.name,
                    resolved.display()
                ))
            })
        };
        paths.iter().map(resolve).collect()
    }

    /// Refuses to share keys, the config and sessions with a server.
    fn refuse_closed(
        &self,
        closed: &ClosedPaths,
        path: &Path,
        key: &str,
    ) -> Result<(), AgentError> {
        if !opens_closed(closed, path) {
            return Ok(());
        }
        Err(AgentError::config(format!(
            "`mcp.servers.{}.{key}` would open {} to the server, which holds keys, the config or sessions of MyClaw; choose \
             another directory",
            self.name,
            path.display()
        )))
    }
}

/// The programs and scripts of all servers, which no tool changes: they run outside of the sandboxes of sessions.
pub(crate) fn server_files(config: &Config, paths: &Paths) -> Vec<PathBuf> {
    let own = config.agents.list.iter().map(|entry| &entry.mcp);
    let servers = own.chain([&config.mcp]).flat_map(|mcp| mcp.servers.values());
    let words = servers.flat_map(|server| {
        let scripts = server.args.iter().filter(|argument| is_script(Path::new(argument)));
        server.command.iter().chain(scripts)
    });
    // Each is looked up once.
    let named: BTreeSet<&String> = words.filter(|word| word.contains('/')).collect();
    let files = named.into_iter().filter_map(|word| paths.resolve_in_config(word).ok());
    files.filter(|path| path.is_file()).collect()
}

fn is_script(path: &Path) -> bool {
    const ENDINGS: [&str; 9] = ["py", "js", "mjs", "cjs", "ts", "rb", "sh", "php", "pl"];
    path.extension()
        .is_some_and(|ending| ENDINGS.iter().any(|script| ending.eq_ignore_ascii_case(script)))
}

/// Whether a path is closed to tools, or holds something that is.
fn opens_closed(closed: &ClosedPaths, path: &Path) -> bool {
    let path = real(path);
    closed.refusing(&path, PathUse::Read).is_some()
        || closed.places().any(|(place, opening)| {
            matches!(opening, Opening::Closed) && real(place).starts_with(&path)
        })
}

fn real_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| real(Path::new(&home)))
}

/// Decides what a program may read because its installation needs it.
struct Guard<'a> {
    home: Option<PathBuf>,
    closed: &'a ClosedPaths,
}

impl Guard<'_> {
    /// The program, with all links followed and without, and what is installed with it.
    fn add_installation(&self, program: &Path, readable: &mut Vec<PathBuf>) {
        for path in [program.to_owned(), real(program)] {
            self.add(&path, readable);
            self.add_packages(&path, readable);
            // A version manager such as pyenv or asdf finds the program that is meant next to its shims.
            if let Some(manager) = path.parent().filter(|parent| parent.ends_with("shims")) {
                self.add(manager.parent().unwrap_or(manager), readable);
            }
            let directory = path.parent().filter(|parent| parent.ends_with("bin"));
            if let Some(prefix) = directory.and_then(Path::parent)
                && (!self.is_wide(prefix) || prefix.join(PYTHON_ENVIRONMENT).is_file())
            {
                self.add(prefix, readable);
            }
        }
    }

    /// A path among the arguments: a script can read the files next to it.
    fn add_argument(&self, path: &Path, readable: &mut Vec<PathBuf>) {
        if path.is_dir() && self.is_home_or_above(path) {
            return;
        }
        self.add(path, readable);
        self.add_packages(&real(path), readable);
        let parent = path.parent().filter(|parent| is_script(path) && !self.is_wide(parent));
        if let Some(parent) = parent {
            self.add(parent, readable);
        }
    }

    /// The packages of Node around a path.
    fn add_packages(&self, path: &Path, readable: &mut Vec<PathBuf>) {
        let packages = path.ancestors().filter(|ancestor| ancestor.ends_with(NODE_MODULES)).last();
        if let Some(packages) = packages {
            self.add(packages, readable);
            if let Some(project) = packages.parent() {
                self.add(&project.join("package.json"), readable);
            }
        }
    }

    fn add(&self, path: &Path, readable: &mut Vec<PathBuf>) {
        if path.exists()
            && !opens_closed(self.closed, path)
            && !readable.iter().any(|known| known == path)
        {
            readable.push(path.to_owned());
        }
    }

    fn is_home_or_above(&self, path: &Path) -> bool {
        path.parent().is_none()
            || self.home.as_deref().is_some_and(|home| home.starts_with(real(path)))
    }

    /// Whether a directory holds more than one program: the home, what is directly in it, and what is above.
    fn is_wide(&self, path: &Path) -> bool {
        self.is_home_or_above(path)
            || path.parent().is_none_or(|parent| self.is_home_or_above(parent))
    }
}
