//! Computes the new content of the files in memory before anything is written.

use std::path::Path;

use myclaw_engine::{ToolContext, ToolError};
use myclaw_files::portable::PermissionsExt;

use super::apply::{apply, new_content};
use super::commit::Change;
use super::model::{Action, ContentCheck, FileName, Hunk, Section};
use crate::changes::{Before, Fingerprint, Upcoming, require_fresh};
use crate::files::{Attributes, Document, read_whole, require_text, require_writable, shown_size};
use crate::support::{Access, Budget, ResolvedPath, missing_path, resolve_path};

/// The files of a patch, with their present and their new state.
#[derive(Debug)]
pub(super) struct Plan {
    context: ToolContext,
    files: Vec<PlannedFile>,
    budget: Budget,
}

/// One file before and after.
#[derive(Debug)]
pub(super) struct PlannedFile {
    pub path: ResolvedPath,
    /// Its bytes now; `None` if there is no such file.
    pub before: Option<Vec<u8>>,
    /// The same for the record of changes.
    found: Option<Before>,
    /// Why it must not be changed, if the model does not know what is in it now.
    stale: Option<String>,
    after: Option<Content>,
}

#[derive(Debug, Clone)]
struct Content {
    bytes: Vec<u8>,
    attributes: Attributes,
}

/// The outcome of a section of the patch.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The file's name for the model.
    pub shown: String,
    pub verdict: Verdict,
}

#[derive(Debug)]
pub(super) enum Verdict {
    /// It can be applied: what will be done, and the differences from the patch.
    Fits { done: String, remarks: Vec<String> },
    /// The reasons why the patch cannot be applied, one text each.
    Blocked(Vec<String>),
}

type Reasons = Vec<String>;

/// Bytes of a file whose decoding and splitting count as one step of the budget.
const BYTES_PER_STEP: usize = 32;
/// Most files that one patch changes.
const MAX_SECTIONS: usize = 1000;
/// Most memory for all of its files; it is enough for one file of the largest size, before and after the change.
const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

impl Plan {
    /// Plans all sections, in order; a later one sees the result of an earlier one. Sections after one that does not
    /// fit are still checked, so that one report names everything.
    ///
    /// # Errors
    /// For a patch that is too large, and as for [`Budget::check`].
    pub(super) fn of(
        context: &ToolContext,
        sections: &[Section],
        budget: Budget,
    ) -> Result<(Self, Vec<Outcome>), ToolError> {
        let too_large = |what: String| {
            Err(ToolError::Failed(format!(
                "nothing was changed: the patch changes {what}. Send it in parts"
            )))
        };
        if sections.len() > MAX_SECTIONS {
            let count = sections.len();
            return too_large(format!("{count} files, more than the limit of {MAX_SECTIONS}"));
        }
        // A patch never leaves the working directory, even if other tools may.
        let context = ToolContext { workspace_only: true, ..context.clone() };
        let mut plan = Self { context, files: Vec::new(), budget };
        let mut outcomes = Vec::new();
        for section in sections {
            outcomes.push(plan.add(section).unwrap_or_else(|reasons| Outcome {
                shown: name_of(section).to_owned(),
                verdict: Verdict::Blocked(reasons),
            }));
            plan.budget.check("anything")?;
            if plan.held_bytes() > MAX_HELD_BYTES {
                return too_large(format!(
                    "more than {} of files",
                    shown_size(MAX_HELD_BYTES as u64)
                ));
            }
        }
        Ok((plan, outcomes))
    }

    /// Memory that the files take, before and after.
    fn held_bytes(&self) -> usize {
        let size = |file: &PlannedFile| {
            file.before.as_ref().map_or(0, Vec::len)
                + file.after.as_ref().map_or(0, |after| after.bytes.len())
        };
        self.files.iter().map(size).sum()
    }

    /// The files with their content before and after, for diffs.
    pub(super) fn files(&self) -> impl Iterator<Item = (&PlannedFile, Option<&[u8]>)> {
        self.files
            .iter()
            .map(|file| (file, file.after.as_ref().map(|after| after.bytes.as_slice())))
    }

