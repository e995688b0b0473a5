//! Unified diffs, as git, diff and models write them.

use super::hunk::parse_hunk;
use super::model::{Action, ContentCheck, FileName, Hunk, ParseError, Section};
use super::names::{clean_name, git_names, unquote};
use crate::files::Executable;

const GIT_HEADER: &str = "diff --git ";
const NO_FILE: &str = "/dev/null";

/// Reads the sections.
///
/// # Errors
/// The first place that cannot be parsed, or a change that cannot be applied: binary changes, links, merges.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<Section>, ParseError> {
    let mut sections = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
            return Err(ParseError::at(
                index,
                "diffs of merges cannot be applied; send one against one side",
            ));
        }
        let mut headers = Headers { line: index + 1, ..Headers::default() };
        if line.starts_with(GIT_HEADER) {
            index = headers.read_git(lines, index)?;
        }
        index = headers.read_names(lines, index);
        let (hunks, end) = read_hunks(lines, index)?;
        if headers.is_empty() {
            if !hunks.is_empty() {
                return Err(ParseError::at(
                    index,
                    "no file is named above this hunk (--- a/file and +++ b/file)",
                ));
            }
            refuse_binary(lines, index)?;
            index += 1;
            continue;
        }
        index = end;
        sections.extend(headers.section(hunks)?);
    }
    Ok(sections)
}

fn read_hunks(lines: &[&str], mut index: usize) -> Result<(Vec<Hunk>, usize), ParseError> {
    let mut hunks = Vec::new();
    while let Some(next) = first_text(lines, index).filter(|next| lines[*next].starts_with("@@")) {
        let (hunk, end) = parse_hunk(lines, next, is_boundary)?;
        hunks.push(hunk);
        index = end;
    }
    Ok((hunks, index))
}

fn first_text(lines: &[&str], from: usize) -> Option<usize> {
    (from..lines.len()).find(|index| !lines[*index].trim().is_empty())
}

/// Whether a line cannot belong to a hunk.
fn is_boundary(lines: &[&str], index: usize) -> bool {
    let line = lines[index];
    line.starts_with("@@")
        || line.starts_with(GIT_HEADER)
        || line.starts_with("Index: ")
        || line.starts_with("```")
        || line.starts_with("*** End Patch")
        || is_names(lines, index)
        || is_mail_signature(lines, index)
}

/// `---` and `+++` with names. A removed and an added line may look the same, but no hunk follows them.
fn is_names(lines: &[&str], index: usize) -> bool {
    let starts =
        |index: usize, start: &str| lines.get(index).is_some_and(|line| line.starts_with(start));
    starts(index, "--- ")
        && starts(index + 1, "+++ ")
        && (starts(index + 2, "@@") || index + 2 == lines.len())
}

/// What `git format-patch` puts at the end: two dashes and its version.
fn is_mail_signature(lines: &[&str], index: usize) -> bool {
    let is_version =
        |line: &str| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains('.');
    matches!(lines[index], "-- " | "--")
        && lines.get(index + 1).is_some_and(|line| is_version(line))
}

fn refuse_binary(lines: &[&str], index: usize) -> Result<(), ParseError> {
    let line = lines[index];
    let is_binary = line == "GIT binary patch"
        || (line.starts_with("Binary files ") && line.ends_with(" differ"));
    if is_binary {
        return Err(ParseError::at(
            index,
            "changes of binary files cannot be applied; copy the file with bash",
        ));
    }
    Ok(())
}

/// All lines above the hunks of one file.
#[derive(Debug, Default)]
struct Headers {
    line: usize,
    /// Whether there is a `diff --git`.
    has_git: bool,
    /// Its two names, as they are written; `None` if they cannot be separated.
    git: Option<(String, String)>,
    is_new: bool,
    is_deleted: bool,
    executable: Option<Executable>,
    renamed: (Option<String>, Option<String>),
    copied: (Option<String>, Option<String>),
    /// The names of `---` and `+++`, as they are written.
    old: Option<String>,
    new: Option<String>,
}

impl Headers {
    fn is_empty(&self) -> bool {
        !self.has_git && self.old.is_none() && self.new.is_none()
    }

