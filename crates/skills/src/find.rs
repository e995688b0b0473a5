//! Finding skills in the directories that may hold them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use myclaw_files::{EntryKind, SharedDirectory, read_regular, text_of_bytes};

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
pub enum SkillOrigin {
    /// The owner of this machine: MyClaw's own directory, one that the config names, or one of another agent.
    Owner,
    /// The agent's workspace, into which the agent itself and downloaded programs can write.
    Workspace,
}

/// A directory whose subdirectories may be skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPlace {
    /// A directory of the owner's choice. It may be a link.
    pub base: PathBuf,
    /// The directory below it, or nothing. It need not exist. In a workspace no part of it is followed if it is a link.
    pub below: PathBuf,
    /// Who controls its content.
    pub origin: SkillOrigin,
}

impl SkillPlace {
    /// Where it is.
    pub fn directory(&self) -> PathBuf {
        self.base.join(&self.below)
    }
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
    /// The owner's directory that the file is below: the [`SkillPlace::base`].
    pub base: PathBuf,
    /// Who wrote it.
    pub origin: SkillOrigin,
    /// What it needs.
    pub requirements: Requirements,
    /// The requirements that this machine does not meet; see [`Machine::missing`]. A skill with such a requirement is
    /// not offered to the model.
    pub missing: Vec<String>,
    /// What is wrong with its front matter, and what was taken instead. It can be used all the same.
    pub remarks: Vec<String>,
}

impl Skill {
    /// The first `limit` bytes of its `SKILL.md`. In a workspace no link is followed.
    ///
    /// # Errors
    /// An I/O error, also if the file is no regular one any more.
    pub fn beginning(&self, limit: u64) -> io::Result<Vec<u8>> {
        match (self.origin, self.file.strip_prefix(&self.base)) {
            (SkillOrigin::Workspace, Ok(below)) => {
                read_unlinked(&SharedDirectory::open(&self.base)?, below, limit)
            }
            _ => read_regular(&self.file, limit),
        }
    }
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
pub struct SkillCatalog {
    /// All skills, in the order of their names.
    pub skills: Vec<Skill>,
    /// What could not be used.
    pub problems: Vec<Problem>,
}

impl SkillCatalog {
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
pub fn find(places: &[SkillPlace], machine: &Machine) -> SkillCatalog {
    let mut catalog = SkillCatalog::default();
    let mut files_by_name: HashMap<String, PathBuf> = HashMap::new();
    // Neighbouring places have the same base, which is opened once.
    let mut base: Option<(&Path, SharedDirectory)> = None;
    for place in places {
        let opened =
            opened_base(&mut base, &place.base).and_then(|base| base.directory(&place.below));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // Most places do not exist on most machines.
                if error.kind() == io::ErrorKind::InvalidInput {
                    let message = unreadable(&error);
                    catalog.problems.push(Problem { path: place.directory(), message });
                }
                continue;
            }
        };
        for name in subdirectories(&opened, place.origin, &mut catalog.problems) {
            let file = opened.path().join(&name).join(SKILL_FILE);
            let text =
                read_beginning(&opened, &name, place.origin).map_err(|error| unreadable(&error));
            let parse = |text: String| FrontMatter::parse(&text, &name.to_string_lossy());
            let front_matter = match text.and_then(parse) {
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
            let FrontMatter { name, description, requirements, remarks } = front_matter;
            let missing = machine.missing(&requirements);
            catalog.skills.push(Skill {
                name,
                description,
                file,
                base: place.base.clone(),
                origin: place.origin,
                requirements,
                missing,
                remarks,
            });
        }
    }
    catalog.skills.sort_by(|one, other| one.name.cmp(&other.name));
    catalog
}

/// The directory at `path`, which stays open in `known` for the next place.
fn opened_base<'a, 'p>(
    known: &'a mut Option<(&'p Path, SharedDirectory)>,
    path: &'p Path,
) -> io::Result<&'a SharedDirectory> {
    if known.as_ref().is_none_or(|(other, _)| *other != path) {
        *known = None;
        return Ok(&known.insert((path, SharedDirectory::open(path)?)).1);
    }
    known.as_ref().map(|(_, opened)| opened).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The names of the subdirectories of a place that hold a `SKILL.md`, in their order. A place that cannot be listed has
/// none. In a workspace a link counts, so that it is reported.
fn subdirectories(
    place: &SharedDirectory,
    origin: SkillOrigin,
    problems: &mut Vec<Problem>,
) -> Vec<OsString> {
    let holds_skill = |name: &OsStr| match origin {
        SkillOrigin::Owner => place.path().join(name).join(SKILL_FILE).symlink_metadata().is_ok(),
        SkillOrigin::Workspace => match place.facts(name) {
            Ok(Some(facts)) if facts.kind == EntryKind::Directory => {
                matches!(place.facts(Path::new(name).join(SKILL_FILE)), Ok(Some(_)))
            }
            Ok(Some(facts)) => facts.kind == EntryKind::Link,
            _ => false,
        },
    };
    let mut found = 0;
    let listed = place.names(MAX_DIRECTORIES, |name| {
        let is_wanted = found <= MAX_DIRECTORIES && holds_skill(name);
        found += usize::from(is_wanted);
        is_wanted
    });
    let listed = listed.unwrap_or_default();
    if listed.is_cut {
        problems.push(Problem {
            path: place.path().to_owned(),
            message: format!(
                "it holds more than {MAX_DIRECTORIES} skills; the others are left out"
            ),
        });
    }
    listed.names
}

/// The beginning of a `SKILL.md`, which must be a regular file. In a workspace no link is followed.
fn read_beginning(
    place: &SharedDirectory,
    name: &OsStr,
    origin: SkillOrigin,
) -> io::Result<String> {
    let path = Path::new(name).join(SKILL_FILE);
    let bytes = match origin {
        SkillOrigin::Owner => read_regular(&place.path().join(path), MAX_FRONT_MATTER_BYTES)?,
        SkillOrigin::Workspace => read_unlinked(place, &path, MAX_FRONT_MATTER_BYTES)?,
    };
    Ok(text_of_bytes(&bytes))
}

fn read_unlinked(place: &SharedDirectory, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    place.file(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Says what to do about something that the owner's own tools may have put there.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            format!("it cannot be used: {error}; put a copy of the skill here instead")
        }
        _ => format!("it cannot be read: {error}"),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests;
