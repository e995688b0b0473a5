//! Edits say which errors they add, as the language servers of the session report them.
//!
//! A server is a program that the agent starts, so what holds for a command of its name holds for it: it runs only where that
//! needs no question. What it may do with programs that the project names is decided by who trusts the project.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    Hook, HookError, Mode, PreparedCall, TargetAccess, ToolCallVerdict, ToolKind, ToolOutput,
};
use myclaw_files::SharedDirectory;
use myclaw_llm::ContentBlock;
use myclaw_policy::SandboxScope;
use myclaw_tools::{
    CommandPlace, DiagnosticsLimits, DiagnosticsPlace, EditedFile, Jobs, LanguageServers,
    ProjectPrograms, server_for,
};
use parking_lot::Mutex;

use crate::SessionConfig;
use crate::blocking::blocking;
use crate::confinement::real;
use crate::permissions::{Permissions, Verdict};

/// Most bytes of a file that a server is sent.
const MAX_BYTES: u64 = 512 << 10;
/// Most files of one call that are looked at.
const MAX_FILES: usize = 5;

/// Adds to the results of edits which errors are new.
struct DiagnosticsHook {
    session: SessionConfig,
    permissions: Arc<Permissions>,
    commands: CommandPlace,
    jobs: Option<Arc<Jobs>>,
    place: OnceLock<DiagnosticsPlace>,
    limits: DiagnosticsLimits,
    /// The texts of files before the calls that change them, by the ids of the calls.
    before: Mutex<HashMap<String, Vec<(PathBuf, String)>>>,
}

impl SessionConfig {
    /// The hook, if the config wants it.
    pub(crate) fn diagnostics_hook(
        &self,
        permissions: &Arc<Permissions>,
        commands: CommandPlace,
        jobs: Option<Arc<Jobs>>,
    ) -> Option<Arc<dyn Hook>> {
        const MEGABYTE: u64 = 1 << 20;
        let config = &self.config.tools.diagnostics;
        if !config.enabled {
            return None;
        }
        Some(Arc::new(DiagnosticsHook {
            session: self.clone(),
            permissions: Arc::clone(permissions),
            commands,
            jobs,
            place: OnceLock::new(),
            limits: DiagnosticsLimits {
                wait: Duration::from_millis(config.wait_ms),
                idle: Duration::from_secs(config.idle_minutes * 60),
                memory: config.memory_mb.saturating_mul(MEGABYTE),
                on_end: |server, why| tracing::debug!(server, why, "a language server has ended"),
            },
            before: Mutex::default(),
        }))
    }

    fn is_trusted(&self, directory: &Path) -> bool {
        let trusted = self.config.tools.diagnostics.trusted_projects.iter();
        let resolved = trusted.filter_map(|path| self.home.paths.resolve_in_config(&path.0).ok());
        resolved.map(|path| real(&path)).any(|path| directory.starts_with(path))
    }
}

impl DiagnosticsHook {
    /// Where the servers run, which is looked up for the first edit. Blocks for some system calls then.
    fn place(&self) -> &DiagnosticsPlace {
        self.place.get_or_init(|| {
            let session = &self.session;
            let is_sandboxed = self.permissions.scope() == SandboxScope::Sandboxed;
            // A sandbox has only the working directory.
            let root = if is_sandboxed { None } else { session.project_root() };
            let directory = real(root.as_deref().unwrap_or(session.working_directory()));
            let is_trusted = is_sandboxed || session.is_trusted(&directory);
            let programs = if is_trusted { ProjectPrograms::Run } else { ProjectPrograms::Refused };
            let (commands, jobs) = (self.commands.clone(), self.jobs.clone());
            DiagnosticsPlace { commands, directory, programs, jobs }
        })
    }

    /// The files that a call changes and that a server knows.
    fn files(call: &PreparedCall) -> Vec<PathBuf> {
        if call.declaration.kind != ToolKind::Change {
            return Vec::new();
        }
        let targets = call.subject.targets().filter(|target| target.access == TargetAccess::Write);
        let known = targets.filter(|target| server_for(&target.path).is_some());
        known.map(|target| target.path.clone()).take(MAX_FILES).collect()
    }

    /// Whether the server for a file may be started without a question. Reads the file system.
    fn may_run(permissions: &Permissions, file: &Path, model: &str) -> bool {
        let Some(program) = server_for(file) else { return false };
        let command = permissions.command(program);
        permissions.check_subject("bash", &command, model) == Verdict::Allowed
    }
}

impl Hook for DiagnosticsHook {
    fn name(&self) -> &str {
        "diagnostics"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn judge<'a>(
        &'a self,
        call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            let mut files = Self::files(call);
            let asks = !matches!(self.session.mode.get(), Mode::Auto | Mode::Sandbox);
            if files.is_empty() || asks {
                return Ok(ToolCallVerdict::Allow);
            }
            files.retain(|path| path.starts_with(&self.place().directory));
            if files.is_empty() {
                return Ok(ToolCallVerdict::Allow);
            }
            let (session, permissions) = (self.session.clone(), Arc::clone(&self.permissions));
            let model = call.model.clone();
            let read = move || {
                let may_run = |path: &PathBuf| Self::may_run(&permissions, path, &model);
                let files = files.into_iter().filter(may_run);
                let texts = files.filter_map(|path| {
                    let text = match path.symlink_metadata() {
                        Ok(_) => text_of(&session, &path)?,
                        Err(_) => String::new(),
                    };
                    Some((path, text))
                });
                texts.collect::<Vec<_>>()
            };
            let texts = blocking(read).await?;
            self.before.lock().insert(call.tool_call_id.clone(), texts);
            Ok(ToolCallVerdict::Allow)
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let before = self.before.lock().remove(&call.tool_call_id).unwrap_or_default();
            if output.is_error || before.is_empty() {
                return Ok(());
            }
            let session = self.session.clone();
            let read = move || {
                let change = |(path, before): (PathBuf, String)| {
                    let after = text_of(&session, &path)?;
                    (after != before).then_some(EditedFile { path, before, after })
                };
                before.into_iter().filter_map(change).collect::<Vec<_>>()
            };
            let changes = blocking(read).await?;
            let servers: &LanguageServers = &self.session.language_servers;
            // At once, so that all of them wait no longer than one.
            let checks =
                changes.into_iter().map(|change| servers.check(change, self.place(), self.limits));
            let found = futures_util::future::join_all(checks).await;
            output.content.extend(found.into_iter().flatten().map(ContentBlock::text));
            Ok(())
        })
    }
}

/// The text of a regular file that the session's tools may read. Blocks.
fn text_of(session: &SessionConfig, path: &Path) -> Option<String> {
    let read = || {
        // It neither follows a link nor waits for a pipe that took the place of the file.
        let file = SharedDirectory::open(path.parent()?).ok()?.file(path.file_name()?).ok()?;
        if file.metadata().ok()?.len() > MAX_BYTES {
            return None;
        }
        let mut text = String::new();
        let length = file.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
        (length as u64 <= MAX_BYTES).then_some(text)
    };
    session.as_its_tools(read).ok().flatten()
}
