//! A parsed patch, independent of the form in which it was written.

use crate::files::Executable;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// The line of the patch where it starts, from 1.
    pub line: usize,
    pub action: Action,
    pub hunks: Vec<Hunk>,
    /// A change of its execute permission.
    pub executable: Option<Executable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Create(FileName),
    Update(FileName),
    /// Both names of a diff that does not say "rename": they may mean the same file, or a rename.
    UpdateOrMove {
        old: FileName,
        new: FileName,
    },
    Move {
        from: FileName,
        to: FileName,
    },
    Copy {
        from: FileName,
        to: FileName,
    },
    /// Deletes a file; with hunks, only if they name all of its content.
    Delete {
        name: FileName,
        check: ContentCheck,
    },
}

/// Whether the patch must hold a file's content to delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCheck {
    /// The hunks hold it.
    ByHunks,
    /// The form of the patch cannot hold it.
    None,
}

/// The possible meanings of a file's name in a patch, the most likely first. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileName {
    candidates: Vec<String>,
}

impl FileName {
    /// A name without other meanings.
    pub(super) fn plain(name: &str) -> Self {
        Self { candidates: vec![name.to_owned()] }
    }

    /// A name that most likely has one of git's prefixes.
    pub(super) fn prefixed(name: &str) -> Self {
        match without_prefix(name) {
            Some(bare) => Self { candidates: vec![bare.to_owned(), name.to_owned()] },
            None => Self::plain(name),
        }
    }

    /// A name that looks prefixed, but is the same on both sides of the diff.
    pub(super) fn rather_plain(name: &str) -> Self {
        let mut candidates = vec![name.to_owned()];
        candidates.extend(without_prefix(name).map(str::to_owned));
        Self { candidates }
    }

    /// The possible meanings, the most likely first.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().map(String::as_str)
    }

    /// The most likely meaning.
    pub(super) fn likeliest(&self) -> &str {
        self.candidates.first().map_or("", String::as_str)
    }
}

/// `a/` and `b/`, and the ones of git's `diff.mnemonicPrefix` (index, worktree, commit, object).
fn without_prefix(name: &str) -> Option<&str> {
    ["a/", "b/", "i/", "w/", "c/", "o/"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .filter(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// One contiguous change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line of the patch where it starts, from 1.
    pub line: usize,
    /// First line of the file that it shows, from 1, if its header has it. (For a hunk that only adds: the line after
    /// which it adds.)
    pub old_start: Option<usize>,
    /// Lines that precede it somewhere in the file, outermost first.
    pub anchors: Vec<String>,
    /// Whether it is at the end of the file.
    pub at_end: bool,
    pub body: Vec<BodyLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BodyLine {
    pub role: Role,
    /// Without the sign; a `\r` at the end is kept.
    pub raw: String,
    /// True if `\ No newline at end of file` follows it.
    pub no_newline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Context,
    Remove,
    Add,
}

impl BodyLine {
    /// The line's content, without what ends it.
    pub(super) fn text(&self) -> &str {
        if self.no_newline { &self.raw } else { self.raw.strip_suffix('\r').unwrap_or(&self.raw) }
    }

    /// Whether it ends with `\r\n` in the patch.
    pub(super) fn has_return(&self) -> bool {
        !self.no_newline && self.raw.ends_with('\r')
    }
}

impl Hunk {
    /// The lines that the file must contain.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &BodyLine> {
        self.body.iter().filter(|line| line.role != Role::Add)
    }

    /// How many lines it adds and removes.
    pub(super) fn counts(&self) -> (usize, usize) {
        let count = |role| self.body.iter().filter(|line| line.role == role).count();
        (count(Role::Add), count(Role::Remove))
    }
}

/// Why a text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {reason}")]
pub(super) struct ParseError {
    pub line: usize,
    pub reason: String,
}

impl ParseError {
    /// `index` counts lines from 0.
    pub(super) fn at(index: usize, reason: impl Into<String>) -> Self {
        Self { line: index + 1, reason: reason.into() }
    }
}
