//! AWS's two config files, and the profile in them that is used.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{home, no_access};
use myclaw_llm::{ModelError, Variables};

/// Largest config file that is read, in bytes. Files with hundreds of profiles have a tenth of this.
const MAX_FILE: u64 = 1024 * 1024;

/// The profile that is used if none is named.
const DEFAULT: &str = "default";

/// The values below one heading, by names in lower case.
type Section = BTreeMap<String, String>;

/// One profile, as both files together describe it.
#[derive(Debug, Default)]
pub(super) struct Profile {
    name: String,
    settings: Section,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, else `default`, which need not exist.
    ///
    /// # Errors
    /// The named profile is in neither file, or an existing file cannot be read.
    pub(super) async fn load(variables: &Variables) -> Result<Self, ModelError> {
        let wanted = variables.get("AWS_PROFILE").or_else(|| variables.get("AWS_DEFAULT_PROFILE"));
        let config_path = file_path(variables, "AWS_CONFIG_FILE", "config");
        let keys_path = file_path(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let config = read(config_path.as_deref()).await?;
        let keys = read(keys_path.as_deref()).await?;

        let name = wanted.unwrap_or(DEFAULT);
        let described = match config.get(&format!("profile {name}")) {
            None if name == DEFAULT => config.get(DEFAULT),
            described => described,
        };
        let parts = [described, keys.get(name)];
        let is_there = parts.iter().any(Option::is_some);
        match wanted {
            Some(_) if !is_there => {
                let shown = |path: &Option<PathBuf>| match path {
                    Some(path) => path.display().to_string(),
                    None => "(no home directory)".to_owned(),
                };
                Err(no_access(format!(
                    "the AWS profile {name} is neither in {} nor in {}: check AWS_PROFILE",
                    shown(&config_path),
                    shown(&keys_path)
                )))
            }
            _ => {
                let settings = parts.into_iter().flatten().flat_map(BTreeMap::clone).collect();
                Ok(Self { name: name.to_owned(), settings })
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A setting of the profile; blank counts as unset.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether it has keys, or at least half of a pair.
    pub(super) fn has_keys(&self) -> bool {
        ["aws_access_key_id", "aws_secret_access_key"].iter().any(|name| self.get(name).is_some())
    }
}

/// The path of a file; `None` if there is no home directory.
fn file_path(variables: &Variables, variable: &str, name: &str) -> Option<PathBuf> {
    match variables.get(variable) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(Path::new(home(variables)?).join(".aws").join(name)),
    }
}

/// The sections of a file; empty if the file does not exist.
async fn read(path: Option<&Path>) -> Result<BTreeMap<String, Section>, ModelError> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    let unusable = |why: &dyn std::fmt::Display| {
        no_access(format!("the AWS config in {} cannot be read: {why}", path.display()))
    };
    let too_large = || unusable(&format_args!("the file is larger than {MAX_FILE} bytes"));
    match tokio::fs::metadata(path).await {
        Ok(metadata) if metadata.len() > MAX_FILE => return Err(too_large()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(unusable(&error)),
    }
    let text = tokio::fs::read_to_string(path).await.map_err(|error| unusable(&error))?;
    Ok(parse(&text))
}

/// Reads `[section]` and `name = value` lines. Lines that cannot be read are skipped, as by AWS's own tools; so are
/// indented lines, which hold values of other services.
fn parse(text: &str) -> BTreeMap<String, Section> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        let line = without_comment(line);
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.split(']').next().unwrap_or_default();
            let words: Vec<&str> = heading.split_whitespace().collect();
            let name = words.join(" ").replace(['"', '\''], "");
            sections.entry(name.clone()).or_default();
            current = Some(name);
        } else if let Some((name, value)) = line.split_once('=')
            && let Some(section) = current.as_ref().and_then(|name| sections.get_mut(name))
        {
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

/// `line` without a comment at its end, which begins with white space and `#` or `;`.
fn without_comment(line: &str) -> &str {
    let begins = |(position, _): &(usize, char)| {
        line[..*position].ends_with([' ', '\t']) && line[*position..].starts_with(['#', ';'])
    };
    match line.char_indices().find(begins) {
        Some((position, _)) => line[..position].trim_end(),
        None => line,
    }
}

#[cfg(test)]
mod tests;
