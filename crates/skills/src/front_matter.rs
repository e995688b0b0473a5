//! The YAML at the beginning of a `SKILL.md`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Longest name, in characters: the limit of the Agent Skills format.
const MAX_NAME_CHARS: usize = 64;
/// Longest description, in characters: the limit of the Agent Skills format.
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Names under which agents keep their own part of `metadata`.
const OWN_METADATA: [&str; 4] = ["myclaw", "openclaw", "moltbot", "clawdbot"];

/// What a skill says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: String,
    /// One line.
    pub(crate) description: String,
    pub(crate) requirements: Requirements,
}

/// What a machine must have for a skill to be listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Operating systems, one of which it must be; empty means any.
    pub systems: Vec<String>,
    /// Programs, all of which must be on the path.
    pub programs: Vec<String>,
    /// Programs, one of which must be on the path; empty means no such requirement.
    pub any_program: Vec<String>,
    /// Environment variables, all of which must be set.
    pub variables: Vec<String>,
}

/// The fields that MyClaw reads. Others, such as `license` and `allowed-tools`, are left to other agents.
#[derive(Deserialize)]
struct Fields {
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    metadata: Metadata,
}

/// A mapping, or the same mapping written as a string of JSON, which is YAML too.
#[derive(Deserialize)]
#[serde(untagged)]
enum Metadata {
    Mapping(BTreeMap<String, MetadataValue>),
    Text(String),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MetadataValue {
    Own(OwnMetadata),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct OwnMetadata {
    #[serde(default)]
    os: Vec<String>,
    #[serde(default)]
    requires: OwnRequirements,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnRequirements {
    bins: Vec<String>,
    any_bins: Vec<String>,
    env: Vec<String>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self::Mapping(BTreeMap::new())
    }
}

impl FrontMatter {
    /// Reads the front matter of `text`, the beginning of a `SKILL.md`. The error says what to change.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let yaml = yaml(text).ok_or("it does not begin with front matter: a line `---`, then `name:` and `description:`, then `---`")?;
        let fields: Fields = serde_saphyr::from_str(yaml).map_err(|error| {
            format!("the front matter is not valid YAML: {}", first_line(&error.to_string()))
        })?;
        let name = fields.name.ok_or("the front matter has no `name`")?;
        check_name(&name)?;
        let description = fields.description.unwrap_or_default();
        let description = one_line(&description);
        if description.is_empty() {
            return Err("the front matter has no `description`".to_owned());
        }
        if description.chars().count() > MAX_DESCRIPTION_CHARS {
            return Err(format!(
                "its description is longer than {MAX_DESCRIPTION_CHARS} characters"
            ));
        }
        Ok(Self { name, description, requirements: requirements(fields.metadata) })
    }
}

/// The lines between the first two lines `---`.
fn yaml(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&rest[..end]);
        }
        end += line.len();
    }
    None
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let is_good = !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_allowed);
    is_good.then_some(()).ok_or_else(|| {
        let shown: String = name.escape_default().take(MAX_NAME_CHARS).collect();
        format!("its name `{shown}` must be 1 to {MAX_NAME_CHARS} lower-case letters, digits and hyphens")
    })
}

fn requirements(metadata: Metadata) -> Requirements {
    let mapping = match metadata {
        Metadata::Mapping(mapping) => mapping,
        Metadata::Text(text) => serde_saphyr::from_str(&text).unwrap_or_default(),
        Metadata::Other(_) => BTreeMap::new(),
    };
    let mut mapping = mapping;
    let own = OWN_METADATA.into_iter().find_map(|name| match mapping.remove(name) {
        Some(MetadataValue::Own(own)) => Some(own),
        _ => None,
    });
    own.map_or_else(Requirements::default, |own| Requirements {
        systems: own.os,
        programs: own.requires.bins,
        any_program: own.requires.any_bins,
        variables: own.requires.env,
    })
}

/// The text with each run of white space as one space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
