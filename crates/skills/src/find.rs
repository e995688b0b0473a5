//! Finding skills in the directories that may hold them.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use myclaw_files::{EntryKind, SharedDirectory, canonical, read_regular, text_of_bytes};

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
    /// A package of others that the owner approved.
    Package,
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
            (SkillOrigin::Workspace | SkillOrigin::Package, Ok(below)) => {
                read_unlinked(&SharedDirectory::open(&self.base)?, below, limit)
            }
            _ => read_regular(&self.file, limit),
        }
    }
}

/// A `SKILL.md` that the caller has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Where it is.
    pub file: PathBuf,
    /// The [`SkillPlace::base`] of it.
    pub base: PathBuf,
    /// The name of its directory.
    pub directory: String,
    /// Its text.
    pub text: String,
    /// Who wrote it.
    pub origin: SkillOrigin,
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
    catalog.search(places, machine);
    catalog.sort();
    catalog
}

impl SkillCatalog {
    /// Adds the skills in `places`, as [`find`] does, behind those that are known. Blocks.
    pub fn search(&mut self, places: &[SkillPlace], machine: &Machine) {
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
                        self.problems.push(Problem { path: place.directory(), message });
                    }
                    continue;
                }
            };
            for name in subdirectories(&opened, place.origin, &mut self.problems) {
                let file = opened.path().join(&name).join(SKILL_FILE);
                let text = read_beginning(&opened, &name, place.origin)
                    .map_err(|error| unreadable(&error));
                let directory = name.to_string_lossy().into_owned();
                let (base, origin) = (place.base.clone(), place.origin);
                let added = text.and_then(|text| {
                    self.add(Given { file: file.clone(), base, directory, text, origin }, machine)
                });
                if let Err(message) = added {
                    self.problems.push(Problem { path: file, message });
                }
            }
        }
    }

    /// Adds a skill. One with the name of a known skill is reported in the problems.
    ///
    /// # Errors
    /// Its front matter cannot be read; what to change.
    pub fn add(&mut self, given: Given, machine: &Machine) -> Result<(), String> {
        let Given { file, base, directory, text, origin } = given;
        let FrontMatter { name, description, requirements, remarks } =
            FrontMatter::parse(&text, &directory)?;
        if let Some(other) = self.get(&name).map(|skill| &skill.file) {
            // Two names of the same file, as when one agent's directory links to another's, are not a conflict.
            if !is_same_file(other, &file) {
                let message =
                    format!("the skill {name} is in {} already, which counts", other.display());
                self.problems.push(Problem { path: file, message });
            }
            return Ok(());
        }
        let missing = machine.missing(&requirements);
        self.skills.push(Skill {
            name,
            description,
            file,
            base,
            origin,
            requirements,
            missing,
            remarks,
        });
        Ok(())
    }

    /// Puts the skills into the order of their names.
    pub fn sort(&mut self) {
        self.skills.sort_by(|one, other| one.name.cmp(&other.name));
    }
}

/// The name and the description in the front matter of a text. `fallback` is its name if it says none.
///
/// # Errors
/// It has no front matter, or one without a description.
pub fn described(text: &str, fallback: &str) -> Result<(String, String), String> {
    FrontMatter::parse(text, fallback).map(|found| (found.name, found.description))
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
        SkillOrigin::Owner | SkillOrigin::Package => {
            place.path().join(name).join(SKILL_FILE).symlink_metadata().is_ok()
        }
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
        SkillOrigin::Owner | SkillOrigin::Package => {
            read_regular(&place.path().join(path), MAX_FRONT_MATTER_BYTES)?
        }
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
    matches!((canonical(one), canonical(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests;
