//! Further directories of a group, checked against the owner's allowlist.
//!
//! The list is outside of everything that a container can see, so no agent can widen it. A path is judged by where it
//! really leads: links are resolved first.

use std::io;
use std::path::{Component, Path, PathBuf};

use myclaw_files::{canonical, canonical_or_same, from_json, read_regular};
use serde::{Deserialize, Serialize};

use crate::{Access, Mount};

/// Most bytes of the list.
const MAX_BYTES: u64 = 1024 * 1024;
/// Where the directories are in a container.
pub(crate) const EXTRA: &str = "/workspace/extra";
/// Parts of names that usually mean keys and passwords. They are refused whatever the list allows.
const BLOCKED: [&str; 17] = [
    ".ssh",
    ".gnupg",
    ".gpg",
    ".aws",
    ".azure",
    ".gcloud",
    ".kube",
    ".docker",
    "credentials",
    ".env",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "id_rsa",
    "id_ed25519",
    "private_key",
    ".secret",
];

/// A directory or file that a group asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtraMount {
    /// Where it is on this machine.
    pub host_path: PathBuf,
    /// Where it is in the container, below `/workspace/extra`; its own name if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_path: Option<String>,
    /// What may be done with it.
    #[serde(default)]
    pub access: Access,
}

/// What the owner allows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Allowlist {
    allowed_roots: Vec<AllowedRoot>,
    #[serde(default)]
    blocked_patterns: Vec<String>,
    /// Whether groups other than the main one may only read.
    non_main_read_only: bool,
    /// Where the list is: the file itself, and the link that leads to it if there is one.
    #[serde(skip)]
    places: [PathBuf; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AllowedRoot {
    path: PathBuf,
    #[serde(default)]
    allow_read_write: bool,
    /// For the people who read the file.
    #[serde(default)]
    description: Option<String>,
}

/// Why a directory is not mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not mounted: {problem}", path.display())]
pub struct MountError {
    path: PathBuf,
    problem: String,
}

/// For whom a mount is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applicant<'a> {
    /// Whether it is the owner's own group.
    pub(crate) is_main: bool,
    /// Everything of the host, which no mount may show.
    pub(crate) host_root: &'a Path,
}

impl Allowlist {
    /// Reads the list.
    ///
    /// # Errors
    /// Why it cannot be used, for the message about each mount. Without a list nothing is allowed.
    pub fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let bytes = read_regular(path, MAX_BYTES).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no allowlist; write {{\"allowedRoots\":[{{\"path\":\"…\"}}],\"nonMainReadOnly\":true}} to {shown}"
            ),
            _ => format!("the allowlist {shown} cannot be read: {error}"),
        })?;
        let list: Self = from_json(&bytes)
            .map_err(|error| format!("the allowlist {shown} cannot be used: {error}"))?;
        let real = canonical_or_same(path);
        // A party that can write the directory of a link can replace the link.
        let directory = path.parent().and_then(|directory| canonical(directory).ok());
        let link = directory.zip(path.file_name()).map(|(directory, name)| directory.join(name));
        let link = link.unwrap_or_else(|| path.to_owned());
        Ok(Self { places: [real, link], ..list })
    }

    /// Checks one mount.
    fn check(&self, asked: &ExtraMount, by: Applicant<'_>) -> Result<Mount, String> {
        let target = container_path(asked)?;
        let real = canonical(&asked.host_path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => error.to_string(),
        })?;
        if real.to_str().is_none_or(|path| path.contains([':', ','])) {
            return Err("its path has a colon, a comma or bytes that are not text".to_owned());
        }
        if let Some(pattern) = self.blocked(&asked.host_path).or_else(|| self.blocked(&real)) {
            return Err(format!("its path holds {pattern:?}, which is blocked"));
        }
        let host_root = canonical_or_same(by.host_root);
        if self.places.iter().any(|place| place.starts_with(&real)) {
            return Err("it holds the allowlist, which no group may see".to_owned());
        }
        if host_root.starts_with(&real) || real.starts_with(&host_root) {
            return Err("it holds files of the host itself".to_owned());
        }
        let root = self
            .allowed_roots
            .iter()
            .filter_map(|root| Some((canonical(&root.path).ok()?, root)))
            .filter(|(place, _)| real.starts_with(place))
            .max_by_key(|(place, _)| place.components().count())
            .map(|(_, root)| root)
            .ok_or_else(|| match real == asked.host_path {
                true => "it is below no allowed root".to_owned(),
                false => format!("it leads to {}, which is below no allowed root", real.display()),
            })?;
        // A party that can write a directory can also write a root within it.
        let holds_read_only = self.allowed_roots.iter().any(|root| {
            !root.allow_read_write
                && canonical(&root.path).is_ok_and(|place| place.starts_with(&real))
        });
        let may_write =
            root.allow_read_write && !holds_read_only && (by.is_main || !self.non_main_read_only);
        let access = if may_write { asked.access } else { Access::ReadOnly };
        Ok(Mount { host: real, container: target, access })
    }

    /// The pattern that blocks a path: a part of the name of the file or of a directory above it.
    fn blocked(&self, path: &Path) -> Option<&str> {
        let text = path.to_string_lossy().to_lowercase();
        let own = self.blocked_patterns.iter().map(String::as_str);
        BLOCKED
            .into_iter()
            .chain(own.filter(|pattern| !pattern.is_empty()))
            .find(|pattern| text.contains(&pattern.to_lowercase()))
    }
}

/// Checks the mounts of a group: those that are allowed, and why the others are not.
pub(crate) fn check(
    asked: &[ExtraMount],
    allowlist: &Path,
    by: Applicant<'_>,
) -> (Vec<Mount>, Vec<MountError>) {
    let (mut allowed, mut refused): (Vec<Mount>, Vec<MountError>) = (Vec::new(), Vec::new());
    if asked.is_empty() {
        return (allowed, refused);
    }
    let list = Allowlist::load(allowlist);
    for mount in asked {
        let checked = match &list {
            Ok(list) => list.check(mount, by),
            Err(problem) => Err(problem.clone()),
        };
        // One within another would be made by writing to the other one's directory.
        let is_in_the_way = |mount: &Mount, other: &Mount| {
            let (place, taken) = (&mount.container, &other.container);
            place.starts_with(taken) || taken.starts_with(place)
        };
        let checked = checked.and_then(|mount| {
            match allowed.iter().find(|other| is_in_the_way(&mount, other)) {
                None => Ok(mount),
                Some(other) => Err(format!("another one is at {}", other.container.display())),
            }
        });
        match checked {
            Ok(mount) => allowed.push(mount),
            Err(problem) => refused.push(MountError { path: mount.host_path.clone(), problem }),
        }
    }
    (allowed, refused)
}

/// Where a mount is in the container.
fn container_path(asked: &ExtraMount) -> Result<PathBuf, String> {
    if !asked.host_path.is_absolute() {
        return Err("its path is not absolute".to_owned());
    }
    let own_name = || asked.host_path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = asked.container_path.clone().or_else(own_name).unwrap_or_default();
    let is_plain = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
    let has_signs = name.contains([':', ',']) || name.contains(char::is_control);
    if name.is_empty() || !is_plain || has_signs {
        return Err(format!(
            "its place in the container, {name:?}, must be relative, without `..`, colons and commas"
        ));
    }
    Ok(Path::new(EXTRA).join(name))
}

#[cfg(test)]
mod tests;
