//! The MCP servers of the config: their programs, their tools in runs, and what commands about them need.

mod approval;
mod asker;
mod confine;
mod import;
mod login;
mod offers;
mod project;
mod script;
mod served;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use myclaw_config::{ExposeSecret as _, McpServerConfig};
use myclaw_engine::{Approver, Tool};
use myclaw_exec::{ChildSpec, EnvironmentPolicy};
use myclaw_files::ClosedPaths;
use myclaw_llm::HttpProvider;
pub use myclaw_mcp::oauth::Begun;
pub use myclaw_mcp::serve;
use myclaw_mcp::{
    Address, ApprovedStore, Asker, Program, Server, ServerPlace, ServerSpec, offered_tools,
    remove_server_log, server_log,
};
pub use myclaw_mcp::{
    Approved, Difference, Failure, Listing, Revision, ToolDefinition, call_from_script,
};
use myclaw_policy::matches_name;
use ring::digest::{Context, SHA256};
use url::Url;

pub use self::approval::{ToApprove, difference_lines};
use self::asker::UserOf;
pub(crate) use self::confine::server_files;
pub use self::import::{ImportSource, Imported, editor_server, read_servers};
pub use self::offers::OfferKind;
pub use self::project::ProjectServers;
pub(crate) use self::project::servers_of_text;
pub use self::served::{served_answer, served_question};
use crate::blocking::blocking;
use crate::confinement::own_sandbox;
use crate::permissions::Permissions;
use crate::{AgentError, FailureClass, Home, SessionConfig};

/// Directory in that of the servers with those that servers start in.
const DATA: &str = "data";

impl Home {
    /// What was approved of MCP servers.
    fn approved_servers(&self) -> ApprovedStore {
        ApprovedStore::new(Arc::clone(&self.stores().servers.approvals))
    }

    /// Forgets an MCP server: what was approved of it, and its log. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn forget_server(&self, name: &str) -> io::Result<()> {
        self.approved_servers().forget(name)?;
        remove_server_log(&self.stores().servers.directory, name)
    }

    /// What an MCP server has printed to its errors, oldest first. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn server_log(&self, name: &str) -> io::Result<String> {
        server_log(&self.stores().servers.directory, name)
    }
}

/// A server of an agent.
#[derive(Clone)]
pub struct ConfiguredServer {
    /// Its name.
    pub name: String,
    /// Its entry in the config.
    pub config: McpServerConfig,
    /// The package that it belongs to.
    package: Option<String>,
    /// One for all servers: it is large, and a run makes all of them.
    session: Arc<SessionConfig>,
    /// What is closed to tools, which is the same for all servers and takes dozens of system calls to find.
    closed: Arc<OnceLock<Arc<ClosedPaths>>>,
}

impl SessionConfig {
    /// The MCP servers of the session's agent and of its project, by name. Blocks for the file of the project.
    pub fn mcp_servers(&self) -> Vec<ConfiguredServer> {
        let mut packages = BTreeMap::new();
        let mut servers = self.approved_project_servers();
        for (name, config, package) in self.package_servers() {
            packages.insert(name.clone(), package);
            servers.insert(name, config);
        }
        // Nothing of a project takes the place of what the owner has set up.
        let own = self.editor_servers.clone().into_iter();
        for (name, config) in own.chain(self.config.mcp_servers(&self.agent.id)) {
            packages.remove(&name);
            servers.insert(name, config);
        }
        let (session, closed) = (Arc::new(self.clone()), Arc::default());
        let made = servers.into_iter().map(|(name, config)| ConfiguredServer {
            package: packages.remove(&name),
            name,
            config,
            session: Arc::clone(&session),
            closed: Arc::clone(&closed),
        });
        made.collect()
    }

    /// What a run offers of the tools that were approved. No server is started.
    ///
    /// # Errors
    /// A defect.
    pub(crate) async fn mcp_tools(
        &self,
        permissions: &Arc<Permissions>,
        approver: Option<&Arc<dyn Approver>>,
    ) -> Result<Vec<Arc<dyn Tool>>, AgentError> {
        let has_none = self.config.mcp_servers(&self.agent.id).is_empty();
        let has_none = has_none && self.editor_servers.is_empty() && self.home.has_no_packages();
        if has_none && self.project_directory().is_none() {
            return Ok(Vec::new());
        }
        let session = self.clone();
        let asker = approver.map(|approver| {
            let session = Arc::new(self.session_key.clone());
            let limit = Duration::from_secs(self.config.tools.approvals.timeout_seconds);
            let (approver, store) = (Arc::clone(approver), self.home.stores().approvals.clone());
            Arc::new(UserOf { approver, session, store, limit }) as Arc<dyn Asker>
        });
        let scripts = self.config.mcp_code_mode(&self.agent.id).then(script::script_places);
        let permissions = Arc::clone(permissions);
        // What is said about few tools is read here.
        let tools = move || {
            let tools = approved_tools(&session.mcp_servers(), asker.as_ref());
            let offered = tools.into_iter().filter(|tool| permissions.offers(tool.name()));
            offered_tools(offered.collect(), scripts)
        };
        blocking(tools).await
    }
}

