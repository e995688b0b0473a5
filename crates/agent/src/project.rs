//! Work in the directory of a project: which project that is, and what its files say to the agent.
//!
//! A project's files are the words of whoever wrote them. They reach the model, labelled, and nothing else: no file of a
//! project is part of the config, a hook, or a skill. Its `.mcp.json` names MCP servers once the owner has approved its text.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::{PROJECT_MARKERS, project_root};
use myclaw_engine::{
    CompactionReport, Hook, HookError, PreparedCall, ProjectFile, ProjectInstructions, ToolOutput,
};
use myclaw_files::{Followed, SharedDirectory, canonical, text_of_bytes, without_controls};
use myclaw_llm::ContentBlock;

use crate::blocking::blocking;
use crate::{AgentError, FailureClass, SessionConfig};

mod imports;
mod seen;

pub(crate) use seen::SeenInstructions;

/// The files of a directory that speak to agents.
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];
/// Most characters of one file, as of the workspace's own.
const MAX_FILE_CHARS: usize = 50_000;
/// Most characters of all files in the prompt.
const MAX_TOTAL_CHARS: usize = 100_000;
/// Most bytes of a character.
const LONGEST_CHAR: usize = 4;
/// Most directories between the root and a file: deeper ones are not looked at.
const MAX_DEPTH: usize = 64;
/// Most steps from a file over those that it names with `@`.
const MAX_IMPORT_DEPTH: usize = 5;
/// Most files that one file names with `@`, by itself and through others.
const MAX_IMPORTS: usize = 50;

impl SessionConfig {
    /// The directory that a front-end on a terminal works in: the current one, if it belongs to a project and the config
    /// does not forbid it. The agent's own directories belong to none.
    pub fn project_here(&self) -> Option<PathBuf> {
        let rules = &self.config.project;
        let current = canonical(self.home.environment.current_dir()?).ok()?;
        let is_own = |path: &Path| canonical(path).is_ok_and(|path| current.starts_with(path));
        if !rules.detect || is_own(self.home.paths.state_dir()) || is_own(&self.agent.workspace) {
            return None;
        }
        project_root(&current, &rules.markers, self.home_directory().as_deref())?;
        Some(current)
    }

    /// The root of the project that the tools work in; `None` in the agent's workspace.
    pub fn project_root(&self) -> Option<PathBuf> {
        let directory = self.project_directory()?;
        let root = project_root(directory, &PROJECT_MARKERS, self.home_directory().as_deref());
        Some(root.unwrap_or_else(|| directory.to_owned()))
    }

    /// The directory that the tools work in, unless it is the agent's workspace.
    pub(crate) fn project_directory(&self) -> Option<&Path> {
        let workspace = &self.agent.workspace;
        let is_workspace = |directory: &&Path| {
            *directory == workspace || canonical(workspace).is_ok_and(|path| path == *directory)
        };
        self.directory.as_deref().filter(|directory| !is_workspace(directory))
    }

    fn home_directory(&self) -> Option<PathBuf> {
        let home = self.home.environment.os_home().or(self.home.paths.home())?;
        canonical(home).ok()
    }

    /// What the project says, off the async thread; `None` in the agent's workspace, or if the config does not want it.
    pub(crate) async fn project_instructions(&self) -> Option<ProjectInstructions> {
        if !self.config.project.instructions {
            return None;
        }
        let (root, directory) = (self.project_root()?, self.directory.clone()?);
        tokio::task::spawn_blocking(move || {
            let mut left = MAX_TOTAL_CHARS;
            let mut files: Vec<ProjectFile> = Vec::new();
            let mut known = BTreeSet::new();
            // One that cannot be opened says nothing.
            let Ok(shared) = SharedDirectory::open(&root) else {
                return ProjectInstructions { root, files };
            };
            for path in below(&root, &directory).iter().flat_map(|at| instruction_files(&root, at))
            {
                for file in read_with_imports(&shared, path, &mut left, &mut known) {
                    // One is often a copy of the other.
                    if files.iter().all(|other| other.content != file.content) {
                        files.push(file);
                    }
                }
            }
            ProjectInstructions { root, files }
        })
        .await
        .ok()
    }

    /// The hook that shows the instructions of a directory with the first file of it that a tool touches.
    pub(crate) fn project_hook(&self, project: &ProjectInstructions) -> Arc<dyn Hook> {
        Arc::new(ProjectHook {
            root: project.root.clone(),
            directory: self.working_directory().to_owned(),
            seen: self.seen_instructions.clone(),
        })
    }

    /// The error for a session whose directory is gone.
    pub(crate) fn directory_gone(key: &impl std::fmt::Display, directory: &Path) -> AgentError {
        let directory = directory.display();
        let message = format!(
            "session {key} works in {directory}, which is no directory any more; make it again, or give -C another one"
        );
        AgentError::new(FailureClass::Usage, message)
    }
}

