//! What git says about worktrees and about the config of a repository.

use std::path::{Path, PathBuf};

use super::{BRANCHES, HEADS};
use crate::git::Git;
use crate::{AgentError, FailureClass};

/// A worktree as git lists it.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// What is checked out in it: a branch, or a commit without one.
    pub(super) head: Head,
    /// Whether git was killed while it made it.
    pub(super) is_unfinished: bool,
}

/// What is checked out in a worktree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// A branch, by its short name.
    Branch(String),
    /// A commit that is on no branch.
    Commit(String),
}

impl Entry {
    /// Reads one that is in `place` or has a branch of ours. What is done in it may have changed the branch.
    pub(super) fn parse(record: &str, place: &Path) -> Option<Self> {
        let field = |name: &str| {
            record.split('\0').find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let path = PathBuf::from(field("worktree")?);
        let head = match field("branch").and_then(|branch| branch.strip_prefix(HEADS)) {
            Some(branch) => Head::Branch(branch.to_owned()),
            None => Head::Commit(field("HEAD")?.to_owned()),
        };
        let name = match (path.parent() == Some(place), &head) {
            (true, _) => path.file_name()?.to_str()?.to_owned(),
            (false, Head::Branch(branch)) => branch.strip_prefix(BRANCHES)?.to_owned(),
            (false, Head::Commit(_)) => return None,
        };
        let is_unfinished = field("locked").is_some_and(|why| why == "initializing");
        Some(Self { name, path, head, is_unfinished })
    }
}

/// The paths of submodules and of other repositories in what `git ls-files --stage -z` printed.
pub(super) fn gitlinks(printed: &[u8]) -> impl Iterator<Item = String> + '_ {
    let rows = printed.split(|byte| *byte == 0).filter(|row| row.starts_with(b"160000 "));
    rows.filter_map(|row| {
        let at = row.iter().position(|byte| *byte == b'\t')?;
        Some(String::from_utf8_lossy(&row[at + 1..]).into_owned())
    })
}

/// Settings that turn off what the config of a repository would start: filters and merge drivers. Reading it starts nothing.
pub(super) async fn disabled(directory: &Path) -> Result<Vec<(String, String)>, AgentError> {
    let keys = r"^(filter|merge)\..*\.(clean|smudge|process|driver)$";
    let args = ["config", "--show-scope", "--name-only", "-z", "--get-regexp", keys];
    let listed = Git::default()
        .run(directory, &args)
        .await
        .map_err(|why| AgentError::new(FailureClass::Workspace, why))?;
    let text = String::from_utf8_lossy(&listed.printed).into_owned();
    let mut fields = text.split('\0').filter(|field| !field.is_empty());
    let mut settings = Vec::new();
    while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
        if !matches!(scope, "local" | "worktree") {
            continue;
        }
        match key.strip_suffix(".driver") {
            // A driver that fails leaves a conflict.
            Some(_) => settings.push((key.to_owned(), "false".to_owned())),
            None => {
                settings.push((key.to_owned(), String::new()));
                let (filter, _) = key.rsplit_once('.').unwrap_or((key, ""));
                settings.push((format!("{filter}.required"), "false".to_owned()));
            }
        }
    }
    Ok(settings)
}
