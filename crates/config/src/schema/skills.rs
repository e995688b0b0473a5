//! Where skills are found, and which of them are used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// Skills: directories with a `SKILL.md` that teach the agent a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillsConfig {
    /// Where skills are found.
    pub load: SkillPlaces,
    /// Single skills, by name.
    pub entries: BTreeMap<String, SkillEntry>,
}

/// Where skills are found, besides the usual places.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillPlaces {
    /// More directories with skills. May begin with `~`; a relative path starts at the directory of this file.
    #[schemars(with = "Vec<NonBlankText>")]
    pub extra_dirs: Vec<SkillDirectory>,
}

/// The path of a directory with skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkillDirectory(#[serde(deserialize_with = "values::non_blank")] pub String);

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillEntry {
    /// Whether the model is offered it.
    pub enabled: bool,
}

impl Default for SkillEntry {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl SkillsConfig {
    /// Whether the skill of this name is used; those without an entry are.
    pub fn is_enabled(&self, name: &str) -> bool {
        self.entries.get(name).is_none_or(|entry| entry.enabled)
    }
}