/// The tools of these servers as they were approved. A server that cannot be used offers none. Blocks.
fn approved_tools(
    servers: &[ConfiguredServer],
    asker: Option<&Arc<dyn Asker>>,
) -> Vec<Arc<dyn Tool>> {
    let enabled = servers.iter().filter(|server| server.config.is_enabled());
    let named = enabled.clone().map(|server| (server.name.clone(), server.identity()));
    let Some(home) = servers.first().map(|server| &server.session.home) else { return Vec::new() };
    let outlines = home.approved_servers().outlines(&named.collect::<Vec<_>>());
    let mut tools = Vec::new();
    for (server, outline) in enabled.zip(outlines) {
        let approved = match outline {
            Ok(Some(approved)) => approved,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(server = %server.name, %error, "what was approved of an MCP server cannot be read");
                continue;
            }
        };
        match server.server() {
            Ok(running) => {
                tools.extend(running.tools(approved, &|name| server.offers(name), asker));
            }
            Err(error) => {
                tracing::warn!(server = %server.name, error = %error.message, "an MCP server cannot be used");
            }
        }
    }
    tools
}

impl ConfiguredServer {
    /// What was approved of it; `None` if nothing was, or if it was another program. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn approved(&self) -> Result<Option<Approved>, AgentError> {
        let store = self.session.home.approved_servers();
        store.load(&self.name, &self.identity()).map_err(|error| {
            AgentError::new(
                FailureClass::Mcp,
                format!(
                    "what was approved of the MCP server {} cannot be read: {error}; approve it again with `myclaw mcp \
                     approve {}`",
                    self.name, self.name
                ),
            )
        })
    }

    /// Approves what it lists. Blocks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn approve(&self, listing: Listing, revision: &Revision) -> Result<(), AgentError> {
        let Listing { tools, resources, prompts, .. } = listing;
        let approved = Approved {
            server: self.name.clone(),
            identity: self.identity(),
            revision: revision.to_string(),
            tools,
            resources,
            prompts,
        };
        self.session.home.approved_servers().save(&approved).map_err(|error| {
            AgentError::new(FailureClass::Mcp, format!("the approval cannot be kept: {error}"))
        })
    }

    /// The package that it belongs to.
    pub fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// Whether the config offers a tool, by the name that the server gives it.
    pub fn offers(&self, tool: &str) -> bool {
        let rules = &self.config.tools;
        let names = |list: &[String]| list.iter().any(|entry| matches_name(entry, tool));
        rules.allow.as_deref().is_none_or(names) && !names(&rules.deny)
    }

    /// What it is: its program and arguments, or its address without what may be secret in it.
    pub fn shown(&self) -> String {
        if let Some(url) = &self.config.url {
            let (shown, has_more) = match url.split_once(['?', '#']) {
                Some((shown, _)) => (shown, true),
                None => (url.as_str(), false),
            };
            return format!("{shown}{}", if has_more { "?…" } else { "" });
        }
        let words = self.config.command.iter().chain(&self.config.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Why it cannot be started, as far as that shows without starting it. Makes its directory, and blocks.
    pub fn obstacle(&self) -> Option<String> {
        let prepared = match &self.config.url {
            Some(url) => self.address(url).map(drop),
            None => self.prepare().map(drop),
        };
        prepared.err().map(|error| error.message)
    }

    /// Starts it, if it does not run, and asks what tools it has.
    ///
    /// # Errors
    /// Its config cannot be used, it does not start, or it gives no list.
    pub async fn listing(&self) -> Result<(Listing, Revision, String), AgentError> {
        let server = self.server()?;
        server
            .listing()
            .await
            .map_err(|failure| AgentError::new(FailureClass::Mcp, format!("{failure}")))
    }

    /// The server of this process. Nothing is started, and no file is looked at: that is done when the server is needed.
    fn server(&self) -> Result<Server, AgentError> {
        let directory = &self.session.home.stores().servers.directory;
        Ok(self.session.home.mcp.get(self.spec()?, Some(directory)))
    }

    fn spec(&self) -> Result<ServerSpec, AgentError> {
        let place = match &self.config.url {
            Some(url) => ServerPlace::Address(self.address(url)?),
            None => {
                let server = self.clone();
                ServerPlace::Program(Arc::new(move || {
                    server.prepare().map_err(|error| error.message)
                }))
            }
        };
        Ok(ServerSpec {
            name: self.name.clone(),
            fingerprint: self.fingerprint(),
            shown: self.shown(),
            call_limit: Duration::from_secs(self.config.call_seconds()),
            idle_limit: Duration::from_secs(self.config.idle_seconds()),
            place,
        })
    }

    fn address(&self, url: &str) -> Result<Address, AgentError> {
        let parsed = Url::parse(url).map_err(|error| {
            AgentError::config(format!("`mcp.servers.{}.url` cannot be used: {error}", self.name))
        })?;
        let headers = self.config.headers.clone().into_iter().collect();
        let home = &self.session.home;
        let http = home.mcp.http(|| HttpProvider::new(home.http_options()));
        let has_key = |name: &String| name.eq_ignore_ascii_case("authorization");
        let login = (!self.config.headers.keys().any(has_key)).then(|| self.login());
        Ok(Address { url: parsed, headers, http, login })
    }

    /// The program, ready to start. Makes its directory, and blocks for some system calls.
    fn prepare(&self) -> Result<Program, AgentError> {
        let Some(command) = &self.config.command else {
            let name = &self.name;
            return Err(AgentError::config(format!(
                "the MCP server {name} has no `command` and no `url`"
            )));
        };
        if let Some(package) = &self.package {
            self.session.home.check_package(package)?;
        }
        let directory = self.directory()?;
        let is_confined = self.config.sandbox.enabled.unwrap_or(true);
        let mut environment = EnvironmentPolicy::inherited();
        if is_confined {
            environment = environment.with("HOME", directory.as_os_str());
        }
        for (name, value) in &self.config.env {
            environment = environment.with(name, value.expose_secret());
        }
        let mut child = ChildSpec::new(self.program(command)?, &directory);
        child.args = self.config.args.iter().map(Into::into).collect();
        child.environment = environment;
        let (confinement, network) = match is_confined {
            true => self.confinement(&child)?,
            false => (self.unconfined(&child), None),
        };
        let advice = self.advice(is_confined);
        Ok(Program { sandbox: own_sandbox()?, child, confinement, network, advice })
    }

    /// A name in `PATH`, or a path of the config.
    fn program(&self, command: &str) -> Result<PathBuf, AgentError> {
        if !command.contains('/') && !command.starts_with('~') {
            return Ok(PathBuf::from(command));
        }
        Ok(self.session.home.paths.resolve_in_config(command)?)
    }

    /// The directory in which it starts.
    fn directory(&self) -> Result<PathBuf, AgentError> {
        let Some(cwd) = &self.config.cwd else {
            let own = self.session.home.stores().servers.directory.join(DATA).join(&self.name);
            myclaw_files::create_private_directory(&own).map_err(|error| {
                AgentError::new(
                    FailureClass::Mcp,
                    format!("cannot make the directory of the MCP server {}: {error}", self.name),
                )
            })?;
            return Ok(own);
        };
        let path = self.session.home.paths.resolve_in_config(cwd)?;
        if !path.is_dir() {
            return Err(AgentError::config(format!(
                "`mcp.servers.{}.cwd` names {}, which is no directory; correct the path or make it",
                self.name,
                path.display()
            )));
        }
        Ok(path)
    }

    /// What an approval is for: another program, other arguments or another address are another server.
    fn identity(&self) -> String {
        finished(self.launch())
    }

    /// The program, its arguments and its directory, or the address.
    fn launch(&self) -> Context {
        let mut digest = Context::new(&SHA256);
        let McpServerConfig { command, args, cwd, url, .. } = &self.config;
        for part in [command, cwd] {
            add(&mut digest, part.as_deref().unwrap_or_default());
        }
        args.iter().chain(url).for_each(|part| add(&mut digest, part));
        digest
    }

    /// What it was made of: servers with another one do not share a program.
    fn fingerprint(&self) -> String {
        let mut digest = Context::new(&SHA256);
        digest.update(self.launch().finish().as_ref());
        add(&mut digest, &self.name);
        for (name, value) in self.config.env.iter().chain(&self.config.headers) {
            add(&mut digest, name);
            add(&mut digest, value.expose_secret());
        }
        add(
            &mut digest,
            &format!(
                "{:?} {} {}",
                self.config.sandbox,
                self.config.call_seconds(),
                self.config.idle_seconds()
            ),
        );
        finished(digest)
    }
}

/// A short code that belongs to these tools alone, as they are described.
pub fn code_of(tools: &[ToolDefinition]) -> String {
    const DIGITS: usize = 10;
    let mut digest = Context::new(&SHA256);
    tools.iter().for_each(|tool| add(&mut digest, &tool.digest()));
    finished(digest)[..DIGITS].to_owned()
}

fn add(digest: &mut Context, text: &str) {
    digest.update(&(text.len() as u64).to_le_bytes());
    digest.update(text.as_bytes());
}

fn finished(digest: Context) -> String {
    myclaw_files::hex(digest.finish().as_ref())
}
