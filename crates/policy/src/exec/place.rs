//! The directories in which a command of the line may run.

use std::path::{Component, Path, PathBuf};

use super::ExecRequest;
use crate::pattern::{has_parent_component, matches_argument, matches_path};
use crate::shell::{Command, Word};

/// Most directories that are followed through the `cd` commands of a line. Nobody writes more.
const MAX_DIRECTORIES: usize = 16;

/// Where a command of the line may run: after `cd` in the new directory, or still in the old one if `cd` failed or was
/// part of a pipeline.
pub(super) struct Place<'a> {
    request: &'a ExecRequest<'a>,
    /// `None` if an unknown directory is among them.
    directories: Option<Vec<PathBuf>>,
    has_moved: bool,
}

impl<'a> Place<'a> {
    pub(super) fn new(request: &'a ExecRequest<'a>) -> Self {
        let directories = Some(vec![request.directory.to_owned()]);
        Self { request, directories, has_moved: false }
    }

    pub(super) fn request(&self) -> &ExecRequest<'a> {
        self.request
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// The directories; `None` if they are not known.
    pub(super) fn directories(&self) -> Option<&[PathBuf]> {
        self.directories.as_deref()
    }

    /// Follows a `cd` command.
    pub(super) fn follow(&mut self, command: &Command) {
        self.has_moved = true;
        let target = match command.arguments() {
            [only] => Some(only),
            [dashes, only] if dashes.text == "--" => Some(only),
            _ => None,
        };
        let is_known = |word: &&Word| {
            word.is_literal()
                && !word.text.is_empty()
                && !word.text.starts_with('-')
                // Relative targets are looked up in the directories of this variable.
                && !self.request.environment.contains_key("CDPATH")
        };
        let Some(target) = target.filter(is_known) else {
            self.directories = None;
            return;
        };
        let Some(directories) = &mut self.directories else { return };
        for directory in directories.clone() {
            for next in targets(&directory, &target.text) {
                if !directories.contains(&next) {
                    directories.push(next);
                }
            }
        }
        if directories.len() > MAX_DIRECTORIES {
            self.directories = None;
        }
    }

    /// Whether an argument matches a pattern of an entry. In a pattern with a `/`, both are paths: a relative pattern
    /// begins in the workspace, a relative argument where the command runs, and links are followed.
    pub(super) fn matches(&self, pattern: &str, argument: &str) -> bool {
        // After `cd`, a relative path is not the one of the workspace that the author wrote.
        let is_same_file = !self.has_moved || pattern.starts_with('/') || !pattern.contains('/');
        if pattern == argument && !pattern.contains('*') && is_same_file {
            return true;
        }
        let (pattern_path, argument_path) = match (option_value(pattern), option_value(argument)) {
            (Some((name, pattern)), Some((other, argument))) if name == other => {
                (pattern, argument)
            }
            (None, None) => (pattern, argument),
            _ => return matches_argument(pattern, argument),
        };
        if !pattern_path.contains('/') || pattern_path.contains("://") {
            return matches_argument(pattern, argument);
        }
        // `scripts/../scripts/x` is no name that the author of `scripts/*` meant, wherever it leads.
        if pattern_path.contains('*') && has_parent_component(argument_path) {
            return false;
        }
        let Some(directories) = &self.directories else { return false };
        let pattern = self.request.workspace.join(pattern_path);
        directories
            .iter()
            .all(|directory| self.path_matches(&pattern, &directory.join(argument_path)))
    }

    fn path_matches(&self, pattern: &Path, argument: &Path) -> bool {
        let (Some(pattern), Some(argument)) = (self.real_start(pattern), self.real(argument))
        else {
            return false;
        };
        matches_path(&pattern, &argument) || matches_argument(&pattern, &argument)
    }

    /// The pattern, with links followed in the directories that its author named.
    fn real_start(&self, pattern: &Path) -> Option<String> {
        let mut named = PathBuf::new();
        let mut rest = pattern.components();
        loop {
            let before = rest.as_path();
            match rest.next() {
                Some(component) if !component.as_os_str().as_encoded_bytes().contains(&b'*') => {
                    named.push(component);
                }
                _ => {
                    rest = before.components();
                    break;
                }
            }
        }
        let rest = rest.as_path();
        if rest.as_os_str().is_empty() {
            return self.real(&named);
        }
        let named = (self.request.real_path)(&named).unwrap_or(named);
        named.join(rest).to_str().map(str::to_owned)
    }

    /// The path with links followed. A file that does not exist yet is in the real directory; where that does not exist
    /// either, the path counts as it is written.
    fn real(&self, path: &Path) -> Option<String> {
        let real_path = self.request.real_path;
        let real = real_path(path).or_else(|| {
            let parent = real_path(path.parent()?)?;
            Some(parent.join(path.file_name()?))
        });
        let path = real.unwrap_or_else(|| path.to_owned());
        let goes_up = path.components().any(|component| component == Component::ParentDir);
        path.to_str().filter(|_| !goes_up).map(str::to_owned)
    }
}

/// `--name=value`, taken apart.
fn option_value(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| name.starts_with('-'))
}

/// Where `cd` leads: `..` means the parent of the real directory, or the directory before in the path, depending on the
/// shell's options.
fn targets(directory: &Path, target: &str) -> Vec<PathBuf> {
    let joined = directory.join(target);
    let mut lexical = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::ParentDir => {
                lexical.pop();
            }
            other => lexical.push(other),
        }
    }
    if lexical == joined { vec![joined] } else { vec![joined, lexical] }
}
