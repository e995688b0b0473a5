//! Finding skills in the directories that may hold them.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::front_matter::FrontMatter;
use crate::{Machine, Requirements};

/// Name of the file that makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Bytes that are read of a file to find its front matter. The longest front matter that the limits on its fields allow
/// is a tenth of this.
const MAX_FRONT_MATTER_BYTES: u64 = 64 * 1024;
/// Most directories that are searched in one place. Further ones are reported and left out.
const MAX_DIRECTORIES: usize = 500;

/// Who controls the content of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The owner of this machine: MyClaw's own directory, one that the config names, or one of another agent.
    Owner,
    /// The agent's workspace, into which the agent itself and downloaded programs can write.
    Workspace,
}

/// A directory whose subdirectories may be skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where it is. It need not exist.
    pub directory: PathBuf,
    /// Who controls its content.
    pub origin: Origin,
}

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name: up to 64 lower-case letters, digits and hyphens.
    pub name: String,
    /// What it does and when to use it: one line of at most 1,024 characters.
    pub description: String,
    /// Its `SKILL.md`.
    pub file: PathBuf,
    /// Who wrote it.
    pub origin: Origin,
    /// What it needs.
    pub requirements: Requirements,
    /// The requirements that this machine does not meet; see [`Machine::missing`]. A skill with such a requirement is
    /// not offered to the model.
    pub missing: Vec<String>,
}

/// A directory that looks like a skill but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong and what to change.
    pub message: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// All skills, in the order of their names.
    pub skills: Vec<Skill>,
    /// What could not be used.
    pub problems: Vec<Problem>,
}

impl Catalog {
    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// The skills whose requirements this machine meets.
    pub fn usable(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|skill| skill.missing.is_empty())
    }
}

/// Finds the skills in `places`. Of two with one name the one in the earlier place counts, and the other one is reported.
/// Reads one directory for each place and the beginning of one file for each skill; blocks while it does.
pub fn find(places: &[Place], machine: &Machine) -> Catalog {
    let mut catalog = Catalog::default();
    let mut files_by_name: HashMap<String, PathBuf> = HashMap::new();
    for place in places {
        for directory in subdirectories(place, &mut catalog.problems) {
            let file = directory.join(SKILL_FILE);
            let front_matter =
                match read_beginning(place, &file).and_then(|text| FrontMatter::parse(&text)) {
                    Ok(front_matter) => front_matter,
                    Err(message) => {
                        catalog.problems.push(Problem { path: file, message });
                        continue;
                    }
                };
            if let Some(other) = files_by_name.get(&front_matter.name) {
                // Two names of the same file, as when one agent's directory links to another's, are not a conflict.
                if !is_same_file(other, &file) {
                    let message = format!(
                        "the skill {} is in {} already, which counts",
                        front_matter.name,
                        other.display()
                    );
                    catalog.problems.push(Problem { path: file, message });
                }
                continue;
            }
            files_by_name.insert(front_matter.name.clone(), file.clone());
            let FrontMatter { name, description, requirements } = front_matter;
            let missing = machine.missing(&requirements);
            catalog.skills.push(Skill {
                name,
                description,
                file,
                origin: place.origin,
                requirements,
                missing,
            });
        }
    }
    catalog.skills.sort_by(|one, other| one.name.cmp(&other.name));
    catalog
}

/// The subdirectories of a place that hold a `SKILL.md`, in the order of their names.
fn subdirectories(place: &Place, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    // A place that is missing or cannot be listed holds no skills: most of them do not exist on most machines.
    let Ok(listing) = fs::read_dir(&place.directory) else { return Vec::new() };
    let mut directories: Vec<PathBuf> = listing
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join(SKILL_FILE).symlink_metadata().is_ok())
        .take(MAX_DIRECTORIES + 1)
        .collect();
    directories.sort();
    if directories.len() > MAX_DIRECTORIES {
        directories.truncate(MAX_DIRECTORIES);
        problems.push(Problem {
            path: place.directory.clone(),
            message: format!(
                "it holds more than {MAX_DIRECTORIES} skills; the others are left out"
            ),
        });
    }
    directories
}

/// The beginning of a `SKILL.md`, which must be a regular file. In a workspace it must not lead elsewhere by a link.
fn read_beginning(place: &Place, file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let real = fs::canonicalize(file).map_err(unreadable)?;
    if place.origin == Origin::Workspace {
        let root = fs::canonicalize(&place.directory).map_err(unreadable)?;
        if !real.starts_with(&root) {
            return Err(
                "it is a link that leads out of the workspace; copy the skill instead".to_owned()
            );
        }
    }
    if !fs::metadata(&real).map_err(unreadable)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    fs::File::open(&real)
        .and_then(|file| file.take(MAX_FRONT_MATTER_BYTES).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests;
