//! The skills of a session: where they are looked for, and which of them the model is offered.

use std::path::PathBuf;

use myclaw_engine::SkillSummary;
use myclaw_skills::{Machine, Problem, Skill, SkillOrigin, SkillPlace, find};

use crate::blocking::blocking;
use crate::{AgentError, SessionConfig, did_you_mean};

/// Directory with skills, in the state directory and in a workspace.
const OWN_DIRECTORY: &str = "skills";
/// Directories with skills in the owner's home.
const HOME_DIRECTORIES: [&str; 3] = [".agents/skills", ".claude/skills", ".codex/skills"];
/// Directories with skills in an agent's workspace.
const WORKSPACE_DIRECTORIES: [&str; 3] = [OWN_DIRECTORY, ".agents/skills", ".claude/skills"];

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct FoundSkills {
    /// The skills: first the owner's, then those of the workspace, each in the order of their names.
    pub skills: Vec<FoundSkill>,
    /// Files that look like a skill but cannot be used.
    pub problems: Vec<Problem>,
}

/// A skill, and whether the model is offered it.
#[derive(Debug, Clone)]
pub struct FoundSkill {
    /// The skill.
    pub skill: Skill,
    /// Whether the config hides it.
    pub is_disabled: bool,
    /// Why the model cannot use it, as short phrases such as `needs program ffmpeg`. Empty if it can.
    pub obstacles: Vec<String>,
}

impl FoundSkill {
    /// Whether the model is offered it.
    pub fn is_offered(&self) -> bool {
        !self.is_disabled && self.obstacles.is_empty()
    }
}

impl FoundSkills {
    /// Those that the model is offered.
    pub fn offered(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|found| found.is_offered()).map(|found| &found.skill)
    }

    /// The text that asks the agent to use the skill `name`, followed by a message of the user.
    ///
    /// # Errors
    /// The model is offered no such skill.
    pub fn request(&self, name: &str, message: &str) -> Result<String, AgentError> {
        let Some(skill) = self.offered().find(|skill| skill.name == name) else {
            let suggestion = did_you_mean(name, self.offered().map(|skill| skill.name.as_str()));
            let hint = "`myclaw skills list` shows those that can be used";
            return Err(AgentError::usage(format!(
                "there is no skill `{name}`{suggestion} {hint}"
            )));
        };
        let request = format!("Use the skill {name}: read {} and follow it.", skill.file.display());
        Ok(match message.trim() {
            "" => request,
            message => format!("{request}\n\n{message}"),
        })
    }

    /// The skills in the form in which the prompt lists them.
    pub(crate) fn summaries(&self) -> Vec<SkillSummary> {
        let summary = |skill: &Skill| SkillSummary {
            name: skill.name.clone(),
            description: skill.description.clone(),
            file: skill.file.clone(),
        };
        self.offered().map(summary).collect()
    }
}

impl SessionConfig {
    /// Finds the skills of the session. Reads a few directories and the beginning of each skill; blocks while it does.
    ///
    /// # Errors
    /// A directory of the config begins with `~`, and there is no home.
    pub fn find_skills(&self) -> Result<FoundSkills, AgentError> {
        let machine = self.machine();
        let (owners, workspace): (Vec<SkillPlace>, Vec<SkillPlace>) =
            self.skill_places()?.into_iter().partition(|place| place.origin == SkillOrigin::Owner);
        let mut catalog = find(&owners, &machine);
        // A package takes the place of nothing that the owner has, and the workspace of nothing in a package.
        for package in &*self.packages() {
            package.add_skills(&mut catalog, &machine);
        }
        catalog.search(&workspace, &machine);
        catalog.sort();
        // What the agent writes into its workspace must not push the owner's skills out of the prompt.
        catalog.skills.sort_by_key(|skill| skill.origin == SkillOrigin::Workspace);
        let found = |skill: Skill| FoundSkill {
            is_disabled: !self.config.skills.is_enabled(&skill.name),
            obstacles: self.obstacles(&skill),
            skill,
        };
        let skills = catalog.skills.into_iter().map(found).collect();
        Ok(FoundSkills { skills, problems: catalog.problems })
    }

    /// The same, off the async thread.
    ///
    /// # Errors
    /// See [`Self::find_skills`].
    pub async fn read_skills(&self) -> Result<FoundSkills, AgentError> {
        let config = self.clone();
        blocking(move || config.find_skills()).await?
    }

    /// Where skills may be. If two have the same name, the one in the earlier place is used.
    fn skill_places(&self) -> Result<Vec<SkillPlace>, AgentError> {
        let paths = &self.home.paths;
        let mut owners = vec![paths.state_dir().join(OWN_DIRECTORY)];
        for directory in &self.config.skills.load.extra_dirs {
            owners.push(paths.resolve_in_config(&directory.0)?);
        }
        if let Some(home) = paths.home() {
            owners.extend(HOME_DIRECTORIES.map(|directory| home.join(directory)));
        }
        let owner = |base| SkillPlace { base, below: PathBuf::new(), origin: SkillOrigin::Owner };
        let workspace = WORKSPACE_DIRECTORIES.map(|name| SkillPlace {
            base: self.agent.workspace.clone(),
            below: name.into(),
            origin: SkillOrigin::Workspace,
        });
        Ok(owners.into_iter().map(owner).chain(workspace).collect())
    }

    /// Directories that may hold skills.
    pub(crate) fn skill_directories(&self) -> Result<Vec<PathBuf>, AgentError> {
        let places = self.skill_places()?.into_iter().map(|place| place.directory());
        let packages = self.packages();
        let with_skills = packages.iter().filter(|package| !package.contents.skills.is_empty());
        let directories = with_skills.map(|package| package.directory.clone());
        Ok(places.chain(directories).collect())
    }

    /// What the requirements of skills are checked against.
    fn machine(&self) -> Machine {
        let environment = &self.home.environment;
        let path = environment.get("PATH").unwrap_or_default();
        let set = environment.variables().filter(|(_, value)| !value.is_empty());
        Machine {
            program_directories: std::env::split_paths(path).collect(),
            variables: set.map(|(name, _)| name.to_owned()).collect(),
        }
    }

    fn obstacles(&self, skill: &Skill) -> Vec<String> {
        let mut obstacles: Vec<String> =
            skill.missing.iter().map(|missing| format!("needs {missing}")).collect();
        let is_out_of_reach = self.config.tools.fs.workspace_only
            && !skill.file.starts_with(self.working_directory());
        if is_out_of_reach {
            obstacles
                .push("lies outside the directory that tools.fs.workspaceOnly allows".to_owned());
        }
        obstacles
    }
}
