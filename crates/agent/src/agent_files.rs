//! Agents as files: Markdown whose front matter says what a sub-agent is for, and whose text is its instructions.
//!
//! A file can only narrow what a sub-agent may do. The files of a project are the words of whoever wrote them: their
//! instructions reach the model as such, and they choose no model.

use std::path::{Path, PathBuf};

use myclaw_config::ToolRules;
use myclaw_engine::{Mode, ProjectFile};
use myclaw_files::{SharedDirectory, read_regular, text_of_bytes};
use myclaw_llm::outside::plain_name;
use myclaw_policy::check_tool_entry;
use myclaw_skills::{FrontMatterField, front_matter_fields};

use crate::SessionConfig;

/// The directory with the files: in the state directory, the workspace and a project.
const DIRECTORY: &str = "agents";
/// Where projects have them too.
const OF_PROJECTS: &str = ".claude/agents";
/// Most files of a directory.
const MOST_FILES: usize = 100;
/// Largest file, in bytes.
const MOST_BYTES: u64 = 64 * 1024;
/// Longest description, in characters.
const MOST_DESCRIPTION: usize = 300;
/// Longest name, in characters.
const MOST_NAME: usize = 64;
/// The word by which a file asks for the model of its caller.
const INHERIT: &str = "inherit";
/// Fields of other programs that would narrow an agent, so none of them may be passed over.
const NARROWING: [&str; 4] = ["tool", "mode", "permission", "sandbox"];

/// Whose file it is. The earlier ones count before the later ones with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentFileOrigin {
    /// In the state directory.
    Owner,
    /// In the agent's workspace.
    Workspace,
    /// In the project: others may have written it.
    Project,
}