    /// The changes, for the record of changes.
    pub(super) fn upcoming(&self) -> Vec<Upcoming> {
        let upcoming = |file: &PlannedFile| Upcoming {
            path: file.path.real.clone(),
            before: file.found.clone(),
            after: file
                .after
                .as_ref()
                .map(|after| Fingerprint::of(&after.bytes, after.attributes.mode())),
        };
        self.files.iter().filter(|file| file.changes()).map(upcoming).collect()
    }

    /// The steps of the write: new content first, so that a file is never removed before its copy exists.
    pub(super) fn into_changes(self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut deletions = Vec::new();
        for file in self.files.into_iter().filter(PlannedFile::changes) {
            let path = file.path.real;
            match (file.before, file.after) {
                (None, None) => {}
                (None, Some(Content { bytes, attributes })) => {
                    changes.push(Change::Create { path, bytes, attributes });
                }
                (Some(_), Some(Content { bytes, attributes })) => {
                    changes.push(Change::Replace { path, bytes, attributes });
                }
                (Some(_), None) => deletions.push(Change::Delete { path }),
            }
        }
        changes.extend(deletions);
        changes
    }

    fn add(&mut self, section: &Section) -> Result<Outcome, Reasons> {
        match &section.action {
            Action::Create(name) => self.create(name, section),
            Action::Update(name) => match self.find(name)? {
                Some((index, _)) => self.update(index, section),
                None if only_adds(&section.hunks) => self.create(name, section),
                None => Err(self.missing(name)),
            },
            Action::UpdateOrMove { old, new } => {
                if let Some((index, _)) = self.find(new)? {
                    return self.update(index, section);
                }
                self.carry(old, new, section, Source::Goes)
            }
            Action::Move { from, to } => self.carry(from, to, section, Source::Goes),
            Action::Copy { from, to } => self.carry(from, to, section, Source::Stays),
            Action::Delete { name, check } => self.delete(name, *check, section),
        }
    }

    fn create(&mut self, name: &FileName, section: &Section) -> Result<Outcome, Reasons> {
        let index = self.open(name.likeliest())?;
        let content = new_content(&section.hunks)
            .ok_or_else(|| vec!["a new file can only have lines that start with +".to_owned()])?;
        let lines = section.hunks.iter().map(|hunk| hunk.counts().0).sum::<usize>();
        let file = &mut self.files[index];
        if let Some(present) = &file.after {
            if present.bytes == content.as_bytes() {
                return Ok(file.fits("is there already with this content", Vec::new()));
            }
            return Err(vec![
                "it exists already with other content. To change it, send a diff against that; to replace it, use \
                 write"
                    .to_owned(),
            ]);
        }
        require_free_parents(&file.path)?;
        let attributes = Attributes { like: None, executable: section.executable };
        file.after = Some(Content { bytes: content.into_bytes(), attributes });
        Ok(file.fits(&format!("created (+{lines})"), Vec::new()))
    }

    fn update(&mut self, index: usize, section: &Section) -> Result<Outcome, Reasons> {
        let file = &mut self.files[index];
        let Some(content) = &file.after else { return Err(vec!["it does not exist".to_owned()]) };
        file.require_writable()?;
        let (changed, remarks) = changed(&file.path, content, section, &self.budget)?;
        if changed.bytes == content.bytes && section.executable.is_none() {
            return Err(vec![
                "the patch changes nothing in it: it needs lines that start with - or +".to_owned(),
            ]);
        }
        file.after = Some(changed);
        Ok(file.fits(&format!("updated ({})", counts(&section.hunks)), remarks))
    }