/// The directories from `root` down to `directory`, both included; only `directory` if it is not below.
fn below(root: &Path, directory: &Path) -> Vec<PathBuf> {
    let is_below = |path: &&Path| path.starts_with(root);
    let mut found: Vec<PathBuf> =
        directory.ancestors().take(MAX_DEPTH).take_while(is_below).map(Path::to_owned).collect();
    if found.is_empty() {
        found.push(directory.to_owned());
    }
    found.reverse();
    found
}

/// The files of a directory that speak to agents, by their paths below `root`.
fn instruction_files(root: &Path, directory: &Path) -> [PathBuf; 3] {
    let below = directory.strip_prefix(root).unwrap_or(directory);
    INSTRUCTION_FILES.map(|name| below.join(name))
}

/// The file at `path` below the project's root, cut to `most` characters, and its path without links. `None` if the file
/// is missing or blank, or if it is a link that leads out of the project or to a secret of it: such a link could name a
/// private file of the user.
fn read(root: &SharedDirectory, path: &Path, most: usize) -> Option<(ProjectFile, PathBuf)> {
    if most == 0 {
        return None;
    }
    let Followed { path: real, file } = root.followed(path).ok()?;
    if real != path && !imports::may_be_read(&real) {
        return None;
    }
    let text = read_text(file).ok().filter(|text| !text.contains('\0')).map(without_controls)?;
    let most = most.min(MAX_FILE_CHARS);
    let cut = text.char_indices().nth(most).map(|(at, _)| at);
    let content = match cut {
        Some(at) => format!("{}\n[cut after {most} characters]", &text[..at]),
        None => text,
    };
    if content.trim().is_empty() {
        return None;
    }
    Some((ProjectFile { path: path.to_string_lossy().into_owned(), content }, real))
}

/// The file at `path` with those that it names, each file of `known` once, in `left` characters. One that cannot be read
/// names nothing.
fn read_with_imports(
    root: &SharedDirectory,
    path: PathBuf,
    left: &mut usize,
    known: &mut BTreeSet<PathBuf>,
) -> Vec<ProjectFile> {
    let mut files = Vec::new();
    let mut waiting = vec![(path, 0)];
    while let Some((path, depth)) = waiting.pop().filter(|_| files.len() <= MAX_IMPORTS) {
        let found = read(root, &path, *left).filter(|(_, real)| !known.contains(real));
        let Some((file, real)) = found else { continue };
        *left -= file.content.chars().count().min(*left);
        if depth < MAX_IMPORT_DEPTH {
            let directory = real.parent().unwrap_or(Path::new(""));
            let named = imports::imports(&file.content, directory, root);
            // The last one is taken first.
            waiting.extend(named.into_iter().rev().map(|path| (path, depth + 1)));
        }
        files.push(file);
        known.insert(real);
    }
    files
}

fn read_text(file: std::fs::File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(((MAX_FILE_CHARS + 1) * LONGEST_CHAR) as u64).read_to_end(&mut bytes)?;
    Ok(text_of_bytes(&bytes))
}

/// Shows instructions of subdirectories.
struct ProjectHook {
    root: PathBuf,
    directory: PathBuf,
    seen: SeenInstructions,
}

impl Hook for ProjectHook {
    fn name(&self) -> &str {
        "project instructions"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let touched: Vec<PathBuf> =
                call.subject.targets().map(|target| target.path.clone()).collect();
            if touched.is_empty() {
                return Ok(());
            }
            let (root, directory, seen) =
                (self.root.clone(), self.directory.clone(), self.seen.clone());
            let notes = blocking(move || notes(&root, &directory, &seen, &touched)).await?;
            output.content.extend(notes.into_iter().map(ContentBlock::text));
            Ok(())
        })
    }

    fn session_compact<'a>(
        &'a self,
        _report: &'a CompactionReport,
        _summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        // The summary may have replaced them.
        self.seen.0.lock().clear();
        Box::pin(async { Ok(()) })
    }
}

/// The instructions of the directories of `touched` below the working directory that were not shown before.
fn notes(
    root: &Path,
    directory: &Path,
    seen: &SeenInstructions,
    touched: &[PathBuf],
) -> Vec<String> {
    let known = below(root, directory);
    let mut notes = Vec::new();
    let Ok(shared) = SharedDirectory::open(root) else { return notes };
    for path in touched {
        let Some(place) = path.ancestors().find_map(|at| canonical(at).ok()) else { continue };
        for at in below(root, &place).into_iter().filter(|at| at.starts_with(root)) {
            if known.contains(&at) || !at.is_dir() {
                continue;
            }
            for file in instruction_files(root, &at) {
                let mut left = MAX_FILE_CHARS;
                let found = read_with_imports(&shared, file, &mut left, &mut seen.0.lock());
                notes.extend(found.iter().map(|file| file.as_note(root)));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests;