/// An agent that a file describes.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// Its name: that of the file.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// The model that it asks for.
    pub model: Option<String>,
    /// The only tools that it may use, of those that its caller may.
    pub tools: Option<Vec<String>>,
    /// The permission mode that it asks for; that of its caller holds too.
    pub mode: Option<Mode>,
    /// What it is told.
    pub instructions: String,
    /// The file.
    pub path: PathBuf,
    /// Whose file it is.
    pub origin: AgentFileOrigin,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadAgentFile {
    /// The file.
    pub path: PathBuf,
    /// The line with the mistake, from 1.
    pub line: usize,
    /// What to change.
    pub message: String,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct AgentFiles {
    /// The agents, in the order of their names.
    pub agents: Vec<AgentFile>,
    /// The files that cannot be used.
    pub problems: Vec<BadAgentFile>,
}

impl AgentFiles {
    /// The agent of that name.
    pub fn get(&self, name: &str) -> Option<&AgentFile> {
        self.agents.iter().find(|agent| agent.name == name)
    }
}

impl AgentFile {
    /// The rules for its tools.
    pub(crate) fn rules(&self) -> Option<ToolRules> {
        let allow = Some(self.tools.clone()?);
        Some(ToolRules { allow, ..ToolRules::default() })
    }

    /// The instructions as its model reads them. Those of a project are marked as not the user's.
    pub(crate) fn note(&self) -> String {
        match self.origin {
            AgentFileOrigin::Owner | AgentFileOrigin::Workspace => self.instructions.clone(),
            AgentFileOrigin::Project => {
                let path = self.path.to_string_lossy().into_owned();
                let root = self.path.parent().unwrap_or(Path::new(""));
                let file = ProjectFile { path, content: self.instructions.clone() };
                format!(
                    "You work as the agent of this file, as far as the task needs it.\n{}",
                    file.as_note(root)
                )
            }
        }
    }

    /// Reads the text of a file.
    fn parse(text: &str, path: &Path, origin: AgentFileOrigin) -> Result<Self, BadAgentFile> {
        let bad =
            |line: usize, message: String| BadAgentFile { path: path.to_owned(), line, message };
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
        if stem.is_empty() || stem.len() > MOST_NAME || !stem.chars().all(is_plain) {
            return Err(bad(
                1,
                format!(
                    "its name must be up to {MOST_NAME} letters from a to z, digits, hyphens and underscores; rename the file"
                ),
            ));
        }
        let Some((fields, body)) = front_matter_fields(text) else {
            return Err(bad(
                1,
                "it does not begin with front matter: a line `---`, then `description:`, then `---`".to_owned(),
            ));
        };
        let mut agent = Self {
            name: stem.to_owned(),
            description: String::new(),
            model: None,
            tools: None,
            mode: None,
            instructions: body.trim().to_owned(),
            path: path.to_owned(),
            origin,
        };
        for field in &fields {
            agent.take(field).map_err(|message| bad(field.line, message))?;
        }
        let end = text.lines().count() - body.lines().count();
        if agent.description.is_empty() {
            return Err(bad(
                end.max(1),
                "the front matter has no `description`: say what the agent is for".to_owned(),
            ));
        }
        if agent.instructions.is_empty() {
            return Err(bad(
                end.max(1),
                "it has no instructions: write them below the front matter".to_owned(),
            ));
        }
        Ok(agent)
    }

    /// Takes what a field says; the error says what to change.
    fn take(&mut self, field: &FrontMatterField) -> Result<(), String> {
        match field.name.as_str() {
            "description" => self.description = plain_name(&field.line_of_text(), MOST_DESCRIPTION),
            "model" => {
                let model = field.line_of_text();
                let is_named = !model.is_empty() && model != INHERIT;
                self.model =
                    Some(model).filter(|_| is_named && self.origin != AgentFileOrigin::Project);
            }
            "mode" => {
                let mode = field.line_of_text().parse();
                self.mode =
                    Some(mode.map_err(|error: myclaw_engine::UnknownMode| error.to_string())?);
            }
            "tools" => {
                let tools: Vec<String> =
                    field.texts().iter().map(|tool| own_name(tool).to_owned()).collect();
                for tool in &tools {
                    check_tool_entry(tool).map_err(|problem| problem.to_string())?;
                }
                if tools.is_empty() {
                    return Err(
                        "`tools` names no tool: write `tools: read, grep`, or leave it out"
                            .to_owned(),
                    );
                }
                self.tools = Some(tools);
            }
            other if NARROWING.iter().any(|word| other.to_lowercase().contains(word)) => {
                return Err(format!(
                    "`{}` is not known here: `tools` names the only tools, and `mode` is a permission mode",
                    plain_name(other, MOST_NAME)
                ));
            }
            // What other programs know does no harm.
            _ => {}
        }
        Ok(())
    }
}

/// The tool that a name of other agents means.
fn own_name(name: &str) -> &str {
    match name.to_ascii_lowercase().as_str() {
        "glob" => "find",
        "list" => "ls",
        "multiedit" => "edit",
        "task" | "agent" => "sessions_spawn",
        "todowrite" => "update_plan",
        _ => name,
    }
}

impl SessionConfig {
    /// Finds the agent files of the session. Reads a few directories and files; blocks while it does.
    pub fn agent_files(&self) -> AgentFiles {
        let mut found = AgentFiles::default();
        let own = SharedDirectory::open(&self.home.paths.state_dir().join(DIRECTORY)).ok();
        found.add(own, AgentFileOrigin::Owner);
        let below = |directory: &Path, name: &str| {
            SharedDirectory::open(directory).and_then(|opened| opened.directory(name)).ok()
        };
        found.add(below(&self.agent.workspace, DIRECTORY), AgentFileOrigin::Workspace);
        if let Some(root) = self.project_root().filter(|_| self.config.project.instructions) {
            for name in [DIRECTORY, OF_PROJECTS] {
                found.add(below(&root, name), AgentFileOrigin::Project);
            }
        }
        found.agents.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }
}

impl AgentFiles {
    /// Adds the files of a directory. No link is followed where others may have put it.
    fn add(&mut self, directory: Option<SharedDirectory>, origin: AgentFileOrigin) {
        let Some(directory) = directory else { return };
        let is_file =
            |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.ends_with(".md"));
        let Ok(mut listed) = directory.names(MOST_FILES, is_file) else { return };
        listed.names.sort();
        for name in listed.names {
            let path = directory.path().join(&name);
            let read = match origin {
                AgentFileOrigin::Owner => read_regular(&path, MOST_BYTES),
                _ => directory.read(&name, MOST_BYTES),
            };
            let parsed = match read {
                Ok(bytes) => AgentFile::parse(&text_of_bytes(&bytes), &path, origin),
                Err(error) => {
                    let message = format!("it cannot be read: {error}");
                    Err(BadAgentFile { path, line: 1, message })
                }
            };
            match parsed {
                Ok(agent) if self.get(&agent.name).is_none() => self.agents.push(agent),
                Ok(_) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}