    /// Reads `diff --git` and the lines that belong to it.
    fn read_git(&mut self, lines: &[&str], at: usize) -> Result<usize, ParseError> {
        self.has_git = true;
        self.git = git_names(&lines[at][GIT_HEADER.len()..]);
        let mut index = at + 1;
        while let Some(line) = lines.get(index) {
            refuse_binary(lines, index)?;
            let behind = |start: &str| {
                line.strip_prefix(start).map(|rest| unquote(rest.trim_end_matches('\r')))
            };
            if let Some(mode) = behind("new file mode ") {
                self.is_new = true;
                self.executable = executable(&mode, index)?.filter(|wish| *wish == Executable::Yes);
            } else if let Some(mode) = behind("new mode ") {
                self.executable = executable(&mode, index)?;
            } else if let Some(mode) = behind("deleted file mode ") {
                self.is_deleted = true;
                executable(&mode, index)?;
            } else if let Some(name) = behind("rename from ") {
                self.renamed.0 = Some(name);
            } else if let Some(name) = behind("rename to ") {
                self.renamed.1 = Some(name);
            } else if let Some(name) = behind("copy from ") {
                self.copied.0 = Some(name);
            } else if let Some(name) = behind("copy to ") {
                self.copied.1 = Some(name);
            } else if !is_other_git_line(line) {
                break;
            }
            index += 1;
        }
        Ok(index)
    }

    /// Reads `---` and `+++`; one of them may be missing above a hunk.
    fn read_names(&mut self, lines: &[&str], at: usize) -> usize {
        let name = |index: usize, start: &str| {
            lines.get(index).and_then(|line| line.strip_prefix(start)).map(clean_name)
        };
        let above_hunk = |index: usize| lines.get(index).is_some_and(|line| line.starts_with("@@"));
        match (name(at, "--- "), name(at + 1, "+++ ")) {
            (Some(old), Some(new)) => {
                (self.old, self.new) = (Some(old), Some(new));
                at + 2
            }
            (Some(old), None) if above_hunk(at + 1) => {
                self.old = Some(old);
                at + 1
            }
            _ => match name(at, "+++ ") {
                Some(new) if above_hunk(at + 1) => {
                    self.new = Some(new);
                    at + 1
                }
                _ => at,
            },
        }
    }

    /// The section that these lines describe; `None` if it changes nothing.
    fn section(self, hunks: Vec<Hunk>) -> Result<Option<Section>, ParseError> {
        let line = self.line;
        let executable = self.executable;
        let has_names = self.git.is_some() || self.old.is_some() || self.new.is_some();
        let Some(action) = self.action() else {
            if has_names {
                return Ok(None);
            }
            return Err(ParseError::at(
                line - 1,
                "the two names of this file cannot be distinguished; add lines with --- and +++",
            ));
        };
        let changes_nothing =
            hunks.is_empty() && executable.is_none() && matches!(action, Action::Update(_));
        if changes_nothing {
            return Err(ParseError::at(
                line - 1,
                "there is no hunk (@@) after the names of this file",
            ));
        }
        Ok(Some(Section { line, action, hunks, executable }))
    }

    fn action(self) -> Option<Action> {
        if let (Some(from), Some(to)) = self.renamed {
            return Some(Action::Move {
                from: FileName::rather_plain(&from),
                to: FileName::rather_plain(&to),
            });
        }
        if let (Some(from), Some(to)) = self.copied {
            return Some(Action::Copy {
                from: FileName::rather_plain(&from),
                to: FileName::rather_plain(&to),
            });
        }
        let (git_old, git_new) = self.git.unzip();
        let old = self.old.or(git_old);
        let new = self.new.or(git_new);
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (Some(name), None) | (None, Some(name)) => (name.clone(), name),
            (None, None) => return None,
        };
        let creates = self.is_new || old == NO_FILE;
        let deletes = self.is_deleted || new == NO_FILE;
        match (creates, deletes) {
            (true, true) => None,
            (true, false) => Some(Action::Create(FileName::prefixed(&new))),
            (false, true) => Some(Action::Delete {
                name: FileName::prefixed(&old),
                check: ContentCheck::ByHunks,
            }),
            (false, false) if old == new => Some(Action::Update(FileName::rather_plain(&old))),
            (false, false) => {
                let (old, new) = (FileName::prefixed(&old), FileName::prefixed(&new));
                let is_same = old.likeliest() == new.likeliest();
                Some(if is_same { Action::Update(old) } else { Action::UpdateOrMove { old, new } })
            }
        }
    }
}

fn is_other_git_line(line: &str) -> bool {
    ["index ", "old mode ", "similarity index ", "dissimilarity index "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Whether a mode permits execution.
fn executable(mode: &str, index: usize) -> Result<Option<Executable>, ParseError> {
    match mode.trim() {
        "120000" => Err(ParseError::at(
            index,
            "symbolic links cannot be patched; make them with bash (ln -s)",
        )),
        "160000" => Err(ParseError::at(index, "submodules cannot be patched; use git")),
        mode if mode.ends_with("755") => Ok(Some(Executable::Yes)),
        mode if mode.ends_with("644") => Ok(Some(Executable::No)),
        _ => Ok(None),
    }
}