    /// Rename and copy, with or without changes on the way.
    fn carry(
        &mut self,
        from: &FileName,
        to: &FileName,
        section: &Section,
        source: Source,
    ) -> Result<Outcome, Reasons> {
        let Some((from_index, candidate)) = self.find(from)? else {
            return Err(self.missing(from));
        };
        // If one name has a prefix, so has the other.
        let to = to.candidates().nth(candidate).unwrap_or(to.likeliest());
        let to_index = self.open(to)?;
        if from_index == to_index {
            return self.update(from_index, section);
        }
        if source == Source::Goes {
            self.refuse_link(from, candidate)?;
            self.files[from_index].require_writable()?;
        }
        let (from_file, to_file) = (&self.files[from_index], &self.files[to_index]);
        let Some(content) = &from_file.after else { return Err(self.missing(from)) };
        if to_file.after.is_some() {
            return Err(vec![format!(
                "{} exists already; delete or rename that first",
                to_file.path.shown
            )]);
        }
        require_free_parents(&to_file.path)?;
        let (content, remarks) = changed(&from_file.path, content, section, &self.budget)?;
        let verb = match source {
            Source::Goes => "renamed to",
            Source::Stays => "copied to",
        };
        let mut done = format!("{verb} {}", to_file.path.shown);
        if !section.hunks.is_empty() {
            done.push_str(&format!(" ({})", counts(&section.hunks)));
        }
        self.files[to_index].after = Some(content);
        if source == Source::Goes {
            self.files[from_index].after = None;
        }
        Ok(self.files[from_index].fits(&done, remarks))
    }

    fn delete(
        &mut self,
        name: &FileName,
        check: ContentCheck,
        section: &Section,
    ) -> Result<Outcome, Reasons> {
        let Some((index, candidate)) = self.find(name)? else { return Err(self.missing(name)) };
        self.refuse_link(name, candidate)?;
        let file = &mut self.files[index];
        file.require_writable()?;
        let Some(content) = &file.after else { return Err(vec!["it does not exist".to_owned()]) };
        if check == ContentCheck::ByHunks {
            let (left, _) = changed(&file.path, content, section, &self.budget)?;
            if !Document::decode(left.bytes).text().is_empty() {
                return Err(vec![
                    "it holds more than the lines that the patch removes, so it is not deleted. Send a hunk with all \
                     of its lines, or *** Delete File: in the *** Begin Patch form"
                        .to_owned(),
                ]);
            }
        }
        file.after = None;
        Ok(file.fits("deleted", Vec::new()))
    }

    /// The first of a name's candidates that is there, with its number.
    fn find(&mut self, name: &FileName) -> Result<Option<(usize, usize)>, Reasons> {
        let mut first_error = None;
        for (candidate, given) in name.candidates().enumerate() {
            match self.open(given) {
                Ok(index) if self.files[index].after.is_some() => {
                    return Ok(Some((index, candidate)));
                }
                Ok(_) => {}
                Err(reasons) => first_error = first_error.or(Some(reasons)),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// The planned file for a name, read from disk when it is first needed.
    fn open(&mut self, given: &str) -> Result<usize, Reasons> {
        let path =
            resolve_path(&self.context, given, Access::Write).map_err(|error| reason(&error))?;
        if let Some(index) = self.files.iter().position(|file| file.path.real == path.real) {
            return Ok(index);
        }
        let mut file = PlannedFile { path, before: None, found: None, stale: None, after: None };
        if file.path.real.symlink_metadata().is_ok() {
            let (bytes, metadata) =
                read_whole(&file.path, "patch").map_err(|error| reason(&error))?;
            let fingerprint = Fingerprint::of(&bytes, Some(metadata.permissions().mode()));
            let fresh = require_fresh(&self.context, &file.path, &metadata, Some(&fingerprint));
            file.stale = fresh.err().map(|error| error.to_string());
            file.found =
                Some(Before { metadata: metadata.clone(), fingerprint: Some(fingerprint) });
            let attributes = Attributes { like: Some(metadata), executable: None };
            file.after = Some(Content { bytes: bytes.clone(), attributes });
            file.before = Some(bytes);
        }
        self.files.push(file);
        Ok(self.files.len() - 1)
    }

    fn missing(&self, name: &FileName) -> Reasons {
        match resolve_path(&self.context, name.likeliest(), Access::Write) {
            Ok(path)
                if self
                    .files
                    .iter()
                    .any(|file| file.path.real == path.real && file.before.is_some()) =>
            {
                vec![format!("an earlier part of the patch takes {} away", path.shown)]
            }
            Ok(path) => reason(&missing_path(&path)),
            Err(error) => reason(&error),
        }
    }

    /// Refuses a link: the patch does not say whether the link or its target should be removed.
    fn refuse_link(&self, name: &FileName, candidate: usize) -> Result<(), Reasons> {
        let given = name.candidates().nth(candidate).unwrap_or(name.likeliest());
        let path = self.context.working_directory.join(given);
        if path.is_symlink() {
            return Err(vec!["it is a symbolic link; delete or rename it with bash".to_owned()]);
        }
        Ok(())
    }
}

/// The fate of the source of a rename or copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Goes,
    Stays,
}

impl PlannedFile {
    /// Whether its content or mode will change.
    fn changes(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                *before != after.bytes || after.attributes.executable.is_some()
            }
            (None, None) => false,
            _ => true,
        }
    }

