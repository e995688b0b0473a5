//! The skills in the system prompt. The caller of a run finds them; this module only formats them.

use std::path::PathBuf;

use myclaw_llm::outside::harmless;

use crate::Notice;
use crate::section::held_line;

/// Most skills that the prompt lists: a longer list would crowd out the messages.
const MAX_SKILLS: usize = 100;
/// Most characters of all lines of the list.
const MAX_TOTAL_CHARS: usize = 20_000;

/// A skill as the prompt lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    /// Its name.
    pub name: String,
    /// What it does and when to use it: one line.
    pub description: String,
    /// The file that the model reads when a task matches.
    pub file: PathBuf,
}

impl SkillSummary {
    /// The skill's line in the prompt.
    pub(crate) fn line(&self) -> String {
        let line = format!("- {}: {} ({})", self.name, self.description, self.file.display());
        harmless(&held_line(&line)).into_owned()
    }
}

/// The first of `skills`, as many as the prompt lists.
pub(crate) fn listed_skills(skills: &[SkillSummary]) -> &[SkillSummary] {
    let mut chars = 0;
    let fits = |skill: &&SkillSummary| {
        chars += skill.line().chars().count();
        chars <= MAX_TOTAL_CHARS
    };
    let count = skills.iter().take(MAX_SKILLS).take_while(fits).count();
    &skills[..count]
}

/// A notice if the prompt does not list all of `skills`.
pub(crate) fn skills_left_out(skills: &[SkillSummary]) -> Option<Notice> {
    let listed = listed_skills(skills).len();
    let left_out = skills.len() - listed;
    (left_out > 0).then_some(Notice::SkillsLeftOut { listed, left_out })
}

#[cfg(test)]
mod tests;