    /// Whether it may be changed, moved or deleted.
    fn require_writable(&self) -> Result<(), Reasons> {
        if let Some(stale) = &self.stale {
            return Err(vec![stale.clone()]);
        }
        match self.after.as_ref().and_then(|after| after.attributes.like.as_ref()) {
            Some(metadata) => {
                require_writable(&self.path, metadata).map_err(|error| reason(&error))
            }
            None => Ok(()),
        }
    }

    fn fits(&self, done: &str, remarks: Vec<String>) -> Outcome {
        Outcome {
            shown: self.path.shown.clone(),
            verdict: Verdict::Fits { done: done.to_owned(), remarks },
        }
    }
}

/// `content` after the hunks of `section`.
fn changed(
    path: &ResolvedPath,
    content: &Content,
    section: &Section,
    budget: &Budget,
) -> Result<(Content, Vec<String>), Reasons> {
    budget.spend(content.bytes.len() / BYTES_PER_STEP);
    let mut after = content.clone();
    if section.executable.is_some() {
        after.attributes.executable = section.executable;
    }
    if section.hunks.is_empty() {
        return Ok((after, Vec::new()));
    }
    require_text(path, "patch", &content.bytes).map_err(|error| reason(&error))?;
    let applied = apply(&Document::decode(content.bytes.clone()), &section.hunks, budget)?;
    after.bytes = applied.bytes;
    Ok((after, applied.remarks))
}

/// Whether the hunks could be the content of a new file.
fn only_adds(hunks: &[Hunk]) -> bool {
    !hunks.is_empty()
        && hunks
            .iter()
            .all(|hunk| hunk.old_lines().next().is_none() && hunk.old_start.unwrap_or(0) == 0)
}

fn require_free_parents(path: &ResolvedPath) -> Result<(), Reasons> {
    let present =
        path.real.ancestors().skip(1).find(|directory| directory.symlink_metadata().is_ok());
    match present {
        Some(file) if !file.is_dir() => {
            Err(vec![format!("{} is a file, so nothing can be put below it", last_name(file))])
        }
        _ => Ok(()),
    }
}

fn last_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn counts(hunks: &[Hunk]) -> String {
    let (added, removed) = hunks
        .iter()
        .map(Hunk::counts)
        .fold((0, 0), |sum, (added, removed)| (sum.0 + added, sum.1 + removed));
    if hunks.is_empty() { "mode".to_owned() } else { format!("+{added} -{removed}") }
}

fn name_of(section: &Section) -> &str {
    match &section.action {
        Action::Create(name) | Action::Update(name) | Action::Delete { name, .. } => {
            name.likeliest()
        }
        Action::UpdateOrMove { new, .. } => new.likeliest(),
        Action::Move { from, .. } | Action::Copy { from, .. } => from.likeliest(),
    }
}

fn reason(error: &ToolError) -> Reasons {
    vec![error.to_string()]
}
